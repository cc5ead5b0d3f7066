"""What a new method of deduplication costs: one file, and one row of the table of methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpusforge.dedupe.methods import method_run
from corpusforge.sections.corpus import METHODS
from tests.cost.changed_copy import ALL_PAGES, copy_package, rows_of, run

LINE = "METHODS = {\n"
ROW = '    "first-words": Method("documents of equal first words", ("min_words",)),\n'
MODULE = '''"""The method `first-words`: keep the first of the documents of a shard that begin with the same words."""

import dataclasses
from collections.abc import Iterator

import pyarrow as pa

from corpusforge import schemas
from corpusforge.dedupe.job import Job, as_schema, documents_schema, slices, text_size
from corpusforge.units import Advance, ShardUnit, UnitResult, Written, write_unit


def run(job: Job) -> list[UnitResult]:
    return job.map(FirstWordsWork(job.output, job.settings.min_words), label="first words", folder=job.output)


@dataclasses.dataclass(frozen=True)
class FirstWordsWork:
    output: str
    words: int

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        tables = {"documents": (documents_schema(unit), "parquet"), "repeats": (schemas.REPEATS, "parquet")}
        return write_unit(self.output, unit, tables, lambda _: self.batches(unit), advance)

    def batches(self, unit: ShardUnit) -> Iterator[Written]:
        seen: set[str] = set()
        for documents in slices(unit.path):
            begins = [" ".join(text.split()[: self.words]) for text in documents.column("text").to_pylist()]
            rows = [row for row, begin in enumerate(begins) if begin not in seen and not seen.add(begin)]
            kept = documents.take(pa.array(rows))
            sizes = {"text_bytes_in": text_size(documents), "text_bytes_out": text_size(kept)}
            counts = {"documents_in": documents.num_rows, "documents_out": kept.num_rows, **sizes}
            tables = {"documents": as_schema(kept, documents_schema(unit))}
            tables["repeats"] = pa.RecordBatch.from_pylist([], schema=schemas.REPEATS)
            yield Written(documents.num_rows, tables, counts)
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file and one more row."""
    files, changes = (
        {"corpusforge/dedupe/first_words.py": MODULE},
        {"corpusforge/sections/corpus.py": [(LINE, LINE + ROW)]},
    )
    return copy_package(tmp_path_factory.mktemp("copy"), files, changes)


@pytest.mark.slow
@pytest.mark.parametrize("methods", ["first-words", "first-words,exact-spans"])
def test_the_new_method_runs_alone_and_in_a_chain(methods: str, copy: Path, tmp_path: Path) -> None:
    texts = ["One page of text.", "One page of words.", "Another page here.", "Another page there."]
    pages, clean = tmp_path / "pages.jsonl", str(tmp_path / "clean")
    pages.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    run(copy, "clean", str(pages), "--output", clean, "--rules=", *ALL_PAGES)
    dedupe = ["dedupe", clean, "--method", methods, "--min-words", "2", "--workers", "1"]
    run(copy, *dedupe, "--output", f"{tmp_path}/out")
    kept = [row["text"] for row in rows_of(tmp_path / "out", "documents")]
    assert kept == ["One page of text.", "Another page here."]


def test_help_and_checks_know_the_new_method(copy: Path) -> None:
    shown = " ".join(run(copy, "dedupe", "--help").split())
    assert "first-words (documents of equal first words)" in shown
    assert "first-words, lines, exact-spans, near-spans: a document that lost text and has fewer left" in shown
    wrong = run(copy, "dedupe", ".", "--output", "out", "--method", "no-words", code=1)
    assert "none of first-words, lines, exact-spans" in wrong


@pytest.mark.parametrize("name", METHODS)
def test_every_row_of_the_table_is_a_module(name: str) -> None:
    assert method_run(name).__module__ == f"corpusforge.dedupe.{name.replace('-', '_')}"
