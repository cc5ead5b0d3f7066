"""The report's sections about vocabulary and instances: what their manifests count, as tables and histograms.

Comes in: a `Found`. Goes out: HTML. Statistics of the instances are nested by split and hold sums; the shares a
person asks for (fill, masks by kind, labels) are made from them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusforge.report import elements, figures
from corpusforge.report.gather import Found
from corpusforge.report.plain import number, shown, words

MASK_KINDS = {"masked_as_mask": "[MASK]", "masked_as_random": "another token", "masked_as_kept": "left as it was"}
PAIR_KINDS = {
    "pairs_next": "B continues A",
    "pairs_random": "B is from elsewhere",
    "pairs_swapped": "A and B are swapped",
}


def vocabulary_section(found: Found) -> str:
    """Statistics of the vocabulary: of all text, by language, and as plots."""
    statistics = dict(found.statistics("train-vocab"))
    languages, lengths, frequencies = (statistics.pop(key, None) for key in ("languages", *_CURVES))
    parts = _blocks({key: value for key, value in statistics.items() if key != "sample"})
    if languages:
        languages = dict(sorted(languages.items(), key=lambda item: -item[1]["bytes"]))
        rows = [[name, *(_figure(key, value[key]) for key in _OF_LANGUAGE)] for name, value in languages.items()]
        longest = [[name, " ".join(value["longest_tokens"])] for name, value in languages.items()]
        note = f"On a sample of documents, {statistics['sample']}." if "sample" in statistics else ""
        table = elements.table(["", *map(words, _OF_LANGUAGE)], rows, numbers=range(1, len(_OF_LANGUAGE) + 1))
        fertility = figures.fertility_figure({name: value["fertility"] for name, value in languages.items()})
        parts += [_titled("By language", table), elements.paragraph(note) if note else ""]
        parts.append(elements.details("longest tokens by language", elements.table(["", "longest tokens"], longest)))
        parts += [_plotted("Tokens a word, by language", fertility)]
    if lengths:
        parts.append(_plotted("Characters of a token", figures.histogram_figure(lengths, "characters of a token")))
    if frequencies and frequencies["ranks"]:
        curve = figures.frequencies_figure(frequencies["ranks"], frequencies["occurrences"])
        parts.append(_plotted("Occurrences of tokens in the sample, by rank", curve))
    return elements.section("Vocabulary", "vocabulary", *parts)


_CURVES = ("token_lengths", "token_frequencies")
_OF_LANGUAGE = ("words", "fertility", "bytes_per_token", "unknown_rate", "character_coverage", "unseen_share")


def _figure(key: str, value: float) -> str:
    return f"{value:.2%}" if key.endswith(("_rate", "_share", "_coverage")) else number(value)


def _titled(title: str, inner: str) -> str:
    return f"<h3>{elements.text(title)}</h3>{inner}"


def _plotted(title: str, figure: Any) -> str:
    return _titled(title, elements.plot(figure, title))


def _blocks(statistics: Mapping[str, Any]) -> list[str]:
    """Numbers as one table; lists of numbers as histograms; lists of words and dicts as they are."""
    numbers = {k: v for k, v in statistics.items() if isinstance(v, int | float)}
    blocks = [elements.grid((words(k), number(v)) for k, v in numbers.items())]
    for key, value in statistics.items():
        if isinstance(value, list) and value:
            blocks.append(_list(words(key), value))
        elif isinstance(value, dict) and value:
            pairs = [(words(k), shown(v)) for k, v in value.items()]
            blocks.append(elements.details(words(key), elements.grid(pairs)))
    return blocks


def _list(title: str, values: list[Any]) -> str:
    if all(isinstance(value, int | float) for value in values):
        return f"<h3>{elements.text(title)}</h3>" + elements.plot(figures.histogram_figure(values, title), title)
    if all(isinstance(value, dict) for value in values):
        header = list(values[0])
        inner = elements.table([words(name) for name in header], [[row.get(n, "") for n in header] for row in values])
    else:
        inner = "<p>" + " ".join(f"<code>{elements.text(value)}</code>" for value in values) + "</p>"
    return elements.details(title, inner)


def instances_section(found: Found) -> str:
    """Counts and shares by split, lengths, instances a document, masks and labels."""
    statistics = found.statistics("build-instances")
    ordered = sorted(statistics.items(), key=lambda item: item[0] != "train")
    splits = {name: value for name, value in ordered if isinstance(value, dict) and "instances" in value}
    if not splits:
        return elements.section("Instances", "instances", *_blocks(statistics))
    settings = found.manifests["build-instances"].recipe.get("instances", {})
    length = int(settings.get("length", 0))
    parts = [_counts(splits, length)]
    for key, title, axis in (
        ("lengths", "Length of instances, tokens", lambda k, bins: (k + 1) * length // bins),
        ("instances_per_document", "Instances a document", lambda k, _: _doubling(k)),
    ):
        histograms = {name: value[key] for name, value in splits.items() if sum(value.get(key, []))}
        if histograms:
            labels = [axis(k, len(h)) for h in histograms.values() for k in range(len(h))]
            figure = figures.compared_figure(histograms, labels[: len(next(iter(histograms.values())))], title)
            parts.append(f"<h3>{title}</h3>{elements.plot(figure, title)}")
    for kinds, title in ((MASK_KINDS, "What masked tokens became"), (PAIR_KINDS, "Labels of pairs")):
        shares = {
            name: {label: value[key] for key, label in kinds.items() if key in value}
            for name, value in splits.items()
            if sum(value.get(key, 0) for key in kinds)
        }
        if shares:
            parts.append(f"<h3>{title}</h3>{elements.plot(figures.shares_figure(shares), title)}")
    rest = {name: value for name, value in statistics.items() if name not in splits}
    return elements.section("Instances", "instances", *parts, *_blocks(rest))


def _doubling(k: int) -> str:
    """The k-th of bins 0, 1, 2 to 3, 4 to 7, ...

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
    return elements.table(["", *splits], rows, numbers=range(1, len(splits) + 1))


def _share(parts: Any, value: Mapping[str, Any]) -> str:
    try:
        part, whole = parts(value)
        return f"{part / whole:.2%}"
    except (KeyError, ZeroDivisionError):
        return ""
