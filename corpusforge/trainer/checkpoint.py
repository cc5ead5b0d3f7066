"""Checkpoints: everything a run needs to go on as if it had never stopped, whole or not there at all.

``checkpoints/step-000100/`` is a Hugging Face directory (`export`) plus ``optimizer.safetensors`` (both moments, under
our own names, and the optimiser's steps), ``state.json`` (the position, the settings, the resolved recipe, the
fingerprint of the data) and ``digests.json``, written last. The folder is filled under another name, synced, renamed.
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
from corpusforge.trainer import export
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.optimizers import MOMENTS as MOMENTS_OF_A_WEIGHT
from corpusforge.trainer.stored import HEADS

DIGESTS, STATE, MOMENTS = "digests.json", "state.json", "optimizer.safetensors"
STEPS = "optimizer.steps"
"""Name of the tensor with the number of steps that the optimiser has taken: without those that were skipped."""
OWN_FILES = (DIGESTS, STATE, MOMENTS, HEADS)


@dataclass(frozen=True)
class State:
    """What ``state.json`` holds. ``step``: optimiser steps done, which is also the position in the data."""

    step: int
    fingerprint: str  # digest of the manifest of the instances
    tokens: int  # real tokens read so far
    settings: dict[str, Any]
    recipe: dict[str, Any]
    versions: dict[str, str]
    unlogged: list[list[float]]  # what `log.Meter` had gathered since its last line
    initial: dict[str, str] = field(default_factory=dict)  # where the first weights were from; empty: drawn
    heldout: float | None = None  # the held-out loss, where it was measured at this very step
    heldout_length: int = 0  # of the instances it is measured on
    elapsed: float = 0.0  # seconds of the budget spent
    marks: list[dict[str, Any]] = field(default_factory=list)  # `course.Mark`
    spikes: dict[str, Any] = field(default_factory=dict)  # `spikes.Spikes`


def folder_of(output: Path, step: int) -> Path:
    """Where the checkpoint behind ``step`` steps lies."""
    return output / "checkpoints" / f"step-{step:06d}"


def save(
    output: Path, state: State, model: Encoder, optimizer: torch.optim.Optimizer, write_model: Callable[[Path], None]
) -> Path:
    """Write a checkpoint and return its folder; ``write_model`` fills in the Hugging Face directory."""
    final = folder_of(output, state.step)
    temporary = final.with_name(f".unfinished-{final.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    write_model(temporary)
    save_file(_moments(model, optimizer), temporary / MOMENTS)
    if heads := export.own_weights(model):
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
    found = {}
    for name, weight in model.named_parameters():
        state = optimizer.state.get(weight, {})
        for key in MOMENTS_OF_A_WEIGHT:
            if key in state:
                found[f"{name}.{key}"] = state[key].detach().cpu().contiguous()
        if state:
            found[STEPS] = torch.as_tensor(state["step"]).detach().cpu().reshape(1)
    return found


def restore(folder: Path, step: int, model: Encoder, optimizer: torch.optim.Optimizer) -> None:
    """Bring weights and moments back to what they were behind ``step`` steps (fewer for the optimiser, if some were
    skipped)."""
    export.load_weights(model, folder)
    stored = load_file(folder / MOMENTS)
    taken = float(stored.get(STEPS, torch.tensor([float(step)])))
    names = {id(weight): name for name, weight in model.named_parameters()}
    ordered = [names[id(w)] for group in optimizer.param_groups for w in group["params"]]
    state = {
        number: {
            "step": torch.tensor(taken),
            **{key: stored[f"{name}.{key}"] for key in MOMENTS_OF_A_WEIGHT},
        }
        for number, name in enumerate(ordered)
        if f"{name}.exp_avg" in stored
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def all_folders(output: Path) -> list[Path]:
    """Folders of checkpoints, newest first, whether they are valid or not."""
    found = [p for p in (output / "checkpoints").glob("step-*") if p.name[5:].isdigit()]
    return sorted(found, key=lambda p: -int(p.name[5:]))


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
    """Usable checkpoints, newest first; what is wrong with the others is said."""
    for folder in all_folders(output):
        wrong = what_is_wrong(folder)
        if wrong:
            say(f"skipping broken checkpoint {folder.name}: {wrong}")
        else:
            yield folder, State(**json.loads((folder / STATE).read_text("utf-8")))


def check_fingerprint(folder: Path, state: State, fingerprint: str, *, allow_new_data: bool) -> None:
    """Refuse to go on with other data than the checkpoint was trained on.

    Raises `errors.StageMismatch`.
    """
    if state.fingerprint != fingerprint and not allow_new_data:
        what = f"it was trained on data {state.fingerprint[:12]}, and this is {fingerprint[:12]}"
        mend = "name the data it was trained on, or pass --allow-new-data to go on with this"
        raise errors.StageMismatch(str(folder), what, mend)


def best_of(folders: list[Path]) -> Path | None:
    """The checkpoint with the lowest held-out loss, the newest of equals, of ``folders``, the newest first.

    Of those at the newest one's length only: losses at several lengths say nothing about each other.
    """
    found: list[tuple[float, int, Path]] = []
    for folder in folders:
        try:
            state = json.loads((folder / STATE).read_text("utf-8"))
            loss = float(state["heldout"])
            if math.isfinite(loss):
                found.append((loss, int(state["heldout_length"]), folder))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # broken, or not measured
    alike = [(loss, folder) for loss, length, folder in found if length == found[0][1]]
    return min(alike, key=lambda pair: pair[0])[1] if alike else None


def keep(newest: Path, count: int, *, best: bool) -> None:
    """Delete all but ``count`` checkpoints up to ``newest`` (and the best), and what unfinished ones left behind.

    Checkpoints of later steps go first: a run that wrote ``newest`` passed over them, as they were broken.
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
    """Make ``target`` the Hugging Face directory of a checkpoint, if it is not already that one.

    Files are hard links where the disk has them. A kill may leave no ``target``, never half of one.
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
