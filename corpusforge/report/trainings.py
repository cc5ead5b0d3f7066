"""Trainings side by side: their losses in one picture, and in which settings they differ.

Losses are drawn over tokens read, not over steps, so that runs with different batches or lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusforge import errors, shards
from corpusforge.report import figures, html
from corpusforge.report.evaluation import short
from corpusforge.report.gather import Found, gather
from corpusforge.report.html import frame
from corpusforge.report.plain import shown, words
from corpusforge.report.run_report import unigram_of

TITLES = {"losses": "Losses", "figures": "Last figures", "settings": "Settings"}
FIGURES = (
    *("parameters", "steps", "tokens", "mlm_loss", "unigram", "heldout_loss", "heldout_unigram", "heldout_accuracy"),
    "tokens_per_second",
)
"""Of a finished training; where one is not finished, what its log knows."""


def are_trainings(folders: Sequence[str]) -> bool:
    """Whether all of these are trainings, or runs with one."""
    return all(shards.exists(shards.join(gather(folder).path("pretrain"), "log.jsonl")) for folder in folders)


def write_trainings(folders: Sequence[str], path: str) -> str:
    """Write the page to a path or URL, and return it. Raises `errors.InputMissing` if a log has no losses yet."""
    found = [gather(folder) for folder in folders]
    for one in found:
        if not any("mlm_loss" in line for line in one.log):
            raise errors.InputMissing(one.folder, "its log holds no loss yet", "wait for the first line of log.jsonl")
    names = short([one.path("pretrain") for one in found])
    curves = {name: curve(one.log) for name, one in zip(names, found, strict=True)}
    lines = {name: line for name, one in zip(names, found, strict=True) if (line := unigram_of(one)) is not None}
    plot = html.plot(figures.losses_figure(curves, lines), "Losses by tokens read")
    body = [
        html.section("Losses", "losses", plot, *_of_other_data(found)),
        html.section("Last figures", "figures", _table(names, [_last(one) for one in found], FIGURES)),
        html.section("Where their settings differ", "settings", _settings(names, found)),
    ]
    shards.write_bytes(path, frame(" against ".join(names), body, TITLES).encode())
    return path


def curve(log: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Points over tokens read of each figure that is drawn. A held-out loss has only its step, which a line tells of.

    >>> curve([{"step": 5, "tokens": 90, "mlm_loss": 7.0, "lr": 0.1}, {"step": 5, "heldout_loss": 7.5}])
    {'mlm_loss': [(90, 7.0)], 'heldout_loss': [(90, 7.5)], 'lr': [(90, 0.1)]}
    """
    tokens = {line["step"]: line["tokens"] for line in log if "tokens" in line}
    return {
        key: [
            (tokens[line["step"]], line[key])
            for line in log
            if isinstance(line.get(key), int | float) and line["step"] in tokens
        ]
        for key in ("mlm_loss", "heldout_loss", "lr")
    }


def _of_other_data(found: Sequence[Found]) -> list[str]:
    """A sentence where the runs did not read the same instances: their losses are of other tokens, then."""
    read = {one.manifests["pretrain"].upstream.get("instances") for one in found if "pretrain" in one.manifests}
    note = "They read different instances, so their losses are not of the same tokens; evaluate compares them fairly."
    return [html.paragraph(note)] if len(read) > 1 else []


def _last(found: Found) -> dict[str, Any]:
    last: dict[str, Any] = {}
    for line in found.log:
        last |= {key: value for key, value in line.items() if value is not None}
    return {**last, "steps": last.get("step"), **found.statistics("pretrain")}


def _settings(names: Sequence[str], found: Sequence[Found]) -> str:
    """Settings of [pretrain] and seeds that are not the same for all."""
    recipes = [one.manifests["pretrain"].recipe if "pretrain" in one.manifests else {} for one in found]
    flat = [{**recipe.get("pretrain", {}), "seed": recipe.get("seed")} if recipe else {} for recipe in recipes]
    keys = dict.fromkeys(key for one in flat for key in one)
    other = [key for key in keys if len({str(one.get(key)) for one in flat if one}) > 1]
    unfinished = [name for name, one in zip(names, flat, strict=True) if not one]
    rest = [html.paragraph(html.text(f"{', '.join(unfinished)}: not finished"))] if unfinished else []
    return (_table(names, flat, other) if other else html.paragraph("In none.")) + "".join(rest)


def _table(names: Sequence[str], values: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    rows = [[words(key), *(shown(v) if (v := one.get(key)) is not None else "" for one in values)] for key in keys]
    return html.table(["", *names], rows, numbers=range(1, len(names) + 1))
