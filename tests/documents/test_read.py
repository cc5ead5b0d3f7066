"""Reading a unit: batches, and resuming where an earlier run stopped."""

from __future__ import annotations

import datetime
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.documents.plan import Unit, plan_units
from corpusforge.documents.read import RawBatch, read_rows, read_unit
from corpusforge.documents.records import FilePart, ReadOptions
from tests.documents.raw_inputs import page, read_all, warc_record

Write = Callable[[str, bytes], Path]


@pytest.fixture
def folder(write: Write, tmp_path: Path) -> Path:
    """One unit of every format, with rejects and damage in between."""
    noise = random.Random(3)
    words = [" ".join(noise.choices(["forge", "corpus", "text", "line"], k=noise.randint(1, 60))) for _ in range(60)]
    pages = [warc_record(page(w), status=b"404 No" if i % 7 == 0 else b"200 OK") for i, w in enumerate(words)]
    members = [bytearray(gzip.compress(p)) for p in pages]
    members[20][len(members[20]) // 2] ^= 0x55
    members[41][-5] ^= 0x55
    write("in/a.warc.gz", b"".join(bytes(m) for m in members))
    write("in/b.warc", b"".join(pages[:20]) + b"rubbish\r\n" + b"".join(pages[20:40])[:-50])
    lines = [json.dumps({"text": w}) if i % 9 else "{bad" for i, w in enumerate(words)]
    write("in/c.jsonl", "\n".join(lines).encode())
    write("in/d.jsonl.gz", gzip.compress("\n".join(lines).encode())[:-9])
    write("in/e.txt", "\n\n".join(words).encode())
    write("in/f.txt", b"")
    return tmp_path / "in"


def test_what_is_lost_of_the_unit(folder: Path) -> None:
    out = read_all(folder / "a.warc.gz")
    assert out.records == 60
    assert [r["position"] for r in out.rejects if r["reason"] == "record:unreadable"] == [20, 41]
    out = read_all(folder / "b.warc")
    assert out.records == 41  # 40 pages and the rubbish between them
    assert [r["position"] for r in out.rejects if r["reason"] == "record:unreadable"] == [20, 40]


def _flat(batches: list[RawBatch]) -> list[list[dict[str, object]]]:
    return [[row for batch in batches for row in batch[table].to_pylist()] for table in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("batch_bytes", [1, 900, 5000, 1 << 20])
def test_a_resumed_unit_yields_the_same_rest(folder: Path, batch_bytes: int) -> None:
    (unit,) = plan_units([str(folder)])
    options = ReadOptions(text_split="blank-line")
    batches = list(read_unit(unit, options, batch_bytes=batch_bytes))
    total = sum(b.records for b in batches)
    assert total > 250
    done = 0
    for i, batch in enumerate(batches):
        if i % max(1, len(batches) // 12) == 0:
            rest = list(read_unit(unit, options, skip=done, batch_bytes=batch_bytes))
            assert [b.records for b in rest if b.records] == [b.records for b in batches[i:] if b.records]
            assert _flat(rest) == _flat(batches[i:])
        done += batch.records
    assert sum(b.records for b in read_unit(unit, options, skip=total)) == 0


@pytest.mark.parametrize("skip", range(0, 300, 37))
def test_any_number_of_records_can_be_skipped(folder: Path, skip: int) -> None:
    whole = read_all(folder, text_split="blank-line")
    out = read_all(folder, text_split="blank-line", skip=skip)
    assert out.records == max(0, whole.records - skip)
    assert out.documents == whole.documents[len(whole.documents) - len(out.documents) :]
    assert out.rejects == whole.rejects[len(whole.rejects) - len(out.rejects) :]


def test_batches_end_where_the_text_reaches_their_size(write: Write) -> None:
    path = write("a.jsonl", b"".join(b'{"text":"%s"}\n' % (b"x" * 744) for _ in range(100)))
    (unit,) = plan_units([str(path)])
    assert [b.records for b in read_unit(unit, ReadOptions(), batch_bytes=10_000)] == [10] * 10  # 744 + 256 each
    assert [b.records for b in read_unit(unit, ReadOptions(), batch_bytes=10_001)] == [11] * 9 + [1]


def test_rows_of_any_kind_are_documents_or_rejects() -> None:
    moment = datetime.datetime(2024, 5, 18, 1, 58, 10, tzinfo=datetime.UTC)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    rows = [
        {"text": "a\0b \ud800", "url": "u", "timestamp": moment},
        {"text": "", "url": None, "timestamp": moment.astimezone(zone)},
        {"text": "Zoë".encode(), "url": 3, "timestamp": datetime.date(2024, 5, 18)},
        {"text": "no time", "url": "u", "timestamp": "soon", "other": [1]},
        {"text": "c" * 2000, "url": "u"},
        {"text": None, "url": "u"},
        {"text": 5},
        {},
    ]
    options = ReadOptions(max_record_bytes=1000)
    raw = read_rows(rows, options, "table")
    assert raw.documents["text"].to_pylist() == ["ab \ufffd", "", "Zoë", "no time"]
    assert raw.documents["url"].to_pylist() == ["u", None, None, "u"]
    times = [moment, moment, moment.replace(hour=0, minute=0, second=0), None]
    assert raw.documents["timestamp"].to_pylist() == times
    assert len({*raw.documents["id"].to_pylist()}) == 4
    assert raw.rejects["reason"].to_pylist() == ["record:too-large", *["record:no-text"] * 3]
    assert raw.rejects["detail"].to_pylist()[1] == "no string in 'text'"
    for part in (raw.documents, raw.rejects):
        assert {*part["source"].to_pylist()} == {"table"} and {*part["position"].to_pylist()} == {0}
    alone = [read_rows([row], options, "table") for row in reversed(rows)]
    for name in ("documents", "rejects"):
        apart = [row for part in reversed(alone) for row in getattr(part, name).to_pylist()]
        assert apart == getattr(raw, name).to_pylist()
    assert read_rows([], options, "table").records == 0


def test_an_unknown_format_is_an_error(write: Write) -> None:
    unit = Unit(0, (FilePart(str(write("a", b"x")), "a", 0, -1, "tar"),))
    with pytest.raises(errors.InputUnreadable, match="unknown format"):
        list(read_unit(unit, ReadOptions()))


def test_addresses_are_read_like_files(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    try:
        for path in folder.iterdir():
            memory.pipe_file(f"/bucket/in/{path.name}", path.read_bytes())
        for unit_bytes in (64 << 20, 1000):
            out = read_all("memory://bucket/in", text_split="blank-line", unit_bytes=unit_bytes)
            assert out == read_all(folder, text_split="blank-line", unit_bytes=unit_bytes)
    finally:
        memory.rm("/bucket", recursive=True)
