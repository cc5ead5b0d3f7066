"""Build instances: token ids of documents to rows of INSTANCES, with their statistics.

Everything random is keyed by the document's id, the copy and the place in the document, never by shard or row, so the
same recipe gives the same instances for any sharding of the corpus.
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
from corpusforge.instances.check import MaskSum, check_copies, check_instances
from corpusforge.instances.formats import Plan, PlanSettings, assemble, assemble_word_starts, find_format
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import Ids, Masked, Masker, MaskSettings, Specials
from corpusforge.instances.measure import documents_lost, measure_documents, measure_instances, measure_text
from corpusforge.instances.negatives import Negatives, no_negatives
from corpusforge.instances.source import Source, read_source

_PART = 1 << 18  # tokens made at once: small enough for the cache, and one record batch of the shard


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
        """Whether TOKENS must have word starts, and INSTANCES get them: the mask unit needs them."""
        return find_unit(self.mask.unit).needs_words


class Built(NamedTuple):
    """Instances and the numbers about them (see `measure`); statistics of several add up."""

    instances: pa.RecordBatch
    statistics: dict[str, Any]


class Builder:
    """Turns documents into instances. Every batch is checked before it is returned."""

    def __init__(self, settings: BuildSettings, negatives: Negatives | None = None) -> None:
        self.settings, self.format = settings, find_format(settings.format)
        self.negatives = negatives or no_negatives(settings.specials.size)
        self.schema = schemas.instances_schema(
            settings.specials.size, masks=settings.stored_masks, word_starts=settings.word_starts
        )
        self._masker = Masker(settings.specials, settings.mask, settings.seed)
        self._planning = PlanSettings(
            settings.length,
            settings.pair_sampling,
            settings.short_probability,
            settings.specials.sep,
            settings.seed,
        )

    def copies(self, tokens: pa.RecordBatch, count: int) -> Iterator[Built]:
        """The instances of a TOKENS batch, ``count`` copies one after another, in batches of about 260,000 tokens.

        The first batch also counts the documents. No two copies may have the same masks. Raises
        `errors.InvariantBroken`.
        """
        source, masks = read_source(tokens), []
        text = self.format.join(source, self._planning) if self.format.join else source
        plan = None
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
        return self.format.is_pair and self.settings.copies_redraw == "pairs"

    def _batches(self, source: Source, text: Source, plan: Plan, copy: int) -> Iterator[Built]:
        """The instances of one copy. ``text``: the documents as planned, joined where the format joins them."""
        shortest = self.format.shortest
        statistics: dict[str, Any]
        if copy:  # documents are counted once, but none may be lost in any copy
            statistics = {"documents_lost": documents_lost(source, plan, shortest)}
        else:
            statistics = {
                **measure_text(source, self.settings.specials),
                **measure_documents(source, plan, shortest),
            }
        repeated = copy > 0 and self.settings.copies_redraw == "masks"
        for part in plan.parts(_PART):
            built = self._make(text, part, copy)
            again = {"pairs_drawn": 0, "pairs_drawn_random": 0} if repeated else {}
            yield Built(built.instances, {**statistics, **built.statistics, **again})
            statistics = {}
        if statistics:
            yield Built(pa.RecordBatch.from_pylist([], self.schema), statistics)

    def plan(self, source: Source, copy: int = 0) -> Plan:
        """The tokens of each instance. ``source``: joined, where the format joins documents."""
        drawn = copy if self.settings.copies_redraw == "pairs" else 0
        plan = self.format.plan(source, self.negatives, self._planning, drawn)
        self.format.check(source, plan, self.negatives, self._planning)
        return plan

    def _make(self, source: Source, plan: Plan, copy: int) -> Built:
        ids, offsets = assemble(plan, source.ids, self.negatives.ids, self.settings.specials)
        documents, index = source.keys[plan.document], plan.index.astype(np.uint32)
        masked = starts = None
        if self.settings.word_starts:
            if source.word_starts is None:
                raise ValueError(f"mask unit {self.settings.mask.unit!r} needs TOKENS with word_starts")
            starts = assemble_word_starts(plan, source.word_starts, self.negatives.word_starts)
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
        columns = [
            _lists(ids, offsets),
            pa.FixedSizeListArray.from_arrays(pa.array(segments.ravel()), 2),
            pa.array(plan.label) if self.format.is_pair else pa.nulls(len(plan.label), pa.int8()),
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
