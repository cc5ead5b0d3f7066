"""Documents in slices, and progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusforge import shards
from corpusforge.dedupe import job
from corpusforge.dedupe.exact_spans import HashWork
from tests.dedupe.in_process import documents_batch, write_units

PAGE = "The quick fox ran. It met a dog. They spoke at length. Then it left. Nobody saw it again.\n"


def test_slices_resume_in_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [documents_batch([(f"{b}-{i}", PAGE * (i + 1)) for i in range(n)]) for b, n in enumerate((3, 0, 5, 4))]
    monkeypatch.setattr(shards, "read_shard", lambda _: iter(batches))
    monkeypatch.setattr(job, "SLICE_BYTES", 2 * len(PAGE))
    whole = [s.column("id").to_pylist() for s in job.slices("")]
    assert [i for part in whole for i in part] == [i for batch in batches for i in batch.column("id").to_pylist()]
    for number in range(len(whole) + 1):
        skip = sum(len(part) for part in whole[:number])
        assert [s.column("id").to_pylist() for s in job.slices("", skip)] == whole[number:]


def test_progress_covers_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "SLICE_BYTES", 300)
    units = write_units(tmp_path / "in", [[(str(i), PAGE) for i in range(64)]])
    reported: list[int] = []
    HashWork(str(tmp_path / "h"))(units[0], reported.append)
    assert units[0].bytes * 0.95 <= sum(reported) <= units[0].bytes
