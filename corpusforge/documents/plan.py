"""From paths to work units: how files are read, in which groups and cuts.

Comes in: files, folders, globs, URLs (see `corpusforge.documents.find`). Goes out: units, each some pieces of files.
The one decision: units follow from the input alone (names, sizes, one fixed number of bytes), never from workers; and a
document's id follows from its source and position, never from units. So any machine plans the same work and any cut
gives the same ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpusforge import errors
from corpusforge.documents import sniff
from corpusforge.documents.files import is_remote, open_input
from corpusforge.documents.find import Found, find_files
from corpusforge.documents.hub import source_of


@dataclass(frozen=True)
class Piece:
    """A part of a file. ``start``, ``stop``: its byte range, ``stop`` -1 for a whole file; ``size``: bytes in it."""

    path: str
    source: str
    start: int
    stop: int
    format: str
    size: int = 0


@dataclass(frozen=True)
class Unit:
    """What is read, resumed and counted as one."""

    number: int
    pieces: tuple[Piece, ...]


def plan_units(
    paths: Sequence[str], *, format: str = "auto", unit_bytes: int = 64 << 20, leave_out: str = ""
) -> list[Unit]:
    """The units of an input, in the order of their sources.

    Small files are grouped up to ``unit_bytes``; plain JSONL and Parquet files above it are cut into ranges of it.
    ``leave_out``: a folder or URL that is no input wherever it lies, as the output is.

    Raises `errors.InputMissing` for a path that matches nothing, `errors.InputUnreadable` for files that may not be
    read or whose format cannot be told.
    """
    if not paths:
        raise errors.InputMissing("input", "no path is named", "name files, folders, globs or URLs")
    if format == "hub":
        pieces = [Piece(path, source_of(path), 0, -1, "hub") for path in paths]
        return [Unit(number, (piece,)) for number, piece in enumerate(pieces)]
    files = _distinct([file for path in paths for file in find_files(str(path), leave_out)])
    pieces = [
        piece for file in sorted(files, key=lambda f: (f.name, f.path)) for piece in _cut(file, format, unit_bytes)
    ]
    return [Unit(number, group) for number, group in enumerate(_grouped(pieces, unit_bytes))]


def unit_size(unit: Unit) -> int:
    """Bytes of input in a unit, as they lie on disk; 0 where unknown (datasets)."""
    return sum(piece.size for piece in unit.pieces)


def _distinct(files: list[Found]) -> list[Found]:
    """Each file once; where names collide, with as many folders before them as tell them apart."""
    files = list({_identity(file.path): file for file in reversed(files)}.values())
    names = [file.name for file in files]
    parts = [file.path.replace("\\", "/").strip("/").split("/") for file in files]
    depth = 0
    while len(doubled := {n for n, count in Counter(names).items() if count > 1}) and depth < 64:
        depth += 1
        for i, file in enumerate(files):
            if names[i] in doubled:
                keep = len(file.name.split("/")) + depth
                names[i] = "/".join(parts[i][-keep:])
    return [file._replace(name=name) for file, name in zip(files, names, strict=True)]


def _identity(path: str) -> str:
    return path if is_remote(path) else str(Path(path).resolve())


def _cut(file: Found, format: str, unit_bytes: int) -> list[Piece]:
    kind = sniff.format_of(file.path) if format == "auto" else format
    if file.size <= unit_bytes or not _splittable(file.path, kind):
        return [Piece(file.path, file.name, 0, -1, kind, file.size)]
    starts = range(0, file.size, unit_bytes)
    stops = [*starts[1:], -1]
    return [
        Piece(file.path, file.name, start, stop, kind, min(unit_bytes, file.size - start))
        for start, stop in zip(starts, stops, strict=True)
    ]


def _splittable(path: str, kind: str) -> bool:
    if kind == "parquet":
        return True
    if kind != "jsonl":
        return False
    with open_input(path) as file:
        return sniff.codec_of(file.read(8)) == ""


def _grouped(pieces: list[Piece], unit_bytes: int) -> list[tuple[Piece, ...]]:
    """Consecutive pieces together while they fit."""
    groups: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        if not groups or size + piece.size > unit_bytes:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.size
    return [tuple(group) for group in groups]
