"""`work.where` as a graph: every unit asks, every unit that is asked reads its span hashes once, answers go to files.

units -> questions -> GroupByKey by who is asked -> answers -> GroupByKey by who asked -> where/
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from corpusforge import shards
from corpusforge.beam.engine import Engine, listed
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.dedupe.exact_spans import CutWork, span_path
from corpusforge.dedupe.locate import answers, questions, where_folder, write_answers
from corpusforge.units import ShardUnit


def find_where(engine: Engine, units: Sequence[ShardUnit], work: CutWork) -> None:
    """Write ``where/`` of a method whose hashes are on an object store; on a local disk there is nothing to do."""
    if not shards.is_remote(work.folder):
        return
    mark = shards.join(where_folder(work.folder), "all.json")
    if shards.exists(mark):
        return

    def build(pipeline: Any) -> None:
        _ = (
            listed(pipeline, engine, work.folder, [unit.number for unit in units])
            | "Ask" >> beam.ParDo(_Ask(work))
            | "ByAsked" >> beam.GroupByKey()
            | "Answer" >> beam.ParDo(_Answer(work.folder))
            | "ByAsker" >> beam.GroupByKey()
            | "WriteWhere" >> beam.ParDo(_Write(work.folder))
        )

    engine.run(build)
    shards.write_json(mark, {"units": len(units)})


class _Ask(beam.DoFn):  # type: ignore[misc, name-defined]
    """A unit's number -> (who is asked, (who asks, packed places))."""

    def __init__(self, work: CutWork) -> None:
        self.work = work

    def process(self, unit: int) -> Iterator[tuple[int, tuple[int, bytes]]]:
        with as_itself():
            yield from questions(unit, self.work.sentences_of(unit)[1])


class _Answer(beam.DoFn):  # type: ignore[misc, name-defined]
    """(who is asked, all questions) -> (who asked, answers)."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def process(self, group: tuple[int, Iterable[tuple[int, bytes]]]) -> Iterator[tuple[int, bytes]]:
        with as_itself():
            yield from answers(functools.partial(span_path, self.folder), group[1])


class _Write(beam.DoFn):  # type: ignore[misc, name-defined]
    """(who asked, all answers) -> a file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def process(self, group: tuple[int, Iterable[bytes]]) -> None:
        with as_itself():
            write_answers(self.folder, group[0], group[1])
