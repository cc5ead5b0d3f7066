"""Dry runs: what a stage would do to a sample, with examples; nothing is written.

The sample is spread over the whole input, the same number of records from the start of each of up to `PARTS` files or
ranges of files, because the first records of a crawl are all from one site or one day.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import shards
from corpusforge.sections import Recipe
from corpusforge.stages import stage, warnings
from corpusforge.stages.clean import cleaner_of, plan, read_options
from corpusforge.stages.stage import Execution
from corpusforge.stages.unused_settings import unused_lines

if TYPE_CHECKING:
    from corpusforge.clean.filters import Filter
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import RawBatch
    from corpusforge.documents.records import FilePart, ReadOptions

PARTS = 64
"""Files, or ranges of large files, that a sample is taken from."""

EXAMPLES = 3
"""Texts shown for each reason."""

READ_BYTES = 1 << 18
"""Raw bytes read at once: a sample of a few hundred records should not read megabytes of each file."""


@dataclasses.dataclass(frozen=True)
class Preview:
    """The result of a dry run of ``records`` records.

    ``examples``: a few rows of rejects or duplicates for each reason. ``steps``: names of the cleaning steps in order.
    ``notes``: what the real run does and a sample cannot show. ``languages``: pages that were dropped because they are
    not in ``language``, by their own language.
    """

    records: int
    tallies: shards.Tallies
    statistics: dict[str, Any]
    examples: dict[str, list[dict[str, Any]]]
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stage: str = "clean"
    language: str = ""
    languages: Mapping[str, int] = dataclasses.field(default_factory=dict)


def clean(recipe: Recipe, sample: int, filters: Sequence[Filter] = ()) -> Preview:
    """Clean about ``sample`` records of the input in this process and write nothing.

    Raises `errors.InputUnreadable` if none of them could be read.
    """
    from corpusforge.clean.work import all_tallies

    cleaner, options, units = cleaner_of(recipe, filters), read_options(recipe), plan(recipe)
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    examples: dict[str, list[dict[str, Any]]] = {}
    languages: Counter[str] = Counter()
    seen = 0
    for raw in _sample(units, options, sample):
        cleaned = cleaner.clean(raw.documents)
        shards.add_tallies(tallies, all_tallies(raw, cleaned))
        shards.add_statistics(statistics, cleaned.statistics)
        languages += warnings.count_languages(cleaned.rejects)
        seen += raw.records
        for rejects in (raw.rejects, cleaned.rejects):
            _collect(examples, rejects.to_pylist())
    warnings.check_read(recipe.input.paths, {**statistics, "records_in": seen}, tallies)
    notes = ("older copies of a URL are not searched for in a sample",) if recipe.urls.duplicates == "newest" else ()
    steps = tuple(step.name for step in cleaner.steps)
    more: dict[str, Any] = {"language": recipe.clean.language, "languages": languages}
    return Preview(seen, tallies, statistics, examples, steps, notes, **more)


def dedupe(recipe: Recipe, upstream: str, execution: Execution) -> Preview:
    """Find the duplicates among a finished stage's documents, with examples; remove nothing."""
    from corpusforge.dedupe import methods

    for line in unused_lines(recipe):
        execution.progress.say(line)
    _, units = stage.upstream_units(upstream, "documents")
    examples: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="corpusforge-") as scratch:
        engine = stage.engine_of(execution, shuffles=True)
        done = methods.run(engine, recipe.dedupe, units, scratch, execution.progress, audit_only=True)
        for name in shards.list_names(shards.join(scratch, "repeats"), ".parquet"):
            for batch in shards.read_shard(shards.join(scratch, f"repeats/{name}")):
                _collect(examples, batch.slice(0, 100).to_pylist())
    return Preview(done.statistics.get("documents_in", 0), done.tallies, done.statistics, examples, stage="dedupe")


def _sample(units: list[Unit], options: ReadOptions, sample: int) -> Iterator[RawBatch]:
    """Batches from parts spread evenly over the input: ``sample`` records in all, or all that there are.

    Parts take turns: what a short part lacks is taken from the others in the next turn, then from further parts.
    """
    parts = [part for unit in units for part in unit.parts]
    left = sample
    while parts and left > 0:
        count = min(len(parts), PARTS, left)
        chosen = {number * len(parts) // count for number in range(count)}
        readers = [_Reader(parts[at], options) for at in sorted(chosen)]
        parts = [part for at, part in enumerate(parts) if at not in chosen]
        while readers and left > 0:
            share = -(-left // len(readers))
            for reader in readers:
                for raw in reader.take(min(share, left)):
                    yield raw
                    left -= raw.records
            readers = [reader for reader in readers if not reader.is_at_end]


class _Reader:
    """Reads a part of the input a few records at a time."""

    def __init__(self, part: FilePart, options: ReadOptions) -> None:
        from corpusforge.documents.plan import Unit
        from corpusforge.documents.read import read_unit

        self.is_at_end = False
        self._batches = read_unit(Unit(0, (part,)), options, batch_bytes=READ_BYTES)
        self._rest: RawBatch | None = None

    def take(self, count: int) -> Iterator[RawBatch]:
        """The next records, ``count`` at most."""
        while count > 0:
            raw = self._rest or next(self._batches, None)
            if raw is None:
                self.is_at_end = True
                return
            documents = raw.documents.slice(0, count)
            rejects = raw.rejects.slice(0, count - documents.num_rows)
            first = raw._replace(documents=documents, rejects=rejects, records=documents.num_rows + rejects.num_rows)
            rest = (raw.documents.slice(documents.num_rows), raw.rejects.slice(rejects.num_rows))
            self._rest = None
            if raw.records > first.records:
                self._rest = raw._replace(documents=rest[0], rejects=rest[1], records=raw.records - first.records)
            yield first
            count -= first.records


def _collect(examples: dict[str, list[dict[str, Any]]], rows: list[dict[str, Any]]) -> None:
    for row in rows:
        kept = examples.setdefault(row["reason"], [])
        if len(kept) < EXAMPLES and row["reason"] != "line:blank" and all(row["text"] != k["text"] for k in kept):
            kept.append(row)
