"""Plan work units from the paths of an input: the files, their formats, how they are grouped and cut.

Units follow from the input alone (names, sizes, one fixed number of bytes), never from workers, and a document's id
follows from its source and position, never from units. So every machine plans the same work, and any cut gives the same
ids. Each file is named relative to the path given, because sources and document ids follow from that name.

Hidden files, markers of other programs and the output folder are skipped; of a folder written by one of our stages only
the documents are read.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from corpusforge import errors
from corpusforge.documents.files import codec_of, format_of, is_remote, open_input
from corpusforge.documents.records import FilePart
from corpusforge.sections import INPUT_FORMATS


@dataclass(frozen=True)
class Unit:
    """A work unit: what is read, resumed and counted together."""

    number: int
    parts: tuple[FilePart, ...]


def plan_units(
    paths: Sequence[str], *, format: str = "auto", unit_bytes: int = 64 << 20, leave_out: str = ""
) -> list[Unit]:
    """The units of an input, in the order of their sources.

    Small files are grouped up to ``unit_bytes``; plain JSONL and Parquet files above it are cut into ranges of it.
    ``leave_out``: a folder or URL that is never input, such as the output.

    Raises `errors.InputMissing` for a path that matches nothing, `errors.InputUnreadable` for files that may not be
    read or whose format cannot be determined.
    """
    if not paths:
        raise errors.InputMissing("input", "no path is named", "name files, folders, globs or URLs")
    if format == "hub":
        from corpusforge.documents.hub import source_of

        parts = [FilePart(path, source_of(path), 0, -1, "hub") for path in paths]
        return [Unit(number, (part,)) for number, part in enumerate(parts)]
    files = _distinct([file for path in paths for file in find_files(str(path), leave_out)])
    parts = [part for file in sorted(files, key=lambda f: (f.name, f.path)) for part in _cut(file, format, unit_bytes)]
    return [Unit(number, group) for number, group in enumerate(_grouped(parts, unit_bytes))]


def unit_size(unit: Unit) -> int:
    """Bytes of input in a unit, as they lie on disk; 0 where unknown (datasets)."""
    return sum(part.size for part in unit.parts)


def _distinct(files: list[InputFile]) -> list[InputFile]:
    """Each file once; names that collide get as many parent folders as it takes to distinguish them."""
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


def _cut(file: InputFile, format: str, unit_bytes: int) -> list[FilePart]:
    kind = format_of(file.path) if format == "auto" else format
    if file.size <= unit_bytes or not is_splittable(file.path, kind):
        return [FilePart(file.path, file.name, 0, -1, kind, file.size)]
    starts = range(0, file.size, unit_bytes)
    stops = [*starts[1:], -1]
    return [
        FilePart(file.path, file.name, start, stop, kind, min(unit_bytes, file.size - start))
        for start, stop in zip(starts, stops, strict=True)
    ]


def is_splittable(path: str, kind: str) -> bool:
    """Whether a file of this format may be cut into ranges; opens files of which only the plain ones may be cut."""
    cut = INPUT_FORMATS[kind].cut
    if cut != "plain":
        return cut == "always"
    with open_input(path) as file:
        return codec_of(file.read(8)) == ""


def _grouped(parts: list[FilePart], unit_bytes: int) -> list[tuple[FilePart, ...]]:
    """Consecutive parts, as many as fit into a unit."""
    groups: list[list[FilePart]] = []
    size = 0
    for part in parts:
        if not groups or size + part.size > unit_bytes:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += part.size
    return [tuple(group) for group in groups]


class InputFile(NamedTuple):
    """A file to read. ``size``: its bytes, 0 where unknown."""

    path: str
    name: str  # relative to the path that was given, "/" between parts
    size: int


def find_files(path: str, leave_out: str = "") -> list[InputFile]:
    """The files that a path, glob or URL names, without those in the folder or URL ``leave_out``.

    Folders are read recursively, symbolic links included, each folder once, so that circles of links end.

    Raises `errors.InputMissing` if there are none, `errors.InputUnreadable` for what may not be read.
    """
    files = _remote_files(path, leave_out) if is_remote(path) else _local_files(path, leave_out)
    if not files:
        raise errors.InputMissing(path, "nothing to read there", "check the path or the glob")
    return files


def _local_files(path: str, leave_out: str) -> list[InputFile]:
    given = Path(path)
    if given.is_file():
        root, files = given.parent, [given]
    elif given.is_dir():
        root, files = given, list(_walk(given, leave_out))
    elif any(sign in path for sign in "*?["):
        root = _fixed_part(path)
        files = list(_matches(root, path, leave_out))
    else:
        raise errors.InputMissing(path, "no such file or folder", "check the path")
    names = {file.relative_to(root).as_posix(): file for file in files if not is_below(str(file), leave_out)}
    if not given.is_file():
        names = {name: names[name] for name in documents_of_stages(names, lambda name: (root / name).read_bytes())}
    return [_file(file, name) for name, file in names.items()]


def _walk(top: Path, leave_out: str) -> Iterator[Path]:
    """The files below a folder: those of its own tree, then those reached by links, so that own names come first."""
    seen: set[str] = set()
    waiting = [top]
    while waiting:
        links: list[Path] = []
        for start in waiting:
            for folder, below, names in os.walk(start, onerror=_refuse):
                real = os.path.realpath(folder)
                if real in seen or is_below(real, leave_out):
                    below.clear()
                    continue
                seen.add(real)
                if not os.access(folder, os.R_OK | os.X_OK):
                    raise errors.InputUnreadable(folder, "the folder may not be read", "check its permissions")
                below[:] = sorted(name for name in below if not _hidden([name]))
                links += [link for name in below if (link := Path(folder, name)).is_symlink()]
                files = (Path(folder, name) for name in sorted(names) if not _hidden([name]))
                yield from (file for file in files if file.is_file())
        waiting = links


def _refuse(error: OSError) -> None:
    what = f"the folder may not be read ({error.strerror})"
    raise errors.InputUnreadable(str(error.filename), what, "check its permissions")


def _matches(root: Path, path: str, leave_out: str) -> Iterator[Path]:
    """The files that a glob matches; matching folders are walked, unless the glob has a ``**``."""
    pattern = PurePosixPath(path).relative_to(root.as_posix()).parts if str(root) != "." else Path(path).parts
    if "**" in pattern:
        files = _walk(root, leave_out) if root.is_dir() else ()
        yield from (file for file in files if _fits(file.relative_to(root).parts, pattern))
        return
    for match in sorted(root.glob("/".join(pattern))):
        if not _hidden(match.relative_to(root).parts):
            yield from [match] if match.is_file() else _walk(match, leave_out)


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path matches a glob, in which ``**`` stands for any number of folders.

    >>> _fits(("a", "b", "c.txt"), ("**", "*.txt")), _fits(("c.txt",), ("a", "**")), _fits(("a", "c"), ("a", "**"))
    (True, False, True)
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        rest = pattern[1:] or ("*",)  # at the end: all files below
        return any(_fits(parts[i:], rest) for i in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _fixed_part(path: str) -> Path:
    """The folders of a glob before its first wildcard."""
    parts = Path(path).parts
    first = next(i for i, part in enumerate(parts) if any(sign in part for sign in "*?["))
    return Path(*parts[:first])


def _hidden(parts: Iterable[str]) -> bool:
    """Whether a part begins with a dot or an underscore, as markers of other programs do (_SUCCESS, .DS_Store)."""
    return any(part.startswith((".", "_")) for part in parts)


def _file(path: Path, name: str) -> InputFile:
    if not os.access(path, os.R_OK):
        raise errors.InputUnreadable(str(path), "the file may not be read", "check its permissions")
    return InputFile(str(path), name, path.stat().st_size)


def is_below(path: str, folder: str) -> bool:
    """Whether a path or URL is a folder or lies in it; nothing lies in "".

    >>> is_below("gs://b/out/x", "gs://b/out/"), is_below("gs://b/output", "gs://b/out"), is_below("/a", "")
    (True, False, False)
    """
    return bool(folder) and f"{_resolved(path)}/".startswith(f"{_resolved(folder)}/")


def _resolved(path: str) -> str:
    local = path.removeprefix("file://")
    if not is_remote(local):
        return os.path.realpath(local).rstrip("/")
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.strip('/')}"


def documents_of_stages(names: Iterable[str], read: Callable[[str], bytes]) -> list[str]:
    """The names without what a stage wrote beside its documents (rejects, entries, its manifest).

    A stage's folder is recognized by a ``manifest.json`` of ours beside ``documents/``. ``read``: returns the bytes of
    a file.
    """
    split = [name.split("/") for name in names]
    beside = {tuple(parts[:i]) for parts in split for i, part in enumerate(parts[:-1]) if part == "documents"}
    stages = {folder for folder in beside if _is_manifest("/".join([*folder, "manifest.json"]), read)}

    def stays(parts: list[str]) -> bool:
        inside = [parts[i:] for i in range(len(parts)) if tuple(parts[:i]) in stages]
        return all(len(p) == 2 and p[0] == "documents" and p[1].endswith(".parquet") for p in inside)

    return ["/".join(parts) for parts in split if stays(parts)]


def _is_manifest(name: str, read: Callable[[str], bytes]) -> bool:
    try:
        manifest: Any = json.loads(read(name))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and {"stage", "digest", "shards"} <= manifest.keys()


def _remote_files(path: str, leave_out: str) -> list[InputFile]:
    import fsspec  # 50 ms, for URLs only

    try:
        filesystem, inner = fsspec.core.url_to_fs(path)
        signs = "*" if path.startswith("http") else "*?["  # "?" is part of a web address
        wildcards = [i for i, part in enumerate(inner.split("/")) if any(sign in part for sign in signs)]
        if wildcards:
            root = "/".join(inner.split("/")[: wildcards[0]])
            entries = {k: v for k, v in filesystem.glob(inner, detail=True).items() if v["type"] == "file"}
        elif (info := filesystem.info(inner))["type"] == "directory":
            root, entries = inner.rstrip("/"), filesystem.find(inner, detail=True)
        else:
            one = InputFile(path, inner.rsplit("/", 1)[-1], int(info.get("size") or 0))
            return [] if is_below(path, leave_out) else [one]
        names = {name.removeprefix(root).lstrip("/"): name for name in entries}
        visible = [name for name in names if not _hidden(name.split("/"))]
        kept = documents_of_stages(visible, lambda name: bytes(filesystem.cat_file(f"{root}/{name}")))
    except (FileNotFoundError, ValueError, ImportError) as error:
        raise errors.InputMissing(path, f"cannot be opened ({error})", "check the URL") from None
    except OSError as error:
        raise errors.InputUnreadable(path, f"cannot be opened ({error})", "check the URL and your access") from None
    urls = {name: filesystem.unstrip_protocol(names[name]) for name in kept}
    return [
        InputFile(url, name, int(entries[names[name]].get("size") or 0))
        for name, url in urls.items()
        if not is_below(url, leave_out)
    ]
