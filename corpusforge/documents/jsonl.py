"""JSON Lines: one object per line, any column for the text.

A record's position is the byte offset of its line in the (decompressed) file, so it does not depend on where the file
was cut. Blocks of whole lines go through Arrow's JSON reader; a block in which anything is wrong is read again line by
line with Python's, so a bad line costs speed and never its neighbors.

A setting may name several columns, as in ``text,content``: the first one that a file's first record has is read, so a
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
    no_text,
    parse_timestamp,
    sound_column,
    timestamp_column,
)

_BLOCK = 2 << 20
"""Bytes of whole lines that are parsed at once: they and their columns stay in the processor's cache."""


class Lines(NamedTuple):
    """Whole lines of a file, or with a ``reason`` the beginning of a line that cannot be read."""

    offset: int
    data: bytes
    reason: str | None = None
    detail: str | None = None


def recognizes(head: bytes) -> bool:
    """Whether content begins like a line of JSON."""
    return head.lstrip().startswith(b'{"') and b"\n" in head


def read(file: BinaryIO, part: FilePart, options: ReadOptions, skip: Skip) -> Iterator[ReaderOutput]:
    """The records of the lines that begin inside a part (see `files.Reader`); blank lines are skipped.

    Raises `errors.InputUnreadable` if the lines of the file's first block have columns, but not the text column.
    """
    columns, limit = fit_columns(file, part.path, options.columns, _names), options.max_record_bytes
    is_first, consumed = part.start == 0, part.start
    for lines in _in_range(file, part.start, part.stop, limit):
        starts, stops = _line_bounds(lines)
        passed = skip.take(len(starts))
        if passed < len(starts):
            batch = _parse(lines, starts, stops, columns, limit)
            if is_first:
                _demand_column(lines, batch, columns.text, part.path)
            yield batch.slice(passed), max(0, file.tell() - consumed)
            consumed = max(consumed, file.tell())
        is_first = False


def _in_range(file: BinaryIO, start: int, stop: int, limit: int) -> Iterator[Lines]:
    """Lines that begin in a range of bytes. A line that holds the first byte belongs to it only if it begins there."""
    begin = max(0, start - 1)
    file.seek(begin)
    inside = start == 0
    for lines in _whole_lines(_regrouped(blocks(file)), begin, limit):
        if not inside:
            inside, end = True, lines.data.find(b"\n") + 1
            if lines.reason:
                continue
            lines = Lines(lines.offset + end, lines.data[end:]) if end else Lines(lines.offset, b"")
        if stop >= 0 and lines.offset >= stop:
            return
        if stop >= 0 and lines.offset + len(lines.data) > stop and not lines.reason:
            end = lines.data.find(b"\n", stop - 1 - lines.offset) + 1
            lines = lines._replace(data=lines.data[:end] if end else lines.data)
        yield lines


def _regrouped(source: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks large enough for parsing. `Damaged` is raised after what came before it."""
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
    """Cut a stream where lines end; at most ``limit`` bytes of an unfinished line are in memory."""
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


def _line_bounds(lines: Lines) -> tuple[I64, I64]:
    """Where the lines that are not blank begin and end in the block."""
    if lines.reason:
        return np.zeros(1, np.int64), np.full(1, len(lines.data), np.int64)
    data = np.frombuffer(lines.data, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and data[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    unsure = np.flatnonzero(np.append(data, 0)[starts] != ord("{"))
    # A Python loop over the few lines that do not begin with "{": blank, bad or indented ones.
    blank = [i for i in unsure.tolist() if not lines.data[starts[i] : ends[i]].strip()]
    return np.delete(starts, blank), np.delete(ends, blank)


def _parse(lines: Lines, starts: I64, stops: I64, columns: Columns, limit: int) -> pa.RecordBatch:
    batch = None
    if not lines.reason and (stops - starts).max() <= limit:
        batch = _by_arrow(lines, starts, columns)
    return batch if batch is not None else _by_line(lines, starts, stops, columns, limit)


def _by_arrow(lines: Lines, starts: I64, columns: Columns) -> pa.RecordBatch | None:
    """A block in which every line is an object with the right types; None if anything is wrong."""
    import pyarrow.json

    if not (np.frombuffer(lines.data, np.uint8)[starts] == ord("{")).all():
        return None
    schema = {columns.timestamp: _timestamp_type(lines, int(starts[0]), columns.timestamp)}
    schema |= {columns.url: pa.string(), columns.text: pa.string()}
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(lines.data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines.data) + 1),
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
    positions = pa.array(starts + lines.offset)
    return pa.RecordBatch.from_arrays([url, positions, when, reason, detail, text], schema=RECORDS)


def _timestamp_type(lines: Lines, start: int, column: str) -> pa.DataType:
    """Arrow needs the type; it is taken from the block's first line."""
    try:
        value = json.loads(lines.data[start : lines.data.find(b"\n", start) + 1 or None]).get(column)
    except (ValueError, RecursionError):
        return pa.string()
    return pa.int64() if type(value) is int else pa.float64() if type(value) is float else pa.string()


def _by_line(lines: Lines, starts: I64, stops: I64, columns: Columns, limit: int) -> pa.RecordBatch:
    rows = Rows()
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):  # a Python loop: only blocks with a bad line
        line = lines.data[start : min(stop, start + limit)].decode("utf-8", "replace")
        position = lines.offset + start
        if lines.reason:
            rows.add(position, line, reason=lines.reason, detail=lines.detail)
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


def _demand_column(lines: Lines, batch: pa.RecordBatch, column: str, path: str) -> None:
    """Raise an error where no line has the text column: a wrong setting, not thousands of bad records."""
    if lines.reason or pc.sum(pc.equal(batch.column("reason"), "record:no-text").fill_null(False)).as_py() == 0:
        return
    if batch.column("reason").null_count:
        return
    seen: dict[str, None] = {}
    for line in lines.data.splitlines()[:1000]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        seen |= dict.fromkeys(value) if isinstance(value, dict) else {}
    if seen and column not in seen:
        names = ", ".join(list(seen)[:20])
        raise errors.InputUnreadable(path, f"no column '{column}'", f"name the text column; there are: {names}")


def fit_columns(file: BinaryIO, path: str, columns: Columns, names: Callable[[BinaryIO], list[str]]) -> Columns:
    """Choose among several names of a column those that this file has; ``names(file)`` lists its columns.

    Raises `errors.InputUnreadable` if it has no column for the text. Leaves ``file`` at its beginning.
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
    choices = [name.strip() for name in names.split(",")]
    return next((name for name in choices if name in present), choices[0])


def _names(file: BinaryIO) -> list[str]:
    """The keys of the first object in a file's first block."""
    lines = next(_in_range(file, 0, -1, 1 << 20), None)
    for line in lines.data.splitlines() if lines else []:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return list(value)
    return []
