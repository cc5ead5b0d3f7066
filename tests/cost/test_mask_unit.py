"""What a new mask unit costs: one file, and one row of the table in sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost.changed_copy import copy_package, prepare, rows_of, run

pytestmark = pytest.mark.slow

FILE = '''"""Mask unit of fixed pairs of tokens: the first and second of an instance, the third and fourth, ..."""

import numpy as np

from corpusforge.arrays import offsets_of
from corpusforge.instances.mask_units import Choice, MaskUnit, choose_numbers


def choose(keys, maskable, word_starts, offsets, budgets):
    candidates = np.flatnonzero(maskable)
    bounds = np.searchsorted(candidates, offsets)
    counts = np.diff(bounds) // 2
    pairs = offsets_of(counts)
    chosen = choose_numbers(keys, pairs, np.minimum(budgets // 2, counts))
    owner = np.searchsorted(pairs, chosen, "right") - 1
    first = bounds[owner] + 2 * (chosen - pairs[owner])
    return Choice(candidates[np.stack((first, first + 1), 1).ravel()])


UNITS = {"token-pair": MaskUnit(choose, needs_words=False)}
'''
LINE = '    "whole-word": Named('
ROW = '    "token-pair": Named("mask_pairs", "fixed pairs of tokens"),\n'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"corpusforge/instances/mask_pairs.py": FILE}
    return copy_package(
        tmp_path_factory.mktemp("copy"), files, {"corpusforge/sections/instances.py": [(LINE, ROW + LINE)]}
    )


def test_a_new_unit_masks_stored_and_dynamic(copy: Path, tmp_path: Path) -> None:
    build = prepare(copy, tmp_path)
    for masking in ("static", "dynamic"):
        run(copy, *build, "--output", str(tmp_path / masking), "--masking", masking, "--mask-unit", "token-pair")
    counts = []
    for row in rows_of(tmp_path / "static", "train"):
        positions, words = row["masked_positions"], [t for t, _ in enumerate(row["input_ids"])]
        assert len(positions) % 2 == 0
        assert len(positions) <= max(1, round(0.15 * len(words)))
        counts.append(len(positions))
    assert sum(counts) > 200
    assert "masked_positions" not in rows_of(tmp_path / "dynamic", "train")[0]
    run(
        copy,
        *("pretrain", str(tmp_path / "dynamic"), "--output", str(tmp_path / "model"), "--preset", "bert-tiny"),
        *("--steps", "3", "--batch-tokens", "1024", "--micro-batch-tokens", "512", "--warmup-steps", "1"),
        *("--device", "cpu"),
    )
    assert (tmp_path / "model/model/model.safetensors").exists()


def test_a_new_unit_is_in_the_help(copy: Path) -> None:
    shown = " ".join(run(copy, "build-instances", "--help").split())
    assert "token-pair: fixed pairs of tokens" in shown
    assert "|token-pair|" in shown
