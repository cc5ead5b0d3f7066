"""The stage clean: raw pages to clean documents, and what was dropped to rejects/.

What the stage does to text is in the rooms below; here are the folder, the digest, the engine and the manifest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge import errors, shards
from corpusforge.recipe import digested
from corpusforge.sections import Recipe
from corpusforge.stages import stage, warnings
from corpusforge.stages.output_folder import check_apart, claim, digest_of
from corpusforge.stages.stage import Execution, Outcome

if TYPE_CHECKING:
    from corpusforge.clean.cleaner import Cleaner
    from corpusforge.clean.filters import Filter
    from corpusforge.documents.plan import Unit
    from corpusforge.documents.records import ReadOptions

MEGABYTE = 1 << 20


def clean(recipe: Recipe, output: str, execution: Execution, filters: Sequence[Filter] = ()) -> Outcome:
    """Read raw pages and keep what passes the rules and the user's ``filters``: ``documents/``, ``rejects/``."""
    engine = stage.engine_of(execution, shuffles=recipe.urls.duplicates == "newest")
    check_apart(output, recipe.input.paths)
    units = plan(recipe, output)
    cleaner = cleaner_of(recipe, filters)
    section: dict[str, Any] = {"input": digested(recipe.input), "urls": digested(recipe.urls)}
    names = [Path(name).name.removesuffix(".toml") for name in recipe.clean.rules]
    section["clean"] = digested(recipe.clean, rules=names)
    section["steps"] = cleaner.resources()  # the content of rules and of all lists and files
    above = {"input": _fingerprint(recipe, units)}
    with claim(output, "clean", section, above, overwrite=execution.overwrite) as claimed:
        if manifest := claimed.finished():
            return _readable(recipe, Outcome(output, manifest, skipped=True))
        from corpusforge.clean.work import CleanWork, run
        from corpusforge.documents.plan import unit_size

        if engine.is_local and (line := warnings.of_units(units, engine.width(sys.maxsize))):
            execution.progress.say(line)
        keep_rejects = recipe.clean.rejects == "all"
        work = CleanWork(output, read_options(recipe), cleaner, recipe.clean.shard_megabytes * MEGABYTE, keep_rejects)
        with stage.timed(claimed, execution) as measured:
            sizes = [unit_size(unit) for unit in units]
            memory = recipe.urls.memory_megabytes * MEGABYTE if recipe.urls.duplicates == "newest" else 0
            run(engine, work, units, sizes, output, execution.progress, newest_memory=memory)
        stage.check_units(output, len(units))
        manifest = stage.manifest_of(claimed, units=len(units))
        return _readable(recipe, stage.finish(claimed, manifest, measured))


def _readable(recipe: Recipe, outcome: Outcome) -> Outcome:
    """The outcome of a finished stage clean. Raises `errors.InputUnreadable` if it read no document at all."""
    rejects = shards.join(outcome.folder, "rejects") if recipe.clean.rejects == "all" else ""
    warnings.check_read(recipe.input.paths, outcome.manifest.statistics, outcome.manifest.tallies, rejects=rejects)
    return outcome


def cleaner_of(recipe: Recipe, filters: Sequence[Filter] = ()) -> Cleaner:
    """The cleaner of a recipe and of filters. Raises what `Cleaner.check` raises where a resource is missing."""
    from corpusforge.clean import cleaner

    if not recipe.clean.language and recipe.clean.badwords not in ("fetched", "off"):
        what = "no list would be used, as no language is set"
        raise errors.RecipeInvalid("clean.badwords", what, "set clean.language, or clean.badwords to off")
    steps = cleaner.cleaner_of(recipe.clean, urls=recipe.urls, filters=filters)
    steps.check()
    return steps


def read_options(recipe: Recipe) -> ReadOptions:
    """How the input of a recipe is read."""
    from corpusforge.documents.records import ReadOptions

    return ReadOptions(**vars(recipe.input), max_record_bytes=recipe.input.max_record_megabytes * MEGABYTE)


def plan(recipe: Recipe, output: str = "") -> list[Unit]:
    """The work units of a recipe's input, leaving out what is in ``output``."""
    from corpusforge.documents.plan import plan_units
    from corpusforge.documents.read import check_columns

    if not recipe.input.paths:
        raise errors.InputMissing("input.paths", "no input is named", "name files, folders or globs, or use --input")
    size = recipe.input.unit_megabytes * MEGABYTE
    units = plan_units(recipe.input.paths, format=recipe.input.format, unit_bytes=size, leave_out=output)
    check_columns(units, read_options(recipe))
    return units


def _fingerprint(recipe: Recipe, units: list[Unit]) -> str:
    if recipe.input.format != "hub":
        return stage.fingerprint({(part.path, part.source) for unit in units for part in unit.parts})
    local = [(str(f), f.name) for path in recipe.input.paths if Path(path).is_dir() for f in Path(path).rglob("*.*")]
    names = sorted(path for path in recipe.input.paths if not Path(path).is_dir())
    return digest_of([names, stage.fingerprint(pair for pair in local if Path(pair[0]).is_file())])
