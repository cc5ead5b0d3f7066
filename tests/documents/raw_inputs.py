"""What tests of readers share: building small archives, and reading a path to the end."""

from __future__ import annotations

from typing import Any, NamedTuple

from corpusforge.documents.plan import plan_units, unit_size
from corpusforge.documents.read import read_unit
from corpusforge.documents.records import ReadOptions
from corpusforge.schemas import DOCUMENTS, REJECTS


class Outcome(NamedTuple):
    """Everything that came out of an input, in order."""

    documents: list[dict[str, Any]]
    rejects: list[dict[str, Any]]
    records: int

    @property
    def texts(self) -> list[str]:
        return [row["text"] for row in self.documents]

    @property
    def reasons(self) -> list[str]:
        return [row["reason"] for row in self.rejects]


def read_all(
    *paths: object, format: str = "auto", unit_bytes: int = 64 << 20, skip: int = 0, **options: Any
) -> Outcome:
    """Plan and read an input, checking what holds for every batch."""
    batch_bytes = options.pop("batch_bytes", 4 << 20)
    documents, rejects, records = [], [], 0
    for unit in plan_units([str(p) for p in paths], format=format, unit_bytes=unit_bytes):
        raw_bytes = 0
        for batch in read_unit(unit, ReadOptions(**options), skip=skip, batch_bytes=batch_bytes):
            assert batch.documents.schema == DOCUMENTS
            assert batch.rejects.schema == REJECTS
            batch.documents.validate(full=True)
            batch.rejects.validate(full=True)
            assert batch.records == batch.documents.num_rows + batch.rejects.num_rows
            for text in [*batch.documents["text"].to_pylist(), *batch.rejects["text"].to_pylist()]:
                assert "\0" not in text
            documents += batch.documents.to_pylist()
            rejects += batch.rejects.to_pylist()
            records += batch.records
            raw_bytes += batch.raw_bytes
        assert raw_bytes == unit_size(unit) or format == "hub"
    return Outcome(documents, rejects, records)


def warc_record(
    body: bytes,
    headers: bytes = b"Content-Type: text/html; charset=utf-8\r\n",
    *,
    status: bytes = b"200 OK",
    kind: bytes = b"response",
    url: bytes = b"http://a.example/",
    block: bytes | None = None,
    media_type: bytes = b"application/http; msgtype=response",
) -> bytes:
    """One WARC record; ``block`` instead of an HTTP response made of the rest."""
    if block is None:
        block = b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n" + body
    return (
        b"WARC/1.0\r\nWARC-Type: " + kind + b"\r\nWARC-Target-URI: " + url + b"\r\nWARC-Date: 2024-05-18T01:58:10Z\r\n"
        b"Content-Type: " + media_type + b"\r\nContent-Length: %d\r\n\r\n" % len(block) + block + b"\r\n\r\n"
    )


def page(text: str, encoding: str = "utf-8", head: str = "") -> bytes:
    """An HTML page with one paragraph."""
    return f"<html><head>{head}<title>t</title></head><body><p>{text}</p></body></html>".encode(encoding)
