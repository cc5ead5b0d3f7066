"""Where a run begins (the newest valid checkpoint, a model it was told to begin from, drawn weights), and the way back.

Comes in: a run that has not begun. Goes out: the same run, as it was when the checkpoint was written; `save` is the
way back. Decision: everything that is not a function of the step (plans of a budget, losses that a judge of spikes has
seen, what is not logged yet) lies in the checkpoint.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import corpusforge
from corpusforge import errors
from corpusforge.sections import Pretrain, output_settings
from corpusforge.sections.fields import seconds_of
from corpusforge.trainer import checkpoint, facts, log
from corpusforge.trainer.budget import Budget
from corpusforge.trainer.course import Mark
from corpusforge.trainer.export import export
from corpusforge.trainer.initial import fill
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.sharding import gathered
from corpusforge.trainer.spikes import Spikes

if TYPE_CHECKING:
    from corpusforge.trainer.run import Run


def begin_from(run: Run) -> dict[str, str]:
    """Take over the weights the run was told to begin with, before its first step; gives what is recorded of it."""
    initial = run.job.initial
    if initial is None or checkpoint.all_folders(run.output):
        return {}
    filled = str(fill(run.model, initial))
    run.progress.say(f"beginning from {initial.folder}; {filled}")
    return {"folder": str(initial.folder), "digest": initial.digest, "filled": filled}


def resume(run: Run) -> None:
    """Go back to the newest valid checkpoint, if there is any.

    Raises `errors.StageMismatch` for other data or another preset, `errors.TrainingStopped` where all are broken.
    """
    for folder, state in checkpoint.valid(run.output, run.progress.say):
        settings = run.job.settings
        checkpoint.check_fingerprint(folder, state, run.fingerprint, allow_new_data=settings.allow_new_data)
        changed = differences(state.settings, settings_of(run.job))
        if "preset" in changed:
            what = f"it is a {state.settings['preset']}, and this run is a {settings.preset}"
            raise errors.StageMismatch(str(folder), what, "name the same preset, or another output folder")
        if changed:
            run.progress.say(f"settings changed since {folder.name}: {', '.join(changed)}")
        checkpoint.restore(folder, state.step, run.model, run.optimizer)
        run.initial = state.initial
        run.done, run.tokens, run.newest = state.step, state.tokens, folder
        run.meter = log.Meter(state.unlogged)
        _take_up(run, folder, state)
        run.progress.say(f"resuming behind step {state.step}")
        return
    if checkpoint.all_folders(run.output):
        what, mend = "none of its checkpoints is valid", "delete them to begin anew, or restore one"
        raise errors.TrainingStopped(str(run.output / "checkpoints"), what, mend)


def settings_of(job: Job) -> dict[str, Any]:
    """What a checkpoint records of the settings: [pretrain], the seed, and how masks are drawn."""
    return dataclasses.asdict(job.settings) | {"seed": job.seed, "masking": dataclasses.asdict(job.masker.settings)}


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of settings that change the numbers of a run and differ from those a checkpoint was written with.

    A setting that either of the two versions does not know is passed over.
    """
    deciding = output_settings(Pretrain) | {"seed", "masking"}
    return sorted(k for k, v in now.items() if k in deciding and k in then and then[k] != v)


def _take_up(run: Run, folder: Path, state: checkpoint.State) -> None:
    """What a checkpoint knows beside the weights: which losses were seen, and the plans of a budget."""
    if run.spikes and state.spikes:
        run.spikes = Spikes(**state.spikes | {"deviations": run.job.settings.spike_deviations})
    if run.budget is None:
        return
    if not state.marks:
        what, mend = "it is of a run of steps, without a budget", "go on without a budget, or name another folder"
        raise errors.StageMismatch(str(folder), what, mend)
    for mark in state.marks:
        run.job = run.job.marked(Mark(**mark))
    run.planned_for = seconds_of(str(state.settings["budget"])) or 0.0
    run.budget = Budget(run.budget.seconds, state.elapsed, run.began)


def state_of(run: Run) -> checkpoint.State:
    """What a checkpoint holds of a run beside weights and moments."""
    part = run.job.course.part_of(max(run.done - 1, 0))
    return checkpoint.State(
        step=run.done,
        fingerprint=run.fingerprint,
        tokens=run.tokens,
        settings=settings_of(run.job),
        recipe=run.recipe,
        versions={"corpusforge": corpusforge.__version__, "torch": torch.__version__, "numpy": np.__version__},
        unlogged=run.finite_rows(),
        initial=run.initial,
        heldout=run.heldout.loss if run.heldout and run.measured == run.done else None,
        heldout_length=run.job.course.parts[part].length,
        elapsed=run.budget.elapsed if run.budget else 0.0,
        marks=[dataclasses.asdict(mark) for mark in run.job.course.marks],
        spikes=dataclasses.asdict(run.spikes) if run.spikes else {},
    )


def save(run: Run) -> None:
    """Write a checkpoint behind the steps that are done, delete those that are not kept, and publish it.

    Raises `errors.TrainingStopped` where a loss or weight is not finite: what was written before stays.
    """
    if run.newest == checkpoint.folder_of(run.output, run.done):
        return  # stopped right behind one: the whole one stays untouched
    state, began = state_of(run), time.perf_counter()
    model, optimizer = run.model, run.optimizer
    if run.ranks.is_sharded:
        model, optimizer = gathered(model, optimizer)
    if not bool(torch.stack([weight.isfinite().all() for weight in model.parameters()]).all()):
        raise run.bad_step(max(run.done - 1, 0), "weights are not finite")
    run.newest = checkpoint.folder_of(run.output, run.done)
    if run.ranks.is_first:
        checkpoint.save(run.output, state, model, optimizer, lambda folder: _write_model(run, model, folder))
    publish(run)
    if run.budget:
        run.budget.took("checkpoint", time.perf_counter() - began)


def publish(run: Run) -> None:
    """Make the newest checkpoint the model of the run."""
    if run.newest is not None and run.ranks.is_first:
        checkpoint.keep(run.newest, run.job.settings.keep_checkpoints, best=run.job.settings.keep_best)
        checkpoint.publish(run.newest, run.output / "model")


def _write_model(run: Run, model: Encoder, folder: Path) -> None:
    ids = {"cls": run.job.specials.cls, "sep": run.job.specials.sep}
    export(model, folder, vocab_folder=run.vocab_folder, ids=ids, card=facts.of_card(run) | run.card)
