"""The number of workers of an engine."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from corpusforge.engine import Engine


class Nowhere(Engine):
    """An engine that runs nothing."""

    is_local = True

    def map(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def shuffle(self, *_: Any, **__: Any) -> None:
        """Run nothing."""


def test_width_is_bounded_by_units_and_cores() -> None:
    assert [Nowhere(workers).width(5) for workers in (1, 3, 9)] == [1, 3, 5]
    assert Nowhere(3).width(0) == 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert Nowhere().width(1 << 20) == cores
    assert replace(Nowhere(3), workers=2).width(5) == 2
