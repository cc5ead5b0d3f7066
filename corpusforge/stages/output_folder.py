"""Output-folder ownership and locking: one stage, one digest, one process at a time.

A stage's digest covers its recipe sections, its code version, the seed and the digests of what it reads. A folder with
the same digest is up to date, or resumed; one with another digest is refused unless it is to be overwritten, and then
only what stages write is removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import xxhash

from corpusforge import errors, shards
from corpusforge.sections import settings
from corpusforge.shards import Manifest

RUN = "run.json"
LOCK = ".lock"
TIMING = "timing.json"

CODE_VERSIONS = {"clean": 4, "dedupe": 3, "train-vocab": 2, "build-instances": 2, "pretrain": 2, "evaluate": 2}
"""Raised when a stage's output changes for the same recipe and input, so that old folders do not count as finished."""


def digest_of(value: Any) -> str:
    """xxh3-128 of a value's canonical JSON, 32 hex digits.

    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    """
    return xxhash.xxh3_128_hexdigest(json.dumps(value, sort_keys=True, ensure_ascii=False).encode())


@dataclasses.dataclass(frozen=True)
class Claim:
    """A folder held for a stage. ``recipe``: sections of settings; ``upstream``: digests of what the stage reads."""

    folder: str
    stage: str
    recipe: Mapping[str, Any]
    upstream: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> str:
        """The digest that the finished stage carries in its manifest."""
        return digest_of([self.stage, CODE_VERSIONS[self.stage], _with_old_names(self.recipe), self.upstream])

    def finished(self) -> Manifest | None:
        """The manifest of the stage where it is complete under this digest and has all its shards, else None."""
        try:
            manifest = Manifest.load(self.folder)
        except errors.ManifestInvalid:
            return None  # missing or truncated: the stage gathers it again
        if manifest.digest != self.digest:
            return None
        paths = (path for table in manifest.shards for path in manifest.paths(self.folder, table))
        return manifest if all(map(shards.exists, paths)) else None


@contextlib.contextmanager
def claim(
    folder: str,
    stage: str,
    recipe: Mapping[str, Any],
    upstream: Mapping[str, str],
    *,
    overwrite: bool = False,
    reads: Sequence[str] = (),
    cuts: str = "",
) -> Iterator[Claim]:
    """Hold a folder for a stage while the block runs.

    ``overwrite``: replace another run's output, or restart an unfinished one. ``reads``: what the stage reads, which
    must not be in the folder. ``cuts``: digest of how the input is divided into work units; unfinished output of
    another division is restarted, as its shards are of other units.

    Raises `errors.OutputTaken` if the folder holds something else and is not to be overwritten, or where another
    process is writing to it.
    """
    claimed = Claim(folder, stage, recipe, upstream)
    check_apart(folder, reads)
    with _locked(folder):
        note = _read_note(folder)
        if note and note.get("digest") == claimed.digest:
            if (overwrite or note.get("cuts") != cuts) and not claimed.finished():
                clear(folder)
        elif note or _has_files(folder):
            _make_way(claimed, note, overwrite=overwrite)
        note = {"stage": stage, "digest": claimed.digest, "cuts": cuts}
        shards.write_json(shards.join(folder, RUN), note | {"recipe": dict(recipe), "upstream": dict(upstream)})
        yield claimed


