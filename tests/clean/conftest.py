"""Fixtures of the cleaning room."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.packs import load_rules
from corpusforge.schemas import DOCUMENTS


@pytest.fixture(scope="session")
def rules() -> Rules:
    """The default pack."""
    return load_rules("c4-tfds-3.1")


@pytest.fixture(scope="session")
def documents_of() -> Callable[..., pa.RecordBatch]:
    """Makes a DOCUMENTS batch of texts."""

    def make(texts: list[str], languages: list[str | None] | None = None) -> pa.RecordBatch:
        count = len(texts)
        values = {
            "id": [f"{n:032x}" for n in range(count)],
            "url": [f"http://a.org/{n}" for n in range(count)],
            "source": ["crawl.warc"] * count,
            "position": list(range(count)),
            "timestamp": [None] * count,
            "language": languages or [None] * count,
            "text": texts,
        }
        return pa.record_batch([pa.array(values[f.name], f.type) for f in DOCUMENTS], schema=DOCUMENTS)

    return make
