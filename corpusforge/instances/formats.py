"""Formats of instances: which tokens an instance is made of, decided before any id is copied.

A format plans whole columns of ranges (`Plan`); `assemble` turns them into flat input ids ``[CLS] A [SEP]`` or
``[CLS] A [SEP] B [SEP]``. The names of formats and their modules are a table in `sections.instances`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import I64, Bools, offsets_of, ranges, slices
from corpusforge.instances.masking import Ids, Specials
from corpusforge.instances.negatives import Negatives
from corpusforge.instances.source import Source
from corpusforge.sections.instances import FORMATS


@dataclasses.dataclass(frozen=True)
class Plan:
    """Instances as ranges, ``[n]`` each, ordered by document and place in it.

    ``document``: row of the Source; ``index``: number of the instance in its document. A is ``a_length`` tokens from
    ``a_start`` of the source's ids; B likewise, from the negatives' ids where ``b_foreign``. ``b_length`` is 0 and
    ``label`` -1 for formats of one segment. ``forced``: the label could not be drawn. A of full-sentences ends in
    ``last_document`` and holds ``separators`` between documents (else: in the same, and none).
    """

    document: I64
    index: I64
    a_start: I64
    a_length: I64
    b_start: I64
    b_length: I64
    b_foreign: Bools
    label: npt.NDArray[np.int8]
    forced: Bools
    last_document: I64
    separators: I64

    def rows(self, first: int, stop: int) -> Plan:
        """The instances from ``first`` to ``stop``."""
        return Plan(**{name: column[first:stop] for name, column in vars(self).items()})

    def lengths(self) -> I64:
        """Tokens of each instance with its specials."""
        return self.a_length + self.b_length + 2 + (self.b_length > 0)

    def parts(self, tokens: int) -> Iterator[Plan]:
        """The plan in runs of about ``tokens`` tokens, so that memory does not depend on the size of a document."""
        for first, stop in slices(offsets_of(self.lengths()), tokens):
            yield self.rows(first, stop)


@dataclasses.dataclass(frozen=True)
class PlanSettings:
    """``length``: longest instance with specials; ``sampling``: of pairs, balanced or original; ``short_probability``:
    BERT's short_seq_prob; ``separator``: the id of [SEP]."""

    length: int = 128
    sampling: str = "balanced"
    short_probability: float = 0.1
    separator: int = -1
    seed: int = 0


class Format(NamedTuple):
    """How a module makes the instances of a format.

    ``plan(source, negatives, settings, copy)``: the instances of one copy of the corpus; every draw is keyed by the
    document, the copy and the place in the document. ``check(source, plan, negatives, settings)``: raises
    `errors.InvariantBroken`. ``join(source, settings)``: changes documents before they are planned. ``shortest``:
    tokens that a document must have to give an instance.
    """

    plan: Callable[[Source, Negatives, PlanSettings, int], Plan]
    check: Callable[[Source, Plan, Negatives, PlanSettings], None]
    join: Callable[[Source, PlanSettings], Source] | None = None
    shortest: int = 1
    is_pair: bool = False
    needs_negatives: bool = False


def find_format(name: str) -> Format:
    """The format of a name. Raises ValueError if there is none.

    >>> find_format("sop").needs_negatives
    False
    """
    if name not in FORMATS:
        raise ValueError(f"no format {name!r}: there are {', '.join(FORMATS)}")
    formats: dict[str, Format] = importlib.import_module(f"corpusforge.instances.{FORMATS[name].module}").FORMATS
    return formats[name]


def single(document: I64, start: I64, length: I64) -> Plan:
    """A plan of one-segment instances."""
    none = np.zeros(len(document), np.int64)
    no = np.zeros(len(document), bool)
    label = np.full(len(document), -1, np.int8)
    return Plan(document, number(document), start, length, none, none, no, label, no, document, none)


def paired(
    document: I64,
    ranges_: tuple[I64, I64, I64, I64],
    foreign: Bools,
    label: npt.NDArray[np.int8],
    forced: Bools,
) -> Plan:
    """A plan of pairs; ``ranges_``: start and length of A, then of B."""
    none = np.zeros(len(document), np.int64)
    return Plan(document, number(document), *ranges_, foreign, label, forced, document, none)


def number(document: I64) -> I64:
    """The number of each row among those of its document, which are together.

    >>> number(np.array([4, 4, 7, 7, 7])).tolist()
    [0, 1, 0, 1, 2]
    """
    first = np.flatnonzero(np.diff(document, prepend=-1))
    return np.arange(len(document)) - np.repeat(first, np.diff(np.append(first, len(document))))


def assemble(plan: Plan, ids: Ids, other_ids: Ids, specials: Specials) -> tuple[Ids, I64]:
    """Input ids of all instances, flat, and their ``n + 1`` offsets."""
    input_ids, offsets = _laid_out(plan, ids, other_ids, specials.sep)
    input_ids[offsets[:-1]] = specials.cls
    return cast(Ids, input_ids), offsets


def assemble_word_starts(plan: Plan, own: Bools, others: Bools | None) -> Bools:
    """Word starts of all instances, flat; specials start words. ``others``: of the negatives; None: there are none."""
    return _laid_out(plan, own, own[:0] if others is None else others, True)[0]


def _laid_out(
    plan: Plan, own: npt.NDArray[Any], others: npt.NDArray[Any], between: int
) -> tuple[npt.NDArray[Any], I64]:
    """Values of the tokens of A and B in their places, ``between`` in those of specials; and the offsets."""
    offsets = offsets_of(plan.lengths())
    values = np.full(offsets[-1], between, own.dtype)
    values[ranges(offsets[:-1] + 1, plan.a_length)] = own[ranges(plan.a_start, plan.a_length)]
    after_a = offsets[:-1] + plan.a_length + 2
    for foreign, origin in ((False, own), (True, others)):
        rows = np.flatnonzero((plan.b_length > 0) & (plan.b_foreign == foreign))
        lengths = plan.b_length[rows]
        values[ranges(after_a[rows], lengths)] = origin[ranges(plan.b_start[rows], lengths)]
    return values, offsets
