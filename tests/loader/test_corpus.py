"""Instances as arrays: shards that cannot be read are one clear error, rows hold what shards hold, masks are those of
the builder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, schemas, seeds, shards
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.batcher import load_specials
from corpusforge.loader.corpus import (
    BYTES_AN_INSTANCE,
    BYTES_OF_MASKS,
    BYTES_OF_WORD_STARTS,
    Chunks,
    Corpus,
    Ragged,
    Rows,
    cut_to_length,
    draw_masks,
    flat_positions,
    gather,
    open_corpus,
    open_table,
)
from corpusforge.loader.order import BYTES_A_CHUNK, Stream, streams
from corpusforge.sections import Pretrain
from corpusforge.sections.instances import MASK_UNITS
from corpusforge.trainer.training_plan import training_plan
from tests.instances.token_batches import instances_of
from tests.made_up_instances import VOCABULARY, Data, write_table

pytest_plugins = ["tests.made_up_data"]
MakeData = Callable[..., Data]


def paths(data: Data) -> list[str]:
    return shards.Manifest.load(data.instances).paths(data.instances, "train")


def test_an_empty_shard_between_others(make_data: MakeData, tmp_path: Path) -> None:
    data = make_data(files=2)
    one, two = paths(data)
    write_table(tmp_path, "empty", [], 1, masks=False)
    schema = schemas.instances_schema(VOCABULARY, masks=False)
    with pa.ipc.new_stream(str(tmp_path / "norows.arrow"), schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([], schema))
    empty = [str(tmp_path / "empty/part-00000-00000.arrow"), str(tmp_path / "norows.arrow")]
    whole, holed = open_corpus([one, two]), open_corpus([empty[0], one, empty[1], two])
    rows = np.arange(len(whole))
    within, owner = flat_positions(whole.lengths)
    assert np.array_equal(whole.ids.take(rows, within, owner), holed.ids.take(rows, within, owner))
    with pytest.raises(errors.TrainingStopped):
        open_corpus(empty)


@pytest.mark.parametrize("kind", ["dynamic", "stored", "pairs"])
def test_what_is_held_for_each_instance(make_data: MakeData, kind: str) -> None:
    data = make_data(count=500, longest=48, pairs=kind == "pairs", copies=2 if kind == "stored" else 0)
    corpus = open_corpus(paths(data))
    stated = corpus_bytes = BYTES_AN_INSTANCE + (BYTES_OF_MASKS if kind == "stored" else 0)
    assert stated - 4 <= bytes_held(corpus) / len(corpus) <= stated
    settings = Pretrain(preset="bert-tiny", steps=20, batch_tokens=500, short_length=24, short_share=0.5)
    made = streams(corpus, training_plan(settings, corpus.longest).parts, 0)
    for stream in made:
        stream.step(stream.part.start)
        stated += (BYTES_A_CHUNK + 4 * (kind == "pairs")) * len(stream.chunks.rows) / len(corpus)
    everything = bytes_held(corpus, *made, *(stream._order(stream.first_epoch) for stream in made))
    assert corpus_bytes < everything / len(corpus) <= stated


def bytes_held(*owners: object) -> int:
    """Bytes of all arrays below some objects, each once; files stay on the disk."""
    arrays: dict[int, int] = {}

    def visit(value: object) -> None:
        if isinstance(value, np.ndarray):
            arrays[value.ctypes.data] = value.nbytes
        elif isinstance(value, tuple | list):
            for member in value:
                visit(member)
        elif isinstance(value, Corpus | Ragged | Chunks | Stream):
            for name, member in vars(value).items():
                if name != "files":
                    visit(member)

    visit(owners)
    return sum(arrays.values())


def test_unreadable_shards(make_data: MakeData, tmp_path: Path) -> None:
    path = Path(paths(make_data(files=1))[0])
    with pytest.raises(errors.ManifestInvalid):
        open_corpus([str(tmp_path / "nothing.arrow")])
    (tmp_path / "noise.arrow").write_bytes(b"no arrow file at all")
    with pytest.raises(errors.ManifestInvalid):
        open_corpus([str(tmp_path / "noise.arrow")])
    batch = next(shards.read_shard(str(path)))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(str(tmp_path / "small.arrow"), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    with pytest.raises(errors.ManifestInvalid, match="compressed"):
        open_corpus([str(tmp_path / "small.arrow")])


@pytest.mark.parametrize("lost", [1, 100, 2000])
def test_a_shard_that_was_cut_short(make_data: MakeData, lost: int) -> None:
    data = make_data()
    manifest, path = shards.Manifest.load(data.instances), Path(paths(data)[1])
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(errors.ManifestInvalid, match="bytes its manifest says"):
        open_table(data.instances, manifest, "train")
    path.unlink()
    with pytest.raises(errors.ManifestInvalid):
        open_table(data.instances, manifest, "train")


def opened(data: Data) -> Corpus:
    return open_corpus(shards.Manifest.load(data.instances).paths(data.instances, "train"))


def raw_rows(data: Data) -> list[dict]:  # type: ignore[type-arg]
    paths = shards.Manifest.load(data.instances).paths(data.instances, "train")
    return [row for path in paths for batch in shards.read_shard(path) for row in batch.to_pylist()]


def split(rows: Rows) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.ids.astype(np.int64), rows.offsets[1:-1])]


@pytest.mark.parametrize("room", [16, 48])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("files", [1, 4])
def test_gathered_rows_are_slices_of_the_instances(make_data: MakeData, room: int, pairs: bool, files: int) -> None:
    data = make_data(pairs=pairs, copies=2, files=files)
    corpus, raw = opened(data), raw_rows(data)
    chunks = cut_to_length(corpus, room)
    chosen = np.random.default_rng(0).permutation(len(chunks.rows))
    rows = gather(corpus, chunks, chosen)
    masked_row = np.searchsorted(rows.offsets, rows.masked, side="right") - 1
    for k, (chunk, ids) in enumerate(zip(chosen, split(rows), strict=True)):
        instance, shift, n = raw[chunks.rows[chunk]], chunks.shifts[chunk], chunks.lengths[chunk]
        assert ids == [instance["input_ids"][0], *instance["input_ids"][1 + shift : n - 1 + shift], ids[-1]]
        assert ids[-1] == instance["input_ids"][-1]
        shown = dict(
            zip((rows.masked - rows.offsets[k])[masked_row == k].tolist(), rows.labels[masked_row == k], strict=True)
        )
        stored = dict(zip(instance["masked_positions"], instance["masked_labels"], strict=True))
        assert shown == {p - shift: label for p, label in stored.items() if 1 <= p - shift < n - 1}
    if pairs and rows.pair_labels is not None:
        assert rows.pair_labels.tolist() == [raw[r]["pair_label"] for r in chunks.rows[chosen]]


def test_static_masks_are_dynamic_masks_at_epoch_0(make_data: MakeData) -> None:
    dynamic, static = (opened(make_data(copies=copies, name=str(copies))) for copies in (0, 1))
    masker = Masker(load_specials(make_data(name="v").vocabulary), MaskSettings(), 0)
    drawn, stored = (gather(corpus, cut_to_length(corpus, 99), np.arange(len(corpus))) for corpus in (dynamic, static))
    drawn = draw_masks(drawn, masker, 0)
    for name in ("ids", "masked", "labels", "keys"):
        assert np.array_equal(getattr(drawn, name), getattr(stored, name)), name


SPECIALS = Specials(VOCABULARY, 0, 1, 2, 3, 4, (5, 6))


def made_up_tokens(documents: int = 90) -> pa.RecordBatch:
    rows = []
    for number in range(documents):
        rng = seeds.rng_for(0, "tokens", number)
        lengths = rng.integers(1, 30, 4)
        ids = rng.integers(10, VOCABULARY, lengths.sum())
        starts = rng.random(len(ids)) < 0.6
        rows.append({"document": str(number), "ids": ids, "sentences": lengths, "word_starts": starts})
    return pa.RecordBatch.from_pylist(rows, schemas.tokens_schema(VOCABULARY, word_starts=True))


def built(folder: Path, settings: BuildSettings, copies: int) -> Corpus:
    """Shards of three record batches each, as build-instances writes them."""
    paths, whole, builder = [], made_up_tokens(), Builder(settings)
    for number in range(2):
        part = whole.slice(number * 45, 45)
        writer = shards.ShardWriter(str(folder), f"part-{number}-{copies}.arrow", builder.schema, "arrow")
        for copy in range(copies):
            built = instances_of(builder, part, copy)
            for begin in range(0, built.num_rows, 37):
                writer.write(built.slice(begin, 37))
        writer.finish()
        paths.append(str(folder / f"part-{number}-{copies}.arrow"))
    return open_corpus(paths)


@pytest.mark.parametrize("unit", MASK_UNITS)
def test_dynamic_masks_are_those_of_the_duplicates(tmp_path: Path, unit: str) -> None:
    settings = BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit=unit), seed=9)
    dynamic = built(tmp_path, settings, 1)
    stored = built(tmp_path, dataclasses.replace(settings, stored_masks=True), 3)
    masker = Masker(SPECIALS, settings.mask, settings.seed)
    mixed = np.random.default_rng(0).permutation(len(dynamic))
    for copy in range(3):
        rows = draw_masks(gather(dynamic, cut_to_length(dynamic, 48), mixed), masker, copy)
        there = np.flatnonzero(stored.copies == copy)
        order = dict(zip(stored.keys[there].tolist(), there.tolist(), strict=True))
        chosen = np.array([order[key] for key in rows.keys.tolist()])
        expected = gather(stored, cut_to_length(stored, 48), chosen)
        assert len(rows.masked) > len(rows.lengths)
        for name in ("ids", "lengths", "keys", "masked", "labels"):
            assert np.array_equal(getattr(rows, name), getattr(expected, name)), name


def test_word_starts_are_read_from_the_bits_of_the_files(tmp_path: Path) -> None:
    settings = BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit="span"))
    corpus, builder = built(tmp_path, settings, 1), Builder(settings)
    assert corpus.word_starts is not None
    mapped = [instances_of(builder, made_up_tokens().slice(k * 45, 45))["word_starts"].to_pylist() for k in range(2)]
    rows = np.random.default_rng(1).permutation(len(corpus))
    within, owner = flat_positions(corpus.lengths[rows])
    flags = corpus.word_starts.take(rows, within, owner)
    everything = mapped[0] + mapped[1]
    assert flags.tolist() == [flag for row in rows.tolist() for flag in everything[row]]
    assert np.array_equal(corpus.word_starts.whole(rows), flags)
    assert np.array_equal(corpus.ids.whole(rows), corpus.ids.take(rows, within, owner))
    packed = corpus.word_starts.packed
    assert packed.start.itemsize + packed.count.itemsize == BYTES_OF_WORD_STARTS < BYTES_AN_INSTANCE


@pytest.mark.parametrize("room", [16, 30])
def test_chunks_of_instances_have_their_own_word_starts(tmp_path: Path, room: int) -> None:
    corpus = built(tmp_path, BuildSettings(SPECIALS, length=48, mask=MaskSettings(unit="whole-word")), 1)
    chunks = cut_to_length(corpus, room)
    assert len(chunks.rows) > len(corpus)
    rows = gather(corpus, chunks, np.arange(len(chunks.rows)))
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
