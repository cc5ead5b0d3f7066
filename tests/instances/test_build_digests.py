"""Digests of every format with every mask unit: the same for other units, shards, orders and sizes of batches."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusforge import shards
from corpusforge.content import combine
from corpusforge.instances import build as work
from corpusforge.instances import negatives
from corpusforge.instances.builder import BuildSettings
from corpusforge.instances.masking import MaskSettings
from corpusforge.units import ShardUnit
from tests.instances.test_build import HELDOUT, NEGATIVES, SETTINGS, VOCAB, nothing, write_documents

FORMATS = ("doc-sentences", "full-sentences", "segment-pair", "sentence-pair", "sop")
UNITS = ("token", "whole-word", "ngram", "span")
WHOLE = (0, 400)
CUT = (0, 1, 70, 70, 280, 400)


def encoded(folder: Path, cuts: Sequence[int]) -> list[ShardUnit]:
    encode = work.EncodeWork(str(folder / "encoded"), VOCAB, word_starts=True)
    for unit in write_documents(folder, list(cuts)):
        encode(unit, nothing)
    return work.token_units(str(folder / "encoded"))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> dict[Sequence[int], tuple[list[ShardUnit], str]]:
    """TOKENS of the corpus as one shard and as five, one of them empty, with negatives."""
    encoded_units = {}
    for cuts in (WHOLE, CUT):
        folder = tmp_path_factory.mktemp("tokens")
        units = encoded(folder, cuts)
        encoded_units[cuts] = (
            units,
            negatives.write_negatives(str(folder), [unit.path for unit in units], VOCAB.size, NEGATIVES),
        )
    return encoded_units


def digests(
    folder: Path,
    given: tuple[list[ShardUnit], str],
    settings: BuildSettings,
    *,
    backwards: bool = False,
    **changes: Any,
) -> dict[str, tuple[str, int]]:
    units, drawn = given
    maker = work.BuildWork(str(folder), settings, copies=2, heldout=HELDOUT, negatives=drawn, **changes)
    for unit in reversed(units) if backwards else units:
        maker(unit, nothing)
    tables = shards.gather(shards.load_entries(str(folder)))[0]
    return {t: (combine(s.content for s in written), sum(s.rows for s in written)) for t, written in tables.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("format", "unit"), itertools.product(FORMATS, UNITS))
def test_digests(format: str, unit: str, tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dataclasses.replace(SETTINGS, format=format, mask=MaskSettings(unit=unit))
    expected = digests(tmp_path / "whole", tokens[WHOLE], settings)
    assert min(rows for _, rows in expected.values()) > 0
    cut = digests(tmp_path / "cut", tokens[CUT], settings, shard_bytes=20_000)
    if format == "full-sentences":  # fills across the documents of a shard: depends on its cut, and on nothing else
        assert cut != expected
        expected = cut
    assert cut == expected
    assert digests(tmp_path / "backwards", tokens[CUT], settings, backwards=True) == expected
    if format != "full-sentences":  # and across those of one batch
        monkeypatch.setattr(work, "TOKENS", 3000)
        assert digests(tmp_path / "batches", tokens[WHOLE], settings) == expected
