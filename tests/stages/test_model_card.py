"""The model card describes the corpus that was read, and has the settings of every stage."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from corpusforge.shards import Manifest
from corpusforge.stages.model_card import of_corpus, origin
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.model_card import model_card

TALLY = {"rows": 3, "bytes": 999}


def write(folder: Path, stage: str, read: dict[str, str], content: dict[str, str], **more: Any) -> Manifest:
    values: dict[str, Any] = {"rows": {}, "tallies": {}, "statistics": {}, "recipe": {}} | more
    values |= {"digest": folder.name, "content": content, "upstream": read}
    manifest = Manifest(stage, bytes={}, shards={}, versions={}, **values)
    folder.mkdir()
    manifest.save(str(folder))
    return manifest


@pytest.fixture
def line(tmp_path: Path) -> Manifest:
    """Folders of a line under names of their own, those of another corpus, and a file that is no manifest."""
    counts = {"records_in": 9, "raw_bytes_in": 9000, "documents_in": 9, "text_bytes_in": 5000}
    counts |= {"documents_out": 6, "text_bytes_out": 4000}
    cleaned = {"clean": {"rules": ["gopher", "/home/me/my.toml"], "badwords": "/home/me/words.txt"}}
    tallies = {"kept": TALLY, "page:too-short": TALLY}
    how: dict[str, Any] = {"recipe": cleaned, "tallies": tallies, "statistics": counts}
    write(tmp_path / "a", "clean", {"input": "raw"}, {"documents": "cleaned"}, **how)
    counts = {"documents_in": 6, "text_bytes_in": 4000, "documents_out": 5, "text_bytes_out": 3500}
    how = {"recipe": {"dedupe": {"method": ["lines"]}}, "tallies": {"span:repeat": TALLY}, "statistics": counts}
    write(tmp_path / "b", "dedupe", {"documents": "cleaned"}, {"documents": "deduplicated"}, **how)
    write(tmp_path / "v", "train-vocab", {}, {"vocab": "words"}, recipe={"vocab": {"size": 4096}})
    write(tmp_path / "clean", "clean", {"input": "other"}, {"documents": "others"}, tallies={"page:curly": TALLY})
    write(tmp_path / "dedupe", "dedupe", {"documents": "others"}, {"documents": "others too"})
    write(tmp_path / "vocab", "train-vocab", {}, {"vocab": "other words"})
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/manifest.json").write_text("[")
    read = {"documents": "deduplicated", "vocab": "words"}
    built = {"instances": {"length": 128, "mask_lexicon": ""}, "seed": 0}
    return write(tmp_path / "i", "build-instances", read, {}, recipe=built, rows={"train": 70, "heldout": 2})


def test_stages_are_identified_by_their_content(tmp_path: Path, line: Manifest) -> None:
    manifests = origin(str(tmp_path / "i"), line)
    assert {stage: manifest.digest for stage, manifest in manifests.items()} == {
        "clean": "a",
        "dedupe": "b",
        "train-vocab": "v",
        "build-instances": "i",
    }
    (tmp_path / "b/manifest.json").unlink()  # without the link between, nothing is known of the beginning
    assert list(origin(str(tmp_path / "i"), line)) == ["train-vocab", "build-instances"]


def test_a_corpus_that_was_not_deduplicated(tmp_path: Path) -> None:
    write(tmp_path / "c", "clean", {"input": "raw"}, {"documents": "cleaned"})
    instances = write(tmp_path / "i", "build-instances", {"documents": "cleaned"}, {})
    assert list(origin(str(tmp_path / "i"), instances)) == ["clean", "build-instances"]


def test_the_card_shows_fingerprint_funnel_reasons_recipe_and_losses(tmp_path: Path, line: Manifest) -> None:
    card = of_corpus("mine", str(tmp_path / "i"), line, {"preset": "bert-tiny", "steps": 10, "budget": ""})
    json.dumps(card)
    training = {"loss": "2.5000", "held-out MLM loss": "2.7500"}
    shape = Architecture("bert", 2, 32, 2, 64, 192, 64, 2, 1e-12, 0.1, 0, False)
    text = model_card(Encoder(shape), card | {"corpus": "f00d", "training": training})
    assert "# mine\n" in text
    assert "`f00d`" in text
    for row in (
        "| raw records | 9 | 9,000 |",
        "| cleaned | 6 | 4,000 |",
        "| deduplicated | 5 | 3,500 |",
        "Instances: 70 train, 2 heldout.",
        "| `page:too-short` | 3 | 999 |",
        "| `span:repeat` | 3 | 999 |",
        "| loss | 2.5000 |",
        "| held-out MLM loss | 2.7500 |",
    ):
        assert row in text, row
    assert "curly" not in text
    assert "kept" not in text
    assert "/home/me" not in text
    inside = text.split("```toml\n")[1].split("```")[0]
    assert tomllib.loads(inside) == {
        "clean": {"rules": ["gopher", "my.toml"], "badwords": "words.txt"},
        "dedupe": {"method": ["lines"]},
        "vocab": {"size": 4096},
        "instances": {"length": 128},
        "pretrain": {"preset": "bert-tiny", "steps": 10},
    }
