"""Checkpoints: everything a run needs to resume as if it had never stopped, written completely or not at all.

``checkpoints/step-000100/`` is a Hugging Face directory (`hf_folder`) plus ``optimizer.safetensors`` (both moments,
under our own names, and the optimizer's steps), ``state.json`` (`State`: the position, the settings, the resolved
recipe, the fingerprint of the data, and everything else that is not a function of the step) and ``digests.json``,
written last. The folder is written under a temporary name, synced, then renamed.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from corpusforge import errors, shards
from corpusforge.sections import Pretrain, output_settings
from corpusforge.trainer import hf_folder
from corpusforge.trainer.hf_folder import HEADS
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.optimizers import MOMENTS as MOMENTS_OF_A_WEIGHT
from corpusforge.trainer.prepare import Job
from corpusforge.trainer.training_plan import Mark

DIGESTS, STATE, MOMENTS = "digests.json", "state.json", "optimizer.safetensors"
STEPS = "optimizer.steps"
"""Name of the tensor with the number of updates the optimizer has made, which excludes skipped steps."""
OWN_FILES = (DIGESTS, STATE, MOMENTS, HEADS)


@dataclass(frozen=True)
class State:
    """What ``state.json`` holds. ``step``: steps done, which is also the position in the data."""

    step: int
    fingerprint: str  # digest of the manifest of the instances
    tokens: int  # tokens read so far, without padding
    settings: dict[str, Any]
    recipe: dict[str, Any]
    versions: dict[str, str]
    unlogged: list[list[float]]  # rows `log.Meter` has gathered since its last line
    initial: dict[str, str] = field(default_factory=dict)  # the checkpoint the run started from; empty: random weights
    heldout: float | None = None  # the held-out loss, if it was measured at this step
    heldout_length: int = 0  # of the instances it is measured on
    elapsed: float = 0.0  # seconds of the budget spent
    marks: list[dict[str, Any]] = field(default_factory=list)  # `training_plan.Mark`
    spikes: dict[str, Any] = field(default_factory=dict)  # `loss_monitor.Spikes`


def folder_of(output: Path, step: int) -> Path:
    """The folder of the checkpoint after ``step`` steps."""
    return output / "checkpoints" / f"step-{step:06d}"


def save(
    output: Path, state: State, model: Encoder, optimizer: torch.optim.Optimizer, write_model: Callable[[Path], None]
) -> Path:
    """Write a checkpoint and return its folder; ``write_model`` writes the Hugging Face directory."""
    final = folder_of(output, state.step)
    temporary = final.with_name(f".unfinished-{final.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    write_model(temporary)
    save_file(_moments(model, optimizer), temporary / MOMENTS)
    if heads := hf_folder.own_weights(model):
        save_file(heads, temporary / HEADS)
    (temporary / STATE).write_text(json.dumps(asdict(state), indent=1, sort_keys=True) + "\n", "utf-8")
    digests = {path.name: shards.file_digest(str(path)) for path in sorted(temporary.iterdir())}
    (temporary / DIGESTS).write_text(json.dumps(digests, indent=1) + "\n", "utf-8")
    for path in temporary.iterdir():
        _sync(path)
    _sync(temporary)
    shutil.rmtree(final, ignore_errors=True)
    temporary.rename(final)
    _sync(final.parent)
    return final


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _moments(model: Encoder, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    moments = {}
    for name, weight in model.named_parameters():
        state = optimizer.state.get(weight, {})
        for key in MOMENTS_OF_A_WEIGHT:
            if key in state:
                moments[f"{name}.{key}"] = state[key].detach().cpu().contiguous()
        if state:
            moments[STEPS] = torch.as_tensor(state["step"]).detach().cpu().reshape(1)
    return moments


def restore(folder: Path, step: int, model: Encoder, optimizer: torch.optim.Optimizer) -> None:
    """Restore weights and moments to what they were after ``step`` steps (fewer updates, if some were skipped)."""
    hf_folder.load_weights(model, folder)
    stored = load_file(folder / MOMENTS)
    updates = float(stored.get(STEPS, torch.tensor([float(step)])))
    names = {id(weight): name for name, weight in model.named_parameters()}
    ordered = [names[id(w)] for group in optimizer.param_groups for w in group["params"]]
    state = {
        number: {
            "step": torch.tensor(updates),
            **{key: stored[f"{name}.{key}"] for key in MOMENTS_OF_A_WEIGHT},
        }
        for number, name in enumerate(ordered)
        if f"{name}.exp_avg" in stored
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def all_folders(output: Path) -> list[Path]:
    """Folders of checkpoints, newest first, valid or not."""
    folders = [p for p in (output / "checkpoints").glob("step-*") if p.name[5:].isdigit()]
    return sorted(folders, key=lambda p: -int(p.name[5:]))


def what_is_wrong(folder: Path) -> str | None:
    """Why a checkpoint cannot be used, or None."""
    try:
        digests = json.loads((folder / DIGESTS).read_text("utf-8"))
        for name, digest in digests.items():
            if shards.file_digest(str(folder / name)) != digest:
                return f"{name} does not match its digest"
        return None if {STATE, MOMENTS, "model.safetensors"} <= set(digests) else "files are missing"
    except (OSError, ValueError, AttributeError) as error:
        return str(error)


def valid(output: Path, say: Callable[[str], None]) -> Iterator[tuple[Path, State]]:
    """Valid checkpoints, newest first; the others are reported."""
    for folder in all_folders(output):
        wrong = what_is_wrong(folder)
        if wrong:
            say(f"skipping broken checkpoint {folder.name}: {wrong}")
        else:
            yield folder, State(**json.loads((folder / STATE).read_text("utf-8")))


def newest(output: Path, job: Job, fingerprint: str, say: Callable[[str], None]) -> tuple[Path, State] | None:
    """The newest valid checkpoint of a run and its state; None if there are no checkpoints.

    Raises `errors.StageMismatch` for other data or another preset, `errors.TrainingStopped` if all are broken.
    """
    for folder, state in valid(output, say):
        check_fingerprint(folder, state, fingerprint, allow_new_data=job.settings.allow_new_data)
        changed = differences(state.settings, settings_of(job))
        if "preset" in changed:
            what = f"it is a {state.settings['preset']}, and this run is a {job.settings.preset}"
            raise errors.StageMismatch(str(folder), what, "name the same preset, or another output folder")
        if changed:
            say(f"settings changed since {folder.name}: {', '.join(changed)}")
        return folder, state
    if all_folders(output):
        what, mend = "none of its checkpoints is valid", "delete them to start again, or restore one"
        raise errors.TrainingStopped(str(output / "checkpoints"), what, mend)
    return None


def check_fingerprint(folder: Path, state: State, fingerprint: str, *, allow_new_data: bool) -> None:
    """Raise `errors.StageMismatch` for data other than the checkpoint was trained on."""
    if state.fingerprint != fingerprint and not allow_new_data:
        what = f"it was trained on data {state.fingerprint[:12]}, and this is {fingerprint[:12]}"
        mend = "name the data it was trained on, or pass --allow-new-data to resume with this"
        raise errors.StageMismatch(str(folder), what, mend)


def settings_of(job: Job) -> dict[str, Any]:
    """What a checkpoint records of the settings: [pretrain], the seed, and how masks are drawn."""
    return asdict(job.settings) | {"seed": job.seed, "masking": asdict(job.masker.settings)}


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Names of settings that change the numbers of a run and differ from those a checkpoint was written with.

    A setting that only one of the two versions knows is ignored.
    """
    compared = output_settings(Pretrain) | {"seed", "masking"}
    return sorted(k for k, v in now.items() if k in compared and k in then and then[k] != v)


