"""The stage clean: raw pages to clean documents, and what was dropped to rejects/.

What the stage does to text is in the rooms below; here are the folder, the digest, the engine and the manifest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge import errors, recipe, shards
from corpusforge.sections import Recipe
from corpusforge.stages import stage, warnings
from corpusforge.stages.output_folder import check_apart, claim, digest_of
from corpusforge.stages.stage import Execution, Outcome

if TYPE_CHECKING:
    from corpusforge.clean.cleaner import Cleaner
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.records import ReadOptions

MEGABYTE = 1 << 20


def clean(made: Recipe, output: str, execution: Execution) -> Outcome:
    """Read raw pages and keep what passes the rules: ``documents/``, ``rejects/``."""
    engine = stage.engine_of(execution, shuffles=made.urls.duplicates == "newest")
    check_apart(output, made.input.paths)
    units = plan(made, output)
    cleaner = cleaner_of(made)
    section: dict[str, Any] = {"input": recipe.digested(made.input), "urls": recipe.digested(made.urls)}
    names = [Path(name).name.removesuffix(".toml") for name in made.clean.rules]
    section["clean"] = recipe.digested(made.clean, rules=names)
    section["steps"] = cleaner.resources()  # the content of rules and of all lists and files
    above = {"input": _fingerprint(made, units)}
    with claim(output, "clean", section, above, overwrite=execution.overwrite) as claimed:
        if manifest := claimed.finished():
            return _readable(made, Outcome(output, manifest, skipped=True))
        from corpusforge.clean.work import CleanWork, run
        from corpusforge.documents.plan import unit_size

        if engine.is_local and (line := warnings.of_units(units, engine.width(sys.maxsize))):
            execution.progress.say(line)
        keep_rejects = made.clean.rejects == "all"
        work = CleanWork(output, read_options(made), cleaner, made.clean.shard_megabytes * MEGABYTE, keep_rejects)
        with stage.timed(claimed, execution) as measured:
            sizes = [unit_size(unit) for unit in units]
            memory = made.urls.memory_megabytes * MEGABYTE if made.urls.duplicates == "newest" else 0
            run(engine, work, units, sizes, output, execution.progress, newest_memory=memory)
        stage.check_units(output, len(units))
        manifest = stage.manifest_of(claimed, units=len(units))
        return _readable(made, stage.saved(claimed, manifest, measured))


def _readable(made: Recipe, outcome: Outcome) -> Outcome:
    """The outcome of a finished stage clean. Raises `errors.InputUnreadable` if it read no document at all."""
    rejects = shards.join(outcome.folder, "rejects") if made.clean.rejects == "all" else ""
    warnings.check_read(made.input.paths, outcome.manifest.statistics, outcome.manifest.tallies, rejects=rejects)
    return outcome


def cleaner_of(made: Recipe) -> Cleaner:
    """The cleaner of a recipe. Raises what `Cleaner.check` raises where a resource is missing."""
    from corpusforge.clean import cleaner

    if not made.clean.language and made.clean.badwords not in ("fetched", "off"):
        what = "no list would be used, as no language is set"
        raise errors.RecipeInvalid("clean.badwords", what, "set clean.language, or clean.badwords to off")
    steps = cleaner.cleaner_of(made.clean, urls=made.urls)
    steps.check()
    return steps


def read_options(made: Recipe) -> ReadOptions:
    """How the input of a recipe is read."""
    from corpusforge.documents.records import ReadOptions

    return ReadOptions(**vars(made.input), max_record_bytes=made.input.max_record_megabytes * MEGABYTE)


def plan(made: Recipe, output: str = "") -> list[Unit]:
    """The work units of a recipe's input, leaving out what is in ``output``."""
    from corpusforge.documents.plan import plan_units
    from corpusforge.documents.read import check_columns

    if not made.input.paths:
        raise errors.InputMissing("input.paths", "no input is named", "name files, folders or globs, or use --input")
    size = made.input.unit_megabytes * MEGABYTE
    units = plan_units(made.input.paths, format=made.input.format, unit_bytes=size, leave_out=output)
    check_columns(units, read_options(made))
    return units


def _fingerprint(made: Recipe, units: list[Unit]) -> str:
    if made.input.format != "hub":
        return stage.fingerprint({(part.path, part.source) for unit in units for part in unit.parts})
    local = [(str(f), f.name) for path in made.input.paths if Path(path).is_dir() for f in Path(path).rglob("*.*")]
    names = sorted(path for path in made.input.paths if not Path(path).is_dir())
    return digest_of([names, stage.fingerprint(pair for pair in local if Path(pair[0]).is_file())])
