"""The HTML report of a run: its sections, and the page.

Each section is a function from `Run` to HTML, "" if there is nothing to show. Statistics of instances are sums by
split; the shares that are shown (fill, kinds of masks, labels) are computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusforge import shards
from corpusforge.report import evaluation, examples, figures, html
from corpusforge.report.gather import Run, funnel, gather, search, share, step_order, steps_of
from corpusforge.report.plain import memory, number, seconds, shown, size, words
from corpusforge.shards import Manifest

KEPT = {"kept"}
"""Tallies of documents that were not dropped."""


def summary(run: Run) -> str:
    """The most important figures."""
    steps = funnel(run.manifests)
    pairs = []
    if steps:
        last = steps[-1]
        pairs += [("documents kept", number(last.documents)), ("of text", size(last.text_bytes))]
        pairs.append(("of what was read", f"{share(last, steps[0]):.0%}"))
    vocab = run.statistics("train-vocab").get("size")
    if vocab:
        pairs.append(("vocabulary", number(vocab)))
    rows = run.manifests["build-instances"].rows if "build-instances" in run.manifests else {}
    if rows:
        pairs.append(("instances", number(sum(rows.values()))))
    heldout = [line["heldout_loss"] for line in run.log if isinstance(line.get("heldout_loss"), int | float)]
    if heldout:
        pairs.append(("held-out loss", f"{heldout[-1]:.3f}"))
    duration = sum(float(timing.get("seconds", 0)) for timing in run.timings.values())
    if duration:
        pairs.append(("time", seconds(duration)))
    problems = "".join(f'<p class="problem">{html.text(line)}</p>' for line in run.problems)
    alone = html.paragraph(f"One stage alone: {run.alone}, without the rest of its run.") if run.alone else ""
    return html.tiles(pairs) + alone + problems


def funnel_section(run: Run) -> str:
    """Documents and bytes after each step."""
    steps = funnel(run.manifests)
    if not steps:
        return ""
    rows = []
    for before, step in zip([steps[0], *steps], steps, strict=False):
        dropped = before.documents - step.documents
        kept = f"{share(step, steps[0]):.1%}"
        text = size(step.text_bytes) if step.text_bytes else ""
        rows.append([step.label, number(step.documents), text, number(dropped) if dropped else "", kept])
    header = ["", "documents", "bytes", "dropped here", "share of the first"]
    note = "Bytes of raw records are as stored (compressed if the input is); all others are bytes of UTF-8 text."
    return html.section(
        "Funnel",
        "funnel",
        html.plot(figures.funnel_figure(steps), "Documents and text left after each stage"),
        html.table(header, rows, numbers=(1, 2, 3, 4)),
        html.paragraph(note) if rows[0][0] == "raw records" and rows[0][2] else "",
    )


def reasons_section(run: Run) -> str:
    """Tallies of the clean stage by reason, with examples."""
    manifest = run.manifests.get("clean")
    if manifest is None:
        return ""
    drops = {reason: counts for reason, counts in manifest.tallies.items() if reason not in KEPT}
    if not drops:
        return ""
    edits = {r: drops.pop(r)["rows"] for r in list(drops) if r.startswith("text:")}
    pages = {r: c["rows"] for r, c in drops.items() if not r.startswith("line:")}
    lines = {r: c["rows"] for r, c in drops.items() if r.startswith("line:")}
    parts = []
    if pages:
        parts.append("<h3>Pages and records</h3>")
        parts.append(html.plot(figures.reasons_figure(pages, "pages"), "Dropped pages by reason"))
    if lines:
        parts.append("<h3>Lines</h3>")
        parts.append(html.plot(figures.reasons_figure(lines, "lines"), "Dropped lines by reason"))
    if edits:
        parts.append("<h3>Replaced in kept pages</h3>")
        parts.append(html.plot(figures.reasons_figure(edits, "places"), "Text replaced, by reason"))
    parts.append(_steps(manifest))
    rejects = examples.dropped(manifest.paths(run.path("clean"), "rejects"))
    ordered = sorted(drops.items(), key=lambda item: (-item[1]["rows"], item[0]))
    parts += ["<h3>Examples</h3>", *(_reason(r, c, rejects.get(r, [])) for r, c in ordered)]
    return html.section("Drops by reason", "reasons", *parts)


def _steps(manifest: Manifest) -> str:
    """Documents left after each pack and test."""
    rows = [
        [step.name, number(step.documents), size(step.text_bytes), f"{step.dropped:.1%}" if at else ""]
        for at, step in enumerate(steps_of(manifest.statistics, step_order(manifest)))
    ]
    header = ["step", "documents left", "text left", "documents dropped here"]
    return "<h3>Step by step</h3>" + html.table(header, rows, numbers=(1, 2, 3)) if rows else ""


def _reason(reason: str, counts: Mapping[str, int], rows: list[examples.Dropped]) -> str:
    title = f"{reason}: {number(counts['rows'])} times, {size(counts['bytes'])}"
    shown = [
        [html.quote(row.text), row.detail, row.where + (f", line {row.line + 1}" if row.line >= 0 else "")]
        for row in rows
    ]
    inner = (
        html.table(["text", "what the rule saw", "where"], shown, wide=True) if shown else "<p>No example was kept.</p>"
    )
    return html.details(title, inner)


def repeats_section(run: Run) -> str:
    """What deduplication removed, beside the kept copies."""
    manifest = run.manifests.get("dedupe")
    if manifest is None:
        return ""
    tallies = [
        [reason, number(c["rows"]), size(c["bytes"])]
        for reason, c in sorted(manifest.tallies.items())
        if reason not in KEPT
    ]
    upstream = run.manifests.get("clean")
    documents = upstream.paths(run.path("clean"), "documents") if upstream else []
    rows = [
        [
            _document(repeat.document),
            html.quote(repeat.text, 400),
            _kept_copy(repeat),
            _document(repeat.kept_document),
        ]
        for repeat in examples.repeats(manifest.paths(run.path("dedupe"), "repeats"), documents)
    ]
    table = html.table(["removed from", "removed text", "kept copy, with its context", "kept in"], rows, wide=True)
    return html.section(
        "Duplicates",
        "repeats",
        html.table(["reason", "passages", "text"], tallies, numbers=(1, 2)) if tallies else "",
        html.details(f"{len(rows)} duplicates beside the kept copies, most frequent first", table) if rows else "",
        "" if tallies else html.paragraph("No duplicates were found."),
    )


def _document(name: str) -> html.Markup:
    return html.Markup(f"<code>{html.text(name[:12])}</code>")


def _kept_copy(repeat: examples.Repeat) -> html.Markup:
    if repeat.kept is None:
        return html.Markup("<i>not among the first rows</i>")
    before, copy, after = (html.text(part, 400) for part in repeat.kept)
    return html.Markup(f'<bdi class="quote">{before}<mark>{copy}</mark>{after}</bdi>')


def training_section(run: Run) -> str:
    """The loss curve with the unigram line, and the last figures."""
    if not run.log:
        return ""
    rows = [(words(k), memory(v) if k == "memory" else shown(v)) for k, v in run.last_figures().items()]
    return html.section(
        "Training",
        "training",
        html.plot(figures.loss_figure(run.log, unigram_of(run)), "Loss and accuracy by step"),
        html.paragraph(
            "A model whose training loss stays above the dashed line has learned only unigram frequencies. "
            "The held-out loss has its own line, for exactly the same tokens."
        ),
        html.details("Last figures", html.grid(rows)),
    )


def unigram_of(run: Run) -> float | None:
    """The unigram entropy of the training tokens in nats, from the training or its log, else from an evaluation."""
    last: dict[str, Any] = next((line for line in reversed(run.log) if "unigram" in line), {})
    for figures_of in (run.statistics("pretrain"), last, run.evaluation, run.statistics("evaluate")):
        for key, value in search(figures_of, "unigram"):
            if key.startswith("unigram") and isinstance(value, int | float):
                return float(value)
    return None


def evaluation_section(run: Run) -> str:
    """Every number of the evaluation; minimal pairs as bars."""
    results = run.evaluation or run.statistics("evaluate")
    tasks = results.get("tasks", results)
    parts = [
        f"<h3>{html.text(table.title)}</h3>{html.table(table.columns, table.rows)}"
        for table in evaluation.tables(tasks)
    ]
    for task, values in tasks.items():
        if isinstance(values, dict) and task == "blimp":
            for name, singular in (("phenomena", "phenomenon"), ("paradigms", "paradigm")):
                parts.append(_scores(singular, values.get(name, {})))
    return html.section("Evaluation", "evaluation", *parts)


def _scores(name: str, values: Mapping[str, Any]) -> str:
    scores = {key: float(value) for key, value in values.items() if isinstance(value, int | float)}
    if not scores:
        return ""
    title = f"Share of pairs judged correctly, by {name}"
    inner = html.plot(figures.scores_figure(scores), title)
    return html.details(title, inner) if len(scores) > 20 else f"<p>{title}</p>{inner}"


def machinery_section(run: Run) -> str:
    """Times, peak memory, digests, versions and the resolved recipe."""
    rows = []
    for stage, timing in run.timings.items():
        read = run.statistics(stage).get("text_bytes_in")
        duration = float(timing.get("seconds", 0))
        speed = f"{read / duration / 1e6:,.1f} MB/s" if read and duration else ""
        peak = memory(float(timing.get("peak_rss", 0)))
        workers, runner = str(timing.get("workers", "")), str(timing.get("runner", ""))
        rows.append([stage, seconds(duration), speed, peak, workers, runner])
    tables = [
        [stage, table, number(rows), size(manifest.bytes.get(table, 0)), manifest.content.get(table, "")]
        for stage, manifest in run.manifests.items()
        for table, rows in manifest.rows.items()
    ]
    recipe: dict[str, str] = {}
    versions: dict[str, str] = {}
    for stage, manifest in run.manifests.items():
        recipe |= {f"{stage}: {key}": value for key, value in _settings(manifest.recipe)}
        versions |= manifest.versions
    header = ["stage", "time", "text read", "peak memory", "workers", "runner"]
    return html.section(
        "How it was made",
        "made",
        html.table(header, rows, numbers=(1, 2, 3, 4)) if rows else "",
        html.details("Recipe, resolved", html.table(["", ""], recipe.items())) if recipe else "",
        html.details("Versions", html.table(["", ""], sorted(versions.items()))) if versions else "",
        html.details(
            "Tables and their content digests",
            html.table(["stage", "table", "rows", "on disk", "content digest"], tables, numbers=(2, 3)),
        ),
    )


def _settings(values: Any, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(values, dict):
        return [row for key, inner in values.items() for row in _settings(inner, f"{prefix}.{key}" if prefix else key)]
    return [(prefix, ", ".join(map(str, values)) if isinstance(values, list) else str(values))]


MASK_KINDS = {"masked_as_mask": "[MASK]", "masked_as_random": "another token", "masked_as_kept": "left unchanged"}
PAIR_KINDS = {
    "pairs_next": "B continues A",
    "pairs_random": "B is from another document",
    "pairs_swapped": "A and B are swapped",
}


def vocabulary_section(run: Run) -> str:
    """Statistics of the vocabulary: overall, by language, and as plots."""
    statistics = dict(run.statistics("train-vocab"))
    languages, lengths, frequencies = (statistics.pop(key, None) for key in ("languages", *_CURVES))
    parts = _blocks({key: value for key, value in statistics.items() if key != "sample"})
    if languages:
        languages = dict(sorted(languages.items(), key=lambda item: -item[1]["bytes"]))
        rows = [[name, *(_figure(key, value[key]) for key in _OF_LANGUAGE)] for name, value in languages.items()]
        longest = [[name, " ".join(value["longest_tokens"])] for name, value in languages.items()]
        note = f"On a sample of documents, {statistics['sample']}." if "sample" in statistics else ""
        table = html.table(["", *map(words, _OF_LANGUAGE)], rows, numbers=range(1, len(_OF_LANGUAGE) + 1))
        fertility = figures.fertility_figure({name: value["fertility"] for name, value in languages.items()})
        parts += [_titled("By language", table), html.paragraph(note) if note else ""]
        parts.append(html.details("longest tokens by language", html.table(["", "longest tokens"], longest)))
        parts += [_plotted("Tokens per word, by language", fertility)]
    if lengths:
        parts.append(_plotted("Characters per token", figures.histogram_figure(lengths, "characters per token")))
    if frequencies and frequencies["ranks"]:
        curve = figures.frequencies_figure(frequencies["ranks"], frequencies["occurrences"])
        parts.append(_plotted("Occurrences of tokens in the sample, by rank", curve))
    return html.section("Vocabulary", "vocabulary", *parts)


_CURVES = ("token_lengths", "token_frequencies")
_OF_LANGUAGE = ("words", "fertility", "bytes_per_token", "unknown_rate", "character_coverage", "unseen_share")


def _figure(key: str, value: float) -> str:
    return f"{value:.2%}" if key.endswith(("_rate", "_share", "_coverage")) else number(value)


def _titled(title: str, inner: str) -> str:
    return f"<h3>{html.text(title)}</h3>{inner}"


def _plotted(title: str, figure: Any) -> str:
    return _titled(title, html.plot(figure, title))


def _blocks(statistics: Mapping[str, Any]) -> list[str]:
    """Numbers as one table; lists of numbers as histograms; lists of words and dicts unchanged."""
    numbers = {k: v for k, v in statistics.items() if isinstance(v, int | float)}
    blocks = [html.grid((words(k), number(v)) for k, v in numbers.items())]
    for key, value in statistics.items():
        if isinstance(value, list) and value:
            blocks.append(_list(words(key), value))
        elif isinstance(value, dict) and value:
            pairs = [(words(k), shown(v)) for k, v in value.items()]
            blocks.append(html.details(words(key), html.grid(pairs)))
    return blocks


def _list(title: str, values: list[Any]) -> str:
    if all(isinstance(value, int | float) for value in values):
        return f"<h3>{html.text(title)}</h3>" + html.plot(figures.histogram_figure(values, title), title)
    if all(isinstance(value, dict) for value in values):
        header = list(values[0])
        inner = html.table([words(name) for name in header], [[row.get(n, "") for n in header] for row in values])
    else:
        inner = "<p>" + " ".join(f"<code>{html.text(value)}</code>" for value in values) + "</p>"
    return html.details(title, inner)


def instances_section(run: Run) -> str:
    """Counts and shares by split, lengths, instances per document, masks and labels."""
    statistics = run.statistics("build-instances")
    ordered = sorted(statistics.items(), key=lambda item: item[0] != "train")
    splits = {name: value for name, value in ordered if isinstance(value, dict) and "instances" in value}
    if not splits:
        return html.section("Instances", "instances", *_blocks(statistics))
    settings = run.manifests["build-instances"].recipe.get("instances", {})
    length = int(settings.get("length", 0))
    parts = [_counts(splits, length)]
    for key, title, axis in (
        ("lengths", "Length of instances, tokens", lambda k, bins: (k + 1) * length // bins),
        ("instances_per_document", "Instances per document", lambda k, _: _doubling(k)),
    ):
        histograms = {name: value[key] for name, value in splits.items() if sum(value.get(key, []))}
        if histograms:
            labels = [axis(k, len(h)) for h in histograms.values() for k in range(len(h))]
            figure = figures.compared_figure(histograms, labels[: len(next(iter(histograms.values())))], title)
            parts.append(f"<h3>{title}</h3>{html.plot(figure, title)}")
    for kinds, title in ((MASK_KINDS, "What masked tokens became"), (PAIR_KINDS, "Labels of pairs")):
        shares = {
            name: {label: value[key] for key, label in kinds.items() if key in value}
            for name, value in splits.items()
            if sum(value.get(key, 0) for key in kinds)
        }
        if shares:
            parts.append(f"<h3>{title}</h3>{html.plot(figures.shares_figure(shares), title)}")
    rest = {name: value for name, value in statistics.items() if name not in splits}
    return html.section("Instances", "instances", *parts, *_blocks(rest))


def _doubling(k: int) -> str:
    """The label of the k-th of the bins 0, 1, 2 to 3, 4 to 7, ...

    >>> [_doubling(k) for k in range(4)]
    ['0', '1', '2 to 3', '4 to 7']
    """
    return str(k) if k < 2 else f"{1 << (k - 1)} to {(1 << k) - 1}"


def _counts(splits: Mapping[str, Mapping[str, Any]], length: int) -> str:
    names = dict.fromkeys(k for value in splits.values() for k, v in value.items() if isinstance(v, int | float))
    rows = [
        [words(name), *(shown(value.get(name, "")) for value in splits.values())]
        for name in names
        if any(value.get(name) for value in splits.values()) or not name.startswith("pairs")
    ]
    shares = (
        ("fill of the length", lambda v: (v["tokens"], v["instances"] * length)),
        ("share of [UNK]", lambda v: (v["unknown_tokens"], v["source_tokens"])),
        ("share of tokens masked", lambda v: (v["masked"], v["tokens"])),
    )
    for label, parts in shares:
        rows.append([label, *(_share(parts, value) for value in splits.values())])
    return html.table(["", *splits], rows, numbers=range(1, len(splits) + 1))


def _share(parts: Any, value: Mapping[str, Any]) -> str:
    try:
        part, total = parts(value)
        return f"{part / total:.2%}"
    except (KeyError, ZeroDivisionError):
        return ""


SECTIONS = (
    funnel_section,
    reasons_section,
    repeats_section,
    vocabulary_section,
    instances_section,
    training_section,
    evaluation_section,
    machinery_section,
)


def write_report(run_dir: str, path: str) -> str:
    """Write the report of a run's folder to a path or URL; return the path.

    Raises `errors.InputMissing` if the folder is not that of a run or stage, `errors.ExtraMissing` without plotly.
    """
    shards.write_bytes(path, page(gather(run_dir)).encode())
    return path


def page(run: Run) -> str:
    """The whole page."""
    name = run.folder.rsplit("/", 1)[-1]
    return html.frame(name, [summary(run), *(section(run) for section in SECTIONS)])
