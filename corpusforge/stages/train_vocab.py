"""The stage train-vocab: documents of a finished stage to a vocabulary folder that AutoTokenizer loads."""

from __future__ import annotations

import dataclasses
from typing import Any

from corpusforge import recipe, shards
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.sections import Recipe
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim
from corpusforge.stages.stage import Execution, Outcome


def train_vocab(made: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Count words, learn a vocabulary, and write the folder that ``AutoTokenizer`` loads."""
    from corpusforge.stages.sample import draw
    from corpusforge.tokens.families import adopt_vocab, check_sizes
    from corpusforge.tokens.report import describe

    settings = made.vocab
    check_sizes(settings)
    engine = stage.engine_of(execution, shuffles=not settings.adopt)
    adopted = adopt_vocab(settings.adopt) if settings.adopt else None
    before, units = stage.upstream_units(upstream, "documents")
    apart, sampled = stage.upstream_units(settings.sample, "documents") if settings.sample else (before, units)
    contents = {
        "adopt": adopted.digest if adopted else "",
        "sample": apart.content["documents"] if settings.sample else "",
    }
    section = {"vocab": recipe.digested(settings, **contents)}
    above = {"documents": before.content["documents"]}
    reads = [path for path in (upstream, settings.adopt, settings.sample) if path]
    how: dict[str, Any] = {"reads": reads, "cuts": stage.cuts_of(before, "documents")}
    with claim(output, "train-vocab", section, above, overwrite=execution.overwrite, **how) as claimed:
        if manifest := claimed.finished():
            return Outcome(output, manifest, skipped=True)
        with stage.timed(claimed, execution) as measured:
            counted: dict[str, Any] = {}
            vocab = adopted
            if vocab is None:
                vocab, counted = _learn(engine, made, units, output, execution.progress)
            for name, data in vocab.save_files().items():
                shards.write_bytes(shards.join(output, name), data)
            statistics = {**counted, **describe(vocab, *draw(sampled))}
            statistics["sample"] = "learned from too" if adopted is None and sampled is units else "not learned from"
        manifest = stage.manifest_of(claimed, tallies={}, statistics=statistics)
        manifest = dataclasses.replace(manifest, content={"vocab": vocab.digest})
        return stage.saved(claimed, manifest, measured)


def _learn(
    engine: Engine, made: Recipe, units: list[Any], output: str, progress: Progress
) -> tuple[Any, dict[str, Any]]:
    from corpusforge.tokens.counts import count_units, read_blocks
    from corpusforge.tokens.families import learn, segmentation_of, select

    settings = made.vocab
    paths = count_units(engine, segmentation_of(settings), units, output, progress)
    counts, counted = select(read_blocks(paths), settings)
    progress.start("learn", 0, "words")
    learned = learn(counts, settings)
    progress.finish()
    return learned.vocab, {**counted, **learned.statistics}
