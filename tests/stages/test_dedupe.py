"""An index of signatures as an input of the stage: part of its digest by content, refused where it has none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpusforge import errors
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections import Dedupe, Recipe
from corpusforge.shards import Manifest, ShardWriter, read_shard
from corpusforge.stages.dedupe import dedupe as run_dedupe
from corpusforge.stages.stage import Execution, Outcome

HERE = Execution(workers=1)


def stage(folder: Path, texts: dict[str, str]) -> str:
    """A finished stage with these documents."""
    rows = [{"id": name, "source": "made", "position": 0, "text": text} for name, text in texts.items()]
    writer = ShardWriter(str(folder), "documents/part-00000-00000.parquet", DOCUMENTS, "parquet")
    writer.write(pa.RecordBatch.from_pylist(rows, schema=DOCUMENTS))
    shard = writer.finish()
    tables = {"documents": [shard]}
    sums = {"documents": shard.rows}, {"documents": shard.bytes}
    Manifest("clean", "0" * 32, {"documents": shard.content}, *sums, tables, {}, {}, {}, {}, {}).save(str(folder))
    return str(folder)


def dedupe(
    upstream: str, output: Path, index: tuple[str, ...] = (), *, root: Path = Path(), **settings: object
) -> Outcome:
    named = tuple(str(root / name) for name in index)
    section = Dedupe(**{"method": ("documents",), "index": named, **settings})  # type: ignore[arg-type]
    return run_dedupe(Recipe(dedupe=section), upstream, str(output), HERE)


def read(done: Outcome, table: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    paths = done.manifest.paths(done.folder, table)
    return [row for path in paths for batch in read_shard(path) for row in batch.to_pylist()]


def page(name: str) -> str:
    return " ".join(f"{name}{i}" for i in range(80)) + "."


@pytest.mark.slow
def test_an_index_is_identified_by_its_content(tmp_path: Path) -> None:
    january = stage(tmp_path / "january", {"a": page("a"), "b": page("b")})
    february = stage(tmp_path / "february", {"b2": page("b"), "c": page("c")})
    first = dedupe(january, tmp_path / "d1", export_signatures=True)
    assert first.manifest.rows["signatures"] == 2
    second = dedupe(february, tmp_path / "d2", (str(tmp_path / "d1"),))
    assert second.manifest.tallies == {"page:in-index": {"rows": 1, "bytes": len(page("b"))}}
    assert second.manifest.rows["documents"] == second.manifest.rows["signatures"] == 1
    shutil.move(tmp_path / "d1", tmp_path / "moved")
    assert dedupe(february, tmp_path / "d2", (str(tmp_path / "moved"),)).skipped
    dedupe(february, tmp_path / "other", export_signatures=True)
    with pytest.raises(errors.OutputTaken, match="other input"):
        dedupe(february, tmp_path / "d2", (str(tmp_path / "moved"), str(tmp_path / "other")))
    march = stage(tmp_path / "march", {"a3": page("a"), "c3": page("c"), "e": page("e")})
    both = (str(tmp_path / "moved"), str(tmp_path / "d2"))
    third = dedupe(march, tmp_path / "d3", both)
    assert third.manifest.tallies["page:in-index"]["rows"] == 2
    assert dedupe(march, tmp_path / "d3", both[::-1]).skipped


@pytest.mark.slow
def test_a_folder_without_an_index_is_refused_before_the_work(tmp_path: Path) -> None:
    upstream = stage(tmp_path / "in", {"a": page("a")})
    with pytest.raises(errors.StageMismatch, match="no signatures"):
        dedupe(upstream, tmp_path / "out", (upstream,))
    with pytest.raises(errors.ManifestInvalid):
        dedupe(upstream, tmp_path / "out", (str(tmp_path / "nothing"),))
    dedupe(upstream, tmp_path / "index", export_signatures=True)
    with pytest.raises(errors.StageMismatch, match="signed with"):
        dedupe(upstream, tmp_path / "out", (str(tmp_path / "index"),), shingle_words=4)
    with pytest.raises(errors.RecipeInvalid, match="looks into no index"):
        dedupe(upstream, tmp_path / "out", (str(tmp_path / "index"),), method=("exact-spans",))


def test_documents_of_an_index_get_a_prefix(tmp_path: Path) -> None:
    """Ids come from source and position, so two corpora may share some: those of an index get its name as a prefix."""
    index = dedupe(stage(tmp_path / "old", {"x": page("a"), "y": page("b")}), tmp_path / "d1", export_signatures=True)
    done = dedupe(stage(tmp_path / "new", {"x": page("c"), "y": page("c"), "z": page("a")}), tmp_path / "d2", ("d1",),
                  root=tmp_path)  # fmt: skip
    name = f"index:{index.manifest.content['signatures'][:8]}:x"
    rows = {row["document"]: row for row in read(done, "repeats")}
    assert (rows["z"]["reason"], rows["z"]["kept_document"], rows["z"]["kept_start"]) == ("page:in-index", name, None)
    (other,) = rows.keys() - {"z"}
    assert rows[other]["reason"] == "page:near-duplicate" and rows[other]["kept_document"] in {"x", "y"} - {other}
    assert {row["kept"] for row in read(done, "clusters")} == {name, rows[other]["kept_document"]}


def test_counts_do_not_depend_on_the_order_of_ids(tmp_path: Path) -> None:
    """Each document here is similar to one of the index: twelve pairs, whatever the hashes of ids."""
    old = {f"old{i}": page(f"p{i}") for i in range(12)}
    new = {f"new{i}": page(f"p{i}").replace(f"p{i}7 ", "changed ", 1) for i in range(12)}
    dedupe(stage(tmp_path / "old", old), tmp_path / "d1", export_signatures=True)
    done = dedupe(stage(tmp_path / "new", new), tmp_path / "d2", ("d1",), root=tmp_path, threshold=0.7)
    counts = done.manifest.statistics
    assert counts["documents_out"] == counts["clusters"] == 0
    assert counts["pairs_alike"] == counts["pairs_compared"] == done.manifest.tallies["page:in-index"]["rows"] == 12


@pytest.mark.slow
def test_signatures_are_of_the_documents_that_the_chain_keeps(tmp_path: Path) -> None:
    upstream = stage(tmp_path / "in", {"a": page("a"), "b": page("b")})
    chain = ("documents", "exact-spans")
    with pytest.raises(errors.RecipeInvalid, match="documents must come last to export signatures"):
        dedupe(upstream, tmp_path / "out", method=chain, export_signatures=True)
    dedupe(upstream, tmp_path / "d1", method=chain[::-1], export_signatures=True)
    done = dedupe(upstream, tmp_path / "d2", ("d1",), root=tmp_path, method=chain)
    assert "signatures" not in done.manifest.rows
