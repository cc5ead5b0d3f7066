"""Packs of the kind "patterns" against plain `re`, and hostile packs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.cleaner import Cleaner, explain
from corpusforge.clean.packs import load_pack
from corpusforge.clean.patterns import Patterns, PatternsStep

LINES = ["^Share on", r"\d{3,}", "(?i)cookie"]
PAGES = [r"(?m)^DRAFT$", "casino"]
PIECES = ["Share on", " x", "12", "345", "Cookie", "DRAFT", "casino", "\n", "\r\n", "\x85", " ", "\u3000", "fine", ""]


def pack(lines: list[str], pages: list[str]) -> Patterns:
    return Patterns("mine", "a title", {}, tuple(lines), tuple(pages))


def plain(text: str) -> tuple[str | None, list[tuple[int, str]]]:
    """The text that stays, None if the page is dropped, and the dropped lines."""
    if any(re.search(p, text) for p in PAGES):
        return None, []
    lines = [line.strip() for line in text.splitlines()]
    gone = [(n, next(p for p in LINES if re.search(p, line))) for n, line in enumerate(lines)
            if any(re.search(p, line) for p in LINES)]  # fmt: skip
    numbers = {n for n, _ in gone}
    left = [line for n, line in enumerate(lines) if n not in numbers]
    if gone and not any(left):
        return None, []
    return ("\n".join(left) if gone else text), gone


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), max_size=4))
def test_any_text_as_plain_expressions(documents_of: Callable[..., pa.RecordBatch], texts: list[str]) -> None:
    cleaned = Cleaner((PatternsStep(pack(LINES, PAGES)),)).clean(documents_of(texts))
    verdicts = [plain(text) for text in texts]
    assert cleaned.documents["text"].to_pylist() == [left for left, _ in verdicts if left is not None]
    rows = [(r["position"], r["line"], r["detail"]) for r in cleaned.rejects.to_pylist() if r["line"] is not None]
    assert rows == [(page, n, p) for page, (_, gone) in enumerate(verdicts) for n, p in gone]


def test_reasons_and_marks(documents_of: Callable[..., pa.RecordBatch]) -> None:
    made = Cleaner((PatternsStep(pack(LINES, PAGES)),))
    cleaned = made.clean(documents_of(["a casino", "Cookies\n", "all fine\nno 123\n\nas it is"]))
    assert [(r["reason"], r["step"], r["detail"]) for r in cleaned.rejects.to_pylist()] == [
        ("page:pattern", "mine", "casino"),
        ("page:no-lines", "mine", None),
        ("line:pattern", "mine", r"\d{3,}"),
    ]
    assert cleaned.documents["text"].to_pylist() == ["all fine\n\nas it is"]
    assert explain("fine\nno 123", made) == ([(0, "fine", None), (1, "no 123", "line:pattern")], None)


GOOD = """kind = "patterns"
title = "mine"
[drop_lines]
value = ["^Share"]
source = "seen on many pages"
[drop_pages]
value = []
source = "none"
"""


def test_a_pack_of_patterns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    found = load_pack(str(path))
    assert isinstance(found, Patterns) and found.drop_lines == ("^Share",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (GOOD.replace("^Share", "(?=x)y"), "expression 1: Invalid"),
        (GOOD.replace("^Share", r"(a)\\1"), "expression 1"),
        (GOOD.replace("^Share", "(" * 9), "expression 1"),
        (GOOD.replace("^Share", "((((a{100}){100}){100}){100})"), "expression 1"),
        (GOOD.replace("^Share", "a" * 20_000), "longer than 10000 characters"),
        (GOOD.replace('["^Share"]', "['a'" + ", 'a'" * 2000 + "]"), "a list of at most 1000"),
        (GOOD.replace('["^Share"]', "7"), "drop_lines = 7"),
        (GOOD.replace('["^Share"]', "[[['a']]]"), "drop_lines = [[['a']]]"),
        (GOOD.replace('"patterns"', "\"__import__('os').system('id')\""), "kinds of packs: c4"),
        (GOOD.replace('"patterns"', "[1]"), "kinds of packs: c4"),
        (GOOD + "[step]\nvalue = 'os.system'\nsource = 'x'\n", "unknown rule 'step'"),
        (GOOD + "[__class__]\nvalue = 'x'\nsource = 'x'\n", "unknown rule '__class__'"),
        ("x = " + "[" * 100_000, "nested too deeply"),
        (GOOD + "#" * (2 << 20), "larger than 1 MiB"),
        ("", "the pack has no title"),
        (b"\xff\xfe\x00t\x00i", "not a text file"),
        (b"title = '\x00'", "not valid TOML"),
    ],
    ids=range(17),
)
def test_a_hostile_pack_is_a_one_line_error(content: str | bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(errors.RecipeInvalid) as raised:
        load_pack(str(path))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 1000


@pytest.mark.parametrize("value", ["-1", "1e400", "nan", "99999999999999999999", "true", "'5'", "{a = 1}"])
def test_invalid_numbers_are_refused(value: str, tmp_path: Path) -> None:
    from corpusforge.bundled import bundled

    path = tmp_path / "mine.toml"
    text = (bundled("rules") / "c4-tfds-3.1.toml").read_text("utf-8")
    path.write_text(text.replace("value = 190_000", f"value = {value}"))
    with pytest.raises(errors.RecipeInvalid, match="max_page_characters"):
        load_pack(str(path))


NOWHERE = [
    *("../../etc/passwd", "/etc/passwd", "..", "", "a\0b", "a\0b.toml", "../rules/x.toml", "/dev/zero.toml"),
    *("x" * 5000, "x" * 5000 + ".toml", "/" + "x" * 5000 + ".toml"),
]


@pytest.mark.parametrize("name", NOWHERE, ids=range(len(NOWHERE)))
def test_names_lead_nowhere_else(name: str) -> None:
    with pytest.raises(errors.InputMissing) as raised:
        load_pack(name)
    assert len(str(raised.value)) < 6000


def test_expressions_take_linear_time(documents_of: Callable[..., pa.RecordBatch]) -> None:
    evil = ["(a+)+$", "(a|aa)+$", "(.*a){20}b"]
    text = "a" * 200_000 + "!"
    start = time.perf_counter()
    cleaned = Cleaner((PatternsStep(pack(evil, evil)),)).clean(documents_of([text]))
    assert cleaned.documents.num_rows == 1
    assert time.perf_counter() - start < 5
