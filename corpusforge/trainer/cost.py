"""What a run costs, before it is run: parameters, FLOPs, memory, steps, tokens, time.

FLOPs of a token, forward and backward: ``6 L (4 d^2 + 2 d f) + 12 L d S_eff + 6 p (d e + e V)``, e the width of the
embeddings (d except for ALBERT, which adds ``6 e d``), p the share of positions in the MLM head, S_eff the mean of
squared lengths over the mean length (after Kaplan et al. 2020, arXiv 2001.08361, table 1, with the head on masked
positions only). A span boundary head counts like another MLM head. Memory is an estimate, not a bound.
"""

from __future__ import annotations

import dataclasses
import platform
import resource
import time

import torch

from corpusforge.loader.order import Stream
from corpusforge.sections import Pretrain
from corpusforge.sections.fields import seconds_of
from corpusforge.trainer.architecture import SPAN_POSITION_WIDTH, Architecture
from corpusforge.trainer.deviations import deviations
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.prepare import Job, prepare
from corpusforge.trainer.ranks import Ranks, started
from corpusforge.trainer.step import gradients
from corpusforge.trainer.training_plan import fitting

PEAK_FLOPS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 4090": 165e12,
    "V100": 125e12,
    "T4": 65e12,
}
"""Dense bf16 (fp16 for V100 and T4) FLOPs per second of a device, by a part of its name: NVIDIA's data sheets."""

PROCESS_BYTES = 353 << 20
"""Memory of a process on a CPU in addition to that of a step. Measured: the peak of a process that has imported the
trainer and taken a step of a model of width 64 (PyTorch alone 219 MiB; Python 3.11, torch 2.13.0 for the CPU, Linux on
x86-64, one thread)."""

TIMED_TOKENS = 2048
"""Tokens of the micro-batch that is timed on a CPU."""


def flops_per_token(shape: Architecture, effective_length: float, mask_rate: float) -> float:
    """FLOPs of one token (padding not counted), forward and backward.

    >>> base = Architecture("bert", 12, 768, 12, 3072, 30522, 512, 2, 1e-12, 0.1, 0, True)
    >>> round(flops_per_token(base, 128, 0.15) / 1e6), round(flops_per_token(base, 512, 0.15) / 1e6)
    (545, 588)
    """
    layers, d, f, e = shape.layers, shape.width, shape.inner, shape.embedding_width
    body = 6 * layers * (4 * d * d + 2 * d * f) + 12 * layers * d * effective_length
    widened = 6 * e * d if shape.family == "albert" else 0
    head = d * e + e * shape.vocabulary
    if shape.span_positions:
        head += (2 * d + SPAN_POSITION_WIDTH) * d + d * e + e * shape.vocabulary
    return float(body + widened + 6 * mask_rate * head)


def parameters(shape: Architecture) -> int:
    """Number of weights, tied ones counted once."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in Encoder(shape).parameters())


def memory_bytes(
    shape: Architecture,
    settings: Pretrain,
    mask_rate: float = 0.15,
    *,
    half: bool,
    ranks: int = 1,
    on_cpu: bool = False,
) -> int:
    """Bytes a training step needs on one of ``ranks`` ranks: weights, gradients and two moments in fp32, and the
    activations of a micro-batch; on a CPU also the process itself, as the system counts it.

    Sharded: a rank's share of weights, gradients and moments, and the full weights and gradients of one layer and of
    everything outside the layers, as `fully_shard` gathers them. Activations: 34 bytes per token, layer and dimension
    at 16 bits (Korthikanti et al. 2022, arXiv 2205.05198, section 4.1, with memory-efficient attention), twice that at
    32; logits of the masked positions three times.
    """
    tokens, width = settings.micro_batch_tokens, 2 if half else 4
    states = 16 * parameters(shape)
    if settings.sharding == "fsdp" and ranks > 1:
        states = states // ranks + 8 * parameters(dataclasses.replace(shape, layers=1))
    activations = tokens * shape.layers * shape.width * 17 * width
    heads = 2 if shape.span_positions else 1
    logits = heads * int(tokens * mask_rate) * shape.vocabulary * (8 + width)
    return int(states + activations + logits) + (PROCESS_BYTES if on_cpu else 0)


def peak_flops(device: torch.device) -> float | None:
    """Peak FLOPs per second of a device, or None if unknown (every CPU)."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


