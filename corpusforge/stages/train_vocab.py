"""The stage train-vocab: documents of a finished stage to a vocabulary folder that AutoTokenizer loads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import seeds, shards
from corpusforge.engine import Engine
from corpusforge.progress import Progress
from corpusforge.recipe import digested
from corpusforge.sections import Recipe
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim
from corpusforge.stages.stage import Execution, Outcome
from corpusforge.units import ShardUnit


def train_vocab(recipe: Recipe, upstream: str, output: str, execution: Execution) -> Outcome:
    """Count words, learn a vocabulary, and write the folder that ``AutoTokenizer`` loads."""
    from corpusforge.tokens.families import adopt_vocab, check_sizes
    from corpusforge.tokens.report import describe

    settings = recipe.vocab
    check_sizes(settings)
    engine = stage.engine_of(execution, shuffles=not settings.adopt)
    adopted = adopt_vocab(settings.adopt) if settings.adopt else None
    before, units = stage.upstream_units(upstream, "documents")
    apart, sampled = stage.upstream_units(settings.sample, "documents") if settings.sample else (before, units)
    contents = {
        "adopt": adopted.digest if adopted else "",
        "sample": apart.content["documents"] if settings.sample else "",
    }
    section = {"vocab": digested(settings, **contents)}
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
                vocab, counted = _learn(engine, recipe, units, output, execution.progress)
            for name, data in vocab.save_files().items():
                shards.write_bytes(shards.join(output, name), data)
            statistics = {**counted, **describe(vocab, *draw(sampled))}
            statistics["sample"] = "learned from too" if adopted is None and sampled is units else "not learned from"
        manifest = stage.manifest_of(claimed, tallies={}, statistics=statistics)
        manifest = dataclasses.replace(manifest, content={"vocab": vocab.digest})
        return stage.finish(claimed, manifest, measured)


def _learn(
    engine: Engine, recipe: Recipe, units: list[Any], output: str, progress: Progress
) -> tuple[Any, dict[str, Any]]:
    from corpusforge.tokens.counts import count_units, read_blocks
    from corpusforge.tokens.families import learn, segmentation_of, select

    settings = recipe.vocab
    paths = count_units(engine, segmentation_of(settings), units, output, progress)
    counts, counted = select(read_blocks(paths), settings)
    progress.start("learn", 0, "words")
    learned = learn(counts, settings)
    progress.finish()
    return learned.vocab, {**counted, **learned.statistics}


SAMPLE_BYTES = 4 << 20
"""Text of a sample: about 700 thousand words of English."""

SAMPLE_SHARDS = 64
"""Most shards that are opened for it."""


def draw(units: Sequence[ShardUnit]) -> tuple[pa.StringArray, pa.StringArray]:
    """Texts and languages of a few megabytes of documents from all over the corpus.

    Of some shards, evenly spaced, the first batch is read, and of that the documents with the smallest hashes of their
    ids are taken: the same in every run, none favored for its place in a batch, without reading the whole corpus.
    """
    chosen = np.linspace(0, len(units) - 1, min(len(units), SAMPLE_SHARDS)).round().astype(int).tolist()
    drawn = [_first_of_shard(units[at].path, SAMPLE_BYTES // len(chosen)) for at in chosen]
    empty = pa.record_batch({"text": pa.array([], pa.string()), "language": pa.array([], pa.string())})
    table = pa.Table.from_batches([empty, *drawn]).combine_chunks()
    return table["text"].combine_chunks(), table["language"].combine_chunks()


def _first_of_shard(path: str, most: int) -> pa.RecordBatch:
    """Documents of the first batch in the order of their hashes up to ``most`` bytes, at least one."""
    batch = next(iter(shards.read_shard(path)), None)
    if batch is None:
        return pa.record_batch({"text": pa.array([], pa.string()), "language": pa.array([], pa.string())})
    order = np.argsort(seeds.words(0, "vocabulary-sample", seeds.document_keys(batch["id"].to_pylist())))
    lengths = pc.binary_length(batch["text"]).to_numpy()[order].astype(np.int64)
    chosen = order[np.append(0, np.cumsum(lengths))[:-1] < most]
    return pa.record_batch({name: batch[name].take(pa.array(chosen)) for name in ("text", "language")})
