"""Training speed against transformers on the same instances: real tokens a second, padding, data wait, memory, MFU.

    python benchmarks/trainer.py --preset bert-mini --steps 5 --batch-tokens 8192 --lengths sentences --threads 1
    python benchmarks/trainer.py --preset bert-base --length 128 --batch-tokens 262144 --micro-batch-tokens 65536 \
        --precision bf16 --compile --steps 30 --warmup 10                      # on a GPU; and with --length 512
    python benchmarks/trainer.py --data RUN/instances --preset bert-base ...   # on instances of your own

Ours is the trainer's own step: instances packed, its head on masked positions only. The peer is transformers' model of
the same shape (`BertForMaskedLM`), with labels of -100 where nothing is masked, under the same autocast and AdamW, on
the same instances of the same steps: in their order, padded to the longest of each micro-batch (as its Trainer and
collator do), and again in micro-batches of similar lengths ("by length", the best that padding can do). Each side runs
in its own process (for its peak memory), one after the other, --rounds times; figures are medians.

Without --data the instances are generated: uniform ids, which do not affect the cost, and lengths by --lengths.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.metadata
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import schemas, seeds, shards
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.wordpiece import arrange

SIDES = ("corpusforge", "transformers", "transformers by length")

DECILES = {
    "documents": (14, 68, 99, 107, 111, 113, 116, 119, 123, 126, 128),
    "sentences": (6, 11, 15, 19, 22, 24, 28, 32, 37, 47, 128),
}
"""Deciles of the tokens of instances at length 128. documents: doc-sentences of the bundled sample (the quickstart
recipe); sentences: those of 400 articles of English Wikipedia, one per instance. Other lengths in proportion."""


def generate(folder: Path, *, vocabulary: int, length: int, lengths: str, tokens: int) -> None:
    """Write instances of random ids, and a vocabulary."""
    vocab = arrange([f"w{k}" for k in range(vocabulary - 133)], vocabulary, 128, BertSegmentation())
    (folder / "vocab").mkdir(parents=True)
    for name, content in vocab.save_files().items():
        (folder / "vocab" / name).write_bytes(content)
    rng = seeds.rng_for(0, "benchmark", "lengths")
    deciles = np.array(DECILES[lengths]) * length / 128
    count = int(tokens / np.mean((deciles[1:] + deciles[:-1]) / 2))
    sizes = np.interp(rng.random(count) * 10, np.arange(11), deciles).round().astype(np.int64).clip(5, length)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    ids = rng.integers(133, vocabulary, offsets[-1]).astype(np.uint16)
    ids[offsets[:-1]], ids[offsets[1:] - 1] = vocab.specials.cls, vocab.specials.sep
    segments = np.stack([sizes, np.zeros_like(sizes)], 1).astype(np.uint16)
    columns = [
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids)),
        pa.FixedSizeListArray.from_arrays(pa.array(segments.ravel()), 2),
        pa.nulls(count, pa.int8()),
        pa.array(np.arange(count, dtype=np.uint64)),
        pa.array(np.zeros(count, np.uint32)),
        pa.array(np.zeros(count, np.uint16)),
        pa.array(sizes.astype(np.uint16)),
    ]
    schema = schemas.instances_schema(vocabulary, masks=False)
    writer = shards.ShardWriter(str(folder), "train/part-00000-00000.arrow", schema, "arrow")
    writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    shard = writer.finish()
    tables = {"train": [shard]}
    manifest = shards.Manifest("build-instances", "", {}, {"train": count}, {"train": shard.bytes}, tables, *[{}] * 5)
    manifest.save(str(folder))


def peer_model(job: Any) -> Any:
    """transformers' model of the same shape, with its default attention."""
    import transformers

    from corpusforge.trainer.hf_names import config

    values = config(job.shape, {"cls": job.specials.cls, "sep": job.specials.sep})
    kind = getattr(transformers, values["architectures"][0])
    return kind(transformers.AutoConfig.for_model(**values))


