"""The first half of the line: raw pages to documents, documents to deduplicated documents.

Comes in: a recipe and paths. Goes out: a finished folder with its manifest. What a stage does to text lies in the
rooms below; here are the folder, the digest, the engine and the manifest.
"""

from __future__ import annotations

import dataclasses
import tempfile
from typing import TYPE_CHECKING, Any

from corpusforge import errors, recipe, shards
from corpusforge.sections import Recipe
from corpusforge.stages import stage
from corpusforge.stages.stage import Execution, Outcome

if TYPE_CHECKING:
    from corpusforge.beam.engine import Engine
    from corpusforge.clean.apply import Cleaner
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.read import ReadOptions

MEGABYTE = 1 << 20


def engine_of(execution: Execution) -> Engine:
    """The Beam engine an execution asks for."""
    from corpusforge.beam.engine import Engine

    return Engine(execution.workers, execution.runner, execution.beam_options)


def clean(made: Recipe, output: str, execution: Execution) -> Outcome:
    """Read raw pages, keep what the rules let through: ``documents/``, ``rejects/``."""
    from corpusforge.documents import plan

    units = _plan(made)
    cleaner = _cleaner(made)
    section: dict[str, Any] = {
        "input": _input_section(made),
        "clean": recipe.as_dict(made.clean),
        "rules": _rules_digest(cleaner),
    }
    section["clean"].pop("badwords")  # a path; the words themselves are in the digest of the rules
    digest = stage.claim(output, "clean", section, {"input": _fingerprint(made, units)}, execution)
    manifest = stage.finished(output, digest)
    if manifest:
        return Outcome(output, manifest, skipped=True)
    from corpusforge.beam import clean as beam_clean
    from corpusforge.work.clean import CleanWork

    work = CleanWork(
        output, _read_options(made), cleaner, made.clean.shard_megabytes * MEGABYTE, made.clean.rejects == "all"
    )
    sizes = [plan.unit_size(unit) for unit in units]
    with stage.timed(output, "clean", execution) as measured:
        beam_clean.run(engine_of(execution), work, units, sizes, output, execution.progress)
    stage.check_units(output, len(units), output)
    made_manifest = stage.manifest_of(output, "clean", digest, section, {"input": _fingerprint(made, units)})
    made_manifest.save(output)
    return Outcome(output, made_manifest, False, measured["seconds"], int(measured["peak_rss"]))


def _cleaner(made: Recipe) -> Cleaner:
    from corpusforge.clean.apply import Cleaner
    from corpusforge.clean.rules import load_rules

    settings = made.clean
    cleaner = Cleaner(
        load_rules(settings.rules),
        language=settings.language,
        detector=settings.detector,
        min_language_probability=settings.min_language_probability,
        sentences=settings.sentences,
        badwords=settings.badwords,
    )
    cleaner.check()
    return cleaner


def _rules_digest(cleaner: Cleaner) -> str:
    return stage.digest_of([dataclasses.asdict(cleaner.rules), cleaner.resources()])


def _read_options(made: Recipe) -> ReadOptions:
    from corpusforge.documents.read import ReadOptions

    given = made.input
    return ReadOptions(
        text_column=given.text_column,
        url_column=given.url_column,
        timestamp_column=given.timestamp_column,
        text_split=given.text_split,
        html=given.html,
        hub_config=given.hub_config,
        hub_split=given.hub_split,
        max_record_bytes=given.max_record_megabytes * MEGABYTE,
    )


def _plan(made: Recipe) -> list[Unit]:
    from corpusforge.documents.plan import plan_units
    from corpusforge.documents.read import check_columns

    if not made.input.paths:
        raise errors.InputMissing("input.paths", "no input is named", "name files, folders or globs, or use --input")
    size = made.input.unit_megabytes * MEGABYTE
    units = plan_units(made.input.paths, format=made.input.format, unit_bytes=size)
    check_columns(units, _read_options(made))
    return units


