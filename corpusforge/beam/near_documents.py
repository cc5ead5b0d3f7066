"""The method `documents`: sign every document, group those that resemble each other, keep one of each group.

    document shards -> SignWork -> spans/, signed/;  an index's signatures -> IndexWork -> the same
    spans/, signed/ -> find_alike -> compared/ -> settle_groups -> groups/
    document shards + groups/ -> KeepWork -> documents/, repeats/, clusters/, signatures/

Comes in: document shards, and folders with signatures of earlier corpora. Goes out: ``documents/``, ``repeats/``,
``clusters/``, and with an index or where asked for ``signatures/``. The one decision: the signatures of what stays are
an index of their own, so that later parts of a corpus name the folders of all earlier ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from corpusforge import shards
from corpusforge.beam.dedupe import scratch_of
from corpusforge.beam.near import Alike, find_alike, with_pairs
from corpusforge.beam.near_spans import signing_of
from corpusforge.content import combine
from corpusforge.dedupe import locate, signed_units
from corpusforge.dedupe.documents import INDEX_DIGITS, IndexUnit, IndexWork, KeepWork, settle_groups, signature_shards
from corpusforge.dedupe.index import check_signer
from corpusforge.dedupe.keep import METHOD
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.pairs import SignWork
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.units import ShardUnit, UnitResult


def run_method(
    engine: Engine,
    settings: Dedupe,
    units: Sequence[ShardUnit],
    output: str,
    progress: Progress,
    *,
    audit_only: bool = False,
) -> list[UnitResult]:
    """Write the tables of every upstream shard; with ``audit_only`` no documents and no signatures."""
    scratch, signing = scratch_of(output, METHOD), signing_of(settings, 0, indexed=bool(settings.index))
    index = index_units(settings.index, len(units), signing.signer)
    every, sizes = [*units, *index], [unit.bytes for unit in units]
    signed = engine.map(SignWork(scratch, signing), units, sizes, label="sign", folder=scratch, progress=progress)
    if index:
        taking, weights = IndexWork(scratch, signing), [unit.bytes for unit in index]
        signed += engine.map(taking, index, weights, label="index", folder=scratch, progress=progress)
    found = sum(result.statistics.get("items", 0) for result in signed)
    alike = Alike(settings.threshold, best=False, memory_bytes=settings.memory_megabytes << 20)
    compared = find_alike(engine, signing, every, scratch, found, progress, alike)
    mark = shards.join(scratch, "groups/settled.json")
    if not shards.exists(mark):
        settle_groups(scratch, [unit.number for unit in every], len(units))
        shards.write_json(mark, {"units": len(every)})
    is_last = settings.method[-1] == METHOD  # what comes behind drops documents that signatures/ would still hold
    export = is_last and (settings.export_signatures or bool(index))
    keeping = KeepWork(output, scratch, signing, len(units), audit_only=audit_only, export=export)
    results = engine.map(keeping, units, sizes, label="keep", folder=output, progress=progress)
    locate.forget()
    signed_units.forget()
    shards.remove(shards.join(scratch, "entries"))  # first, so that files half removed are never taken for whole
    shards.remove(scratch)
    return with_pairs(results, compared)


def index_units(folders: Sequence[str], first: int, signer: Signer) -> list[IndexUnit]:
    """The shards of signatures of finished stages as units, numbered from ``first``, in an order of their content.

    Raises `errors.ManifestInvalid` where a folder is no finished stage, `errors.StageMismatch` where it has no
    signatures or others than this signer's.
    """
    listed = []
    for folder in folders:
        found = signature_shards(folder)
        for shard in found[:1]:
            for batch in itertools.islice(shards.read_shard(shards.join(folder, shard.name)), 1):
                check_signer(batch.schema, signer, folder)
        name = combine(shard.content for shard in found)[:INDEX_DIGITS]
        listed += [(shard.digest, folder, shard, name) for shard in found]
    listed.sort(key=lambda row: row[:2])
    return [
        IndexUnit(first + number, shards.join(folder, shard.name), shard.rows, shard.bytes, name)
        for number, (_, folder, shard, name) in enumerate(listed)
    ]
