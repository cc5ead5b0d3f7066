"""JSON Lines: one object a line, any column for the text.

A record's position is the byte offset of its line in the (decompressed) file, so it does not depend on where the file
was cut. Blocks of whole lines go through Arrow's JSON reader; a block in which anything is wrong is read again line by
line with Python's, so a bad line costs speed and never its neighbors.

Settings may name several columns, as in ``text,content``: the first that a file has is read, by its first record, so a
folder whose files disagree on the name of the text column is read in one run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.documents.files import Damaged, blocks
from corpusforge.documents.records import (
    RECORDS,
    Columns,
    FilePart,
    ReaderOutput,
    ReadOptions,
    Rows,
    Skip,
    Span,
    no_text,
    parse_timestamp,
    sound_column,
    timestamp_column,
)

_BLOCK = 2 << 20
"""Bytes of whole lines that are parsed at once: they and their columns stay in the processor's cache."""


class Lines(NamedTuple):
    """Whole lines of a file, or with a ``reason`` the beginning of one that cannot be read."""

    offset: int
    data: bytes
    reason: str | None = None
    detail: str | None = None


def recognizes(head: bytes) -> bool:
    """Whether content begins like a line of JSON."""
    return head.lstrip().startswith(b'{"') and b"\n" in head


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The records of a part (see `formats.Reader`)."""
    columns = fit_columns(file, part.path, options.columns, _jsonl_names)
    span, limit = Span(part.start, part.stop), options.max_record_bytes
    return read_jsonl(file, part.path, span, columns, max_record_bytes=limit, skip=skip)


def read_jsonl(
    file: BinaryIO, path: str, span: Span, columns: Columns, *, max_record_bytes: int, skip: Skip
) -> Iterator[ReaderOutput]:
    """The records of the lines that begin inside ``span``; a blank line is none.

    Raises `errors.InputUnreadable` if the lines of the file's first block have columns, but not the text column.
    """
    first, consumed = span.start == 0, span.start
    for part in _in_span(file, span, max_record_bytes):
        starts, stops = _line_bounds(part)
        passed = skip.take(len(starts))
        if passed < len(starts):
            batch = _parse(part, starts, stops, columns, max_record_bytes)
            if first:
                _demand_column(part, batch, columns.text, path)
            yield batch.slice(passed), max(0, file.tell() - consumed)
            consumed = max(consumed, file.tell())
        first = False


def first_lines(file: BinaryIO, limit: int = 1 << 20) -> list[bytes]:
    """The lines of a file's first block; moves the file."""
    part = next(_in_span(file, Span(0, -1), limit), None)
    return part.data.splitlines() if part else []


def _in_span(file: BinaryIO, span: Span, limit: int) -> Iterator[Lines]:
    """Lines that begin in the span. The one that holds its first byte belongs to it only if it begins there."""
    begin = max(0, span.start - 1)
    file.seek(begin)
    inside = span.start == 0
    for part in _whole_lines(_regrouped(blocks(file)), begin, limit):
        if not inside:
            inside, end = True, part.data.find(b"\n") + 1
            if part.reason:
                continue
            part = Lines(part.offset + end, part.data[end:]) if end else Lines(part.offset, b"")
        if span.stop >= 0 and part.offset >= span.stop:
            return
        if span.stop >= 0 and part.offset + len(part.data) > span.stop and not part.reason:
            end = part.data.find(b"\n", span.stop - 1 - part.offset) + 1
            part = part._replace(data=part.data[:end] if end else part.data)
        yield part


