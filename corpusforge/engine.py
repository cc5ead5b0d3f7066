"""The engine: how a stage spreads its work over processes and machines.

Stages and methods are written against two verbs. `Engine.map` runs work units, each of which reads its input, runs
kernels, writes shards and returns a small result. `Engine.shuffle` brings together what different units know of the
same thing: blocks of bytes, grouped by a key. Only references to input and packed blocks pass through an engine, never
text: that bounds what a shuffle holds and what a network carries.

This module knows no Apache Beam; `corpusforge.beam.engine` runs both verbs on any of its runners.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from corpusforge.progress import Progress
from corpusforge.units import UnitResult, UnitWork

Blocks = Iterable[tuple[int, bytes]]
"""Packed blocks with their keys."""

Produce = Callable[[Any], Blocks]
"""``produce(item)``: the blocks of one item."""

Reduce = Callable[[int, Iterable[bytes]], Blocks | None]
"""``reduce(key, blocks)``: new blocks from all blocks of a key; None where it writes what they say."""

Consume = Callable[[int, Iterable[bytes]], None]
"""``consume(key, blocks)``: writes what all blocks of a key say."""

Combine = Callable[[Iterable[bytes]], bytes]
"""``combine(blocks)``: one block that says what they all say; associative and commutative, also of no block."""


@dataclass(frozen=True)
class Engine(abc.ABC):
    """Runs work units and shuffles blocks. ``workers``: processes of a local engine, 0: one a core."""

    workers: int = 0

    @property
    @abc.abstractmethod
    def is_local(self) -> bool:
        """Whether work runs on this machine. Raises `errors.RunnerRefused` for a runner that cannot be used."""

    def width(self, units: int) -> int:
        """Worker processes for this many units."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, min(self.workers or cores, units))

    @abc.abstractmethod
    def map(
        self,
        work: UnitWork,
        units: Sequence[Any],
        sizes: Sequence[int],
        *,
        label: str,
        folder: str,
        progress: Progress,
    ) -> list[UnitResult]:
        """Run ``work(unit, advance)`` for every unit; returns the results in the order of the units.

        ``sizes``: bytes of each unit, for ``progress``; ``folder``: where the work writes its shards and entries.
        Raises what a unit raised. Run again after an error or a crash, finished shards are not written twice.
        """

    @abc.abstractmethod
    def shuffle(
        self,
        items: Sequence[Any],
        produce: Produce,
        reduce: Reduce,
        consume: Consume | None = None,
        *,
        folder: str,
        combine: Combine | None = None,
    ) -> None:
        """Group the blocks of all items by key, reduce each group, group what that gives, and consume it.

            items -> produce -> group by key -> reduce -> group by key -> consume

        Without ``consume`` it is ``reduce`` that writes, and the second grouping is left out. ``combine`` may be
        applied early to some of the blocks of a key, so that fewer travel: ``reduce`` must accept both.

        Items are small and picklable; so are the callables: functions of a module, partials of such, frozen
        dataclasses with ``__call__``. Their names become the names of the steps. ``folder`` may hold the list of items
        while it runs. A callable may run twice with the same input, so what it writes is named by its key.
        """
