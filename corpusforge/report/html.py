"""The report of a run: one HTML page that needs nothing else, not even a network.

Comes in: a run's folder. Goes out: a file. Plotly's script is embedded once; a content security policy forbids the
page to load anything, and all text that was not written here is escaped (`elements.text`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from corpusforge import errors, shards
from corpusforge.report import elements, numbers, sections
from corpusforge.report.gather import Found, gather

PARTS = (
    sections.funnel_section,
    sections.reasons_section,
    sections.repeats_section,
    numbers.vocabulary_section,
    numbers.instances_section,
    sections.training_section,
    sections.evaluation_section,
    sections.machinery_section,
)

_TITLES = {
    "funnel": "Funnel",
    "reasons": "Drops",
    "repeats": "Repeats",
    "vocabulary": "Vocabulary",
    "instances": "Instances",
    "training": "Training",
    "evaluation": "Evaluation",
    "made": "How it was made",
}
"""Sections by anchor, as the menu names them."""

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def write_report(run_dir: str, path: str) -> str:
    """Write the report of a run's folder to a path or URL, and return it.

    Raises `errors.InputMissing` where nothing of a run is in the folder, `errors.ExtraMissing` without plotly.
    """
    shards.write_bytes(path, page(gather(run_dir)).encode())
    return path


def page(found: Found) -> str:
    """The whole page."""
    name = found.folder.rsplit("/", 1)[-1]
    return frame(name, [sections.summary(found), *(part(found) for part in PARTS)], _TITLES)


def frame(name: str, body: Sequence[str], titles: Mapping[str, str]) -> str:
    """A page of sections, with a menu of those that are there. ``titles``: by anchor."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise errors.ExtraMissing(
            "corpusforge report", "plotly is not installed", "pip install 'corpusforge[report]'"
        ) from None
    style, script = (Path(__file__).with_name(asset).read_text("utf-8") for asset in ("page.css", "page.js"))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{elements.text(name)}: CorpusForge report</title>\n<style>{style}</style>\n"
        f"<script>{get_plotlyjs()}</script></head>\n<body>\n<header><h1>{elements.text(name)}</h1>"
        f"{_contents(body, titles)}</header>\n<main>\n{''.join(body)}\n</main>\n"
        f"<script>{script}</script>\n</body></html>\n"
    )


def _contents(body: Sequence[str], titles: Mapping[str, str]) -> str:
    there = [(name, title) for name, title in titles.items() if any(f'<section id="{name}"' in part for part in body)]
    return "<nav>" + "".join(f'<a href="#{name}">{title}</a>' for name, title in there) + "</nav>"
