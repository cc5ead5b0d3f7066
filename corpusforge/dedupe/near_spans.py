"""The method `near-spans`: cut spans of consecutive sentences that resemble an earlier span.

Spans are compared as sets of shingles (`minhash`). A span is dropped where an earlier one is at least as similar as the
threshold and the two share no sentence (`pairs`). Whether the earlier one is kept itself does not matter: the result
depends on the two spans alone, and of a chain of spans, each similar to the next, the first is kept.

    document shards -> SignWork -> spans/, signed/
    spans/, signed/ -> find_similar -> compared/
    document shards, compared/ -> CutNearWork -> documents/, repeats/

Text is read twice and never shuffled; its shingles and band hashes are in scratch, about twice the size of the text,
until the method is done. Each sentence of a dropped span is shown beside the sentence at the same position of the span
that it resembles, with the similarity of the two spans; everything else about cuts is as for `exact_spans`.
"""

from __future__ import annotations

import dataclasses

from corpusforge.arrays import F32, U64
from corpusforge.dedupe import locate, signed_units
from corpusforge.dedupe.exact_spans import CutWork
from corpusforge.dedupe.job import Job
from corpusforge.dedupe.pairs import find_similar, read_compared, with_pair_counts
from corpusforge.dedupe.signed_units import Signing, SignWork
from corpusforge.units import UnitResult

METHOD = "near-spans"


def run(job: Job) -> list[UnitResult]:
    """Write ``documents/`` and ``repeats/`` of every unit."""
    signing = Signing.of(job.settings, job.settings.span_sentences)
    signed = job.map(SignWork(job.scratch, signing), label="sign", folder=job.scratch)
    items = sum(result.statistics.get("items", 0) for result in signed)
    compared = find_similar(job, signing, job.units, items, best=True)
    cutting = CutNearWork.of(job, job.settings.span_sentences)
    locate.locate_remotely(job, cutting.wanted_places)
    results = job.map(cutting, label="cut", folder=job.output)
    signed_units.remove_scratch(job.scratch)
    return with_pair_counts(results, compared)


@dataclasses.dataclass(frozen=True)
class CutNearWork(CutWork):
    """As `CutWork`, of the pairs in ``compared/``; ``rounds`` is not used."""

    method: str = METHOD
    reason: str = "span:near-repeated"

    def duplicates_of(self, unit: int) -> tuple[U64, U64, F32]:
        """Places of the dropped spans of a unit, ascending, of the spans that they resemble, and similarities."""
        return read_compared(self.folder, unit)