def _input_section(made: Recipe) -> dict[str, Any]:
    """The input's settings without where it lies: a corpus that was moved is the same corpus."""
    section = recipe.as_dict(made.input)
    section.pop("paths")
    return section


def _fingerprint(made: Recipe, units: list[Unit]) -> str:
    if made.input.format == "hub":
        return stage.digest_of(sorted(made.input.paths))
    return stage.fingerprint(sorted({(piece.path, piece.source) for unit in units for piece in unit.pieces}))


@dataclasses.dataclass(frozen=True)
class Preview:
    """What a dry run found: documents (or records) looked at and how many would be kept."""

    documents: int
    kept: int
    tallies: shards.Tallies
    statistics: dict[str, Any]
    examples: dict[str, list[str]]


def preview(made: Recipe, sample: int) -> Preview:
    """Clean the first ``sample`` records of the input in this process and write nothing."""
    from corpusforge.documents.read import read_unit

    cleaner, options = _cleaner(made), _read_options(made)
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    examples: dict[str, list[str]] = {}
    seen = 0
    for unit in _plan(made):
        for raw in read_unit(unit, options, batch_bytes=1 << 18):
            cleaned = cleaner.clean(raw.documents)
            shards.add_tallies(tallies, cleaned.tallies)
            shards.add_statistics(statistics, cleaned.statistics)
            seen += raw.records
            for rejects in (raw.rejects, cleaned.rejects):
                _collect(examples, rejects.to_pylist())
            if seen >= sample:
                return Preview(seen, statistics.get("documents_out", 0), tallies, statistics, examples)
    return Preview(seen, statistics.get("documents_out", 0), tallies, statistics, examples)


def _collect(examples: dict[str, list[str]], rows: list[dict[str, Any]]) -> None:
    for row in rows:
        kept = examples.setdefault(row["reason"], [])
        if len(kept) < 3:
            kept.append(" ".join(row["text"].split())[:120])


def dedupe(made: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Cut repeats from the documents of a finished stage: ``documents/``, ``repeats/``."""
    before, units = stage.upstream_units(upstream, "documents")
    section = {"dedupe": recipe.as_dict(made.dedupe)}
    section["dedupe"].pop("memory_megabytes")  # how, not what
    above = {"documents": before.content["documents"]}
    digest = stage.claim(output, "dedupe", section, above, execution)
    manifest = stage.finished(output, digest)
    if manifest:
        return Outcome(output, manifest, skipped=True)
    from corpusforge.beam import dedupe as beam_dedupe

    with stage.timed(output, "dedupe", execution) as measured:
        beam_dedupe.run(engine_of(execution), made.dedupe, units, output, execution.progress)
    stage.check_units(output, len(units), output)
    made_manifest = stage.manifest_of(output, "dedupe", digest, section, above)
    made_manifest.save(output)
    return Outcome(output, made_manifest, False, measured["seconds"], int(measured["peak_rss"]))


def preview_dedupe(made: Recipe, upstream: str, execution: Execution) -> Preview:
    """Find the repeats of a finished stage's documents, with examples; cut nothing."""
    from corpusforge.beam import dedupe as beam_dedupe

    _, units = stage.upstream_units(upstream, "documents")
    tallies: shards.Tallies = {}
    statistics: dict[str, Any] = {}
    examples: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="corpusforge-") as scratch:
        engine = engine_of(execution)
        results = beam_dedupe.run(engine, made.dedupe, units, scratch, execution.progress, audit_only=True)
        for result in results:
            shards.add_tallies(tallies, result.tallies)
            shards.add_statistics(statistics, result.statistics)
        for name in shards.list_names(shards.join(scratch, "repeats"), ".parquet"):
            for batch in shards.read_shard(shards.join(scratch, f"repeats/{name}")):
                _collect(examples, batch.slice(0, 100).to_pylist())
    return Preview(statistics["documents_in"], statistics["documents_out"], tallies, statistics, examples)