def marked(folder: Path, state: State, job: Job) -> Job:
    """A job under a time budget with the marks of a checkpoint.

    Raises `errors.StageMismatch` if the checkpoint has none.
    """
    if not state.marks:
        what, mend = "its run counted steps and had no budget", "resume without a budget, or name another folder"
        raise errors.StageMismatch(str(folder), what, mend)
    for mark in state.marks:
        job = job.marked(Mark(**mark))
    return job


def best_of(folders: list[Path]) -> Path | None:
    """The checkpoint of ``folders`` (newest first) with the lowest held-out loss; the newest of equals.

    Only losses at the newest one's instance length count: those at different lengths cannot be compared.
    """
    measured: list[tuple[float, int, Path]] = []
    for folder in folders:
        try:
            state = json.loads((folder / STATE).read_text("utf-8"))
            loss = float(state["heldout"])
            if math.isfinite(loss):
                measured.append((loss, int(state["heldout_length"]), folder))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # broken, or not measured
    comparable = [(loss, folder) for loss, length, folder in measured if length == measured[0][1]]
    return min(comparable, key=lambda pair: pair[0])[1] if comparable else None


def keep(newest: Path, count: int, *, best: bool) -> None:
    """Delete all but the last ``count`` checkpoints up to ``newest`` (and the best), and unfinished ones.

    Checkpoints of later steps go too: the run that wrote ``newest`` skipped them, as they were broken.
    """
    output = newest.parent.parent
    folders = all_folders(output)
    at = folders.index(newest)
    kept = best_of(folders[at:]) if best else None
    for folder in folders[:at] + [old for old in folders[at + count :] if old != kept]:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in (output / "checkpoints").glob(".unfinished-*"):
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Make ``target`` the Hugging Face directory of a checkpoint, unless it already is.

    Files are hard links where the disk supports them. A kill may leave no ``target``, never an incomplete one.
    """
    if _is_published(folder, target):
        return
    temporary = target.with_name(f".unfinished-{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name in OWN_FILES:
            continue
        try:
            os.link(path, temporary / path.name)
        except OSError:
            shutil.copyfile(path, temporary / path.name)
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)


def _is_published(folder: Path, target: Path) -> bool:
    digests: dict[str, str] = json.loads((folder / DIGESTS).read_text("utf-8"))
    wanted = {name: digest for name, digest in digests.items() if name not in OWN_FILES}
    if not target.is_dir() or {path.name for path in target.iterdir()} != set(wanted):
        return False
    return all(shards.file_digest(str(target / name)) == digest for name, digest in wanted.items())
