"""Instance shards that cannot be read are one clear error; empty ones are no trouble."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors, schemas, shards
from corpusforge.loader.corpus import (
    BYTES_AN_INSTANCE,
    BYTES_OF_MASKS,
    Corpus,
    Ragged,
    flat_positions,
    open_corpus,
    open_table,
)
from corpusforge.loader.order import BYTES_A_PIECE, Pieces, Stream, streams
from corpusforge.trainer.course import chart
from corpusforge.trainer.settings import Settings
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
    settings = Settings(preset="bert-tiny", steps=20, batch_tokens=500, short_length=24, short_share=0.5)
    made = streams(corpus, chart(settings, corpus.longest).parts, 0)
    for stream in made:
        stream.step(stream.part.start)
        stated += (BYTES_A_PIECE + 4 * (kind == "pairs")) * len(stream.pieces.rows) / len(corpus)
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
        elif isinstance(value, Corpus | Ragged | Pieces | Stream):
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
