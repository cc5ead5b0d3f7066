"""The stage dedupe: documents of a finished stage to documents without duplicates, and the duplicates in repeats/."""

from __future__ import annotations

from typing import Any

from corpusforge import errors
from corpusforge.recipe import digested
from corpusforge.sections import Recipe
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome
from corpusforge.stages.unused_settings import unused_lines

MEGABYTE = 1 << 20


def dedupe(recipe: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Remove duplicates from the documents of a finished stage: ``documents/``, ``repeats/``."""
    engine = stage.engine_of(execution, shuffles=True)
    _check_signatures_last(recipe)
    for line in unused_lines(recipe):
        execution.progress.say(line)
    before, units = stage.upstream_units(upstream, "documents")
    section: dict[str, Any] = {"dedupe": digested(recipe.dedupe)}
    if "lines" in recipe.dedupe.method:
        from corpusforge.sentences.counter import SentenceCounter

        counter = SentenceCounter(recipe.dedupe.sentences)
        counter.check()
        section["sentences"] = counter.identity()
    if engine.is_local:
        from corpusforge.dedupe import memory

        memory.plan(recipe.dedupe.memory_megabytes * MEGABYTE, 1, 0)  # a budget too small is refused here
    above = {"documents": before.content["documents"]}
    if recipe.dedupe.index:
        above["index"] = _index_digest(recipe)
    how: dict[str, Any] = {"reads": [upstream, *recipe.dedupe.index], "cuts": stage.cuts_of(before, "documents")}
    with claim(output, "dedupe", section, above, overwrite=execution.overwrite, **how) as claimed:
        if manifest := claimed.finished():
            return Outcome(output, manifest, skipped=True)
        from corpusforge.dedupe import methods

        budget = recipe.dedupe.memory_megabytes * MEGABYTE if engine.is_local else 0
        with stage.timed(claimed, execution, budget) as measured:
            size = int(before.statistics.get("text_bytes_out", 0))
            done = methods.run(engine, recipe.dedupe, units, output, execution.progress, text_bytes=size)
        stage.check_units(output, done.parts)
        manifest = stage.manifest_of(claimed, units=done.parts, tallies=done.tallies, statistics=done.statistics)
        return stage.finish(claimed, manifest, measured)


def _check_signatures_last(recipe: Recipe) -> None:
    """Signatures are of the documents that the method kept; a later method could drop some of them."""
    if recipe.dedupe.export_signatures and "documents" in recipe.dedupe.method[:-1]:
        what = f"the method is {', '.join(recipe.dedupe.method)}: a later one may drop documents that were signed"
        mend = "documents must come last to export signatures: name it last, or leave --export-signatures out"
        raise errors.RecipeInvalid("dedupe.export_signatures", what, mend)


def _index_digest(recipe: Recipe) -> str:
    """Digest of the signatures in the folders of an index. Raises where a folder has none."""
    from corpusforge.dedupe.index import signature_shards

    return digest_of(sorted(shard.content for folder in recipe.dedupe.index for shard in signature_shards(folder)))
