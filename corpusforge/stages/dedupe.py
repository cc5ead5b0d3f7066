"""The stage dedupe: documents of a finished stage to documents without duplicates, and the duplicates in repeats/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge import errors, recipe
from corpusforge.sections import Recipe
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome
from corpusforge.stages.unused_settings import unused_lines

if TYPE_CHECKING:
    pass

MEGABYTE = 1 << 20


def _index_digest(made: Recipe) -> str:
    """Digest of the signatures in the folders of an index. Raises where a folder has none."""
    from corpusforge.dedupe.index import signature_shards

    return digest_of(sorted(shard.content for folder in made.dedupe.index for shard in signature_shards(folder)))


def _check_signatures_last(made: Recipe) -> None:
    """Signatures are of the documents that the method kept; a later method could drop some of them."""
    if made.dedupe.export_signatures and "documents" in made.dedupe.method[:-1]:
        what = f"the method is {', '.join(made.dedupe.method)}: documents that a later one drops would be among them"
        mend = "documents must come last to export signatures: name it last, or leave --export-signatures out"
        raise errors.RecipeInvalid("dedupe.export_signatures", what, mend)


def dedupe(made: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Cut repeats from the documents of a finished stage: ``documents/``, ``repeats/``."""
    engine = stage.engine_of(execution, shuffles=True)
    _check_signatures_last(made)
    for line in unused_lines(made):
        execution.progress.say(line)
    before, units = stage.upstream_units(upstream, "documents")
    section: dict[str, Any] = {"dedupe": recipe.digested(made.dedupe)}
    if "lines" in made.dedupe.method:
        from corpusforge.sentences.counter import SentenceCounter

        counter = SentenceCounter(made.dedupe.sentences)
        counter.check()
        section["sentences"] = counter.identity()
    if engine.is_local:
        from corpusforge.dedupe import memory

        memory.plan(made.dedupe.memory_megabytes * MEGABYTE, 1, 0)  # refused before anything is done
    above = {"documents": before.content["documents"]}
    if made.dedupe.index:
        above["index"] = _index_digest(made)
    how: dict[str, Any] = {"reads": [upstream, *made.dedupe.index], "cuts": stage.cuts_of(before, "documents")}
    with claim(output, "dedupe", section, above, overwrite=execution.overwrite, **how) as claimed:
        if manifest := claimed.finished():
            return Outcome(output, manifest, skipped=True)
        from corpusforge.dedupe import methods

        budget = made.dedupe.memory_megabytes * MEGABYTE if engine.is_local else 0
        with stage.timed(claimed, execution, budget) as measured:
            size = int(before.statistics.get("text_bytes_out", 0))
            done = methods.run(engine, made.dedupe, units, output, execution.progress, text_bytes=size)
        stage.check_units(output, done.parts)
        manifest = stage.manifest_of(claimed, units=done.parts, tallies=done.tallies, statistics=done.statistics)
        return stage.saved(claimed, manifest, measured)
