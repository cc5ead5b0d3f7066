"""Records of a stage's output: an entry for each finished shard, and a manifest for all of them, with counts.

A manifest that cannot be read is an error; an entry that cannot be read counts as missing, and its shard is written
again.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.shards.files import exists, join, list_names, read_json, write_json
from corpusforge.shards.tables import Shard

MANIFEST = "manifest.json"

Tallies = dict[str, dict[str, int]]
"""``{reason: {"rows": n, "bytes": n}}``; bytes are UTF-8 bytes of the text concerned."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """The record of shard S of unit U, written once all its tables are on disk.

    ``position``: raw records (or rows) of the unit consumed through this shard; a resumed unit continues there.
    ``last``: whether it is the last shard of the unit.
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
    """A finished stage. ``digest``: of its recipe section, code version and upstream; ``content``: digests by table."""

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

        Raises `errors.ManifestInvalid` if it is missing or unreadable.
        """
        path = join(folder, MANIFEST)
        try:
            raw = read_json(path)
            raw["shards"] = {t: [Shard(**s) for s in rows] for t, rows in raw["shards"].items()}
            return cls(**raw)
        except NotADirectoryError:
            mend = "name the folder of a finished stage, or clean it first"
            raise errors.ManifestInvalid(folder, "is a file", mend) from None
        except FileNotFoundError:
            if not exists(folder):
                raise errors.ManifestInvalid(folder, "no such folder", "name that of a finished stage") from None
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


def add_tallies(total: Tallies, more: Tallies) -> Tallies:
    """Add ``more`` into ``total`` and return it."""
    for reason, counts in more.items():
        sums = total.setdefault(reason, {"rows": 0, "bytes": 0})
        for key, value in counts.items():
            sums[key] = sums.get(key, 0) + int(value)
    return total


def add_statistics(total: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add numbers, lists of numbers (elementwise, histograms) and nested dicts of them into ``total``."""
    for key, value in more.items():
        if isinstance(value, dict):
            add_statistics(total.setdefault(key, {}), value)
        elif isinstance(value, list):
            before = total.get(key, [])
            width = max(len(before), len(value))
            padded = [list(v) + [0] * (width - len(v)) for v in (before, value)]
            total[key] = np.sum(padded, axis=0).tolist() if width else []
        else:
            total[key] = total.get(key, 0) + value
    return total


def load_entry(folder: str, unit: int, shard: int) -> Entry | None:
    """The entry of one shard below a stage's folder; None if it is missing, truncated or not an entry."""
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

    They are read by name: listing a folder for every unit would be quadratic in their number.
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

    ``units``: the number of units of the run; higher numbers are of a run over other units and are ignored.
    """
    stems = (name.removesuffix(".json").split("-") for name in list_names(join(folder, "entries"), ".json"))
    numbers = {int(stem[1]) for stem in stems if len(stem) == 3 and stem[1].isdecimal()}
    return [entry for unit in sorted(numbers) if units is None or unit < units for entry in unit_entries(folder, unit)]


def gather(entries: Iterable[Entry]) -> tuple[dict[str, list[Shard]], Tallies, dict[str, Any]]:
    """Shards by table, and the sums of tallies and statistics, of many entries."""
    shards: dict[str, list[Shard]] = {}
    tallies: Tallies = {}
    statistics: dict[str, Any] = {}
    for entry in entries:
        for table, shard in entry.tables.items():
            shards.setdefault(table, []).append(shard)
        add_tallies(tallies, entry.tallies)
        add_statistics(statistics, entry.statistics)
    return shards, tallies, statistics
