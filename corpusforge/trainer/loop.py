"""The training loop: instances in, checkpoints and a model out.

Writes ``checkpoints/step-NNNNNN/``, ``model/`` (the newest as a Hugging Face directory), ``log.jsonl`` and
``tensorboard/``. Decision: a step is a function of its number (its batches, its dropout, its rate), so a run that was
stopped anywhere and resumed has the same weights as one that was not, to the last bit on a CPU with as many threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

import corpusforge
from corpusforge import errors
from corpusforge.loader.feed import Feed
from corpusforge.progress import Progress, Silent
from corpusforge.trainer import checkpoint, log, plan
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.export import export
from corpusforge.trainer.heldout import Loss, frozen_batches, measure
from corpusforge.trainer.model import Encoder, initialise
from corpusforge.trainer.optimizers import make_optimizer
from corpusforge.trainer.prepare import Job, output_folder, prepare
from corpusforge.trainer.settings import Settings, differences
from corpusforge.trainer.signals import Interrupted, StopFlag
from corpusforge.trainer.speed import Speed
from corpusforge.trainer.step import gradients, update


def pretrain(
    data_folder: str,
    output: str,
    settings: Settings,
    *,
    vocab_folder: str,
    manifest_digest: str,
    recipe: dict[str, Any],
    card: dict[str, Any],
    progress: Progress | None = None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train, or go on training, and return plain facts of the run (steps, tokens, losses, speed, paths).

    ``manifest_digest`` is the fingerprint of the data; ``recipe`` is stored in checkpoints; ``card`` fills the model
    card (see `export.model_card`). Raises `Interrupted` (a SystemExit of 143 or 130) when asked to stop, behind a
    checkpoint; `errors.TrainingStopped` when a loss is not finite; and what `prepare` raises.
    """
    folder = output_folder(output, resume=resume)
    job = prepare(data_folder, settings, vocab_folder=vocab_folder)
    with _threads(settings.threads), StopFlag() as flag:
        run = Run(job, folder, vocab_folder, manifest_digest, recipe, card, progress or Silent(), flag)
        return run.train(resume=resume)


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Run:
    """A run in progress: model, optimiser, and how many steps are done."""

    def __init__(
        self,
        job: Job,
        output: Path,
        vocab_folder: str,
        fingerprint: str,
        recipe: dict[str, Any],
        card: dict[str, Any],
        progress: Progress,
        flag: StopFlag,
    ) -> None:
        self.job, self.output, self.vocab_folder, self.fingerprint = job, output, vocab_folder, fingerprint
        self.recipe, self.card, self.progress, self.flag = recipe, card, progress, flag
        self.model = Encoder(job.shape)
        initialise(self.model, job.settings.seed)
        self.model.to(job.device).train()
        self.callable: Any = torch.compile(self.model, dynamic=True) if job.settings.compile else self.model
        course = job.course
        self.optimizer = make_optimizer(self.model, course.preset, course.learning_rate, course.optimizer)
        self.done, self.tokens, self.spent = 0, 0, 0.0
        self.meter = log.Meter([])
        self.newest: Path | None = None
        self.last: dict[str, Any] = {}
        self.heldout: Loss | None = None

    def train(self, *, resume: bool) -> dict[str, Any]:
        """Take all steps that are left."""
        if resume:
            self._resume()
        began, first_tokens, steps = time.perf_counter(), self.tokens, self.job.course.steps
        self.progress.start("pretrain", steps, "steps")
        self.progress.advance(self.done)
        tensorboard = self.job.settings.tensorboard
        with (
            log.Log(self.output, self.done, tensorboard=tensorboard) as self.log,
            Feed(self.job.batches, self.done, steps) as self.feed,
        ):
            self.speed, self.last = Speed(self.job.device), self.log.newest
            while self.done < steps:
                self._take_step()
                self._write_what_is_due()
        self.progress.finish()
        self._publish()  # for a run that was killed between its last checkpoint and this
        if self.heldout is None:
            self.heldout = self._measure()
        if self.flag:  # too late for this run, which is whole, but not for what would come behind it
            self._leave()
        seconds, tokens = time.perf_counter() - began, self.tokens - first_tokens
        return self._facts(seconds, tokens / seconds if tokens else self.last.get("tokens_per_second"))

    def _resume(self) -> None:
        """Go back to the newest valid checkpoint, if there is any."""
        for folder, state in checkpoint.valid(self.output, self.progress.say):
            allow = self.job.settings.allow_new_data
            checkpoint.check_fingerprint(folder, state, self.fingerprint, allow_new_data=allow)
            changed = differences(state.settings, self.job.settings)
            if "preset" in changed:
                what = f"it is a {state.settings['preset']}, and this run is a {self.job.settings.preset}"
                raise errors.StageMismatch(str(folder), what, "name the same preset, or another output folder")
            if changed:
                self.progress.say(f"settings changed since {folder.name}: {', '.join(changed)}")
            checkpoint.restore(folder, state.step, self.model, self.optimizer)
            self.done, self.tokens, self.newest = state.step, state.tokens, folder
            self.meter = log.Meter(state.unlogged)
            self.progress.say(f"resuming behind step {state.step}")
            return
        if checkpoint.all_folders(self.output):
            what, mend = "none of its checkpoints is valid", "delete them to begin anew, or restore one"
            raise errors.TrainingStopped(str(self.output / "checkpoints"), what, mend)

    def _take_step(self) -> None:
        job, step = self.job, self.done
        batches = self.feed.next()
        sums = None
        if not self.flag:
            sums = gradients(
                self.callable,
                batches,
                seed=job.settings.seed,
                step=step,
                device=job.device,
                dtype=job.dtype,
                should_stop=lambda: bool(self.flag),
            )
        if sums is None:
            self._leave()
        else:
            norm = update(self.model, self.optimizer, learning_rate=job.course.rate(step), clip=job.course.preset.clip)
            tokens = sum(batch.tokens for batch in batches)
            self.meter.add(sums, norm, tokens, sum(batch.size for batch in batches))
            self.speed.add(tokens)
            self.done, self.tokens = step + 1, self.tokens + tokens
            self.progress.advance(1)

    def _leave(self) -> None:
        """Checkpoint what is complete; the gradient of the step that was begun is thrown away."""
        self._checkpoint()
        stopped = Interrupted(self.flag.number, self.done, str(self.newest))
        self.progress.say(str(stopped))
        raise stopped

    def _write_what_is_due(self) -> None:
        settings, is_last = self.job.settings, self.done == self.job.course.steps
        if self.done % settings.log_steps == 0 or is_last:
            self._log()
        if self.done % settings.evaluate_steps == 0 or is_last:
            self.heldout = self._measure()
            if self.heldout:
                found = {f"heldout_{k}": v for k, v in dataclasses.asdict(self.heldout).items()}
                self.log.write({"step": self.done} | found)
        if self.done % settings.checkpoint_steps == 0 or is_last:
            self._checkpoint()

    def _finite_rows(self) -> list[list[float]]:
        """What the meter holds. Raises `errors.TrainingStopped`, the batch saved, where a loss is not finite."""
        rows = self.meter.read()
        bad = log.first_bad(rows)
        if bad is not None:
            step = self.done - len(rows) + bad  # a step is a function of its number: read it again
            path = self.output / f"bad-step-{step + 1:06d}.safetensors"
            save_file(_tensors(self.job.batches(step)), path)
            what = f"loss or gradient of step {step + 1} is not finite (its batches are in {path.name})"
            mend = "begin again in another folder with a lower learning rate or a longer warm-up"
            mend += ", or look at those batches"
            raise errors.TrainingStopped(str(self.output), what, mend)
        return rows

    def _log(self) -> None:
        rows, rate = self._finite_rows(), float(self.optimizer.param_groups[0]["lr"])
        stream = self.job.streams[self.job.course.part_of(self.done - 1)]
        each = plan.flops_per_token(self.job.shape, stream.effective_length, self.job.course.mask_rate(self.done - 1))
        self.last = {"step": self.done, "tokens": self.tokens, **log.means(rows), "lr": rate}
        self.last |= self.speed.read(self.feed.waited, each)
        self.log.write(self.last)
        self.meter.clear()

    def _measure(self) -> Loss | None:
        job = self.job
        if job.heldout is None:
            return None
        length = job.course.parts[job.course.part_of(max(self.done - 1, 0))].length
        batches = frozen_batches(
            job.heldout,
            job.masker,
            length,
            job.settings.micro_batch_tokens,
            job.specials.pad,
            segments=job.shape.segments > 1,
            tokens=job.settings.heldout_tokens,
        )
        return measure(self.model, batches, job.device, job.dtype)

    def _checkpoint(self) -> None:
        if self.newest == checkpoint.folder_of(self.output, self.done):
            return  # stopped right behind one: the whole one stays untouched
        state = checkpoint.State(
            step=self.done,
            fingerprint=self.fingerprint,
            tokens=self.tokens,
            settings=dataclasses.asdict(self.job.settings),
            recipe=self.recipe,
            versions={"corpusforge": corpusforge.__version__, "torch": torch.__version__, "numpy": np.__version__},
            unlogged=self._finite_rows(),
        )
        self.newest = checkpoint.save(self.output, state, self.model, self.optimizer, self._write_model)
        self._publish()

    def _publish(self) -> None:
        if self.newest is not None:
            checkpoint.keep_newest(self.newest, self.job.settings.keep_checkpoints)
            checkpoint.publish(self.newest, self.output / "model")

    def _write_model(self, folder: Path) -> None:
        training = {
            "preset": self.job.settings.preset,
            "steps": f"{self.done:,} of {self.job.course.steps:,}",
            "tokens read": f"{self.tokens:,}",
            "loss": f"{self.last['loss']:.4f}" if self.last else None,
            "held-out MLM loss": f"{self.heldout.loss:.4f}" if self.heldout else None,
            "seed": self.job.settings.seed,
        }
        facts = {"corpus": self.fingerprint, "training": {k: v for k, v in training.items() if v is not None}}
        ids = {"cls": self.job.specials.cls, "sep": self.job.specials.sep}
        export(self.model, folder, vocab_folder=self.vocab_folder, ids=ids, card=facts | self.card)

    def _facts(self, seconds: float, speed: float | None) -> dict[str, Any]:
        heldout = dataclasses.asdict(self.heldout) if self.heldout else None
        return {
            "steps": self.done,
            "tokens": self.tokens,
            "parameters": sum(weight.numel() for weight in self.model.parameters()),
            "loss": self.last.get("loss"),
            "mlm_accuracy": self.last.get("mlm_accuracy"),
            "heldout": heldout,
            "seconds": seconds,
            "tokens_per_second": speed,
            "device": str(self.job.device),
            "precision": "bf16" if self.job.dtype else "fp32",
            "model": str(self.output / "model"),
            "checkpoint": str(self.newest),
            "log": str(self.output / "log.jsonl"),
        }


def _tensors(batches: list[Batch]) -> dict[str, torch.Tensor]:
    return {f"{number}.{name}": value for number, b in enumerate(batches) for name, value in b.tensors().items()}
