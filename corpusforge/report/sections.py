"""What the report says, part by part. Comes in: a `Found`. Goes out: HTML of one section, "" where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusforge.report import elements, evaluation, examples, figures
from corpusforge.report.funnel import funnel, share, step_order, steps_of
from corpusforge.report.gather import Found, search
from corpusforge.report.plain import memory, number, seconds, shown, size, words
from corpusforge.shards import Manifest

KEPT = {"kept"}
"""Tallies that are no drops."""


def summary(found: Found) -> str:
    """The figures a person asks for first."""
    steps = funnel(found.manifests)
    pairs = []
    if steps:
        last = steps[-1]
        pairs += [("documents kept", number(last.documents)), ("of text", size(last.text_bytes))]
        pairs.append(("of what was read", f"{share(last, steps[0]):.0%}"))
    vocab = found.statistics("train-vocab").get("size")
    if vocab:
        pairs.append(("vocabulary", number(vocab)))
    rows = found.manifests["build-instances"].rows if "build-instances" in found.manifests else {}
    if rows:
        pairs.append(("instances", number(sum(rows.values()))))
    heldout = [line["heldout_loss"] for line in found.log if isinstance(line.get("heldout_loss"), int | float)]
    if heldout:
        pairs.append(("held-out loss", f"{heldout[-1]:.3f}"))
    total = sum(float(timing.get("seconds", 0)) for timing in found.timings.values())
    if total:
        pairs.append(("time", seconds(total)))
    problems = "".join(f'<p class="problem">{elements.text(line)}</p>' for line in found.problems)
    alone = elements.paragraph(f"One stage alone: {found.alone}, without the rest of its run.") if found.alone else ""
    return elements.tiles(pairs) + alone + problems


def funnel_section(found: Found) -> str:
    """Documents and bytes over the stages."""
    steps = funnel(found.manifests)
    if not steps:
        return ""
    rows = []
    for before, step in zip([steps[0], *steps], steps, strict=False):
        lost = before.documents - step.documents
        kept = f"{share(step, steps[0]):.1%}"
        held = size(step.text_bytes) if step.text_bytes else ""
        rows.append([step.label, number(step.documents), held, number(lost) if lost else "", kept])
    header = ["", "documents", "bytes", "dropped here", "left of the first"]
    note = "Raw records are counted in bytes as stored (compressed where the input is); all others in UTF-8 text."
    return elements.section(
        "Funnel",
        "funnel",
        elements.plot(figures.funnel_figure(steps), "Documents and text left after each stage"),
        elements.table(header, rows, numbers=(1, 2, 3, 4)),
        elements.paragraph(note) if rows[0][0] == "raw records" and rows[0][2] else "",
    )


def reasons_section(found: Found) -> str:
    """Tallies of the clean stage by reason, with examples."""
    manifest = found.manifests.get("clean")
    if manifest is None:
        return ""
    drops = {reason: counts for reason, counts in manifest.tallies.items() if reason not in KEPT}
    if not drops:
        return ""
    edits = {r: drops.pop(r)["rows"] for r in list(drops) if r.startswith("text:")}
    whole = {r: c["rows"] for r, c in drops.items() if not r.startswith("line:")}
    lines = {r: c["rows"] for r, c in drops.items() if r.startswith("line:")}
    parts = []
    if whole:
        parts.append("<h3>Pages and records</h3>")
        parts.append(elements.plot(figures.reasons_figure(whole, "pages"), "Dropped pages by reason"))
    if lines:
        parts.append("<h3>Lines</h3>")
        parts.append(elements.plot(figures.reasons_figure(lines, "lines"), "Dropped lines by reason"))
    if edits:
        parts.append("<h3>Replaced in pages that stay</h3>")
        parts.append(elements.plot(figures.reasons_figure(edits, "places"), "Text replaced, by reason"))
    parts.append(_steps(manifest))
    rejects = examples.dropped(manifest.paths(found.path("clean"), "rejects"))
    ordered = sorted(drops.items(), key=lambda item: (-item[1]["rows"], item[0]))
    parts += ["<h3>Examples</h3>", *(_reason(r, c, rejects.get(r, [])) for r, c in ordered)]
    return elements.section("What was dropped, and why", "reasons", *parts)


def _steps(manifest: Manifest) -> str:
    """What is left behind each pack and test."""
    rows = [
        [step.name, number(step.documents), size(step.text_bytes), f"{step.dropped:.1%}" if at else ""]
        for at, step in enumerate(steps_of(manifest.statistics, step_order(manifest)))
    ]
    header = ["step", "documents left", "text left", "documents dropped here"]
    return "<h3>Step by step</h3>" + elements.table(header, rows, numbers=(1, 2, 3)) if rows else ""


def _reason(reason: str, counts: Mapping[str, int], rows: list[examples.Dropped]) -> str:
    title = f"{reason}: {number(counts['rows'])} times, {size(counts['bytes'])}"
    shown = [
        [elements.quote(row.text), row.detail, row.where + (f", line {row.line + 1}" if row.line >= 0 else "")]
        for row in rows
    ]
    inner = (
        elements.table(["text", "what the rule saw", "where"], shown, wide=True)
        if shown
        else "<p>No example was kept.</p>"
    )
    return elements.details(title, inner)


def repeats_section(found: Found) -> str:
    """What deduplication cut, side by side with what survived."""
    manifest = found.manifests.get("dedupe")
    if manifest is None:
        return ""
    tallies = [
        [reason, number(c["rows"]), size(c["bytes"])]
        for reason, c in sorted(manifest.tallies.items())
        if reason not in KEPT
    ]
    upstream = found.manifests.get("clean")
    documents = upstream.paths(found.path("clean"), "documents") if upstream else []
    rows = [
        [
            _document(repeat.document),
            elements.quote(repeat.text, 400),
            _survivor(repeat),
            _document(repeat.kept_document),
        ]
        for repeat in examples.repeats(manifest.paths(found.path("dedupe"), "repeats"), documents)
    ]
    table = elements.table(
        ["lost by", "what was cut", "the copy kept instead, where it stood", "kept by"], rows, wide=True
    )
    return elements.section(
        "Repeats",
        "repeats",
        elements.table(["reason", "pieces", "text"], tallies, numbers=(1, 2)) if tallies else "",
        elements.details(f"{len(rows)} repeats side by side, the most frequent first", table) if rows else "",
        "" if tallies else elements.paragraph("Nothing was repeated."),
    )


def _document(name: str) -> elements.Markup:
    return elements.Markup(f"<code>{elements.text(name[:12])}</code>")


def _survivor(repeat: examples.Repeat) -> elements.Markup:
    if repeat.kept is None:
        return elements.Markup("<i>not looked up</i>")
    before, copy, behind = (elements.text(part, 400) for part in repeat.kept)
    return elements.Markup(f'<bdi class="quote">{before}<mark>{copy}</mark>{behind}</bdi>')


def training_section(found: Found) -> str:
    """The loss curve with the unigram line, and the last figures."""
    if not found.log:
        return ""
    last: dict[str, Any] = {}
    for line in found.log:
        last |= {key: value for key, value in line.items() if value is not None}
    rows = [(words(k), memory(v) if k == "memory" else shown(v)) for k, v in last.items()]
    return elements.section(
        "Training",
        "training",
        elements.plot(figures.loss_figure(found.log, unigram_of(found)), "Loss and accuracy by step"),
        elements.paragraph(
            "A model whose training loss does not get below the dashed line has learned word frequencies and no more. "
            "The held-out loss has a line of its own, of the very same tokens."
        ),
        elements.details("Last figures", elements.grid(rows)),
    )


def unigram_of(found: Found) -> float | None:
    """The unigram entropy of the training words in nats, from the training or its log; else what an evaluation has."""
    told: dict[str, Any] = next((line for line in reversed(found.log) if "unigram" in line), {})
    places = [found.statistics("pretrain"), told, found.evaluation, found.statistics("evaluate")]
    for place in places:
        for key, value in search(place, "unigram"):
            if key.startswith("unigram") and isinstance(value, int | float):
                return float(value)
    return None


def evaluation_section(found: Found) -> str:
    """Every number of the evaluation; minimal pairs as bars."""
    results = found.evaluation or found.statistics("evaluate")
    tasks = results.get("tasks", results)
    parts = [
        f"<h3>{elements.text(table.title)}</h3>{elements.table(table.columns, table.rows)}"
        for table in evaluation.tables(tasks)
    ]
    for task, values in tasks.items():
        if isinstance(values, dict) and task == "blimp":
            for name, one in (("phenomena", "phenomenon"), ("paradigms", "paradigm")):
                parts.append(_scores(one, values.get(name, {})))
    return elements.section("Evaluation", "evaluation", *parts)


def _scores(name: str, values: Mapping[str, Any]) -> str:
    scores = {key: float(value) for key, value in values.items() if isinstance(value, int | float)}
    if not scores:
        return ""
    title = f"Share of pairs judged right, by {name}"
    inner = elements.plot(figures.scores_figure(scores), title)
    return elements.details(title, inner) if len(scores) > 20 else f"<p>{title}</p>{inner}"


def machinery_section(found: Found) -> str:
    """Times, peak memory, digests, versions and the resolved recipe."""
    timed = []
    for stage, timing in found.timings.items():
        read = found.statistics(stage).get("text_bytes_in")
        took = float(timing.get("seconds", 0))
        speed = f"{read / took / 1e6:,.1f} MB/s" if read and took else ""
        peak = memory(float(timing.get("peak_rss", 0)))
        timed.append([stage, seconds(took), speed, peak, str(timing.get("workers", "")), str(timing.get("runner", ""))])
    tables = [
        [stage, table, number(rows), size(manifest.bytes.get(table, 0)), manifest.content.get(table, "")]
        for stage, manifest in found.manifests.items()
        for table, rows in manifest.rows.items()
    ]
    recipe: dict[str, str] = {}
    versions: dict[str, str] = {}
    for stage, manifest in found.manifests.items():
        recipe |= {f"{stage}: {key}": value for key, value in _settings(manifest.recipe)}
        versions |= manifest.versions
    header = ["stage", "time", "text read", "peak memory", "workers", "runner"]
    return elements.section(
        "How it was made",
        "made",
        elements.table(header, timed, numbers=(1, 2, 3, 4)) if timed else "",
        elements.details("Recipe, resolved", elements.table(["", ""], recipe.items())) if recipe else "",
        elements.details("Versions", elements.table(["", ""], sorted(versions.items()))) if versions else "",
        elements.details(
            "Tables and their content digests",
            elements.table(["stage", "table", "rows", "on disk", "content digest"], tables, numbers=(2, 3)),
        ),
    )


def _settings(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(values, dict):
        return [row for key, inner in values.items() for row in _settings(inner, f"{prefix}.{key}" if prefix else key)]
    return [(prefix, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]
