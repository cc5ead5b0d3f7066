"""Folders that the first release wrote open as today's do: its manifest, written out here as it was, stays readable."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import corpusforge as cf

MANIFEST = {
    "stage": "dedupe",
    "digest": "4b1cb1b4c0ad4b8e0f0c1f4f5a3a6d10",
    "content": {"documents": "aa", "repeats": "bb", "clusters": "cc"},
    "rows": {"documents": 2, "repeats": 1, "clusters": 1},
    "bytes": {"documents": 100, "repeats": 100, "clusters": 100},
    "shards": {
        name: [{"name": f"{name}/part-00000-00000.parquet", "rows": rows, "bytes": 1, "digest": "d", "content": "c"}]
        for name, rows in (("documents", 2), ("repeats", 1), ("clusters", 1))
    },
    "tallies": {"kept": {"rows": 2, "bytes": 10}, "page:near-duplicate": {"rows": 1, "bytes": 5}},
    "statistics": {"documents_in": 3, "documents_out": 2, "text_bytes_in": 15, "text_bytes_out": 10},
    "recipe": {"dedupe": {"method": ["documents"], "survivor": "hash"}},
    "upstream": {"documents": "ee"},
    "versions": {"corpusforge": "0.1.0"},
}
TABLES = {
    "documents": pa.table({"id": ["a", "b"], "text": ["one", "two"]}),
    "repeats": pa.table({"document": ["c"], "reason": ["page:near-duplicate"], "text": ["one"]}),
    "clusters": pa.table({"document": ["c"], "survivor": ["a"]}),
}


def test_a_folder_of_the_first_release_opens(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    for name, table in TABLES.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "part-00000-00000.parquet")
    result = cf.load(tmp_path)
    assert isinstance(result, cf.Result) and result.tables == ("documents", "clusters", "repeats")
    assert result.table() == TABLES["documents"] and result.table("clusters") == TABLES["clusters"]
    assert result.dropped("page:near-duplicate")[0]["document"] == "c"
    assert "dedupe" in result._repr_html_() and not result.warnings
