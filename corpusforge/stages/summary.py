"""What a command shows when it has finished: a few numbers, where the output is, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import shards, terminal
from corpusforge.report import evaluation
from corpusforge.report.gather import CleaningStep, funnel, step_order, steps_of
from corpusforge.report.plain import memory, number, seconds, size, visible, words
from corpusforge.shards import Manifest, Tallies
from corpusforge.stages import warnings
from corpusforge.stages.warnings import dropped

if TYPE_CHECKING:
    from corpusforge.stages.preview import Preview
    from corpusforge.stages.stage import Outcome

EXAMPLE_CHARACTERS = 120
"""Characters of an example: a line or two of a terminal."""

LABELS = {"unigram": "unigram, of the training words", "heldout_unigram": "heldout unigram, of the same tokens"}
"""The two unigram losses of a training, each comparable with one of its losses only."""


def show_outcome(outcome: Outcome) -> None:
    """The summary of one stage."""
    manifest = outcome.manifest
    if outcome.skipped:
        if manifest.stage == "evaluate":
            terminal.show(*_evaluation(outcome.folder))
        terminal.show(f"{manifest.stage}: up to date in {outcome.folder}")
        return
    terminal.show(*(_evaluation(outcome.folder) if manifest.stage == "evaluate" else _tables(manifest)))
    _show_warnings(warnings.of_stage(outcome.folder, manifest))
    peak = f", peak memory {memory(outcome.peak_rss)}" if outcome.peak_rss else ""
    terminal.show(f"{manifest.stage}: {outcome.folder} in {seconds(outcome.seconds)}{peak}")


def _tables(manifest: Manifest) -> list[object]:
    tables: list[object] = []
    steps = steps_of(manifest.statistics, step_order(manifest))
    if steps:
        tables.append(steps_table(steps))
    if len(manifest.statistics.get("methods", {})) > 1:
        tables.append(methods_table(manifest.statistics["methods"]))
    if manifest.tallies:
        tables.append(tally_table(manifest.tallies))
    numbers = {k: v for k, v in manifest.statistics.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    if numbers:
        rows = [[LABELS.get(key, words(key)), number(value)] for key, value in numbers.items()]
        tables.append(terminal.table(manifest.stage, ["", "value"], rows))
    if manifest.statistics.get("languages") and manifest.stage == "train-vocab":
        tables.append(languages_table(manifest.statistics["languages"]))
    if manifest.stage == "build-instances":
        tables += [_instances_table(manifest), _encoded_line(manifest.statistics.get("encoded", {}))]
    return tables


def _evaluation(folder: str) -> list[object]:
    """The results in evaluation.json."""
    results = shards.read_json(shards.join(folder, "evaluation.json"))
    return [terminal.table(*table) for table in evaluation.tables(results["tasks"])]


def _encoded_line(encoded: Mapping[str, Any]) -> str:
    """How encoding went: how many sentences the library encoded, and how many were too long."""
    sentences, too_long = encoded.get("sentences", 0), encoded.get("sentences_too_long", 0)
    by_library = encoded.get("sentences_by_library", 0) / max(sentences, 1)
    lost = f", which lost {number(encoded.get('tokens_too_long', 0))} tokens" if too_long else ""
    joined = ""
    if "units_joined" in encoded:
        joined = f"; {number(encoded['units_joined'])} phrases joined, of {number(encoded['words_joined'])} words"
    return (
        f"{number(sentences)} sentences encoded ({by_library:.2%} by the library tokenizers), "
        f"{number(too_long)} longer than an instance{lost}{joined}"
    )


def _instances_table(manifest: Manifest) -> object:
    """Instances, tokens and ratios of both parts, side by side."""
    parts = {split: manifest.statistics.get(split, {}) for split in ("train", "heldout")}
    columns = {
        split: {k: counts.get(k, 0) for k in ("documents", "instances", "tokens")} | counts.get("ratios", {})
        for split, counts in parts.items()
    }
    keys = list(dict.fromkeys(key for column in columns.values() for key in column))
    rows = [
        [words(key), *(number(column[key]) if key in column else "" for column in columns.values())] for key in keys
    ]
    return terminal.table("Instances", ["", *parts], rows)


def methods_table(methods: Mapping[str, Any]) -> object:
    """What each method of a deduplication left for the next."""
    rows = []
    for name, counts in methods.items():
        left = [number(counts.get("documents_out", 0)), size(counts.get("text_bytes_out", 0))]
        rows.append([name, *left, f"{dropped(counts, 'documents'):.1%}", f"{dropped(counts, 'text_bytes'):.1%}"])
    return terminal.table("By method", ["method", "documents left", "text", "documents dropped", "text dropped"], rows)


def languages_table(languages: Mapping[str, Any]) -> object:
    """How a vocabulary splits each language of its sample; the longest tokens are in the report."""
    shares = ("unknown_rate", "character_coverage", "unseen_share")
    rows = [
        [
            name,
            number(figures["words"]),
            *(f"{figures[key]:.3f}" for key in ("fertility", "bytes_per_token")),
            *(f"{figures[key]:.2%}" for key in shares),
        ]
        for name, figures in languages.items()
    ]
    header = ["", "words", "tokens a word", "bytes a token", "unknown", "covered", "unseen"]
    return terminal.table("By language", header, rows)


def tally_table(tallies: Tallies) -> object:
    """Rows and bytes per reason, most rows first."""
    ordered = sorted(tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    rows = [[reason, number(c["rows"]), size(c["bytes"])] for reason, c in ordered]
    return terminal.table("What happened, by reason", ["reason", "rows", "text"], rows)


def steps_table(steps: Sequence[CleaningStep]) -> object:
    """The funnel of a cleaning run: what is left after each step, and how much of its input it dropped."""
    rows = [
        [step.name, number(step.documents), size(step.text_bytes), f"{step.dropped:.1%}" if at else ""]
        for at, step in enumerate(steps)
    ]
    return terminal.table("Step by step", ["step", "documents left", "text left", "documents dropped here"], rows)


def show_preview(preview: Preview) -> None:
    """A dry run: the funnel, the tallies, examples, and a warning where everything or nothing would be dropped."""
    steps = steps_of(preview.statistics, preview.steps)
    if steps:
        terminal.show(steps_table(steps))
    terminal.show(tally_table(preview.tallies))
    if preview.examples:
        terminal.show(_examples_table(preview))
    counts = preview.statistics
    terminal.show(
        f"{preview.records:,} records read, {counts['documents_in']:,} of them documents: "
        f"{counts['documents_out']:,} would be kept ({dropped(counts, 'documents'):.1%} dropped); "
        f"{size(counts['text_bytes_in'])} of text, {size(counts['text_bytes_out'])} kept "
        f"({dropped(counts, 'text_bytes'):.1%} dropped)",
        *preview.notes,
    )
    lines = warnings.of_shares(counts, nothing=preview.stage == "clean" and not preview.notes)
    _show_warnings(lines + warnings.of_steps(steps, preview.language, preview.languages))


def _examples_table(preview: Preview) -> object:
    """A few dropped texts a reason, with what the rule matched in each."""
    rows = [
        [reason, visible(row.get("detail") or ""), visible(" ".join(row["text"].split())[:EXAMPLE_CHARACTERS])]
        for reason, examples in sorted(preview.examples.items())
        for row in examples
    ]
    return terminal.table("Examples", ["reason", "what the rule saw", "text"], rows, words=True)


def _show_warnings(lines: Sequence[str]) -> None:
    for line in lines:
        terminal.console.print(line, style="bold red")


def show_plan(plan: dict[str, Any]) -> None:
    """The plan of ``pretrain --dry-run``."""
    differs = [[str(value)] for key, value in plan.items() if key.startswith("differs_")]
    shown = {key: value for key, value in plan.items() if not key.startswith("differs_")}
    terminal.show(terminal.table("Training plan", ["", "value"], [planned(*each) for each in shown.items()]))
    if differs:
        terminal.show(terminal.table(f"Differences from {plan['preset']} as published", ["what"], differs))
    _show_warnings(warnings.of_plan(plan))


def planned(key: str, value: Any) -> list[str]:
    """A line of a plan, in units that people compare.

    >>> planned("seconds", 1.6e6), planned("memory_bytes", 4e8), planned("tokens_per_second", 20_846.3)
    (['time, about', '18 d 12 h'], ['memory, about', '381 MiB'], ['tokens per second', '20,846'])
    """
    if key == "seconds":
        return ["time, about", seconds(value)]
    if key == "memory_bytes":
        return ["memory, about", memory(value)]
    return [words(key), value if isinstance(value, str) else number(value)]


def show_run(outcomes: Sequence[tuple[str, Outcome]], report: str | None) -> None:
    """A whole run: the funnel, the times, the warnings of all stages, where the checkpoint and the report are."""
    manifests = {name: outcome.manifest for name, outcome in outcomes}
    steps = funnel(manifests)
    if steps:
        rows = [[s.label, number(s.documents), size(s.text_bytes) if s.text_bytes else ""] for s in steps]
        terminal.show(terminal.table("Funnel", ["stage", "documents", "text"], rows))
    times = [
        [name, "up to date" if o.skipped else seconds(o.seconds), memory(o.peak_rss), o.folder] for name, o in outcomes
    ]
    terminal.show(terminal.table("Stages", ["stage", "time", "peak memory", "folder"], times))
    for name, outcome in outcomes:
        _show_warnings([f"{name}: {line}" for line in warnings.of_stage(outcome.folder, outcome.manifest)])
    for name, outcome in outcomes:
        if name == "evaluate":
            terminal.show(*_evaluation(outcome.folder))
    for name, outcome in outcomes:
        if name == "pretrain":
            terminal.show(f"Checkpoint: {outcome.folder}/model")
    if report:
        terminal.show(f"Report:     {report}")
