"""HTML of the reports: the page around the sections, and its elements (escaped text, tables, plots).

Every value that does not come from this package goes through `text`, which escapes it. A page needs no network:
plotly's script is embedded, and a content security policy forbids loading anything.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.report.plain import truncate, visible

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def frame(name: str, body: Sequence[str]) -> str:
    """A page with a menu of its sections.

    Raises `errors.ExtraMissing` without plotly.
    """
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
        f"<title>{text(name)}: CorpusForge report</title>\n<style>{style}</style>\n"
        f"<script>{get_plotlyjs()}</script></head>\n<body>\n<header><h1>{text(name)}</h1>"
        f"{_menu(body)}</header>\n<main>\n{''.join(body)}\n</main>\n"
        f"<script>{script}</script>\n</body></html>\n"
    )


def _menu(body: Sequence[str]) -> str:
    headings = [heading for part in body for heading in re.findall('<section id="([^"]+)"><h2>(.*?)</h2>', part)]
    return "<nav>" + "".join(f'<a href="#{name}">{title}</a>' for name, title in headings) + "</nav>"


def text(value: object, most: int = 100_000) -> str:
    """A value escaped for HTML, control characters made visible.

    >>> text("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    """
    return html.escape(truncate(visible(str(value)), most), quote=True)


def table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = (), wide: bool = False
) -> str:
    """A table of escaped cells. ``numbers``: right-aligned columns; ``wide``: as wide as the page."""

    def cells(tag: str, row: Sequence[object]) -> str:
        style = [' class="number"' if at in numbers else "" for at in range(len(row))]
        return "".join(
            f"<{tag}{kind}>{value if isinstance(value, Markup) else text(value)}</{tag}>"
            for kind, value in zip(style, row, strict=True)
        )

    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if any(header) else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    kind = "scroll wide" if wide else "scroll"
    return f'<div class="{kind}"><table>{head}<tbody>{body}</tbody></table></div>'


def grid(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and short values in as many columns as fit."""
    cells = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="grid">{cells}</dl>' if cells else ""


class Markup(str):
    """HTML from this package, which is not escaped again."""


def quote(value: str, most: int = 600) -> Markup:
    """Corpus text with its line breaks, in a box whose writing direction does not affect the page."""
    return Markup(f'<bdi class="quote">{text(value, most)}</bdi>')


def details(summary: str, inner: str) -> str:
    """A block that opens on a click. ``inner`` is HTML."""
    return f"<details><summary>{text(summary)}</summary>{inner}</details>"


def plot(figure: Any, label: str) -> str:
    """A plotly figure as data for the page's script. ``label``: the text for screen readers."""
    # Only "<" could end a script element early.
    data = json.dumps(json.loads(figure.to_json()), separators=(",", ":")).replace("<", "\\u003c")
    height = int(figure.layout.height)
    return (
        f'<figure role="img" aria-label="{text(label)}"><div class="plot" style="height:{height}px"></div>'
        f'<script type="application/json">{data}</script></figure>'
    )


def section(title: str, name: str, *parts: str) -> str:
    """A section of the page with a heading and the anchor ``name``; "" if all parts are empty."""
    inner = "\n".join(part for part in parts if part)
    return f'<section id="{text(name)}"><h2>{text(title)}</h2>\n{inner}</section>' if inner else ""


def paragraph(inner: str) -> str:
    """A paragraph of text."""
    return f"<p>{text(inner)}</p>"


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """A row of large figures."""
    cells = "".join(f"<div><b>{text(value)}</b><span>{text(name)}</span></div>" for name, value in pairs)
    return f'<div class="tiles">{cells}</div>' if cells else ""
