"""The middle of the line: deduplicated documents to a vocabulary, and both to training instances."""

from __future__ import annotations

import dataclasses
from typing import Any

from corpusforge import errors, recipe, shards
from corpusforge.recipe import Recipe
from corpusforge.stages import stage
from corpusforge.stages.corpus import engine_of
from corpusforge.stages.stage import Execution, Outcome


def train_vocab(made: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Count words, learn a vocabulary, and write the folder that ``AutoTokenizer`` loads."""
    before, units = stage.upstream_units(upstream, "documents")
    settings = made.vocab
    section = {"vocab": recipe.as_dict(settings)}
    above = {"documents": before.content["documents"]}
    digest = stage.claim(output, "train-vocab", section, above, execution)
    manifest = stage.finished(output, digest)
    if manifest:
        return Outcome(output, manifest, skipped=True)
    from corpusforge.tokens.vocab import Vocab

    with stage.timed(output, "train-vocab", execution) as measured:
        if settings.adopt:
            vocab, counted = Vocab.adopt(settings.adopt), {}
        else:
            vocab, counted = _learn(made, units, output, execution)
        for name, data in vocab.save_files().items():
            shards.write_bytes(shards.join(output, name), data)
        statistics = {**counted, **_sample_statistics(vocab, units)}
    result = stage.manifest_of(output, "train-vocab", digest, section, above, statistics=statistics)
    result = dataclasses.replace(result, content={"vocab": vocab.digest}, tallies={})
    result.save(output)
    return Outcome(output, result, False, measured["seconds"], int(measured["peak_rss"]))


def _learn(made: Recipe, units: list[Any], output: str, execution: Execution) -> tuple[Any, dict[str, Any]]:
    from corpusforge.beam import vocab as beam_vocab
    from corpusforge.tokens.learn import learn_wordpiece

    settings = made.vocab
    counts = beam_vocab.run(engine_of(execution), settings.lowercase, units, output, execution.progress)
    execution.progress.start("learn", 0, "words")
    learned = learn_wordpiece(
        counts,
        settings.size,
        unused=settings.unused,
        lowercase=settings.lowercase,
        min_count=settings.min_count,
        max_words=settings.max_words,
        alphabet=settings.alphabet,
        allow_any_size=settings.allow_any_size,
    )
    execution.progress.finish()
    return learned.vocab, learned.statistics


def _sample_statistics(vocab: Any, units: list[Any]) -> dict[str, Any]:
    """Fertility and the like on the first documents of every shard, a few MB in all."""
    from corpusforge.tokens.report import describe

    budget = 4 << 20
    batches = []
    for unit in units:
        for batch in shards.read_shard(unit.path):
            batches.append(batch.slice(0, 256))
            budget -= batches[-1].nbytes
            break
        if budget < 0:
            break
    return describe(vocab, batches)


def build_instances(made: Recipe, upstream: str, vocab_folder: str, output: str, execution: Execution) -> Outcome:
    """Encode documents and build instances: ``train/``, ``heldout/``, and the vocabulary beside them in ``vocab/``."""
    before, units = stage.upstream_units(upstream, "documents")
    from corpusforge.tokens.vocab import Vocab

    vocab = Vocab.load(vocab_folder)
    section = {"instances": recipe.as_dict(made.instances), "seed": made.seed}
    above = {"documents": before.content["documents"], "vocab": vocab.digest}
    digest = stage.claim(output, "build-instances", section, above, execution)
    manifest = stage.finished(output, digest)
    if manifest:
        return Outcome(output, manifest, skipped=True)
    if not before.rows["documents"]:
        raise errors.InputMissing(upstream, "no documents are left", "look at its rejects: corpusforge inspect")
    from corpusforge.beam import instances as beam_instances

    with stage.timed(output, "build-instances", execution) as measured:
        for name, data in vocab.save_files().items():
            shards.write_bytes(shards.join(output, f"vocab/{name}"), data)
        beam_instances.run(engine_of(execution), made.instances, made.seed, vocab, units, output, execution.progress)
    stage.check_units(output, len(units), output)
    result = stage.manifest_of(output, "build-instances", digest, section, above)
    result.save(output)
    return Outcome(output, result, False, measured["seconds"], int(measured["peak_rss"]))
