"""Shapes that break other tools, through every method, each in a process of its own whose peak memory is measured.

At a tenth of their size and at full size (`make exhaustive`); the budget of memory shrinks with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

METHODS = ["lines", "exact-spans", "near-spans", "documents"]
BUDGET = 2048
"""Megabytes: the budget, and the limit of what may be used."""

LIBRARIES = 300
"""Megabytes of the imports, and of buffers that do not shrink with the input."""

at_both_sizes = pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.exhaustive)])


def run(shape: str, method: str, folder: Path, share: float, budget: int = BUDGET) -> dict[str, Any]:
    command = [
        sys.executable,
        str(Path(__file__).parent / "hostile_shapes.py"),
        shape,
        method,
        str(budget),
        str(share),
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    most = budget if share == 1 else LIBRARIES + budget * share
    assert figures["peak"] <= most * (1 << 20), f"{figures['peak'] >> 20} MiB"
    lost = sum(counts["bytes"] for counts in figures["tallies"].values())
    assert figures["statistics"]["text_bytes_in"] == figures["statistics"]["text_bytes_out"] + lost
    counts: dict[str, Any] = figures["statistics"]
    return counts


@at_both_sizes
@pytest.mark.parametrize("method", METHODS)
def test_one_document_of_50_megabytes(method: str, share: float, tmp_path: Path) -> None:
    """Its last megabyte repeats its first."""
    counts = run("one-large-document", method, tmp_path, share)
    assert counts["text_bytes_in"] == 50_000_000 * share
    cut = counts["text_bytes_in"] - counts["text_bytes_out"]
    assert cut == 0 if method == "documents" else 1_000_000 * share < cut < 1_100_000 * share


@at_both_sizes
@pytest.mark.parametrize("method", METHODS)
def test_a_million_documents_of_one_line(method: str, share: float, tmp_path: Path) -> None:
    """Every line occurs twice and is not a span of three sentences."""
    counts = run("a-million-lines", method, tmp_path, share)
    assert counts["documents_out"] == share * (500_000 if method in ("lines", "documents") else 1_000_000)


@at_both_sizes
@pytest.mark.parametrize("method", METHODS)
def test_a_hundred_thousand_copies_of_one_page(method: str, share: float, tmp_path: Path) -> None:
    counts = run("a-hundred-thousand-copies", method, tmp_path, share)
    assert (counts["documents_in"], counts["documents_out"]) == (100_000 * share, 1)


@at_both_sizes
@pytest.mark.parametrize("method", METHODS)
def test_one_sentence_a_million_times(method: str, share: float, tmp_path: Path) -> None:
    """In one line of one document: all but one are cut, or all but one span of three."""
    counts = run("one-sentence-a-million-times", method, tmp_path, share)
    left = {"exact-spans": 1, "near-spans": 3}.get(method, 1_000_000 * share)
    assert counts["text_bytes_out"] == left * 21


@at_both_sizes
@pytest.mark.parametrize("method", METHODS)
def test_two_million_short_sentences_in_one_document(method: str, share: float, tmp_path: Path) -> None:
    """20 MB in sentences of nine bytes, on a small budget: memory follows sentences, not bytes."""
    counts = run("two-million-short-sentences", method, tmp_path, share, 700)
    assert counts["documents_in"] == counts["documents_out"] == 1


@pytest.mark.parametrize("method", METHODS)
def test_empty_documents(method: str, tmp_path: Path) -> None:
    counts = run("nothing", method, tmp_path, 1)
    assert counts["documents_in"] == 10_900
    if "spans" in method:
        assert counts["documents_out"] == 10_900
