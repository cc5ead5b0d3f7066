"""What a new method of deduplication costs: one file, and one row of the table of methods."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpusforge.dedupe.methods import method_run
from corpusforge.sections.corpus import METHODS

ROOT = Path(__file__).resolve().parents[2]
ROW = 'METHODS = {\n    "first-words": Method("documents of equal first words", ("min_words",)),\n'
MODULE = '''"""The method `first-words`: keep the first of the documents of a shard that begin with the same words."""

import dataclasses

import pyarrow as pa

from corpusforge import schemas
from corpusforge.dedupe.job import Job, as_schema, documents_schema, slices, text_size
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult


def run(job: Job) -> list[UnitResult]:
    return job.map(FirstWordsWork(job.output, job.settings.min_words), label="first words", folder=job.output)


@dataclasses.dataclass(frozen=True)
class FirstWordsWork:
    output: str
    words: int

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        tables = {"documents": (documents_schema(unit), "parquet"), "repeats": (schemas.REPEATS, "parquet")}
        with UnitOutput(self.output, unit.number, tables, 64 << 20) as output:
            seen: set[str] = set()
            position = 0
            for documents in slices(unit.path):
                begins = [" ".join(text.split()[: self.words]) for text in documents.column("text").to_pylist()]
                rows = [row for row, begin in enumerate(begins) if begin not in seen and not seen.add(begin)]
                kept, position = documents.take(pa.array(rows)), position + documents.num_rows
                sizes = {"text_bytes_in": text_size(documents), "text_bytes_out": text_size(kept)}
                counts = {"documents_in": documents.num_rows, "documents_out": kept.num_rows, **sizes}
                written = {"documents": as_schema(kept, documents_schema(unit))}
                written["repeats"] = pa.RecordBatch.from_pylist([], schema=schemas.REPEATS)
                output.write(written, position=position, size=0, tallies={}, statistics=counts)
            return output.finish()
'''
PACK = 'kind = "fineweb"\ntitle = "Nearly no rules"\n[max_line_breaks_a_word]\nvalue = 0.5\nsource = "by eye"\n'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file and one more row."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("corpusforge", "pipelines", "rules", "sample_data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "corpusforge/dedupe/first_words.py").write_text(MODULE, "utf-8")
    table = root / "corpusforge/sections/corpus.py"
    text = table.read_text("utf-8")
    assert text.count("METHODS = {\n") == 1
    table.write_text(text.replace("METHODS = {\n", ROW), "utf-8")
    return root


def _run(root: Path, *words: str, code: int = 0) -> str:
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("methods", ["first-words", "first-words,exact-spans"])
def test_the_new_method_runs_alone_and_in_a_chain(methods: str, copy: Path, tmp_path: Path) -> None:
    texts = ["One page of text.", "One page of words.", "Another page here.", "Another page there."]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "pack.toml").write_text(PACK)
    clean = [
        "clean",
        f"{tmp_path}/pages.jsonl",
        "--rules",
        f"{tmp_path}/pack.toml",
        "--language",
        "",
        "--badwords",
        "off",
    ]
    _run(copy, *clean, "--output", f"{tmp_path}/clean", "--workers", "1")
    dedupe = ["dedupe", f"{tmp_path}/clean", "--method", methods, "--min-words", "2", "--workers", "1"]
    _run(copy, *dedupe, "--output", f"{tmp_path}/out")
    kept = [row["text"] for path in (tmp_path / "out/documents").iterdir() for row in pq.read_table(path).to_pylist()]
    assert kept == ["One page of text.", "Another page here."]


def test_help_and_checks_know_the_new_method(copy: Path) -> None:
    shown = " ".join(_run(copy, "dedupe", "--help").split())
    assert "first-words (documents of equal first words)" in shown
    assert "first-words, lines, exact-spans, near-spans: a document that lost text and has fewer left" in shown
    wrong = _run(copy, "dedupe", ".", "--output", "out", "--method", "no-words", code=1)
    assert "none of first-words, lines, exact-spans" in wrong


@pytest.mark.parametrize("name", METHODS)
def test_every_row_of_the_table_is_a_module(name: str) -> None:
    assert method_run(name).__module__ == f"corpusforge.dedupe.{name.replace('-', '_')}"
