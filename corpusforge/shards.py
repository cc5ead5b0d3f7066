"""Shards and manifests: how tables reach the disk, whole or not at all.

A stage's folder holds ``<table>/part-UUUUU-SSSSS.parquet`` (or ``.arrow``), one ``entries/part-UUUUU-SSSSS.json`` for
each finished shard, and ``manifest.json``, written last. U numbers the work unit, S the shard inside it. Every file is
written under a temporary name and moved into place; on object stores it is one PUT of the final name. So a killed
stage leaves finished shards with entries, and nothing else that counts.

Two digests: ``digest`` is of a file's bytes; ``content`` is a sum over row hashes and does not depend on how rows were
cut into shards or ordered.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import xxhash

from corpusforge import errors
from corpusforge.content import ContentDigest

MANIFEST = "manifest.json"
SUFFIX = {"parquet": ".parquet", "arrow": ".arrow"}

UNFINISHED = ".unfinished-"
"""Temporary files are named by this, host, process and chance: whose writer is dead can be told, and removed."""

Tallies = dict[str, dict[str, int]]
"""``{reason: {"rows": n, "bytes": n}}``; bytes are UTF-8 bytes of the text concerned."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """One finished file of a table. ``bytes``: on disk; ``digest``: xxh3-128 of them, hex."""

    name: str  # relative to the stage's folder, "/" between parts
    rows: int
    bytes: int
    digest: str
    content: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known about shard S of unit U once all its tables are on disk.

    ``position``: raw records (or rows) of the unit consumed through this shard; a resumed unit goes on there.
    ``last``: nothing of the unit is left behind it.
    """

    unit: int
    shard: int
    position: int
    last: bool
    tables: dict[str, Shard]
    tallies: Tallies
    statistics: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A finished stage. ``digest``: of its recipe section, code version and upstream; ``content``: per table."""

    stage: str
    digest: str
    content: dict[str, str]
    rows: dict[str, int]
    bytes: dict[str, int]
    shards: dict[str, list[Shard]]
    tallies: Tallies
    statistics: dict[str, Any]
    recipe: dict[str, Any]
    upstream: dict[str, str]
    versions: dict[str, str]

    def save(self, folder: str) -> None:
        """Write ``manifest.json`` into a folder or URL."""
        write_json(join(folder, MANIFEST), dataclasses.asdict(self))

    @classmethod
    def load(cls, folder: str) -> Manifest:
        """Read the manifest of a finished stage.

        Raises `errors.ManifestInvalid` where there is none or it cannot be read.
        """
        path = join(folder, MANIFEST)
        try:
            raw = read_json(path)
            raw["shards"] = {t: [Shard(**s) for s in rows] for t, rows in raw["shards"].items()}
            return cls(**raw)
        except FileNotFoundError:
            raise errors.ManifestInvalid(
                path,
                "no manifest: the stage is missing or unfinished",
                "run the stage that writes this folder (again)",
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise errors.ManifestInvalid(path, f"unreadable manifest ({error})", "run the stage again") from None

    def paths(self, folder: str, table: str) -> list[str]:
        """Full paths of a table's shards, in order."""
        return [join(folder, shard.name) for shard in self.shards.get(table, [])]


def join(folder: str, name: str) -> str:
    """A path below a folder or URL."""
    return f"{str(folder).rstrip('/')}/{name}"


def is_remote(path: str) -> bool:
    """Whether a path is a URL for fsspec rather than a local file."""
    return "://" in str(path)


def _remote(path: str) -> tuple[Any, str]:
    import fsspec  # only paths with :// need it, and it takes 50 ms to import

    filesystem, inner = fsspec.core.url_to_fs(str(path))
    filesystem.invalidate_cache()  # listings it remembers lack what workers have written since
    return filesystem, inner


def exists(path: str) -> bool:
    """Whether a file or folder is there."""
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
    """Delete a file or folder if it is there."""
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
    """A temporary local file name; what was written there becomes ``path`` when the block ends without an error."""
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


