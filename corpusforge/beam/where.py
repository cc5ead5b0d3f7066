"""`work.where` as a graph: every unit asks, every unit that is asked reads its span hashes once, answers go to files.

units -> questions -> GroupByKey by who is asked -> answers -> GroupByKey by who asked -> where/
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from corpusforge import shards
from corpusforge.dedupe.exact_spans import CutWork, span_path
from corpusforge.dedupe.locate import answers, questions, where_folder, write_answers
from corpusforge.engine import Engine
from corpusforge.units import ShardUnit


def find_where(engine: Engine, units: Sequence[ShardUnit], work: CutWork) -> None:
    """Write ``where/`` of a method whose hashes are on an object store; on a local disk there is nothing to do."""
    if not shards.is_remote(work.folder):
        return
    mark = shards.join(where_folder(work.folder), "all.json")
    if shards.exists(mark):
        return

    engine.shuffle(
        [unit.number for unit in units],
        functools.partial(_ask, work),
        functools.partial(_answer, work.folder),
        functools.partial(write_answers, work.folder),
        folder=work.folder,
    )
    shards.write_json(mark, {"units": len(units)})


def _ask(work: CutWork, unit: int) -> Iterable[tuple[int, bytes]]:
    """(who is asked, packed: who asks, places)."""
    return questions(unit, work.sentences_of(unit)[1])


def _answer(folder: str, unit: int, asked: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    """(who asked, answers)."""
    return answers(functools.partial(span_path, folder), asked)
