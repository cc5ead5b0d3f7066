"""A run: the steps of training one after the other, and what is due between them.

Comes in: a `Job`. Goes out: steps taken, log lines, held-out losses, checkpoints (`resume.save`). Decision: a step is a
function of its number (its batches, its dropout, its rate), so a run that was stopped anywhere and resumed has the same
weights as one that was not, to the last bit on a CPU with as many threads.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import torch

from corpusforge import errors
from corpusforge.loader.batcher import Feed
from corpusforge.loader.unigram import token_counts, unigram_entropy
from corpusforge.progress import Progress
from corpusforge.sections.fields import seconds_of
from corpusforge.trainer import facts, log, plan
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.budget import Budget
from corpusforge.trainer.compiled import compiled
from corpusforge.trainer.heldout import Loss, measure_job
from corpusforge.trainer.model import Encoder, initialise
from corpusforge.trainer.optimizers import make_optimizer
from corpusforge.trainer.plateau import Plateau
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.ranks import Agreed
from corpusforge.trainer.resume import begin_from, publish, save
from corpusforge.trainer.resume import resume as resume_newest
from corpusforge.trainer.sharding import shard
from corpusforge.trainer.signals import Interrupted, StopFlag
from corpusforge.trainer.speed import Speed
from corpusforge.trainer.spikes import Spikes, stopped_by
from corpusforge.trainer.step import gradients, update


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
        began: float,
    ) -> None:
        self.job, self.output, self.vocab_folder, self.fingerprint = job, output, vocab_folder, fingerprint
        self.recipe, self.card, self.progress, self.flag = recipe, card, progress, flag
        self.model = Encoder(job.shape)
        initialise(self.model, job.seed)
        self.initial = begin_from(self)
        self.model.to(job.device).train()
        self.ranks = job.ranks
        self.optimizer = self._make_optimizer(self.model)
        self.done, self.tokens, self.shown, self.began = 0, 0, 0, began
        seconds = seconds_of(job.settings.budget)
        self.budget = Budget(seconds, 0.0, began) if seconds else None
        self.spikes = None if job.settings.on_spike == "ignore" else Spikes(job.settings.spike_deviations)
        self.counts = token_counts(job.corpus, job.specials.size)
        self.line = unigram_entropy(self.counts, job.specials)
        self.plateau = Plateau(self.line)
        self.planned_for = 0.0  # the budget of the newest plan taken up
        self.meter = log.Meter([])
        self.newest: Path | None = None
        self.last: dict[str, Any] = {}
        self.heldout: Loss | None = None
        self.measured = -1  # the step that it is of

    def _make_optimizer(self, model: Encoder) -> torch.optim.Optimizer:
        course = self.job.course
        return make_optimizer(model, course.preset, course.learning_rate, course.optimizer)

    def _set_up(self) -> None:
        """Cut the model into parts, and compile it, where that was asked for."""
        settings = self.job.settings
        if settings.sharding == "fsdp" and self.ranks.count > 1:
            self.optimizer = shard(self.model, self.optimizer, self._make_optimizer, self.ranks)
        self.callable: Any = compiled(self.model, fixed=settings.packing) if settings.compile else self.model

    def train(self, *, resume: bool) -> dict[str, Any]:
        """Take all steps that are left."""
        if resume:
            resume_newest(self)
        self._set_up()
        began, first_tokens, settings = time.perf_counter(), self.tokens, self.job.settings
        for line in facts.first_lines(self):
            self.progress.say(line)
        if self.budget:
            self.progress.start("pretrain", int(self.budget.seconds), "seconds")
        else:
            self.progress.start("pretrain", self.job.course.steps, "steps")
        self._advance()
        with self._open_log() as self.log:
            self._plan_first()
            stop = None if self.budget else self.job.course.steps
            with Feed(self._batches, self.done, stop, threads=settings.loader_threads) as self.feed:
                self._take_all_steps()
        self.progress.finish()
        publish(self)  # for a run that was killed between its last checkpoint and this
        is_asked = self._is_asked()
        if self.heldout is None and not is_asked:
            self.heldout = self._measure()
        if self._is_asked():  # too late for this run, which is whole, but not for what would come behind it
            self._leave()
        return facts.of_run(self, time.perf_counter() - began, self.tokens - first_tokens)

    def _is_asked(self) -> bool:
        """Whether some rank was asked to stop, which all of them then were: what comes next they do together or not."""
        self.flag.join(self.ranks.agree([], self.flag.number).stop)
        return bool(self.flag)

    def _take_all_steps(self) -> None:
        self._look_back()
        while self.done < self.job.course.steps:
            self._take_step()
            if self.budget and self.ranks.from_first(self.budget.is_due):
                self._plan(self.budget, self.feed.next_number)
            self._write_what_is_due()

    def _open_log(self) -> log.Log:
        settings, is_first = self.job.settings, self.ranks.is_first
        tensorboard, wandb = settings.tensorboard, settings.wandb
        return log.Log(self.output, self.done, tensorboard=tensorboard, wandb=wandb, is_first=is_first)

    def _advance(self) -> None:
        """Move the bar to where the run is: in steps, or in seconds of its budget."""
        now = int(min(self.budget.elapsed, self.budget.seconds)) if self.budget else self.done
        self.progress.advance(now - self.shown)
        self.shown = now

    def _batches(self, step: int) -> list[Batch]:
        """What the feed makes: by the newest plan, which changes nothing of what has been asked for."""
        return self.job.batches(step)

    def _look_back(self) -> None:
        """What the log knows of the steps that are done; a held-out loss that a signal cut short is measured."""
        self.speed, self.last = Speed(self.job.device), self.log.newest
        held = self.log.heldout  # none of a run that measured something else
        self.heldout = Loss(**held) if held.keys() == Loss.__dataclass_fields__.keys() else None
        for values in self.log.told:
            self._watch(values)
        if self.done and self._is_due(self.job.settings.evaluate_steps) and not self.log.is_measured:
            self._evaluate()

    def _plan_first(self) -> None:
        """Under a budget, plan from a guess; a resumed run keeps its plan, but for a budget that has changed."""
        if self.budget is None:
            return
        self.budget.guess(self.job)
        if not self.job.course.marks or self.budget.seconds != self.planned_for:
            self._plan(self.budget, self.done)

    def _plan(self, budget: Budget, at: int) -> None:
        """Plan the steps from ``at`` on, and log it: the run is a function of its plans."""
        mark = self.ranks.from_first(budget.mark(self.job, self.done, at))
        self.job = self.job.marked(mark)
        self.log.write({"step": self.done} | {f"plan_{k}": v for k, v in dataclasses.asdict(mark).items()})

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
        """Take the step that ``sums`` tell of, or skip it."""
        course, step = self.job.course, self.done
        norm = update(
            self.model,
            self.optimizer,
            learning_rate=course.rate(step),
            clip=course.preset.clip,
            should_skip=(lambda norm: self._is_spike(sums, norm)) if self.spikes else None,
        )
        tokens = agreed.tokens
        self.done, self.tokens = step + 1, self.tokens + tokens
        if not self.spikes or self.spikes.in_a_row == 0:
            self.meter.add(sums, norm, tokens, agreed.size)
        self.speed.add(tokens)
        if self.budget:
            self.budget.count(tokens, course.part_of(step))
        self._advance()

    def _is_spike(self, sums: torch.Tensor, norm: torch.Tensor) -> bool:
        """Whether the step must be skipped, as the log is told. Raises `errors.TrainingStopped` where the run ends."""
        assert self.spikes is not None
        loss, length = log.loss_of(sums), float(norm)
        reason = self.spikes.judge(loss, length, self.job.course.part_of(self.done))
        if reason is None:
            return False
        if self.job.settings.on_spike == "stop":
            if math.isfinite(loss) and math.isfinite(length):
                save(self)  # the weights are those before the spike
            raise self.bad_step(self.done, reason)
        self.log.write({"step": self.done + 1, "skipped": reason, "skipped_loss": loss, "skipped_grad_norm": length})
        self.progress.say(f"step {self.done + 1} skipped: {reason}")
        if self.spikes.skip(self.done + 1):
            raise self.bad_step(self.done, f"{reason}; the {self.spikes.in_a_row - 1} steps before were skipped too")
        return True

    def _leave(self) -> None:
        """Checkpoint what is complete; the gradient of the step that was begun is thrown away."""
        save(self)
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
            save(self)

    def _is_due(self, every: int) -> bool:
        return self.done % every == 0 or self.done == self.job.course.steps

    def finite_rows(self) -> list[list[float]]:
        """What the meter holds. Raises `errors.TrainingStopped`, the batch saved, where a loss is not finite."""
        rows = self.meter.read()
        bad = log.first_bad(rows)
        if bad is not None:
            raise self.bad_step(self.done - len(rows) + bad, "loss or gradient is not finite")
        return rows

    def bad_step(self, step: int, reason: str) -> errors.TrainingStopped:
        """Why the run ends with a step (from 0); a step is a function of its number, so its batches are read again."""
        rank = "" if self.ranks.is_first else f"-rank-{self.ranks.number}"
        path = self.output / f"bad-step-{step + 1:06d}{rank}.safetensors"
        return stopped_by(self.job.batches(step), path, f"step {step + 1}: {reason}")

    def _log(self) -> None:
        rows, rate = self.finite_rows(), float(self.optimizer.param_groups[0]["lr"])
        if not rows:
            return  # all were skipped
        stream = self.job.streams[self.job.course.part_of(self.done - 1)]
        each = plan.flops_per_token(self.job.shape, stream.effective_length, self.job.course.mask_rate(self.done - 1))
        self.last = {"step": self.done, "tokens": self.tokens, **log.means(rows), "unigram": self.line, "lr": rate}
        self.last |= self.speed.read(self.feed.waited, each / self.ranks.count) | {"attention": self.job.attention}
        self.log.write(self.last)
        self.meter.clear()
        self.progress.note(f"loss {self.last['mlm_loss']:.3f} (unigram {self.line:.2f})")
        warning = self._watch(self.last)
        if warning:
            self.progress.say(f"warning: {warning}")
            self.log.write({"step": self.done, "warning": warning})

    def _watch(self, values: dict[str, Any]) -> str | None:
        """What there is to be warned of, from log lines in order."""
        step, course = values["step"], self.job.course
        return self.plateau.watch(values, course.progress(step), is_warming_up=step < course.warmup_steps)

    def _evaluate(self) -> None:
        """The held-out loss, into the log; none where a signal came in between."""
        began = time.perf_counter()
        self.heldout = self._measure()
        if self.heldout:
            self.measured = self.done
            found = {f"heldout_{k}": v for k, v in dataclasses.asdict(self.heldout).items()}
            self.log.write({"step": self.done} | found)
        if self.budget:
            self.budget.took("evaluate", time.perf_counter() - began)

    def _measure(self) -> Loss | None:
        """The held-out loss at the length of the part; a signal ends it, but for weights in parts, which all gather."""
        part = self.job.course.part_of(max(self.done - 1, 0))
        may_stop = not self.ranks.is_sharded
        found = measure_job(self.job, self.model, part, self.counts, lambda: may_stop and bool(self.flag))
        return None if self.flag else found
