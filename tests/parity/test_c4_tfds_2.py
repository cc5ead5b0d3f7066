"""The pack c4-tfds-2 against the page cleaner of C4 2.3.0, page by page, on real text: no page differs.

Runs where tensorflow-datasets 3 is installed (``benchmarks/requirements-tfds3.txt`` beside CorpusForge). Its package
cannot be imported without tensorflow, so the one file that cleans pages is loaded alone.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clean_vs_tfds import batches_of, ignore, oddities, prose, take, texts_of, web_pages
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.cleaner import Cleaner
from corpusforge.clean.packs import load_rules

try:
    INSTALLED = version("tensorflow-datasets")
except PackageNotFoundError:
    INSTALLED = "none"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSTALLED.startswith("3."), reason="needs benchmarks/requirements-tfds3.txt"),
]
BYTES = {web_pages: 5_000_000, prose: 5_000_000, oddities: 4_000_000}


def their_file(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module ``tensorflow_datasets/text/c4_utils.py``, with stand-ins for what it imports."""
    package = importlib.util.find_spec("tensorflow_datasets")
    assert package and package.origin
    as_text = types.SimpleNamespace(as_text=lambda text: text)
    names = ("tensorflow", "tensorflow.compat", "tensorflow.compat.v2", "tensorflow_datasets.public_api")
    stubs = {name: types.ModuleType(name) for name in (*names, "tensorflow_datasets")}
    for name in names:
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(stubs[parent], child, stubs[name])
    stubs["tensorflow.compat.v2"].compat = as_text  # type: ignore[attr-defined]
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    spec = importlib.util.spec_from_file_location("c4_utils", Path(package.origin).parent / "text/c4_utils.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("make", BYTES, ids=lambda make: make.__name__)
def test_pages_are_cleaned_to_the_same_bytes(make: Any, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk
    from nltk.tokenize.punkt import PunktTokenizer

    monkeypatch.setattr(nltk.data, "path", [str(shared_data / "nltk_data")])
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    lists = shared_data / "badwords/LDNOOBW"
    words = [line.strip() for line in (lists / "en").read_text("utf-8").splitlines()]
    foul = [f"This is one fine line.\n{line}\nAnd so is this one here.\nOnce more it is so." for line in (
        f"Oh, {words[9]} to all of you.", f"{words[9]} to all of you there.", f"He is a{words[9]} to all of us.",
        f"That is what he {words[5].upper()}.", f"It is, as they said,{words[7]}.",
    )]  # fmt: skip
    pages = ["", "x" * 190_001, *foul, *take(make(shared_data), BYTES[make])]
    theirs = their_file(monkeypatch)
    theirs.get_counter_inc_fn = lambda namespace: ignore
    theirs._SENTENCE_TOKENIZER = PunktTokenizer("english")
    clean_page = theirs.get_clean_page_fn(words)
    expected: list[str | None] = []
    for number, text in enumerate(pages):
        page = (str(number), {"text": text})
        found = list(clean_page(page, counter_inc_fn=ignore)) if theirs.is_valid_length(page) else []
        expected.append(found[0][1]["text"] if found else None)
    cleaner = Cleaner((C4Step(load_rules("c4-tfds-2"), "punkt", str(lists)),))
    batches = batches_of(pages)
    found = texts_of(batches, [cleaner.clean(batch) for batch in batches])
    assert [n for n, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b] == []
    assert {text is None for text in expected[2:7]} == {True, False}
