"""The method `near-spans`: sign every span of sentences, find those that an earlier one resembles, cut them.

    document shards -> SignWork -> spans/, signed/
    spans/, signed/ -> find_alike -> compared/
    document shards + compared/ -> CutNearWork -> documents/, repeats/

Comes in: document shards. Goes out: ``documents/``, ``repeats/``. The one decision: text is read twice and never
shuffled; its shingles and band hashes lie in scratch, about twice the size of the text, until the method is through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpusforge import shards
from corpusforge.beam.dedupe import scratch_of
from corpusforge.beam.near import Alike, find_alike, with_pairs
from corpusforge.beam.where import find_where
from corpusforge.dedupe import locate, signed_units
from corpusforge.dedupe.lsh import bands_for
from corpusforge.dedupe.minhash import Signer
from corpusforge.dedupe.near_spans import METHOD, CutNearWork
from corpusforge.dedupe.pairs import Signing, SignWork
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
    """Write ``documents/`` and ``repeats/`` for every upstream shard; with ``audit_only`` no documents."""
    scratch = scratch_of(output, METHOD)
    sizes = [unit.bytes for unit in units]
    signing = signing_of(settings, settings.span_sentences)
    signed = engine.map(SignWork(scratch, signing), units, sizes, label="sign", folder=scratch, progress=progress)
    found = sum(result.statistics.get("items", 0) for result in signed)
    alike = Alike(settings.threshold, best=True, memory_bytes=settings.memory_megabytes << 20)
    compared = find_alike(engine, signing, units, scratch, found, progress, alike)
    floors: dict[str, Any] = {"min_sentences": settings.min_sentences, "min_words": settings.min_words}
    cutting = CutNearWork(output, scratch, span_sentences=settings.span_sentences, audit_only=audit_only, **floors)
    find_where(engine, units, cutting)
    results = engine.map(cutting, units, sizes, label="cut", folder=output, progress=progress)
    locate.forget()
    signed_units.forget()
    shards.remove(shards.join(scratch, "entries"))  # first, so that files half removed are never taken for whole
    shards.remove(scratch)
    return with_pairs(results, compared)


def signing_of(settings: Dedupe, span_sentences: int, *, indexed: bool = False) -> Signing:
    """How the settings want items signed and compared. ``span_sentences`` 0: whole documents."""
    signer = Signer(settings.permutations, settings.shingle_words, fold_numbers=settings.fold_numbers)
    bands = bands_for(settings.threshold, settings.permutations)
    return Signing(signer, bands, span_sentences, settings.survivor, indexed)
