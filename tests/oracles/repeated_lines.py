"""The slow, obvious `lines`: the steps of tensorflow-datasets' `remove_duplicate_text`, with dictionaries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import xxhash


class Page(NamedTuple):
    """A document: its id, its URL or None, its text."""

    id: str
    url: str | None
    text: str


def _rank(page: Page) -> tuple[str, int]:
    return hashlib.md5((page.url or page.id).encode()).hexdigest(), xxhash.xxh3_64_intdigest(page.id.encode())


def dedupe(pages: list[Page], *, min_sentences: int, count_sentences: Callable[[str], int]) -> dict[str, str]:
    """The kept text, ``{id: text}``."""
    best: dict[str, tuple[str, int]] = {}
    for page in pages:
        for line in page.text.split("\n"):
            key = line.strip().lower()
            best[key] = min(best.get(key, _rank(page)), _rank(page))
    kept = {}
    for page in pages:
        lines, seen = [], set()
        for line in page.text.split("\n"):
            key = line.strip().lower()
            if best[key] == _rank(page) and key not in seen:
                lines.append(line)
                seen.add(key)
        text = "\n".join(lines)
        if text and (not min_sentences or count_sentences(text) >= min_sentences):
            kept[page.id] = text
    return kept
