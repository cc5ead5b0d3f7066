"""Training speed against transformers on the very same batches: real tokens a second, padding, data wait, memory.

    python benchmarks/trainer.py --preset bert-mini --steps 20
    python benchmarks/trainer.py --data RUN/instances --preset bert-base --batch-tokens 65536   # on a GPU

Ours is the encoder with its head on masked positions only; the peer is transformers' model of the same shape, fed the
same micro-batches with labels of -100 elsewhere, under the same autocast and AdamW. Every side runs in a process of
its own (for its peak memory), one after the other, as often as --rounds says; figures are medians. Without --data
the instances are made up: lengths spread as at document ends, ids uniform, which changes no cost.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import multiprocessing
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusforge import schemas, seeds, shards
from corpusforge.tokens.wordpiece import arrange
from corpusforge.tokens.words import Normalization

SIDES = ("corpusforge", "transformers")


def make_up(folder: Path, *, vocabulary: int, length: int, tokens: int) -> None:
    """Write instances and a vocabulary: three of four instances are full, the rest of any length."""
    vocab = arrange([f"w{k}" for k in range(vocabulary - 133)], vocabulary, 128, Normalization())
    (folder / "vocab").mkdir(parents=True)
    for name, content in vocab.save_files().items():
        (folder / "vocab" / name).write_bytes(content)
    rng = seeds.rng_for(0, "benchmark", "lengths")
    count = tokens // length
    lengths = np.where(rng.random(count) < 0.75, length, rng.integers(8, length + 1, count))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    ids = rng.integers(133, vocabulary, offsets[-1]).astype(np.uint16)
    ids[offsets[:-1]], ids[offsets[1:] - 1] = vocab.specials.cls, vocab.specials.sep
    segments = np.stack([lengths, np.zeros_like(lengths)], 1).astype(np.uint16)
    columns = [
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids)),
        pa.FixedSizeListArray.from_arrays(pa.array(segments.ravel()), 2),
        pa.nulls(count, pa.int8()),
        pa.array(np.arange(count, dtype=np.uint64)),
        pa.array(np.zeros(count, np.uint32)),
        pa.array(np.zeros(count, np.uint16)),
        pa.array(lengths.astype(np.uint16)),
    ]
    schema = schemas.instances_schema(vocabulary, masks=False)
    writer = shards.ShardWriter(str(folder), "train/part-00000-00000.arrow", schema, "arrow")
    writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
    shard = writer.finish()
    tables = {"train": [shard]}
    made = shards.Manifest("build-instances", "", {}, {"train": count}, {"train": shard.bytes}, tables, *[{}] * 5)
    made.save(str(folder))


def their_model(job: Any) -> Any:
    """transformers' model of the same shape, with its own attention default."""
    import transformers

    from corpusforge.trainer.export import config

    values = config(job.shape, {"cls": job.specials.cls, "sep": job.specials.sep})
    kind = getattr(transformers, values["architectures"][0])
    return kind(transformers.AutoConfig.for_model(**values))


def their_loss(model: Any, batch: Any, dtype: Any) -> Any:
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


def our_model(job: Any) -> Any:
    """CorpusForge's encoder, drawn anew."""
    from corpusforge.trainer.model import Encoder, initialise

    model = Encoder(job.shape)
    initialise(model, 0)
    return model


def settings_of(arguments: dict[str, Any]) -> Any:
    """The trainer's settings among the arguments, with the unmeasured steps counted in."""
    from corpusforge.trainer.settings import Settings

    wanted = {f.name for f in dataclasses.fields(Settings)}
    steps = arguments["steps"] + arguments["warmup"]
    return Settings(**{k: v for k, v in arguments.items() if k in wanted} | {"steps": steps})


