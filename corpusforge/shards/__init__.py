"""Shards and manifests: tables on disk, whole or not at all.

A stage's folder holds ``<table>/part-UUUUU-SSSSS.parquet`` (or ``.arrow``), one ``entries/part-UUUUU-SSSSS.json`` for
each finished shard, and ``manifest.json``, which is written last. U numbers the work unit, S its shard. A killed stage
leaves finished shards with entries; everything else is ignored.
"""

from corpusforge.shards.files import (
    UNFINISHED,
    atomic_path,
    exists,
    file_digest,
    is_remote,
    join,
    list_names,
    open_binary,
    read_json,
    remove,
    sweep,
    write_bytes,
    write_json,
)
from corpusforge.shards.manifests import (
    MANIFEST,
    Entry,
    Manifest,
    Tallies,
    add_statistics,
    add_tallies,
    gather,
    load_entries,
    load_entry,
    unit_entries,
)
from corpusforge.shards.tables import SUFFIX, Shard, ShardWriter, read_shard

__all__ = [
    "MANIFEST", "SUFFIX", "UNFINISHED", "Entry", "Manifest", "Shard", "ShardWriter", "Tallies", "add_statistics",
    "add_tallies", "atomic_path", "exists", "file_digest", "gather", "is_remote", "join", "list_names", "load_entries",
    "load_entry", "open_binary", "read_json", "read_shard", "remove", "sweep", "unit_entries",
    "write_bytes", "write_json",
]  # fmt: skip
