"""Every mask unit: dynamic masks at epoch k are those of the k-th duplicate, from built shards to rows of a step."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import schemas, seeds, shards
from corpusforge.instances.build import Builder, BuildSettings
from corpusforge.instances.masking import UNITS, Masker, MaskSettings, Specials
from corpusforge.loader.corpus import BYTES_AN_INSTANCE, BYTES_OF_WORD_STARTS, Corpus, flat_positions, open_corpus
from corpusforge.loader.order import cut_pieces
from corpusforge.loader.rows import draw_masks, gather
from tests.made_up_instances import VOCABULARY

SPECIALS = Specials(VOCABULARY, 0, 1, 2, 3, 4, (5, 6))


def tokens(documents: int = 90) -> pa.RecordBatch:
    rows = []
    for number in range(documents):
        rng = seeds.rng_for(0, "tokens", number)
        lengths = rng.integers(1, 30, 4)
        ids = rng.integers(10, VOCABULARY, lengths.sum())
        starts = rng.random(len(ids)) < 0.6
        rows.append({"document": str(number), "ids": ids, "sentences": lengths, "word_starts": starts})
    return pa.RecordBatch.from_pylist(rows, schemas.tokens_schema(VOCABULARY, word_starts=True))


def opened(folder: Path, settings: BuildSettings, copies: int) -> Corpus:
    """Shards of three record batches each, as build-instances writes them."""
    paths, whole, builder = [], tokens(), Builder(settings)
    for number in range(2):
        part = whole.slice(number * 45, 45)
        writer = shards.ShardWriter(str(folder), f"part-{number}-{copies}.arrow", builder.schema, "arrow")
        for copy in range(copies):
            built = builder.build(part, copy)
            for begin in range(0, built.num_rows, 37):
                writer.write(built.slice(begin, 37))
        writer.finish()
        paths.append(str(folder / f"part-{number}-{copies}.arrow"))
    return open_corpus(paths)


@pytest.mark.parametrize("unit", UNITS)
def test_dynamic_masks_are_those_of_the_duplicates(tmp_path: Path, unit: str) -> None:
    settings = BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit=unit), seed=9)
    dynamic = opened(tmp_path, settings, 1)
    stored = opened(tmp_path, dataclasses.replace(settings, stored_masks=True), 3)
    masker = Masker(SPECIALS, settings.mask, settings.seed)
    mixed = np.random.default_rng(0).permutation(len(dynamic))
    for copy in range(3):
        rows = draw_masks(gather(dynamic, cut_pieces(dynamic, 48), mixed), masker, copy)
        there = np.flatnonzero(stored.copies == copy)
        order = dict(zip(stored.keys[there].tolist(), there.tolist(), strict=True))
        chosen = np.array([order[key] for key in rows.keys.tolist()])
        expected = gather(stored, cut_pieces(stored, 48), chosen)
        assert len(rows.masked) > len(rows.lengths)
        for name in ("ids", "lengths", "keys", "masked", "labels"):
            assert np.array_equal(getattr(rows, name), getattr(expected, name)), name


def test_word_starts_are_read_from_the_bits_of_the_files(tmp_path: Path) -> None:
    settings = BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit="span"))
    corpus, builder = opened(tmp_path, settings, 1), Builder(settings)
    assert corpus.word_starts is not None
    mapped = [builder.build(tokens().slice(k * 45, 45))["word_starts"].to_pylist() for k in range(2)]
    rows = np.random.default_rng(1).permutation(len(corpus))
    within, owner = flat_positions(corpus.lengths[rows])
    found = corpus.word_starts.take(rows, within, owner)
    everything = mapped[0] + mapped[1]
    assert found.tolist() == [flag for row in rows.tolist() for flag in everything[row]]
    assert np.array_equal(corpus.word_starts.whole(rows), found)
    assert np.array_equal(corpus.ids.whole(rows), corpus.ids.take(rows, within, owner))
    packed = corpus.word_starts.packed
    assert packed.start.itemsize + packed.count.itemsize == BYTES_OF_WORD_STARTS < BYTES_AN_INSTANCE


@pytest.mark.parametrize("room", [16, 30])
def test_pieces_of_instances_have_their_own_word_starts(tmp_path: Path, room: int) -> None:
    corpus = opened(tmp_path, BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit="whole-word")), 1)
    pieces = cut_pieces(corpus, room)
    assert len(pieces.rows) > len(corpus)
    rows = gather(corpus, pieces, np.arange(len(pieces.rows)))
    assert rows.word_starts is not None
    assert len(rows.word_starts) == len(rows.ids)
    assert rows.word_starts[rows.offsets[:-1]].all()
    assert rows.word_starts[rows.offsets[1:] - 1].all()
    counts = np.bincount(
        np.searchsorted(
            rows.offsets, draw_masks(rows, Masker(SPECIALS, MaskSettings(unit="whole-word"), 0), 2).masked, "right"
        )
        - 1
    )
    assert counts.max() <= max(1, round(room * 0.15))