def measure(side: str, folder: str, arguments: dict[str, Any], send: Any) -> None:
    """Train ``steps`` steps behind ``warmup`` unmeasured ones; sends figures through a pipe."""
    import torch

    from corpusforge.loader.feed import Feed
    from corpusforge.trainer import plan
    from corpusforge.trainer.prepare import prepare
    from corpusforge.trainer.step import gradients, make_optimizer, update

    steps, warmup = arguments["steps"], arguments["warmup"]
    settings = settings_of(arguments)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    job = prepare(folder, settings, vocab_folder=shards.join(folder, "vocab"))
    model = our_model(job) if side == "corpusforge" else their_model(job)
    model.to(job.device).train()
    run = torch.compile(model, dynamic=True) if settings.compile else model
    optimizer = make_optimizer(model, job.resolved.preset, job.resolved.learning_rate)
    sizes, tokens, began = 0, 0, 0.0
    with Feed(job.batches, 0, steps + warmup) as feed:
        for step in range(steps + warmup):
            if step == warmup:
                _wait(job.device)
                sizes, tokens, feed.waited, began = 0, 0, 0.0, time.perf_counter()
            batches = feed.next()
            if side == "corpusforge":
                gradients(run, batches, seed=0, step=step, device=job.device, dtype=job.dtype)
            else:
                for batch in batches:
                    (their_loss(run, batch.to(job.device), job.dtype) / len(batches)).backward()
            update(model, optimizer, learning_rate=1e-4, clip=1.0)
            sizes, tokens = sizes + sum(b.size for b in batches), tokens + sum(b.tokens for b in batches)
        _wait(job.device)
        seconds, waited = time.perf_counter() - began, feed.waited
    speed, peak = tokens / seconds, plan.peak_flops(job.device)
    flops = plan.flops_per_token(job.shape, job.streams[-1].effective_length, settings.masking.rate)
    figures = {"tokens/s": speed, "padding": 1 - tokens / sizes, "data wait": waited / seconds}
    figures |= {"memory": plan.peak_memory(job.device), "mfu": speed * flops / peak if peak else None}
    send.send(figures | {"gflops/s": speed * flops / 1e9, "device": str(job.device), "bf16": job.dtype is not None})


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
        found: dict[str, Any] = receive.recv()
    except EOFError:
        raise SystemExit(f"{side} ended without figures (out of memory?)") from None
    finally:
        process.join()
    return found


def main() -> None:
    """Measure both sides and print one line each, then the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of build-instances; made up without it")
    parser.add_argument("--preset", default="bert-mini")
    parser.add_argument("--vocabulary", type=int, default=30_528, help="entries, for made-up data")
    parser.add_argument("--length", type=int, default=128, help="tokens, for made-up data")
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--micro-batch-tokens", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", help="write all figures here")
    arguments = vars(parser.parse_args()) | {"short_share": 0.0}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments["data"] or str(Path(temporary) / "instances")
        if not arguments["data"]:
            needed = arguments["batch_tokens"] * (arguments["steps"] + arguments["warmup"] + 1)
            make_up(Path(folder), vocabulary=arguments["vocabulary"], length=arguments["length"], tokens=2 * needed)
        rounds = [{side: in_a_process(side, folder, arguments) for side in SIDES} for _ in range(arguments["rounds"])]
    median: dict[str, dict[str, Any]] = {}
    for side in SIDES:
        numbers = [k for k, v in rounds[0][side].items() if isinstance(v, int | float) and not isinstance(v, bool)]
        median[side] = {k: statistics.median(r[side][k] for r in rounds) for k in numbers}
        shown = (f"{k} {v:,.0f}" if v > 10 else f"{k} {v:.3f}" for k, v in median[side].items())
        print(f"{side:<13}", "   ".join(shown))
    ours, theirs = median["corpusforge"], median["transformers"]
    print(f"speed {ours['tokens/s'] / theirs['tokens/s']:.2f}x, memory {ours['memory'] / theirs['memory']:.2f}x")
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    print(platform.machine(), versions, {k: rounds[0]["corpusforge"][k] for k in ("device", "bf16")})
    if arguments["json"]:
        shards.write_json(arguments["json"], {"arguments": arguments, "rounds": rounds, "versions": versions})


if __name__ == "__main__":
    main()
