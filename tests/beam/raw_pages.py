"""Raw JSON lines for the clean stage: articles with menus, repeated passages, foreign and broken records; filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corpusforge.clean.cleaner import Cleaner, cleaner_of
from corpusforge.clean.filters import Filter
from corpusforge.documents.plan import Unit, plan_units
from corpusforge.sections import Clean
from tests.beam.documents_on_disk import sentences

UNIT_BYTES = 20_000


OFFLINE: dict[str, Any] = {"detector": "fast", "sentences": "builtin", "badwords": "off"}
"""Settings of [clean]: the default pack with what needs nothing fetched."""


def cleaner() -> Cleaner:
    """The cleaner of these settings."""
    return cleaner_of(Clean(**OFFLINE))


SCRIPT = """
import pyarrow as pa
import pyarrow.compute as pc

SHARE = 0.049

def numbers(text):
    digits = sum(c.isdigit() for c in text)
    return digits > SHARE * len(text)

def address(documents: pa.RecordBatch):
    return pc.if_else(pc.ends_with(documents["url"], "1"), "one", None)

def younger(text: str) -> str:
    return text.replace("the old bridge", "the new bridge")
"""


def own_filters() -> list[Any]:
    """A closure, a lambda, and the functions of a script or notebook, which a worker cannot import."""
    least = 460

    def size(text: str) -> bool | str:
        return True if len(text) > least else "short"

    script: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, script)
    harbours = Filter(lambda text: text.count("harbour") < 3, name="harbours")
    return [size, harbours, *(script[name] for name in ("numbers", "address", "younger"))]


OWN_REASONS = {"filter:size:short", "filter:harbours", "filter:numbers", "filter:address:one", "edit:younger"}
"""What they do to the pages."""


def write_pages(folder: Path, count: int = 120, urls: int = 0) -> Path:
    """Three files of pages, every tenth record malformed in one way or another.

    ``urls``: how many different ones there are; 0: each page has its own.
    """
    folder.mkdir(parents=True)
    for part in range(3):
        lines = []
        for number in range(part, count, 3):
            text = "\n".join(
                ["Home | News | Contact", *sentences(number, 8), "Read our privacy policy here now please."]
            )
            site = number % urls if urls else number
            record = json.dumps({"text": text, "url": f"http://example.org/{site}"})
            lines.append({3: '{"text": ', 7: '{"other": 1}'}.get(number % 10, record))
        (folder / f"pages-{part}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The same pages as dicts, without those of broken lines."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]


def plan(folder: Path) -> list[Unit]:
    """Small units, so that there are several."""
    return plan_units([str(folder)], unit_bytes=UNIT_BYTES)
