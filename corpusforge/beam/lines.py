"""The method `lines`: the graphs of exact spans, with lines in the place of spans of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpusforge.beam.dedupe import scratch_of
from corpusforge.beam.exact_spans import cut_repeats
from corpusforge.dedupe.lines import METHOD, CutLinesWork, HashLinesWork
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Dedupe
from corpusforge.sentences.counter import SentenceCounter
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
    hashing = HashLinesWork(scratch, 1, survivor=settings.survivor)
    counter = SentenceCounter(settings.sentences)
    counter.check()
    floors: dict[str, Any] = {"min_sentences": settings.min_sentences, "min_words": settings.min_words}
    cutting = CutLinesWork(
        output, scratch, span_sentences=1, audit_only=audit_only, counter=counter, counted="lines", **floors
    )
    return cut_repeats(engine, settings, units, hashing, cutting, progress, ordered=True)
