"""From paths to work units: which files are read, how, in which groups and cuts.

Comes in: files, folders, globs, URLs. Goes out: units, each some pieces of files. The one decision: units follow from
the input alone (names, sizes, one fixed number of bytes), never from workers; and a document's id follows from its
source and position, never from units. So any machine plans the same work and any cut gives the same ids.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from corpusforge import errors
from corpusforge.documents import sniff
from corpusforge.documents.files import is_remote, open_input
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


class _File(NamedTuple):
    path: str
    name: str  # relative to what was named
    size: int


def plan_units(paths: Sequence[str], *, format: str = "auto", unit_bytes: int = 64 << 20) -> list[Unit]:
    """The units of an input, in the order of their sources.

    Small files are grouped up to ``unit_bytes``; plain JSONL and Parquet files above it are cut into ranges of it.

    Raises `errors.InputMissing` for a path that matches nothing, `errors.InputUnreadable` for files that may not be
    read or whose format cannot be told.
    """
    if not paths:
        raise errors.InputMissing("input", "no path is named", "name files, folders, globs or URLs")
    if format == "hub":
        pieces = [Piece(path, source_of(path), 0, -1, "hub") for path in paths]
        return [Unit(number, (piece,)) for number, piece in enumerate(pieces)]
    files = _distinct([file for path in paths for file in _expand(str(path), format)])
    pieces = [
        piece for file in sorted(files, key=lambda f: (f.name, f.path)) for piece in _cut(file, format, unit_bytes)
    ]
    return [Unit(number, group) for number, group in enumerate(_grouped(pieces, unit_bytes))]


def unit_size(unit: Unit) -> int:
    """Bytes of input in a unit, as they lie on disk; 0 where unknown (datasets)."""
    return sum(piece.size for piece in unit.pieces)


def _expand(path: str, format: str) -> list[_File]:
    """The files a path names, each with its name relative to the folder that was named."""
    found = _remote_files(path) if is_remote(path) else _local_files(path)
    if not found:
        raise errors.InputMissing(path, "nothing to read there", "check the path or the glob")
    return found


def _local_files(path: str) -> list[_File]:
    named = Path(path)
    if named.is_file():
        return [_file(named, named.parent)]
    if named.is_dir():
        if not os.access(named, os.R_OK | os.X_OK):
            raise errors.InputUnreadable(path, "the folder may not be read", "check its permissions")
        return [_file(p, named) for p in named.rglob("*") if p.is_file() and not _hidden(p.relative_to(named).parts)]
    if not any(sign in path for sign in "*?["):
        raise errors.InputMissing(path, "no such file or folder", "check the path")
    root = _fixed_part(path)
    pattern = str(PurePosixPath(path).relative_to(root.as_posix())) if str(root) != "." else path
    matches = [p for p in root.glob(pattern) if not _hidden(p.relative_to(root).parts)]
    found = {p: p for p in matches if p.is_file()}
    for folder in (p for p in matches if p.is_dir()):
        if "**" not in pattern:
            found |= {p: p for p in folder.rglob("*") if p.is_file() and not _hidden(p.relative_to(root).parts)}
    return [_file(p, root) for p in found]


def _fixed_part(path: str) -> Path:
    """The folders of a glob before its first wildcard."""
    parts = Path(path).parts
    first = next(i for i, part in enumerate(parts) if any(sign in part for sign in "*?["))
    return Path(*parts[:first])


def _hidden(parts: Iterable[str]) -> bool:
    """Names that begin with a dot or an underscore are marks of other programs (_SUCCESS, .DS_Store)."""
    return any(part.startswith((".", "_")) for part in parts)


def _file(path: Path, root: Path) -> _File:
    if not os.access(path, os.R_OK):
        raise errors.InputUnreadable(str(path), "the file may not be read", "check its permissions")
    return _File(str(path), path.relative_to(root).as_posix(), path.stat().st_size)


def _remote_files(path: str) -> list[_File]:
    import fsspec  # 50 ms, for URLs only

    try:
        filesystem, inner = fsspec.core.url_to_fs(path)
        signs = "*" if path.startswith("http") else "*?["  # "?" is part of a web address
        wild = [i for i, part in enumerate(inner.split("/")) if any(sign in part for sign in signs)]
        if wild:
            root = "/".join(inner.split("/")[: wild[0]])
            found = {k: v for k, v in filesystem.glob(inner, detail=True).items() if v["type"] == "file"}
        elif (info := filesystem.info(inner))["type"] == "directory":
            root, found = inner.rstrip("/"), filesystem.find(inner, detail=True)
        else:
            return [_File(path, inner.rsplit("/", 1)[-1], int(info.get("size") or 0))]
    except (FileNotFoundError, ValueError, ImportError) as error:
        raise errors.InputMissing(path, f"cannot be opened ({error})", "check the URL") from None
    except OSError as error:
        raise errors.InputUnreadable(path, f"cannot be opened ({error})", "check the URL and your access") from None
    names = {name: name.removeprefix(root).lstrip("/") for name in found}
    return [
        _File(filesystem.unstrip_protocol(name), short, int(found[name].get("size") or 0))
        for name, short in names.items()
        if not _hidden(short.split("/"))
    ]


def _distinct(files: list[_File]) -> list[_File]:
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


def _cut(file: _File, format: str, unit_bytes: int) -> list[Piece]:
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
