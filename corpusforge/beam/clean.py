"""The stage `clean` as a graph: one map over the units of the input; text never passes between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from corpusforge.beam.engine import Engine, run_map
from corpusforge.progress import Progress
from corpusforge.units import UnitResult

if TYPE_CHECKING:
    from corpusforge.documents.plan import Unit
    from corpusforge.work.clean import CleanWork


def run(
    engine: Engine, work: CleanWork, units: Sequence[Unit], sizes: Sequence[int], folder: str, progress: Progress
) -> list[UnitResult]:
    """Clean every unit into ``folder``; ``sizes`` are the units' input bytes."""
    return run_map(engine, work, units, sizes, label="clean", folder=folder, progress=progress)