def _with_old_names(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Renamed settings by the name that earlier releases digested, so that their folders count as finished."""
    return _named(recipe, {key: spec.was for key, spec in settings().items() if spec.was})


def _with_new_names(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that an earlier release recorded, by today's names."""
    was = {key: spec.was for key, spec in settings().items() if spec.was}
    return _named(recipe, {f"{key.partition('.')[0]}.{old}": key.partition(".")[2] for key, old in was.items()})


def _named(recipe: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        section: {names.get(f"{section}.{key}", key): value for key, value in values.items()}
        if isinstance(values, Mapping)
        else values
        for section, values in recipe.items()
    }


def _make_way(claimed: Claim, note: Mapping[str, Any] | None, *, overwrite: bool) -> None:
    """Empty a folder that holds another run of ours, where that was requested or nothing in it is worth keeping."""
    folder = claimed.folder
    if note is None:
        mend = "choose another folder (--overwrite only replaces a stage's output)"
        raise errors.OutputTaken(folder, "holds files that no stage wrote", mend)
    written = shards.exists(shards.join(folder, shards.MANIFEST)) or any(_worth_keeping(folder, n) for n in WRITTEN)
    if not overwrite and (written or note.get("stage") != claimed.stage):
        model = shards.join(folder, "model")
        is_model = claimed.stage == note.get("stage") == "pretrain" and shards.exists(f"{model}/config.json")
        further = f" (with --init {model} it trains this model further)" if is_model else ""
        mend = f"choose another folder{further}, or --overwrite to replace it"
        raise errors.OutputTaken(folder, _difference(note, claimed), mend)
    clear(folder)


WRITTEN = (
    *("documents", "rejects", "repeats", "clusters", "signatures", "train", "heldout", "vocab", "words", "model"),
    *("checkpoints", "tensorboard", "entries", "scratch"),
)
"""Folders that stages write below their own; nothing else is ever removed."""

WRITTEN_FILES = (TIMING, "README.md", "log.jsonl", "vocab.txt", "merges.txt", "spiece.model")
"""Files that stages write into their folder, and all that end in .json."""

BAD_STEP = re.compile(r"bad-step-\d+(-rank-\d+)?\.safetensors")
"""The batches of a step that ended a training (`trainer.run`)."""

COUNTED_WORDS = re.compile(r"part-\d{5}\.arrow")
"""Which no run resumes: a learner that failed leaves them, and they are counted again."""


def _worth_keeping(folder: str, name: str) -> bool:
    """Whether a folder of an unfinished run holds what it could resume, or what no stage wrote."""
    files = shards.list_names(shards.join(folder, name), "")
    return not all(map(COUNTED_WORDS.fullmatch, files)) if name == "words" else bool(files)


def clear(folder: str) -> None:
    """Remove what a stage wrote: its manifest first, so that what is left is never taken for finished."""
    shards.remove(shards.join(folder, shards.MANIFEST))
    for name in WRITTEN:
        shards.remove(shards.join(folder, name))
    for name in shards.list_names(folder, ""):
        if name in WRITTEN_FILES or name.endswith(".json") or BAD_STEP.fullmatch(name):
            shards.remove(shards.join(folder, name))


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other processes of this machine out of a local folder (object stores have no locks)."""
    if shards.is_remote(folder):
        yield
        return
    import fcntl

    existed = Path(folder).is_dir()
    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        with (Path(folder) / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                mend = "wait for it, or choose another folder"
                raise errors.OutputTaken(folder, "another run is writing to it", mend) from None
            yield
    finally:
        if not existed and not _has_files(folder):  # a refused claim leaves nothing
            (Path(folder) / LOCK).unlink(missing_ok=True)
            Path(folder).rmdir()


def check_apart(folder: str, reads: Sequence[str]) -> None:
    """Raise `errors.OutputTaken` where something that is read lies in the folder that is written."""
    for path in reads:
        if _same_or_inside(path, folder):
            raise errors.OutputTaken(folder, f"{path}, which this stage reads, is in it", "choose another folder")


def _same_or_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    if shards.is_remote(path) or shards.is_remote(folder):
        return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
    return Path(path).resolve().is_relative_to(Path(folder).resolve())


def _read_note(folder: str) -> dict[str, Any] | None:
    """The note of the stage that holds a folder; None where no stage of ours does."""
    path = shards.join(folder, RUN)
    if not shards.exists(path):
        return None
    try:
        note = shards.read_json(path)
    except ValueError:
        return {"stage": None} if shards.exists(shards.join(folder, "entries")) else None
    return note if isinstance(note, dict) and note.get("stage") in CODE_VERSIONS else None


def _has_files(folder: str) -> bool:
    return bool(shards.list_names(folder, ""))


def _difference(note: Mapping[str, Any], claimed: Claim) -> str:
    """What a folder holds instead of the claimed run, for an error of one line."""
    if note.get("stage") != claimed.stage:
        return f"already holds the stage '{note.get('stage')}'"
    now = json.loads(json.dumps(claimed.recipe))
    old, new = (_flat(_with_new_names(recipe)) for recipe in (note.get("recipe", {}), now))
    changed = [_change(k, old.get(k), new.get(k)) for k in sorted(old | new) if old.get(k) != new.get(k)]
    if not changed and note.get("upstream") != dict(claimed.upstream):
        changed = ["other input"]
    return f"already holds another run of {claimed.stage} ({'; '.join(changed[:3]) or 'of another version'})"


SHOWN = 60
"""Characters of a setting's two values in an error: about a line with the setting's name."""


def _change(key: str, old: object, new: object) -> str:
    """One setting that differs, for an error of one line; what is long (the rules of whole packs) is only named.

    >>> _change("clean.pii", "mask", "drop"), _change("clean.allow", ["x" * 99], [])
    ("clean.pii 'mask' -> 'drop'", 'clean.allow changed')
    >>> _change("steps", [{"step": "keep", "filter": "a1"}], [{"step": "keep", "filter": "b2"}])
    'step keep changed'
    """
    before, after = _steps(old), _steps(new)
    if names := [name for name in before | after if before.get(name) != after.get(name)]:
        return f"step {', '.join(names)} changed"
    change = f"{old!r} -> {new!r}"
    return f"{key} {change}" if len(change) <= SHOWN else f"{key} changed"


def _steps(value: object) -> dict[str, Any]:
    """The steps of cleaning by name, where the value of a setting is a list of them."""
    steps = value if isinstance(value, list) else []
    return {step["step"]: step for step in steps if isinstance(step, Mapping) and "step" in step}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