def peak_memory(device: torch.device) -> int:
    """Peak bytes in use so far, of a GPU or else of this process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if platform.system() == "Darwin" else 1024  # getrusage(2): bytes on macOS, kilobytes on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def estimate(data_folder: str, settings: Pretrain, *, vocab_folder: str, seed: int = 0) -> dict[str, int | float | str]:
    """The size and cost of a run as plain values; writes nothing. ``seconds`` comes from timing one micro-batch here.

    Raises what `prepare.prepare` raises.
    """
    job = prepare(data_folder, settings, vocab_folder=vocab_folder, seed=seed)
    job = dataclasses.replace(job, ranks=Ranks(*started()))
    speed, budget = flops_per_second(job), seconds_of(settings.budget)
    if budget:
        costs = [step_flops_per_token(stream, job) / speed for stream in job.streams]
        job = job.marked(fitting(job.plan, budget, costs, done=0, at=0, now=0.0))
    flops = [tokens_of(stream) * step_flops_per_token(stream, job) for stream in job.streams]
    tokens = sum(map(tokens_of, job.streams))
    values: dict[str, int | float | str] = {
        "preset": settings.preset,
        "parameters": parameters(job.shape),
        "instances": len(job.corpus),
        "steps": job.plan.steps,
        "warmup_steps": job.plan.warmup_steps,
        "learning_rate": job.plan.learning_rate,
        "tokens": tokens,
        "epochs": sum(stream.epochs() for stream in job.streams),
        "flops": sum(flops),
        "memory_bytes": _memory_bytes(job),
        "ranks": job.ranks.count,
        "sharding": _sharding(settings, job.ranks.count),
        "device": str(job.device),
        "precision": "bf16" if job.dtype else "fp32",
        "attention": job.attention,
        "tokens_per_second": speed * tokens / sum(flops),
        "seconds": sum(flops) / speed,
    }
    values |= {f"part_{number}": _sentence(stream, job) for number, stream in enumerate(job.streams, 1)}
    return values | {f"differs_{number}": line for number, line in enumerate(deviations(job), 1)}


def _memory_bytes(job: Job) -> int:
    half, on_cpu = job.dtype is not None, job.device.type == "cpu"
    rate = job.masker.settings.rate
    return memory_bytes(job.shape, job.settings, rate, half=half, ranks=job.ranks.count, on_cpu=on_cpu)


def _sharding(settings: Pretrain, ranks: int) -> str:
    if settings.sharding == "fsdp" and ranks == 1:
        return "fsdp; memory is that of one rank alone: estimate under torchrun for that of several"
    return settings.sharding


def tokens_of(stream: Stream) -> int:
    """Tokens that a part of training reads, without padding."""
    return stream.part.tokens


def step_flops_per_token(stream: Stream, job: Job) -> float:
    """FLOPs per token in a part of training."""
    return flops_per_token(job.shape, stream.effective_length, job.masker.settings.rate)


def _sentence(stream: Stream, job: Job) -> str:
    part, mflops = stream.part, step_flops_per_token(stream, job) / 1e6
    return (
        f"{part.stop - part.start:,} steps of {part.batch_tokens:,} tokens at length {part.length}: "
        f"{stream.epochs():,.2f} epochs, {mflops:,.1f} MFLOP a token"
    )


def flops_per_second(job: Job) -> float:
    """FLOPs per second of all ranks, assumed as fast as this one, from timing a micro-batch of the last step.

    The first of two passes includes warming up; it counts only if it takes over two seconds.
    """
    model = Encoder(job.shape).to(job.device).train()
    if job.device.type != "cuda":  # a small one would leave a GPU idle
        small = dataclasses.replace(job.settings, micro_batch_tokens=TIMED_TOKENS)
        job = dataclasses.replace(job, settings=small)
    batch = max(job.batches(job.plan.steps - 1), key=lambda batch: batch.tokens)
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        sums = gradients(model, [batch], seed=0, step=0, device=job.device, dtype=job.dtype)
        assert sums is not None
        sums.cpu()  # waits for the device
        seconds = time.perf_counter() - began
        if seconds > 2:
            break
    return job.ranks.count * batch.tokens * step_flops_per_token(job.streams[-1], job) / seconds
