"""Files at local paths and URLs: open, list, remove, and write whole or not at all.

A local file is written under a temporary name and moved into place; on object stores it is one PUT of the final name.
So a killed process leaves whole files, and unfinished ones that can be recognized by their names. URLs go to fsspec.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import psutil
import xxhash

UNFINISHED = ".unfinished-"
"""Prefix of temporary files; host and process follow, so that those of dead writers can be removed."""

_A_DAY = 86_400
"""Seconds after which an untouched unfinished file counts as abandoned, whoever wrote it."""


def join(folder: str, name: str) -> str:
    """A path below a folder or URL."""
    return f"{str(folder).rstrip('/')}/{name}"


def is_remote(path: str) -> bool:
    """Whether a path is a URL for fsspec rather than a local file."""
    return "://" in str(path)


def _remote(path: str) -> tuple[Any, str]:
    import fsspec  # only paths with :// need it, and it takes 50 ms to import

    filesystem, inner = fsspec.core.url_to_fs(str(path))
    filesystem.invalidate_cache()  # its cached listings lack what workers have written since
    return filesystem, inner


def exists(path: str) -> bool:
    """Whether a file or folder exists."""
    if is_remote(path):
        filesystem, inner = _remote(path)
        return bool(filesystem.exists(inner))
    return Path(path).exists()


def list_names(folder: str, suffix: str) -> list[str]:
    """Sorted names of the files in a folder that end in ``suffix``; empty where the folder is missing."""
    if is_remote(folder):
        filesystem, inner = _remote(folder)
        if not filesystem.isdir(inner):
            return []
        names = (str(p).rsplit("/", 1)[-1] for p in filesystem.ls(inner, detail=False))
    elif not Path(folder).is_dir():
        return []
    else:
        names = (p.name for p in Path(folder).iterdir())
    return sorted(n for n in names if n.endswith(suffix) and not n.startswith("."))


def open_binary(path: str) -> BinaryIO:
    """Open a local path or URL for reading."""
    if is_remote(path):
        filesystem, inner = _remote(path)
        return filesystem.open(inner, "rb")  # type: ignore[no-any-return]
    return Path(path).open("rb")


def remove(path: str) -> None:
    """Delete a file or folder if it exists."""
    if is_remote(path):
        filesystem, inner = _remote(path)
        if filesystem.exists(inner):
            filesystem.rm(inner, recursive=True)
    elif Path(path).is_dir():
        import shutil

        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_path(path: str) -> Iterator[str]:
    """Yield a temporary local file name; the file becomes ``path`` when the block ends without an error."""
    remote = is_remote(path)
    if not remote:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    folder = None if remote else str(Path(path).parent)
    handle, temporary = tempfile.mkstemp(prefix=f"{UNFINISHED}{socket.gethostname()}-{os.getpid()}-", dir=folder)
    os.close(handle)
    try:
        yield temporary
        if remote:
            filesystem, inner = _remote(path)
            filesystem.makedirs(inner.rpartition("/")[0], exist_ok=True)
            filesystem.put_file(temporary, inner)
        else:
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def sweep(folder: str) -> None:
    """Remove what killed processes left unfinished; files that another run is writing stay."""
    if not is_remote(folder):
        for path in Path(folder).rglob(f"{UNFINISHED}*"):
            with contextlib.suppress(FileNotFoundError):  # finished, or swept by another run, at this moment
                if _is_abandoned(path):
                    path.unlink()


def _is_abandoned(path: Path) -> bool:
    """Whether the writer of an unfinished file is dead; files of other machines count as abandoned after a day."""
    host, _, process = path.name.removeprefix(UNFINISHED).rpartition("-")[0].rpartition("-")
    if host == socket.gethostname() and process.isdecimal():
        try:
            if psutil.Process(int(process)).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
    return time.time() - path.stat().st_mtime > _A_DAY


def write_bytes(path: str, data: bytes) -> None:
    """Write a whole file atomically."""
    with atomic_path(path) as temporary:
        Path(temporary).write_bytes(data)


def write_json(path: str, value: Any) -> None:
    """Write JSON atomically, keys sorted, one trailing newline."""
    write_bytes(path, (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())


def read_json(path: str) -> Any:
    """Read a JSON file from a path or URL."""
    with open_binary(path) as file:
        return json.loads(file.read())


def file_digest(path: str) -> str:
    """xxh3-128 of a file's bytes, 32 hex digits."""
    hasher = xxhash.xxh3_128()
    with open_binary(path) as file:
        while block := file.read(1 << 22):
            hasher.update(block)
    return hasher.hexdigest()