def _regrouped(source: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks worth parsing. `Damaged` passes through after what came before it."""
    parts: list[bytes] = []
    try:
        for data in source:
            parts.append(data)
            if sum(map(len, parts)) >= _BLOCK:
                yield b"".join(parts)
                parts = []
    except Damaged:
        if parts:
            yield b"".join(parts)
        raise
    if parts:
        yield b"".join(parts)


def _whole_lines(source: Iterator[bytes], offset: int, limit: int) -> Iterator[Lines]:
    """Cut a stream where lines end; at most ``limit`` bytes of an unfinished line are held."""
    pending: list[bytes] = []  # the beginning of a line, without its end
    size, damage = 0, None
    try:
        for data in source:
            cut = data.rfind(b"\n") + 1
            if cut and size > limit:
                end = data.find(b"\n") + 1
                yield _too_large(offset, pending, limit)
                offset, data, cut = offset + size + end, data[end:], cut - end
                pending, size = [], 0
            if cut:
                yield Lines(offset, b"".join([*pending, data[:cut]]))
                offset, data = offset + size + cut, data[cut:]
                pending, size = [], 0
            if size <= limit:
                pending.append(data)
            size += len(data)
    except Damaged as error:
        damage = str(error)
    if damage:
        yield Lines(offset, b"".join(pending), "record:unreadable", damage)
    elif size > limit:
        yield _too_large(offset, pending, limit)
    elif size:
        yield Lines(offset, b"".join(pending))


def _too_large(offset: int, pending: list[bytes], limit: int) -> Lines:
    return Lines(offset, pending[0][:1000], "record:too-large", f"a line of more than {limit} bytes")


def _line_bounds(part: Lines) -> tuple[I64, I64]:
    """Where the lines that are not blank begin and end in the block."""
    if part.reason:
        return np.zeros(1, np.int64), np.full(1, len(part.data), np.int64)
    data = np.frombuffer(part.data, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and data[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    unsure = np.flatnonzero(np.append(data, 0)[starts] != ord("{"))
    # A loop over the few lines that do not begin as objects do: blank ones, bad ones, indented ones.
    blank = [i for i in unsure.tolist() if not part.data[starts[i] : ends[i]].strip()]
    return np.delete(starts, blank), np.delete(ends, blank)


def _parse(part: Lines, starts: I64, stops: I64, columns: Columns, limit: int) -> pa.RecordBatch:
    batch = None
    if not part.reason and (stops - starts).max() <= limit:
        batch = _by_arrow(part, starts, columns)
    return batch if batch is not None else _by_line(part, starts, stops, columns, limit)


def _by_arrow(part: Lines, starts: I64, columns: Columns) -> pa.RecordBatch | None:
    """A block in which every line is an object with the right types; None where anything is amiss."""
    import pyarrow.json

    if not (np.frombuffer(part.data, np.uint8)[starts] == ord("{")).all():
        return None
    schema = {columns.timestamp: _timestamp_type(part, int(starts[0]), columns.timestamp)}
    schema |= {columns.url: pa.string(), columns.text: pa.string()}
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(part.data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(part.data) + 1),
            parse_options=pyarrow.json.ParseOptions(pa.schema(schema.items()), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(starts):
        return None
    text, url = (sound_column(table.column(name).combine_chunks()) for name in (columns.text, columns.url))
    if text is None or url is None:
        return None
    text, reason, detail = no_text(text, columns.text)
    when = timestamp_column(table.column(columns.timestamp).combine_chunks())
    positions = pa.array(starts + part.offset)
    return pa.RecordBatch.from_arrays([url, positions, when, reason, detail, text], schema=RECORDS)


def _timestamp_type(part: Lines, start: int, column: str) -> pa.DataType:
    """Arrow needs the type; it is taken from the block's first line."""
    try:
        value = json.loads(part.data[start : part.data.find(b"\n", start) + 1 or None]).get(column)
    except (ValueError, RecursionError):
        return pa.string()
    return pa.int64() if type(value) is int else pa.float64() if type(value) is float else pa.string()


def _by_line(part: Lines, starts: I64, stops: I64, columns: Columns, limit: int) -> pa.RecordBatch:
    rows = Rows()
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):  # a bad block: one line at a time
        line = part.data[start : min(stop, start + limit)].decode("utf-8", "replace")
        position = part.offset + start
        if part.reason:
            rows.add(position, line, reason=part.reason, detail=part.detail)
        elif stop - start > limit:
            rows.add(position, line[:1000], reason="record:too-large", detail=f"a line of {stop - start} bytes")
        else:
            _add_line(rows, position, line if position else line.removeprefix("\ufeff"), columns)
    return rows.take()


def _add_line(rows: Rows, position: int, line: str, columns: Columns) -> None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        rows.add(position, line, reason="record:bad-json", detail=str(error))
        return
    if not isinstance(value, dict):
        rows.add(position, line, reason="record:bad-json", detail="not an object")
        return
    text, url = value.get(columns.text), value.get(columns.url)
    known: dict[str, Any] = {
        "url": url if isinstance(url, str) else None,
        "timestamp": parse_timestamp(value.get(columns.timestamp)),
    }
    if isinstance(text, str):
        rows.add(position, text, **known)
    else:
        rows.add(position, "", reason="record:no-text", detail=f"no string in '{columns.text}'", **known)


def _demand_column(part: Lines, batch: pa.RecordBatch, column: str, path: str) -> None:
    """A text column that is nowhere is a wrong setting, not thousands of bad records."""
    if part.reason or pc.sum(pc.equal(batch.column("reason"), "record:no-text").fill_null(False)).as_py() == 0:
        return
    if batch.column("reason").null_count:
        return
    seen: dict[str, None] = {}
    for line in part.data.splitlines()[:1000]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        seen |= dict.fromkeys(value) if isinstance(value, dict) else {}
    if seen and column not in seen:
        names = ", ".join(list(seen)[:20])
        raise errors.InputUnreadable(path, f"no column '{column}'", f"name the text column; there are: {names}")


def fit_columns(file: BinaryIO, path: str, columns: Columns, names: Callable[[BinaryIO], list[str]]) -> Columns:
    """The columns of this file, which has those that ``names(file)`` gives; ``file`` is left at its beginning.

    Raises `errors.InputUnreadable` if it has none of the names for the text.
    """
    if not any("," in name for name in columns):
        return columns
    present = names(file)
    file.seek(0)
    text = _first_of(columns.text, present)
    if present and text not in present:
        mend = f"name the text column; there are: {', '.join(list(present)[:20])}"
        raise errors.InputUnreadable(path, f"no column '{columns.text}'", mend)
    return Columns(text, _first_of(columns.url, present), _first_of(columns.timestamp, present))


def _first_of(names: str, present: Collection[str]) -> str:
    """The first of the names that is present, else the first.

    >>> _first_of("text,content", {"content"}), _first_of("text,content", {"x"})
    ('content', 'text')
    """
    wanted = [name.strip() for name in names.split(",")]
    return next((name for name in wanted if name in present), wanted[0])


def _jsonl_names(file: BinaryIO) -> list[str]:
    for line in first_lines(file):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return list(value)
    return []
