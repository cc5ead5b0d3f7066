"""Punkt's decisions without NLTK: every span is NLTK's own, on any text, and parameters are found where NLTK looks."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.sentences import punkt as ours

WORDS = [
    "word", "The", "he", "Dr.", "e.g.", "U.S.", "J.", "p.m.", "No.", "3.5", "7.", "end.", "End.", "inc.", "etc.", "j.",
    "stop!", "why?", "so...", ". . .", '"Yes."', "(Fast.)", "“Oh.”", "’", "well-known.", "u.s.", "--", "?!", "a.",
    "in.", "\xa0", "\t", "  ", "é.", "x.y", "-", ",", "#7.", "@me.", "[1].", "«", "st.", "s.", "\n", "\x1f", "\x1c",
    "²", "².", "\u0301.", "\u0301", "Ⓐ.", "\u200c.", "_.", "5-6.", "Mr.", "...", "..", "..)", ")", "'", '"', "1,000.",
    "-5.", ".5.", "no.-5", "S.", "Bach", "St.", "Louis", "中。", "۵.", "ǅ.", "ß.",
]  # fmt: skip
LINES = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
    st.lists(st.sampled_from([*WORDS, " "]), max_size=14).map("".join),
    st.text(st.sampled_from(". ?!aAé)\"'\n\x1f1-,;Dr中"), max_size=20),
    st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=20),
)


@pytest.fixture(autouse=True)
def _loaded_anew() -> Iterator[None]:
    yield
    ours.load.cache_clear()


def test_parameters_are_those_nltk_loads(punkt: Path) -> None:
    from nltk.tokenize.punkt import PunktTokenizer

    parameters, nltks = ours.load(), PunktTokenizer("english")._params
    assert parameters.abbreviations == nltks.abbrev_types
    assert parameters.collocations == nltks.collocations
    assert parameters.starters == nltks.sent_starters
    assert parameters.contexts == dict(nltks.ortho_context)


def test_letters_are_those_of_nltks_expressions() -> None:
    """NLTK compiles its expressions with `regex`; characters that Python's Unicode does not know yet are left out."""
    regex = pytest.importorskip("regex")
    letters = {c.group() for c in regex.finditer(r"[^\W\d]", "".join(map(chr, range(0x110000))))}
    known = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    assert [c for c in known if ours._is_letter(c) != (c in letters)] == []


@given(LINES)
def test_spans_are_nltks(nltk_punkt: Any, line: str) -> None:
    assert list(ours.spans(line, ours.load())) == list(nltk_punkt.span_tokenize(line))


@pytest.mark.parametrize("name", ["enwiki2018-dev", "novels-dev", "enwiki-multidump-dev"])
def test_spans_of_real_text_are_nltks(nltk_punkt: Any, shared_data: Path, name: str) -> None:
    parameters = ours.load()
    with gzip.open(shared_data / f"text_en/{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        for _, document in zip(range(40), file, strict=False):
            for line in json.loads(document)["text"][:20_000].splitlines():
                assert list(ours.spans(line, parameters)) == list(nltk_punkt.span_tokenize(line))


def test_an_archive_is_read_like_a_folder(punkt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ours.load()
    (tmp_path / "tokenizers").mkdir()
    with zipfile.ZipFile(tmp_path / "tokenizers/punkt_tab.zip", "w") as archive:
        for path in (punkt / "tokenizers/punkt_tab/english").iterdir():
            archive.write(path, f"punkt_tab/english/{path.name}")
    ours.load.cache_clear()
    monkeypatch.setattr(ours, "folders", lambda: [tmp_path])
    assert ours.load() == expected


@pytest.mark.slow
def test_folders_are_those_of_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    """In NLTK's order; NLTK reads the environment when it is imported."""
    monkeypatch.setenv("NLTK_DATA", "/x/y:~/z")
    code = "import nltk.data; print(chr(10).join(nltk.data.path))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [str(folder) for folder in ours.folders()[:-1]] == shown


def test_nltk_is_not_imported(punkt: Path) -> None:
    code = (
        "import sys; from corpusforge.sentences.counter import SentenceCounter; SentenceCounter('punkt').check();"
        "print([m for m in ('nltk', 'scipy', 'regex') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