class ShardWriter:
    """Writes RecordBatches of one schema to one file; nothing is visible before `finish`."""

    def __init__(self, folder: str, name: str, schema: pa.Schema, kind: str) -> None:
        self.folder, self.name, self.rows = folder, name, 0
        self._content = ContentDigest()
        self._stack = contextlib.ExitStack()
        self._temporary = self._stack.enter_context(atomic_path(join(folder, name)))
        self._writer: Any
        if kind == "parquet":
            self._writer = pq.ParquetWriter(self._temporary, schema, compression="zstd", compression_level=3)
        else:
            self._writer = pa.ipc.new_stream(self._temporary, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._writer.write_batch(batch)
        self._content.add(batch)
        self.rows += batch.num_rows

    def finish(self) -> Shard:
        """Close the file and move it into place."""
        self._writer.close()
        size, digest = Path(self._temporary).stat().st_size, file_digest(self._temporary)
        self._stack.close()
        return Shard(self.name, self.rows, size, digest, self._content.hex())

    def abandon(self) -> None:
        """Close and delete the unfinished file."""
        with contextlib.suppress(Exception):
            self._writer.close()
        with contextlib.suppress(RuntimeError):
            self._stack.__exit__(RuntimeError, RuntimeError("abandoned"), None)


def read_shard(path: str) -> Iterator[pa.RecordBatch]:
    """The RecordBatches of a Parquet or Arrow shard (Arrow files on a local disk are memory-mapped).

    Raises `errors.ManifestInvalid` where the file is missing or cut short.
    """
    try:
        if str(path).endswith(".parquet"):
            with open_binary(path) as file:
                table = pq.ParquetFile(file)
                for group in range(table.num_row_groups):  # a batch never spans groups: a shard is not read whole
                    yield from table.iter_batches(1 << 20, row_groups=[group])
        elif is_remote(path):
            with open_binary(path) as file:
                yield from pa.ipc.open_stream(file)
        else:
            yield from pa.ipc.open_stream(pa.memory_map(str(path)))
    except (OSError, pa.ArrowInvalid) as error:
        raise errors.ManifestInvalid(str(path), f"unreadable shard ({error})", "run the stage that writes it") from None


def add_tallies(total: Tallies, more: Tallies) -> Tallies:
    """Add ``more`` into ``total`` and return it."""
    for reason, counts in more.items():
        mine = total.setdefault(reason, {"rows": 0, "bytes": 0})
        for key, value in counts.items():
            mine[key] = mine.get(key, 0) + int(value)
    return total


def add_statistics(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add numbers, lists of numbers (elementwise, histograms) and nested dicts of them into ``total``."""
    for key, value in more.items():
        if isinstance(value, dict):
            add_statistics(total.setdefault(key, {}), value)
        elif isinstance(value, list):
            mine = total.get(key, [])
            width = max(len(mine), len(value))
            padded = [list(v) + [0] * (width - len(v)) for v in (mine, value)]
            total[key] = np.sum(padded, axis=0).tolist() if width else []
        else:
            total[key] = total.get(key, 0) + value
    return total


def load_entry(folder: str, unit: int, shard: int) -> Entry | None:
    """The entry of one shard below a stage's folder; None where it is missing, cut short or no entry at all."""
    try:
        raw = read_json(join(folder, f"entries/part-{unit:05d}-{shard:05d}.json"))
        tables = {str(t): Shard(**s) for t, s in raw["tables"].items()}
        entry = Entry(**{**raw, "tables": tables})
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    names = [value for s in tables.values() for value in (s.name, s.digest, s.content)]
    counts = [entry.position, *(value for s in tables.values() for value in (s.rows, s.bytes))]
    sound = all(isinstance(value, str) for value in names) and all(isinstance(value, int) for value in counts)
    sound &= isinstance(entry.tallies, dict) and isinstance(entry.statistics, dict) and isinstance(entry.last, bool)
    return entry if sound and (entry.unit, entry.shard) == (unit, shard) else None


def unit_entries(folder: str, unit: int) -> Iterator[Entry]:
    """The entries of one unit from its first shard to its last, or to the first that is missing or unreadable.

    They are asked for by name: listing a folder for every unit would take the square of their number.
    """
    for shard in itertools.count():
        entry = load_entry(folder, unit, shard)
        if entry is None:
            return
        yield entry
        if entry.last:
            return


def load_entries(folder: str, units: int | None = None) -> list[Entry]:
    """All `unit_entries` below a stage's folder, ordered by unit and shard.

    ``units``: how many units the run has; what is numbered from there on was left by another cut and is passed over.
    """
    stems = (name.removesuffix(".json").split("-") for name in list_names(join(folder, "entries"), ".json"))
    found = {int(stem[1]) for stem in stems if len(stem) == 3 and stem[1].isdecimal()}
    return [entry for unit in sorted(found) if units is None or unit < units for entry in unit_entries(folder, unit)]


def gather(entries: Iterable[Entry]) -> tuple[dict[str, list[Shard]], Tallies, dict[str, Any]]:
    """Shards per table, tallies and statistics of many entries together."""
    shards: dict[str, list[Shard]] = {}
    tallies: Tallies = {}
    statistics: dict[str, Any] = {}
    for entry in entries:
        for table, shard in entry.tables.items():
            shards.setdefault(table, []).append(shard)
        add_tallies(tallies, entry.tallies)
        add_statistics(statistics, entry.statistics)
    return shards, tallies, statistics