def peer_loss(model: Any, batch: Any, dtype: Any) -> Any:
    """Mean loss of the peer on one of our batches: labels everywhere, -100 where nothing is masked."""
    import torch

    labels = torch.full_like(batch.input_ids, -100)
    labels.view(-1)[batch.masked] = batch.labels
    inputs = {"input_ids": batch.input_ids, "token_type_ids": batch.segment_ids}
    if batch.is_real is not None:
        inputs["attention_mask"] = batch.is_real.long()
    if batch.pair_labels is not None:
        inputs["next_sentence_label"] = batch.pair_labels
    with torch.autocast(batch.input_ids.device.type, dtype=dtype, enabled=dtype is not None):
        return model(**inputs, labels=labels).loss


def peer_batches(job: Any, step: int, *, by_length: bool) -> list[Any]:
    """The instances of a step in padded micro-batches: in their order, the same number in each, or by length."""
    from corpusforge.loader.batcher import make_batches, make_steps
    from corpusforge.loader.packing import BatchSettings, Group, padded_length
    from corpusforge.trainer.batches import to_tensors

    settings = BatchSettings(micro_batch_tokens=job.settings.micro_batch_tokens)
    stream = job.streams[job.plan.part_of(step)]
    if by_length:
        batches = make_steps(job.corpus, stream, [step], settings, job.masker, job.specials.pad)[0]
    else:
        reads = stream.step(step)
        chosen = np.concatenate([rows for _, rows in reads])
        epochs = np.concatenate([np.full(len(rows), epoch) for epoch, rows in reads])
        lengths = stream.chunks.lengths[chosen]
        count = -(-len(chosen) * padded_length(int(lengths.max())) // settings.micro_batch_tokens)
        split = np.array_split(np.arange(len(chosen)), count)
        groups = [Group(rows, None, padded_length(int(lengths[rows].max()))) for rows in split]
        batches = make_batches(job.corpus, stream.chunks, chosen, epochs, groups, job.masker, job.specials.pad)
    converted = [to_tensors(batch, segments=job.shape.segments > 1, pairs=job.shape.pairs) for batch in batches]
    return [batch.pinned() for batch in converted] if job.device.type == "cuda" else converted


def our_model(job: Any) -> Any:
    """CorpusForge's encoder with initial weights."""
    from corpusforge.trainer.model import Encoder, initialize

    model = Encoder(job.shape)
    initialize(model, 0)
    return model


def settings_of(arguments: dict[str, Any]) -> Any:
    """The trainer's settings among the arguments; the unmeasured steps are included."""
    from corpusforge.sections import Pretrain

    wanted = {f.name for f in dataclasses.fields(Pretrain)}
    steps = arguments["steps"] + arguments["warmup"]
    return Pretrain(**{k: v for k, v in arguments.items() if k in wanted} | {"steps": steps})


def measure(side: str, folder: str, arguments: dict[str, Any], send: Any) -> None:
    """Train ``steps`` steps after ``warmup`` unmeasured ones; sends the figures through a pipe."""
    import torch

    from corpusforge.trainer import cost
    from corpusforge.trainer.prepare import prepare

    settings = settings_of(arguments)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    job = prepare(folder, settings, vocab_folder=shards.join(folder, "vocab"))
    tokens, sizes, seconds, waited = train(side, job, arguments["steps"], arguments["warmup"])
    speed, peak = tokens / seconds, cost.peak_flops(job.device)
    flops = cost.flops_per_token(job.shape, job.streams[-1].effective_length, job.masker.settings.rate)
    figures = {"tokens/s": speed, "padding": 1 - tokens / sizes, "data wait": waited / seconds}
    figures |= {"memory": cost.peak_memory(job.device), "mfu": speed * flops / peak if peak else None}
    figures |= {"gflops/s": speed * flops / 1e9, "device": str(job.device), "bf16": job.dtype is not None}
    send.send(figures | {"attention": job.attention})


def train(side: str, job: Any, steps: int, warmup: int) -> tuple[int, int, float, float]:
    """Tokens without and with padding, seconds, and seconds waiting for data, of the steps after the warm-up."""
    from corpusforge.loader.batcher import Feed
    from corpusforge.trainer.optimizers import make_optimizer
    from corpusforge.trainer.step import compiled, gradients, update

    is_ours = side == SIDES[0]
    model = our_model(job) if is_ours else peer_model(job)
    model.to(job.device).train()
    run = compiled(model, fixed=is_ours) if job.settings.compile else model
    optimizer = make_optimizer(model, job.plan.preset, job.plan.learning_rate, job.plan.optimizer)
    make = job.batches if is_ours else functools.partial(peer_batches, job, by_length=side == SIDES[2])
    sizes, tokens, began = 0, 0, 0.0
    with Feed(make, 0, steps + warmup) as feed:
        for step in range(steps + warmup):
            if step == warmup:
                _wait(job.device)
                sizes, tokens, feed.waited, began = 0, 0, 0.0, time.perf_counter()
            batches = feed.next()
            if is_ours:
                gradients(run, batches, seed=0, step=step, device=job.device, dtype=job.dtype)
            else:
                for batch in batches:
                    (peer_loss(run, batch.to(job.device), job.dtype) / len(batches)).backward()
            update(model, optimizer, learning_rate=1e-4, clip=1.0)
            sizes, tokens = sizes + sum(b.size for b in batches), tokens + sum(b.tokens for b in batches)
        _wait(job.device)
        return tokens, sizes, time.perf_counter() - began, feed.waited


def _wait(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def in_a_process(side: str, folder: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """`measure` in a fresh process."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(side, folder, arguments, send))
    process.start()
    send.close()
    try:
        figures: dict[str, Any] = receive.recv()
    except EOFError:
        raise SystemExit(f"{side} ended without figures (out of memory?)") from None
    finally:
        process.join()
    return figures


def read_arguments() -> dict[str, Any]:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of build-instances; generated without it")
    parser.add_argument("--preset", default="bert-mini")
    parser.add_argument("--vocabulary", type=int, default=30_528, help="entries, for generated data")
    parser.add_argument("--length", type=int, default=128, help="maximum tokens, for generated data")
    parser.add_argument("--lengths", choices=sorted(DECILES), default="documents", help="for generated data")
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--micro-batch-tokens", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--packing", action=argparse.BooleanOptionalAction, default=True, help="CorpusForge only")
    parser.add_argument("--json", help="write all figures here")
    return vars(parser.parse_args()) | {"short_share": 0.0}


def main() -> None:
    """Measure each side and print one line for it, then the ratios."""
    arguments = read_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments["data"] or str(Path(temporary) / "instances")
        if not arguments["data"]:
            needed = arguments["batch_tokens"] * (arguments["steps"] + arguments["warmup"] + 1)
            names = ("vocabulary", "length", "lengths")
            generate(Path(folder), **{name: arguments[name] for name in names}, tokens=2 * needed)
        rounds = [{side: in_a_process(side, folder, arguments) for side in SIDES} for _ in range(arguments["rounds"])]
    median: dict[str, dict[str, Any]] = {}
    for side in SIDES:
        numbers = [k for k, v in rounds[0][side].items() if isinstance(v, int | float) and not isinstance(v, bool)]
        median[side] = {k: statistics.median(r[side][k] for r in rounds) for k in numbers}
        shown = (f"{k} {v:,.0f}" if v > 10 else f"{k} {v:.3f}" for k, v in median[side].items())
        print(f"{side:<22}", "   ".join(shown))
    ours = median[SIDES[0]]
    for side in SIDES[1:]:
        peer = median[side]
        speed, memory = ours["tokens/s"] / peer["tokens/s"], ours["memory"] / peer["memory"]
        print(f"against {side}: speed {speed:.2f}x, memory {memory:.2f}x")
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(platform.machine(), load, versions, {k: rounds[0][SIDES[0]][k] for k in ("device", "bf16", "attention")})
    if arguments["json"]:
        shards.write_json(arguments["json"], {"arguments": arguments, "rounds": rounds, "versions": versions})


if __name__ == "__main__":
    main()
