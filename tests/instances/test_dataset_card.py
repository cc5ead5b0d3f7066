"""The dataset card says what the manifest says."""

from __future__ import annotations

import numpy as np

from corpusforge.instances.dataset_card import card_body, card_title
from corpusforge.instances.measure import LENGTH_BINS
from corpusforge.shards import Manifest


def manifest(masking: str = "static") -> Manifest:
    statistics = {
        "train": {
            "documents": 1234,
            "documents_empty": 2,
            "instances": 3000,
            "tokens": 90_000,
            "masked": 13_500,
            "lengths": [0] * 60 + [10, 20, 30, 2940],
            "ratios": {"fill": 0.5, "masked": 0.15, "pairs_next": 0.501, "pairs_random": 0.499},
        },
        "heldout": {"documents": 7, "instances": 9, "tokens": 300, "lengths": [9] + [0] * 63, "ratios": {"fill": 0.4}},
    }
    return Manifest(
        stage="build-instances",
        digest="d" * 32,
        content={"train": "a" * 32, "heldout": "b" * 32},
        rows={"train": 3000, "heldout": 9, "other": 0},
        bytes={},
        shards={},
        tallies={},
        statistics=statistics,
        recipe={"instances": {"format": "segment-pair", "length": 128, "masking": masking}, "seed": 7},
        upstream={"documents": "c" * 32, "vocab": "e" * 32},
        versions={"corpusforge": "0.1.0", "numpy": "2.4.6"},
    )


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_provenance_settings_and_numbers_are_in_it() -> None:
    text = card_body(manifest(), "f" * 32)
    cells = rows(text)
    for expected in (
        ["fingerprint of the instances", f"`{'f' * 32}`"],
        ["`train`, content", f"`{'a' * 32}`"],
        ["read: documents", f"`{'c' * 32}`"],
        ["read: vocab", f"`{'e' * 32}`"],
        ["numpy", "2.4.6"],
        ["`format`", "`segment-pair`"],
        ["", "train", "heldout"],
        ["documents", "1,234", "7"],
        ["of these, empty", "2", "0"],
        ["masked tokens", "13,500", "0"],
        ["of all tokens masked", "15.00%", ""],
        ["of pairs: B is of another document (label 1)", "49.90%", ""],
        ["1 to 8", "0", "9"],
        ["121 to 128", "3,000", "0"],
    ):
        assert expected in cells, expected
    assert "Seed 7" in text
    assert "Masks are stored" in text
    assert "not stored" in card_body(manifest("dynamic"), "")


def test_every_length_is_in_one_line_of_the_histogram() -> None:
    for longest in (8, 100, 128, 511, 512):
        changed = manifest()
        changed.recipe["instances"]["length"] = longest
        bins = (np.arange(1, longest + 1) * LENGTH_BINS + longest - 1) // longest - 1  # one instance of each length
        changed.statistics["train"]["lengths"] = np.bincount(bins, minlength=LENGTH_BINS).tolist()
        lines = [line for line in rows(card_body(changed, "")) if " to " in line[0]]
        bounds = [tuple(map(int, line[0].split(" to "))) for line in lines]
        assert [low for low, _ in bounds] == [1, *(high + 1 for _, high in bounds[:-1])]
        assert bounds[-1][1] == longest
        assert [int(line[1]) for line in lines] == [high - low + 1 for low, high in bounds]


def test_the_title_says_what_it_is() -> None:
    assert card_title("run", "doc-sentences") == "Training instances (doc-sentences)"
    assert card_title("bert-base", "segment-pair") == "Training instances of bert-base (segment-pair)"
