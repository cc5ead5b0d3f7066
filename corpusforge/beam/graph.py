"""The Beam graphs of the engine: units one by one, and a shuffle of packed blocks.

`BeamEngine` loads this module when it first needs Beam. Items come from a file and not from the graph, because
Dataflow limits a graph to 10 MB and `Create` would put every item into it.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from corpusforge import errors, shards
from corpusforge.beam.sdk import as_itself, beam, count
from corpusforge.engine import Combine, Consume, Produce, Reduce
from corpusforge.pool import run_unit
from corpusforge.units import UnitWork


def write_items(path: str, items: Sequence[Any]) -> str:
    """Write small picklable items to a file; returns its SHA-256."""
    packed = pickle.dumps([pickle.dumps(item) for item in items])
    shards.write_bytes(path, packed)
    return hashlib.sha256(packed).hexdigest()


def read_items(pipeline: Any, path: str, digest: str, *, spread: bool) -> Any:
    """A PCollection of the items in a file. ``spread``: over the workers of a cluster."""
    items = pipeline | "Listed" >> beam.Create([path], reshuffle=False) | "ReadList" >> beam.ParDo(ReadList(digest))
    if spread:
        items |= "Spread" >> beam.Reshuffle()
    return items | "Item" >> beam.Map(pickle.loads)


def run_units(units: Any, work: UnitWork, label: str) -> None:
    """Run each unit as an element; output and entries go to the shared folder."""
    _ = units | label >> beam.ParDo(_RunUnit(work))


def shuffle(items: Any, produce: Produce, reduce: Reduce, consume: Consume | None, combine: Combine | None) -> None:
    """The graph of `corpusforge.engine.Engine.shuffle`."""
    blocks = items | f"Produce {_name(produce)}" >> beam.ParDo(_Produce(produce))
    if combine:
        blocks |= f"Combine {_name(combine)}" >> beam.CombinePerKey(combine)
        groups = blocks | "Alone" >> beam.MapTuple(_alone)
    else:
        groups = blocks | "Group" >> beam.GroupByKey()
    if consume is None:
        _ = groups | f"Reduce {_name(reduce)}" >> beam.ParDo(_Consume(reduce))
        return
    reduced = groups | f"Reduce {_name(reduce)}" >> beam.ParDo(_Reduce(reduce))
    _ = reduced | "GroupReduced" >> beam.GroupByKey() | f"Consume {_name(consume)}" >> beam.ParDo(_Consume(consume))


def _name(function: Callable[..., Any]) -> str:
    """The name of a function, of the function of a partial, or of the class of an object with ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__)).strip("_")


def _alone(key: int, block: bytes) -> tuple[int, list[bytes]]:
    return key, [block]


class ReadList(beam.DoFn):  # type: ignore[misc, name-defined]
    """The path of a list -> its items, still pickled.

    ``digest``: SHA-256 of the list, which is part of the graph, so that no other file in its place is unpickled.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def process(self, path: str) -> Iterator[bytes]:
        with shards.open_binary(path) as file:
            packed = file.read()
        if hashlib.sha256(packed).hexdigest() != self.digest:
            with as_itself():
                what = "is not the list that this run wrote"
                raise errors.ManifestInvalid(path, what, "let no other run write there, and run the stage again")
        yield from pickle.loads(packed)


class _RunUnit(beam.DoFn):  # type: ignore[misc, name-defined]
    """Runs one unit and counts what it dropped."""

    def __init__(self, work: UnitWork) -> None:
        self.work = work

    def process(self, unit: Any) -> None:
        with as_itself():
            count(run_unit(self.work, unit, 0, lambda _: None).tallies)


class _Produce(beam.DoFn):  # type: ignore[misc, name-defined]
    """An item -> (key, block)."""

    def __init__(self, produce: Produce) -> None:
        self.produce = produce

    def process(self, item: Any) -> Iterator[tuple[int, bytes]]:
        with as_itself():
            yield from self.produce(item)


class _Reduce(beam.DoFn):  # type: ignore[misc, name-defined]
    """(key, blocks) -> (key, block)."""

    def __init__(self, reduce: Reduce) -> None:
        self.reduce = reduce

    def process(self, group: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        with as_itself():
            yield from self.reduce(*group) or ()


class _Consume(beam.DoFn):  # type: ignore[misc, name-defined]
    """(key, blocks) -> what it writes."""

    def __init__(self, consume: Reduce | Consume) -> None:
        self.consume = consume

    def process(self, group: tuple[int, Iterable[bytes]]) -> None:
        with as_itself():
            self.consume(*group)
