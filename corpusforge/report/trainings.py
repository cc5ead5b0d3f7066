"""Trainings side by side: their losses in one plot, and the settings in which they differ.

Losses are drawn over tokens read, not over steps, so that runs with different batches or lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusforge import errors, shards
from corpusforge.report import figures, html
from corpusforge.report.evaluation import short
from corpusforge.report.gather import Run, gather
from corpusforge.report.plain import shown, words
from corpusforge.report.run_report import unigram_of

FIGURES = (
    *("parameters", "steps", "tokens", "mlm_loss", "unigram", "heldout_loss", "heldout_unigram", "heldout_accuracy"),
    "tokens_per_second",
)
"""Figures of a finished training; of an unfinished one, those in its log."""


def are_trainings(folders: Sequence[str]) -> bool:
    """Whether all of these folders are trainings, or runs that contain one."""
    return all(shards.exists(shards.join(gather(folder).path("pretrain"), "log.jsonl")) for folder in folders)


def write_trainings(folders: Sequence[str], path: str) -> str:
    """Write the page to a path or URL; return the path. Raises `errors.InputMissing` if a log has no losses yet."""
    runs = [gather(folder) for folder in folders]
    for run in runs:
        if not any("mlm_loss" in line for line in run.log):
            raise errors.InputMissing(run.folder, "its log holds no loss yet", "wait for the first line of log.jsonl")
    names = short([run.path("pretrain") for run in runs])
    curves = {name: curve(run.log) for name, run in zip(names, runs, strict=True)}
    entropies = {entropy for run in runs if (entropy := unigram_of(run)) is not None}
    plot = html.plot(figures.losses_figure(curves, entropies), "Losses by tokens read")
    body = [
        html.section("Losses", "losses", plot, *_note_of_data(runs)),
        html.section("Last figures", "figures", _table(names, [_last_figures(run) for run in runs], FIGURES)),
        html.section("Settings that differ", "settings", _settings(names, runs)),
    ]
    shards.write_bytes(path, html.frame(" against ".join(names), body).encode())
    return path


def curve(log: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Points over tokens read of each figure that is drawn; a held-out loss is placed by its step.

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


def _note_of_data(runs: Sequence[Run]) -> list[str]:
    """A note if the runs did not read the same instances."""
    digests = {run.manifests["pretrain"].upstream.get("instances") for run in runs if "pretrain" in run.manifests}
    note = "They read different instances, so their losses are not of the same tokens; evaluate compares them fairly."
    return [html.paragraph(note)] if len(digests) > 1 else []


def _last_figures(run: Run) -> dict[str, Any]:
    last = run.last_figures()
    return {**last, "steps": last.get("step"), **run.statistics("pretrain")}


def _settings(names: Sequence[str], runs: Sequence[Run]) -> str:
    """Settings of [pretrain], and seeds, that are not the same for all."""
    recipes = [run.manifests["pretrain"].recipe if "pretrain" in run.manifests else {} for run in runs]
    settings = [{**recipe.get("pretrain", {}), "seed": recipe.get("seed")} if recipe else {} for recipe in recipes]
    keys = dict.fromkeys(key for values in settings for key in values)
    different = [key for key in keys if len({str(values.get(key)) for values in settings if values}) > 1]
    unfinished = [name for name, values in zip(names, settings, strict=True) if not values]
    rest = html.paragraph(f"{', '.join(unfinished)}: not finished") if unfinished else ""
    return (_table(names, settings, different) if different else html.paragraph("None.")) + rest


def _table(names: Sequence[str], values: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    rows = [[words(key), *(shown(v) if (v := row.get(key)) is not None else "" for row in values)] for key in keys]
    return html.table(["", *names], rows, numbers=range(1, len(names) + 1))
