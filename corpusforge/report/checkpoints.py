"""The checkpoints of a training, and its log, as tables for a terminal.

Comes in: the folder ``checkpoints/`` that pretrain fills, or its ``log.jsonl``. Goes out: rich renderables. Decision: a
row says what a checkpoint says of itself in ``state.json``; whether its files are whole is asked where it is shown
alone (`folders.show_checkpoint`), as that reads all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report.gather import Found, read_log
from corpusforge.report.plain import number, size, words
from corpusforge.report.tables import columns

LOG = "log.jsonl"
STATE = "state.json"
OF_TRAINING = ("step", "tokens", "mlm_loss", "unigram", "mlm_accuracy", "lr", "tokens_per_second")
OF_HELDOUT = ("step", "heldout_loss", "heldout_unigram", "heldout_accuracy")


def are_checkpoints(path: str) -> bool:
    """Whether a folder holds checkpoints."""
    return bool(_folders(path))


def show_checkpoints(path: str) -> list[RenderableType]:
    """A row for each, the newest last: its step, what it had read, its held-out loss if it was measured, its size."""
    rows = []
    for folder in _folders(path):
        state = _state(folder)
        on_disk = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        told = [_shown(state.get(key)) for key in ("step", "tokens", "heldout_length", "heldout")]
        rows.append([folder.name, *told, size(on_disk)])
    header = ["", "step", "tokens read", "length", "held-out loss", "on disk"]
    mend = f"corpusforge inspect {path}/{rows[-1][0]}: its settings, and whether its files are whole"
    return [columns(f"Checkpoints {path}", header, rows), Text(mend, "dim")]


def _folders(path: str) -> list[Path]:
    """Folders of checkpoints by step; of those that lie on this machine only, as pretrain writes no others."""
    found = [] if shards.is_remote(path) else [p for p in Path(path).glob("step-*") if p.name[5:].isdigit()]
    return sorted(found, key=lambda folder: int(folder.name[5:]))


def _state(folder: Path) -> Mapping[str, Any]:
    try:
        found = shards.read_json(str(folder / STATE))
    except (OSError, ValueError):
        found = {}  # a broken one is listed too: its row is empty
    return found if isinstance(found, dict) else {}


def _shown(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def show_log(path: str, count: int, skip: int) -> list[RenderableType]:
    """The last lines of a log of training, all but the ``skip`` last of them, and its last held-out losses.

    Raises `errors.InputMissing` where no line of a training is in it.
    """
    folder = str(Path(path).parent) if not shards.is_remote(path) else path.rpartition("/")[0]
    found = Found(folder)
    log = read_log(found, path)
    if not log:
        what = "; ".join(found.problems) or "no line in it yet"
        raise errors.InputMissing(path, what, "name the log.jsonl of a training, behind its first --log-steps")
    shown: list[RenderableType] = [Text(problem, "bold red") for problem in found.problems]
    for title, keys, mark in (("Training", OF_TRAINING, "mlm_loss"), ("Held-out", OF_HELDOUT, "heldout_loss")):
        lines = [line for line in log if mark in line]
        if some := lines[max(0, len(lines) - skip - count) : max(0, len(lines) - skip)]:
            shown.append(_lines(f"{title}, the last {len(some)} of {len(lines):,} lines", keys, some))
    shown += [Text(f"step {line['step']:,}: {line['warning']}", "bold red") for line in log if "warning" in line]
    skipped = sum("skipped" in line for line in log)
    if skipped:
        shown.append(Text(f"steps skipped: {skipped:,}, the last of them {_last_skipped(log):,}"))
    return [*shown, Text(f"corpusforge report {folder}: the curves as a page, also while the run goes on", "dim")]


def _lines(title: str, keys: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> RenderableType:
    known = [key for key in keys if any(key in line for line in lines)]
    return columns(title, [*map(words, known)], [[_shown(line.get(key)) for key in known] for line in lines])


def _last_skipped(log: Sequence[Mapping[str, Any]]) -> int:
    return max(int(line["step"]) for line in log if "skipped" in line)
