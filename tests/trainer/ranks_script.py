"""What tests run under torchrun: a training run, and the gradient of its first step, written by the first rank."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from corpusforge.progress import Silent
from corpusforge.sections import Pretrain
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import prepare
from corpusforge.trainer.ranks import Ranks, joined
from corpusforge.trainer.run import pretrain
from corpusforge.trainer.step import gradients


class Stopping(Silent):
    """Sends a rank a signal after a step."""

    def __init__(self, step: int, number: int) -> None:
        self.step, self.number, self.done = step, number, 0

    def advance(self, amount: int) -> None:
        self.done += amount
        if self.done == self.step:
            os.kill(os.getpid(), self.number)


def first_gradient(data: str, vocabulary: str, settings: Pretrain, ranks: Ranks, output: Path) -> None:
    job = dataclasses.replace(prepare(data, settings, vocab_folder=vocabulary), ranks=ranks)
    model = Encoder(job.shape)
    initialize(model, 0)
    batches = job.batches(0)
    sums = gradients(model, batches, seed=0, step=0, device=job.device, dtype=None, ranks=ranks)
    assert sums is not None
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    if ranks.is_first:
        save_file({"sums": sums, "batches": torch.tensor([len(batches)])} | found, output / "gradient.safetensors")


def main(task: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    settings, output = Pretrain(**task["settings"]), Path(task["output"])
    with joined(settings.device) as ranks:
        if ranks.is_first:
            output.mkdir(parents=True, exist_ok=True)
        if task["gradient"]:
            first_gradient(task["data"], task["vocabulary"], settings, ranks, output)
        arguments: dict[str, Any] = {"manifest_digest": "digest", "recipe": {"seed": 0}, "card": {}}
        progress = Stopping(*task["stop"]) if task["stop"] and ranks.is_first else None
        pretrain(
            task["data"],
            task["output"],
            settings,
            vocab_folder=task["vocabulary"],
            **arguments,
            resume=task["resume"],
            ranks=ranks,
            progress=progress,
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
