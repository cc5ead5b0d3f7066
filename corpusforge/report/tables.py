"""Rows of DOCUMENTS, REJECTS, REPEATS and any other table, shown one below the other.

Comes in: a small pyarrow Table. Goes out: rich renderables. Texts are made visible and cut (`plain`), and are never
read as rich markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corpusforge.report.plain import cut, visible

MOST = 1200
"""Characters of a text that are shown of a row; the whole of it with ``--document``."""

STYLES = {"record": "magenta", "page": "yellow", "line": "cyan", "span": "red"}
"""Colours of reasons by what was dropped."""


def show(table: pa.Table) -> list[RenderableType]:
    """Every row: its short columns on one line, its text below."""
    shown: list[RenderableType] = []
    for row in table.to_pylist():
        head = Text()
        for name, value in row.items():
            if name != "text" and value is not None:
                head.append(f"{name} ", "dim")
                head.append(f"{cut(visible(str(value)), 200)}  ", _style(name, value))
        shown.append(head)
        if "text" in row:
            shown.append(Padding(Text(cut(visible(str(row["text"])), MOST)), (0, 0, 1, 4)))
    return shown


def _style(name: str, value: Any) -> str:
    return reason_style(str(value)) if name == "reason" else ""


def reason_style(reason: str) -> str:
    """The colour of a reason.

    >>> reason_style("line:few-words")
    'cyan'
    """
    return STYLES.get(reason.split(":")[0], "white")


def columns(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table of values as they are; columns after the first are flush right."""
    made = Table(title=Text(title, "bold"), title_justify="left", header_style="bold")
    for at, name in enumerate(header):
        made.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        made.add_row(*(value if isinstance(value, Text) else Text(visible(str(value))) for value in row))
    return made


def pairs(title: str, values: Mapping[str, object]) -> Table:
    """A table of names and values."""
    made = Table(title=Text(title, "bold"), title_justify="left", show_header=False)
    for name, value in values.items():
        made.add_row(Text(name), Text(cut(visible(str(value)), 400)))
    return made
