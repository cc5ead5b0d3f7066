"""Training from one call: instances in, checkpoints and a model out.

Writes ``checkpoints/step-NNNNNN/``, ``model/`` (the newest checkpoint as a Hugging Face directory), ``log.jsonl`` and
``tensorboard/``. A step is a function of its number (its batches, dropout and learning rate), so a run that was
stopped anywhere and resumed has the same weights as one that was not, to the last bit on a CPU with as many threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpusforge import errors
from corpusforge.loader.batcher import Feed
from corpusforge.loader.unigram import token_counts, unigram_entropy
from corpusforge.progress import Progress, Silent
from corpusforge.sections import Pretrain
from corpusforge.sections.fields import seconds_of
from corpusforge.trainer import checkpoint, cost, log
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.budget import Budget
from corpusforge.trainer.heldout import Loss, measure_job
from corpusforge.trainer.hf_folder import export
from corpusforge.trainer.init_checkpoint import fill
from corpusforge.trainer.loss_monitor import Plateau, Spikes, stopped_by
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.optimizers import make_optimizer
from corpusforge.trainer.prepare import Job, output_folder, prepare
from corpusforge.trainer.ranks import Agreed, Ranks, gathered, shard
from corpusforge.trainer.run_summary import Results, card_values, opening_lines, summary
from corpusforge.trainer.signals import Interrupted, StopFlag
from corpusforge.trainer.step import compiled, gradients, update
from corpusforge.version import VERSION


def pretrain(
    data_folder: str,
    output: str,
    settings: Pretrain,
    *,
    seed: int = 0,
    vocab_folder: str,
    manifest_digest: str,
    recipe: dict[str, Any],
    card: dict[str, Any],
    progress: Progress | None = None,
    resume: bool = False,
    ranks: Ranks | None = None,
    began: float | None = None,
) -> dict[str, Any]:
    """Train, or resume training, and return figures of the run (steps, tokens, losses, speed, paths).

    ``manifest_digest`` is the fingerprint of the data; ``recipe`` is stored in checkpoints; ``card`` fills the model
    card (see `model_card.model_card`); ``ranks``: from `ranks.joined`, by default one process; ``began``: when the time
    budget starts, by `time.perf_counter` (None: now). Raises `Interrupted` (a SystemExit of 143 or 130) after a signal
    to stop, once a checkpoint is written; `errors.TrainingStopped` if a loss is not finite; and what `prepare` raises.
    """
    began = time.perf_counter() if began is None else began
    folder = output_folder(output, resume=resume)
    ranks = ranks or Ranks()
    job = dataclasses.replace(prepare(data_folder, settings, vocab_folder=vocab_folder, seed=seed), ranks=ranks)
    progress = progress if progress and ranks.is_first else Silent()
    with _threads(settings.threads), StopFlag() as flag:
        run = Run(job, folder, vocab_folder, manifest_digest, recipe, card, progress, flag, began)
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
    """A run in progress: model, optimizer, and the number of steps done."""

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
        began: float,
    ) -> None:
        self.job, self.output, self.vocab_folder, self.fingerprint = job, output, vocab_folder, fingerprint
        self.recipe, self.card, self.progress, self.flag = recipe, card, progress, flag
        self.model = Encoder(job.shape)
        initialize(self.model, job.seed)
        self.initial = self._fill_from_init()
        self.model.to(job.device).train()
        self.ranks = job.ranks
        self.optimizer = self._make_optimizer(self.model)
        self.done, self.tokens, self.shown, self.began = 0, 0, 0, began
        seconds = seconds_of(job.settings.budget)
        self.budget = Budget(seconds, 0.0, began) if seconds else None
        self.spikes = None if job.settings.on_spike == "ignore" else Spikes(job.settings.spike_deviations)
        self.counts = token_counts(job.corpus, job.specials.size)
        self.unigram = unigram_entropy(self.counts, job.specials)
        self.plateau = Plateau(self.unigram)
        self.planned_for = 0.0  # the budget of the newest mark taken from a checkpoint
        self.meter = log.Meter([])
        self.newest: Path | None = None  # the newest checkpoint
        self.last: dict[str, Any] = {}  # the last log line
        self.heldout: Loss | None = None
        self.measured = -1  # the step at which the held-out loss was measured

    def _fill_from_init(self) -> dict[str, str]:
        """Copy the weights that a new run starts from; returns what is recorded about them."""
        init = self.job.init
        if init is None or checkpoint.all_folders(self.output):
            return {}
        filled = str(fill(self.model, init))
        self.progress.say(f"starting from {init.folder}; {filled}")
        return {"folder": str(init.folder), "digest": init.digest, "filled": filled}

    def _make_optimizer(self, model: Encoder) -> torch.optim.Optimizer:
        plan = self.job.plan
        return make_optimizer(model, plan.preset, plan.learning_rate, plan.optimizer)

    def train(self, *, resume: bool) -> dict[str, Any]:
        """Take all remaining steps."""
        if resume:
            self._resume()
        self._set_up()
        began, first_tokens, settings = time.perf_counter(), self.tokens, self.job.settings
        for line in opening_lines(self.job, is_resumed=self.done > 0):
            self.progress.say(line)
        if self.budget:
            self.progress.start("pretrain", int(self.budget.seconds), "seconds")
        else:
            self.progress.start("pretrain", self.job.plan.steps, "steps")
        self._advance()
        with self._open_log() as self.log:
            self._plan_first()
            stop = None if self.budget else self.job.plan.steps
            with Feed(self._batches, self.done, stop, threads=settings.loader_threads) as self.feed:
                self._take_all_steps()
        self.progress.finish()
        self._publish()  # for a run that was killed after its last checkpoint
        must_stop = self._must_stop()
        if self.heldout is None and not must_stop:
            self.heldout = self._measure()
        if self._must_stop():  # this run is complete, but stages after it must not start
            self._leave()
        return self._summary(time.perf_counter() - began, self.tokens - first_tokens)

    def _resume(self) -> None:
        """Return to the newest valid checkpoint, if there is one. Raises what `checkpoint.newest` raises."""
        newest = checkpoint.newest(self.output, self.job, self.fingerprint, self.progress.say)
        if newest is None:
            return
        folder, state = newest
        checkpoint.restore(folder, state.step, self.model, self.optimizer)
        self.initial, self.newest = state.initial, folder
        self.done, self.tokens = state.step, state.tokens
        self.meter = log.Meter(state.unlogged)
        if self.spikes and state.spikes:
            self.spikes = Spikes(**state.spikes | {"deviations": self.job.settings.spike_deviations})
        if self.budget:
            self.job = checkpoint.marked(folder, state, self.job)
            self.planned_for = seconds_of(str(state.settings["budget"])) or 0.0
            self.budget = Budget(self.budget.seconds, state.elapsed, self.began)
        self.progress.say(f"resuming after step {state.step}")

    def _set_up(self) -> None:
        """Shard the model, and compile it, if requested."""
        settings = self.job.settings
        if settings.sharding == "fsdp" and self.ranks.count > 1:
            self.optimizer = shard(self.model, self.optimizer, self._make_optimizer, self.ranks)
        self.callable: Any = compiled(self.model, fixed=settings.packing) if settings.compile else self.model

    def _must_stop(self) -> bool:
        """Whether any rank got a signal; all ranks then get the same answer and do what follows together."""
        self.flag.join(self.ranks.agree([], self.flag.number).stop)
        return bool(self.flag)

    def _open_log(self) -> log.Log:
        settings, is_first = self.job.settings, self.ranks.is_first
        tensorboard, wandb = settings.tensorboard, settings.wandb
        return log.Log(self.output, self.done, tensorboard=tensorboard, wandb=wandb, is_first=is_first)

    def _advance(self) -> None:
        """Advance the progress bar to the steps done, or to the seconds of the budget spent."""
        now = int(min(self.budget.elapsed, self.budget.seconds)) if self.budget else self.done
        self.progress.advance(now - self.shown)
        self.shown = now

    def _batches(self, step: int) -> list[Batch]:
        """What the feed prepares, by the newest plan; a new plan changes no step that was already requested."""
        return self.job.batches(step)

    def _plan_first(self) -> None:
        """Under a budget, plan from an estimate; a resumed run keeps its plan unless the budget has changed."""
        if self.budget is None:
            return
        self.budget.guess(self.job)
        if not self.job.plan.marks or self.budget.seconds != self.planned_for:
            self._plan(self.budget, self.done)

    def _plan(self, budget: Budget, at: int) -> None:
        """Plan the steps from ``at`` on, and log the mark: the run is a function of its marks."""
        mark = self.ranks.from_first(budget.mark(self.job, self.done, at))
        self.job = self.job.marked(mark)
        self.log.write({"step": self.done} | {f"plan_{k}": v for k, v in dataclasses.asdict(mark).items()})

    def _take_all_steps(self) -> None:
        self._replay_log()
        while self.done < self.job.plan.steps:
            self._take_step()
            if self.budget and self.ranks.from_first(self.budget.is_due):
                self._plan(self.budget, self.feed.next_number)
            self._write_what_is_due()

    def _replay_log(self) -> None:
        """Restore from the log what the steps done have shown; measure a held-out loss that a signal interrupted."""
        self.speed, self.last = log.Speed(self.job.device), self.log.newest
        logged = self.log.heldout  # empty if the run measured something else
        self.heldout = Loss(**logged) if logged.keys() == Loss.__dataclass_fields__.keys() else None
        for values in self.log.losses:
            self._watch(values)
        if self.done and self._is_due(self.job.settings.evaluate_steps) and not self.log.is_measured:
            self._evaluate()

    def _take_step(self) -> None:
        job, step = self.job, self.done
        batches = self.feed.next()
        agreed = self.ranks.agree(batches, self.flag.number)
        self.flag.join(agreed.stop)
        sums = None
        if not (agreed.stop if self.ranks.count > 1 else self.flag):
            sums = gradients(
                self.callable,
                batches,
                seed=job.seed,
                step=step,
                device=job.device,
                dtype=job.dtype,
                should_stop=lambda: bool(self.flag),
                ranks=self.ranks,
                agreed=agreed,
            )
        if sums is None:
            self._leave()
        else:
            self._update(sums, agreed)

    def _update(self, sums: torch.Tensor, agreed: Agreed) -> None:
        """Update the weights with the gradient of a step, or skip the step if its loss is a spike."""
        plan, step = self.job.plan, self.done
        norm = update(
            self.model,
            self.optimizer,
            learning_rate=plan.learning_rate_at(step),
            clip=plan.preset.clip,
            should_skip=(lambda norm: self._is_spike(sums, norm)) if self.spikes else None,
        )
        tokens = agreed.tokens
        self.done, self.tokens = step + 1, self.tokens + tokens
        if not self.spikes or self.spikes.in_a_row == 0:
            self.meter.add(sums, norm, tokens, agreed.size)
        self.speed.add(tokens)
        if self.budget:
            self.budget.count(tokens, plan.part_of(step))
        self._advance()

    def _is_spike(self, sums: torch.Tensor, norm: torch.Tensor) -> bool:
        """Whether to skip the step; a skipped step is logged. Raises `errors.TrainingStopped` if the run ends."""
        assert self.spikes is not None
        loss, length = log.loss_of(sums), float(norm)
        reason = self.spikes.judge(loss, length, self.job.plan.part_of(self.done))
        if reason is None:
            return False
        if self.job.settings.on_spike == "stop":
            if math.isfinite(loss) and math.isfinite(length):
                self._save()  # the weights are those before the spike
            raise self._bad_step(self.done, reason)
        self.log.write({"step": self.done + 1, "skipped": reason, "skipped_loss": loss, "skipped_grad_norm": length})
        self.progress.say(f"step {self.done + 1} skipped: {reason}")
        if self.spikes.skip(self.done + 1):
            raise self._bad_step(self.done, f"{reason}; the {self.spikes.in_a_row - 1} steps before were skipped too")
        return True

    def _leave(self) -> None:
        """Write a checkpoint of the complete steps and raise `Interrupted`; an unfinished gradient is dropped."""
        self._save()
        stopped = Interrupted(self.flag.number, self.done, str(self.newest))
        self.progress.say(str(stopped))
        raise stopped

    def _write_what_is_due(self) -> None:
        settings = self.job.settings
        if self._is_due(settings.log_steps):
            self._log()
        if self._is_due(settings.evaluate_steps):
            self._evaluate()
        if self._is_due(settings.checkpoint_steps):
            self._save()

    def _is_due(self, every: int) -> bool:
        return self.done % every == 0 or self.done == self.job.plan.steps

    def _log(self) -> None:
        rows, rate = self._finite_rows(), float(self.optimizer.param_groups[0]["lr"])
        if not rows:
            return  # all were skipped
        stream = self.job.streams[self.job.plan.part_of(self.done - 1)]
        each = cost.flops_per_token(self.job.shape, stream.effective_length, self.job.plan.mask_rate(self.done - 1))
        self.last = {"step": self.done, "tokens": self.tokens, **log.means(rows), "unigram": self.unigram, "lr": rate}
        self.last |= self.speed.read(self.feed.waited, each / self.ranks.count) | {"attention": self.job.attention}
        self.log.write(self.last)
        self.meter.clear()
        self.progress.note(f"loss {self.last['mlm_loss']:.3f} (unigram {self.unigram:.2f})")
        warning = self._watch(self.last)
        if warning:
            self.progress.say(f"warning: {warning}")
            self.log.write({"step": self.done, "warning": warning})

    def _watch(self, values: dict[str, Any]) -> str | None:
        """The plateau's warning, if one is due. Must be called with the log lines in order."""
        step, plan = values["step"], self.job.plan
        return self.plateau.watch(values, plan.progress(step), is_warming_up=step < plan.warmup_steps)

    def _finite_rows(self) -> list[list[float]]:
        """The rows of the meter. Raises `errors.TrainingStopped`, the batch saved, if a loss is not finite."""
        rows = self.meter.read()
        bad = log.first_bad(rows)
        if bad is not None:
            raise self._bad_step(self.done - len(rows) + bad, "loss or gradient is not finite")
        return rows

    def _bad_step(self, step: int, reason: str) -> errors.TrainingStopped:
        """The error that ends the run at a step (from 0); saves the step's batches, which are read again."""
        rank = "" if self.ranks.is_first else f"-rank-{self.ranks.number}"
        path = self.output / f"bad-step-{step + 1:06d}{rank}.safetensors"
        return stopped_by(self.job.batches(step), path, f"step {step + 1}: {reason}")

    def _evaluate(self) -> None:
        """Log the held-out loss, unless a signal interrupts it."""
        began = time.perf_counter()
        self.heldout = self._measure()
        if self.heldout:
            self.measured = self.done
            values = {f"heldout_{k}": v for k, v in dataclasses.asdict(self.heldout).items()}
            self.log.write({"step": self.done} | values)
        if self.budget:
            self.budget.took("evaluate", time.perf_counter() - began)

    def _measure(self) -> Loss | None:
        """The held-out loss at the length of the part. A signal ends it, unless sharded weights need every rank."""
        part = self.job.plan.part_of(max(self.done - 1, 0))
        may_stop = not self.ranks.is_sharded
        loss = measure_job(self.job, self.model, part, self.counts, lambda: may_stop and bool(self.flag))
        return None if self.flag else loss

    def _save(self) -> None:
        """Write a checkpoint after the steps done, delete old ones, and publish it.

        Raises `errors.TrainingStopped` if a loss or weight is not finite; earlier checkpoints stay.
        """
        if self.newest == checkpoint.folder_of(self.output, self.done):
            return  # stopped right after it was written
        state, began = self._state(), time.perf_counter()
        model, optimizer = self.model, self.optimizer
        if self.ranks.is_sharded:
            model, optimizer = gathered(model, optimizer)
        if not bool(torch.stack([weight.isfinite().all() for weight in model.parameters()]).all()):
            raise self._bad_step(max(self.done - 1, 0), "weights are not finite")
        self.newest = checkpoint.folder_of(self.output, self.done)
        if self.ranks.is_first:
            checkpoint.save(self.output, state, model, optimizer, lambda folder: self._export(model, folder))
        self._publish()
        if self.budget:
            self.budget.took("checkpoint", time.perf_counter() - began)

    def _state(self) -> checkpoint.State:
        """What a checkpoint holds besides weights and moments."""
        job = self.job
        part = job.plan.part_of(max(self.done - 1, 0))
        return checkpoint.State(
            step=self.done,
            fingerprint=self.fingerprint,
            tokens=self.tokens,
            settings=checkpoint.settings_of(job),
            recipe=self.recipe,
            versions={"corpusforge": VERSION, "torch": torch.__version__, "numpy": np.__version__},
            unlogged=self._finite_rows(),
            initial=self.initial,
            heldout=self.heldout.loss if self.heldout and self.measured == self.done else None,
            heldout_length=job.plan.parts[part].length,
            elapsed=self.budget.elapsed if self.budget else 0.0,
            marks=[dataclasses.asdict(mark) for mark in job.plan.marks],
            spikes=dataclasses.asdict(self.spikes) if self.spikes else {},
        )

    def _export(self, model: Encoder, folder: Path) -> None:
        ids = {"cls": self.job.specials.cls, "sep": self.job.specials.sep}
        card = card_values(self.job, self._results(), self.fingerprint) | self.card
        export(model, folder, vocab_folder=self.vocab_folder, ids=ids, card=card)

    def _publish(self) -> None:
        """Make the newest checkpoint the model of the run."""
        if self.newest is not None and self.ranks.is_first:
            checkpoint.keep(self.newest, self.job.settings.keep_checkpoints, best=self.job.settings.keep_best)
            checkpoint.publish(self.newest, self.output / "model")

    def _results(self) -> Results:
        skipped = len(self.spikes.skipped) if self.spikes else 0
        return Results(self.done, self.tokens, skipped, self.last, self.unigram, self.heldout, self.initial)

    def _summary(self, seconds: float, tokens: int) -> dict[str, Any]:
        parameters = sum(weight.numel() for weight in self.model.parameters())
        best = checkpoint.best_of(checkpoint.all_folders(self.output))
        return summary(self.job, self._results(), parameters=parameters, seconds=seconds, tokens=tokens) | {
            "best_checkpoint": str(best) if best else None,
            "model": str(self.output / "model"),
            "checkpoint": str(self.newest),
            "log": str(self.output / "log.jsonl"),
        }
