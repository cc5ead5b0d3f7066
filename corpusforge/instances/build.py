"""Build instances: token ids of documents in, rows of INSTANCES out.

Comes in: a TOKENS batch, and donors for segment-pair. Goes out: INSTANCES batches and their statistics. The one
decision: everything random is keyed by the document's id, the copy and the place in the document, never by shard or
row, so the same recipe gives the same instances however the corpus was cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import schemas, seeds
from corpusforge.arrays import I64, U64, Bools
from corpusforge.instances.check import (
    MaskSum,
    check_copies,
    check_cover,
    check_instances,
    check_joined,
    check_order,
    check_pairs,
)
from corpusforge.instances.doc_sentences import plan_doc_sentences
from corpusforge.instances.donors import Donors, no_donors
from corpusforge.instances.full_sentences import join_documents, plan_full_sentences
from corpusforge.instances.masking import Ids, Masked, Masker, MaskSettings, Specials
from corpusforge.instances.measure import documents_lost, measure_documents, measure_instances, measure_text
from corpusforge.instances.plan import Plan, assemble, assemble_word_starts
from corpusforge.instances.segment_pair import PairSettings, plan_segment_pair
from corpusforge.instances.sentence_pair import plan_sentence_pair
from corpusforge.instances.sop import plan_sop
from corpusforge.instances.source import Source, read_source

PAIR_FORMATS = ("segment-pair", "sentence-pair", "sop")
"""Formats of two segments and a label."""

DONOR_FORMATS = ("segment-pair", "sentence-pair")
"""Formats that take segments from other documents."""

_PIECE = 1 << 18  # tokens made at once: small enough for the cache, and one record batch of the shard


@dataclasses.dataclass(frozen=True)
class BuildSettings:
    """What to build. ``stored_masks``: static and duplicated; otherwise the loader draws them (dynamic).

    ``copies_redraw``: whether copies of segment-pair draw new ``pairs`` (BERT) or only new ``masks``.
    """

    specials: Specials
    format: str = "doc-sentences"
    length: int = 128
    stored_masks: bool = False
    copies_redraw: str = "pairs"
    pair_sampling: str = "balanced"
    short_probability: float = 0.1
    mask: MaskSettings = dataclasses.field(default_factory=MaskSettings)
    seed: int = 0

    @property
    def word_starts(self) -> bool:
        """Whether TOKENS must have word starts, and INSTANCES get them: the mask unit is built on words."""
        return self.mask.unit != "token"


class Built(NamedTuple):
    """Instances and the numbers about them (see `measure`); statistics of several add up."""

    instances: pa.RecordBatch
    statistics: dict[str, Any]


def is_heldout(documents: U64, seed: int, share: float) -> Bools:
    """Which documents are set aside for evaluation, by their keys."""
    return np.asarray(seeds.uniforms(seed, "heldout", documents) < share)


class Builder:
    """Turns documents into instances. Every batch is checked before it is given out."""

    def __init__(self, settings: BuildSettings, donors: Donors | None = None) -> None:
        if settings.format not in ("doc-sentences", "full-sentences", *PAIR_FORMATS):
            raise ValueError(f"no format {settings.format!r}")
        self.settings = settings
        self.donors = donors or no_donors(settings.specials.size)
        self.schema = schemas.instances_schema(
            settings.specials.size, masks=settings.stored_masks, word_starts=settings.word_starts
        )
        self._masker = Masker(settings.specials, settings.mask, settings.seed)
        self._pairs = PairSettings(settings.length, settings.pair_sampling, settings.short_probability)

    def build(self, tokens: pa.RecordBatch, copy: int = 0) -> pa.RecordBatch:
        """All instances of a TOKENS batch in one INSTANCES batch."""
        found = pa.Table.from_batches([b.instances for b in self.batches(tokens, copy)], self.schema)
        batches = found.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self.schema)

    def batches(self, tokens: pa.RecordBatch, copy: int = 0) -> Iterator[Built]:
        """The same in batches of about 260,000 tokens, with statistics; of copy 0 the first also counts the documents.

        Raises `errors.InvariantBroken`.
        """
        source = read_source(tokens)
        text = self._joined(source)
        return self._batches(source, text, self.plan(text, copy), copy)

    def copies(self, tokens: pa.RecordBatch, count: int) -> Iterator[Built]:
        """`batches` of the copies 0 to ``count``, one behind the other; no two of them may be masked alike."""
        source, masks = read_source(tokens), []
        text, plan = self._joined(source), None
        for copy in range(count):
            if plan is None or self._redraws:
                plan = self.plan(text, copy)
            masks.append(MaskSum())
            for built in self._batches(source, text, plan, copy):
                if count > 1 and self.settings.stored_masks and self.settings.mask.rate:
                    masks[-1].add(built.instances)
                yield built
        check_copies(masks)

    @property
    def _redraws(self) -> bool:
        """Whether each copy has pairs of its own."""
        return self.settings.format in PAIR_FORMATS and self.settings.copies_redraw == "pairs"

    def _joined(self, source: Source) -> Source:
        """What plans are of: the documents, of full-sentences with separators between them."""
        return (
            join_documents(source, self.settings.specials.sep) if self.settings.format == "full-sentences" else source
        )

    def _batches(self, source: Source, text: Source, plan: Plan, copy: int) -> Iterator[Built]:
        shortest = 1 + (self.settings.format == "sop")
        statistics: dict[str, Any]
        if copy:  # documents are counted once, but none may be lost in any copy
            statistics = {"documents_lost": documents_lost(source, plan, shortest)}
        else:
            statistics = {
                **measure_text(source, self.settings.specials),
                **measure_documents(source, plan, shortest),
            }
        repeated = copy > 0 and self.settings.copies_redraw == "masks"
        for piece in plan.pieces(_PIECE):
            built = self._make(text, piece, copy)
            again = {"pairs_drawn": 0, "pairs_drawn_random": 0} if repeated else {}
            yield Built(built.instances, {**statistics, **built.statistics, **again})
            statistics = {}
        if statistics:
            yield Built(pa.RecordBatch.from_pylist([], self.schema), statistics)

    def plan(self, source: Source, copy: int = 0) -> Plan:
        """Which tokens each instance will hold. ``source``: for full-sentences with documents joined."""
        settings, longest = self.settings, self.settings.length - 3
        draws = {"seed": settings.seed, "copy": copy if settings.copies_redraw == "pairs" else 0}
        match settings.format:
            case "doc-sentences":
                plan = plan_doc_sentences(source, settings.length)
                check_cover(source, plan)
            case "full-sentences":
                plan = plan_full_sentences(source, settings.length)
                check_joined(source, plan, settings.specials.sep)
            case "sop":
                plan = plan_sop(source, self._pairs, **draws)
                check_order(source, plan, longest)
            case "sentence-pair":
                plan = plan_sentence_pair(source, self.donors, settings.length, **draws)
                check_pairs(source, plan, self.donors, longest)
            case _:
                plan = plan_segment_pair(source, self.donors, self._pairs, **draws)
                check_pairs(source, plan, self.donors, longest)
        return plan

    def _make(self, source: Source, plan: Plan, copy: int) -> Built:
        ids, offsets = assemble(plan, source.ids, self.donors.ids, self.settings.specials)
        documents, index = source.keys[plan.document], plan.index.astype(np.uint32)
        masked = starts = None
        if self.settings.word_starts:
            if source.word_starts is None:
                raise ValueError(f"mask unit {self.settings.mask.unit!r} needs TOKENS with word_starts")
            starts = assemble_word_starts(plan, source.word_starts, self.donors.word_starts)
        if self.settings.stored_masks:
            masked = self._masker(ids, offsets, seeds.instance_keys(documents, index), copy, starts)
        seen = ids if masked is None else masked.input_ids
        batch = self._batch(plan, seen, offsets, documents, copy, masked, starts)
        inner = int(plan.separators.sum())
        check_instances(batch, self.settings.specials, self.settings.length, self.settings.mask, ids, separators=inner)
        settings = self.settings
        return Built(batch, measure_instances(batch, plan, settings.specials, settings.length, settings.mask))

    def _batch(
        self,
        plan: Plan,
        ids: Ids,
        offsets: I64,
        documents: U64,
        copy: int,
        masked: Masked | None,
        starts: Bools | None,
    ) -> pa.RecordBatch:
        """The columns as an INSTANCES batch."""
        lengths = np.diff(offsets)
        a_length = plan.a_length + 2
        segments = np.stack((a_length, lengths - a_length), 1).astype(np.uint16)
        is_pair = self.settings.format in PAIR_FORMATS
        columns = [
            _lists(ids, offsets),
            pa.FixedSizeListArray.from_arrays(pa.array(segments.ravel()), 2),
            pa.array(plan.label) if is_pair else pa.nulls(len(plan.label), pa.int8()),
            pa.array(documents),
            pa.array(plan.index.astype(np.uint32)),
            pa.array(np.full(len(documents), copy, np.uint16)),
            pa.array(lengths.astype(np.uint16)),
        ]
        if starts is not None:
            columns += [_lists(starts, offsets)]
        if masked is not None:
            columns += [_lists(masked.positions.astype(np.uint16), masked.position_offsets)]
            columns += [_lists(masked.labels, masked.position_offsets)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _lists(values: npt.NDArray[Any], offsets: I64) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
