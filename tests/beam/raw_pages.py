"""Raw JSON lines for the clean stage: articles with menus, repeated passages, foreign and broken records."""

from __future__ import annotations

import json
from pathlib import Path

from corpusforge.clean.cleaner import Cleaner, cleaner_of
from corpusforge.documents.plan import Unit, plan_units
from corpusforge.sections import Clean
from tests.beam.documents_on_disk import sentences

UNIT_BYTES = 20_000


def cleaner() -> Cleaner:
    """The default pack with what needs nothing fetched."""
    return cleaner_of(Clean(detector="fast", sentences="builtin", badwords="off"))


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


def plan(folder: Path) -> list[Unit]:
    """Small units, so that there are several."""
    return plan_units([str(folder)], unit_bytes=UNIT_BYTES)
