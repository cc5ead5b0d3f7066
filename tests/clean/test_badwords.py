"""Bad words: the column's decisions are those of the plain regular expression."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.badwords import Badwords, BadwordsStep, load_badwords
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.fetch import LISTS
from tests.oracles.c4_tfds import bad_word

ENTRIES = ["bad", "ki", "kiss", "two words", "a.b", "$$$", "schlaß", "плохо", "坏", "(x)"]
PIECES = [
    *"Σß(é",
    *ENTRIES,
    "BAD",
    "KI\u017f\u017f",
    "\u212aiss",
    "Kİ",
    "ki\u0307",
    "Плохо",
    "SCHLAẞ",
    *" \n.,-_7éaZ中\x00",
]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=4), st.booleans())
@example(["\u212aİ", "KİSS", "(ſ)bad"], True)
def test_decisions_are_those_of_the_oracle(texts: list[str], edges: bool) -> None:
    found = Badwords(ENTRIES, edges=edges).find(pa.array(texts, pa.string()))
    assert [entry is not None for entry in found] == [bad_word(t, ENTRIES, edges=edges) for t in texts]


def test_case_folding_covers_str_lower() -> None:
    # The suspects are found by RE2's case folding: it must match wherever Python's lower case does.
    pairs = [(chr(c), chr(c).lower()) for c in range(sys.maxunicode + 1) if chr(c).lower() != chr(c)]
    for upper, lower in pairs:
        assert upper == "İ" or pc.match_substring_regex(pa.array([upper]), f"(?i){lower}")[0].as_py(), upper


def test_lists_are_read_as_c4_reads_them(rules: Rules, tmp_path: Path) -> None:
    (tmp_path / "ja").write_text("sm\n悪い\n\n", "utf-8")
    words = load_badwords(str(tmp_path), "ja", rules, required=True)
    assert words and words.entries == ["悪い"] and not words.edges
    assert load_badwords("off", "ja", rules, required=True) is None
    assert load_badwords(str(tmp_path), "xx", rules, required=True) is None
    assert load_badwords(str(tmp_path / "none"), "../ja", rules, required=False) is None
    assert load_badwords(str(tmp_path), "de", rules, required=False) is None
    with pytest.raises(errors.ResourceMissing, match="rules fetch badwords"):
        load_badwords(str(tmp_path), "de", rules, required=True)


def test_a_list_that_is_not_text_is_a_one_line_error(rules: Rules, tmp_path: Path) -> None:
    (tmp_path / "de").write_bytes(b"\xff\xfe")
    with pytest.raises(errors.InputUnreadable, match=r"de: is not a list of words .* in UTF-8"):
        load_badwords(str(tmp_path), "de", rules, required=True)


@pytest.mark.slow
def test_all_28_lists_take_linear_time(rules: Rules, shared_data: Path) -> None:
    folder = shared_data / "badwords/LDNOOBW"
    for language in LISTS:
        words = load_badwords(str(folder), language, rules, required=True)
        assert words
        # Nearly every entry, repeated: slow for an expression that backtracks.
        text = " ".join(f"{entry[:-1]}q" for entry in words.entries)
        column = pa.array([(text + " ") * (200_000 // len(text) + 1)])
        begin = time.perf_counter()
        words.find(column)
        assert time.perf_counter() - begin < 5, language


def test_the_detail_is_the_first_entry() -> None:
    words = Badwords(["darn", "heck"], edges=True)
    texts = ["Oh heck. Darn!", "é heck", "HECK", "éheck, darn", "Σ heck darn", "hecks"]
    assert words.find(pa.array(texts)) == ["heck", "heck", "heck", "darn", "darn", None]


def test_the_real_english_list(rules: Rules, shared_data: Path) -> None:
    words = load_badwords(str(shared_data / "badwords/LDNOOBW"), "en", rules, required=True)
    assert words and len(words.entries) == 403
    texts = ["A class on assessment in Essex.", f"It ends in {words.entries[7].upper()}"]
    assert words.find(pa.array(texts)) == [None, words.entries[7]]


@pytest.mark.parametrize("fraction", [1.0, 0.999, 0.5, 0.3, 0.0])
def test_a_share_of_pages_goes_by_url(
    fraction: float, rules: Rules, documents_of: Callable[..., pa.RecordBatch], tmp_path: Path
) -> None:
    (tmp_path / "en").write_text("darn\n")
    documents = documents_of(["Oh darn it.", "Fine."] * 300, ["en"] * 600)
    verdict = BadwordsStep(str(tmp_path), "en", dataclasses.replace(rules, badword_fraction=fraction)).apply(documents)
    above, below = fraction.as_integer_ratio()
    for number, url in enumerate(documents["url"].to_pylist()):
        hashed = int(hashlib.md5(url.removeprefix("http://").rstrip("/").encode()).hexdigest(), 16)
        is_dropped = number % 2 == 0 and hashed % below < above
        assert bool(verdict.codes[number]) == is_dropped, url
        assert (number in verdict.details) == is_dropped


def test_pages_without_a_url_are_drawn_by_their_id(
    rules: Rules, documents_of: Callable[..., pa.RecordBatch], tmp_path: Path
) -> None:
    (tmp_path / "en").write_text("darn\n")
    documents = documents_of(["Oh darn it."] * 400, ["en"] * 400)
    documents = documents.set_column(1, "url", pa.nulls(400, pa.string()))
    verdict = BadwordsStep(str(tmp_path), "en", dataclasses.replace(rules, badword_fraction=0.5)).apply(documents)
    assert 140 < verdict.codes.sum() < 260


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", ""])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fine\n" + "a" * 2_000_000 + "\n", r"en, line 2: is not a word: 2000000 characters"),
        ("\n".join(f"word{i:x}" * 3 for i in range(100_000)), "100000 entries of .* more than RE2 takes"),
    ],
)
def test_lists_that_are_too_large_stop_before_the_run(
    text: str, message: str, language: str, rules: Rules, tmp_path: Path
) -> None:
    (tmp_path / "en").write_text(text)
    (tmp_path / "README.md").write_text("b" * 5000)
    with pytest.raises(errors.InputUnreadable, match=message) as caught:
        BadwordsStep(str(tmp_path), language, rules).check()
    assert "\n" not in str(caught.value)
    with pytest.raises(errors.InputUnreadable, match=message):
        C4Step(dataclasses.replace(rules, badwords_in_lines=True), "builtin", str(tmp_path)).check()
