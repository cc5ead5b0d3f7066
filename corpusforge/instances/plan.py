"""Which tokens an instance is made of, before it is made: two ranges of token ids, and how they become a row.

Comes in: ranges that a format has chosen. Goes out: flat input ids ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``.
Formats decide with whole columns of ranges, and no id is copied before the decision is final.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from corpusforge.arrays import I64, Bools, offsets_of, ranges, slices
from corpusforge.instances.masking import Ids, Specials


@dataclasses.dataclass(frozen=True)
class Plan:
    """Instances as ranges, ``[n]`` each, ordered by document and place in it.

    ``document``: row of the Source; ``index``: number of the instance in its document. A is ``a_length`` tokens from
    ``a_start`` of the source's ids; B likewise, from the donors' ids where ``b_foreign``. ``b_length`` is 0 and
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

    def rows(self, first: int, behind: int) -> Plan:
        """Some of the instances."""
        return Plan(**{name: column[first:behind] for name, column in vars(self).items()})

    def lengths(self) -> I64:
        """Tokens of each instance with its specials."""
        return self.a_length + self.b_length + 2 + (self.b_length > 0)

    def pieces(self, tokens: int) -> Iterator[Plan]:
        """The plan in runs of about so many tokens, so that memory does not depend on the size of a document."""
        for first, behind in slices(offsets_of(self.lengths()), tokens):
            yield self.rows(first, behind)


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
    """The number of each row among those of its document, which stand together.

    >>> number(np.array([4, 4, 7, 7, 7])).tolist()
    [0, 1, 0, 1, 2]
    """
    first = np.flatnonzero(np.diff(document, prepend=-1))
    return np.arange(len(document)) - np.repeat(first, np.diff(np.append(first, len(document))))


def assemble(plan: Plan, ids: Ids, donor_ids: Ids, specials: Specials) -> tuple[Ids, I64]:
    """Input ids of all instances, flat, and their ``n + 1`` offsets."""
    made, offsets = _laid_out(plan, ids, donor_ids, specials.sep)
    made[offsets[:-1]] = specials.cls
    return cast(Ids, made), offsets


def assemble_word_starts(plan: Plan, own: Bools, donated: Bools | None) -> Bools:
    """Word starts of all instances, flat; specials start words. ``donated``: of the donors, None: there are none."""
    return _laid_out(plan, own, own[:0] if donated is None else donated, True)[0]


def _laid_out(
    plan: Plan, own: npt.NDArray[Any], donated: npt.NDArray[Any], between: int
) -> tuple[npt.NDArray[Any], I64]:
    """Values of the tokens of A and B in their places, ``between`` in those of specials; and the offsets."""
    offsets = offsets_of(plan.lengths())
    made = np.full(offsets[-1], between, own.dtype)
    made[ranges(offsets[:-1] + 1, plan.a_length)] = own[ranges(plan.a_start, plan.a_length)]
    behind_a = offsets[:-1] + plan.a_length + 2
    for foreign, origin in ((False, own), (True, donated)):
        rows = np.flatnonzero((plan.b_length > 0) & (plan.b_foreign == foreign))
        lengths = plan.b_length[rows]
        made[ranges(behind_a[rows], lengths)] = origin[ranges(plan.b_start[rows], lengths)]
    return made, offsets
