"""Every pack of the kind "c4", and packs of arbitrary values, against the oracle; chains of packs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.c4 import C4Step
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.cleaner import Cleaner, explain
from corpusforge.clean.packs import list_packs, load_pack
from corpusforge.sentences.splitter import sentence_spans
from tests.draws import draws
from tests.oracles.c4_packs import clean_page, line_reason

PACKS = [pack for name in list_packs() if isinstance(pack := load_pack(name), Rules)]
ENTRIES = ["darn it", "blast"]
PIECES = [
    "\n", "\n", "\r\n", "\x85", "\u2028", " ", " ", "\u3000", "\t", "[1]", "[٣]", "[edit]", "[编辑]", "Lorem Ipsum",
    "JavaScript", "JAVASCRİPT", "Terms of Use", "隐私政策", "{", ".", "...", "!", "'", '"', "”", "。", "！", "…",
    "word", "a", "İ", "\u212a", "中文", "你好", "Blast", "darn it", "BLAST!", "x" * 1001, "中" * 1001, "é" * 210,
    "One two three four five. Six seven eight.", "我们都很好。你们呢？他们也很好。", "y" * 200 + "\n",
]  # fmt: skip
WORDS = ["a", "b", "[1]", "[edit]", "word", "lorem", "javascript", "中文", "blast", "policy", "[2]"]
LINES = st.tuples(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), st.sampled_from(["", ".", "。", "..."]))
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=50).map("".join),
    st.lists(LINES.map("".join), max_size=8).map("\n".join),
)
PHRASES = st.lists(st.sampled_from(["lorem", "{", "word", "a b", "中文", "i"]), max_size=2).map(tuple)
ANY_RULES = st.fixed_dictionaries(
    {
        "max_page_characters": st.sampled_from([0, 40]),
        "min_paragraphs": st.integers(0, 3),
        "min_paragraph_characters": st.sampled_from([0, 3, 200]),
        "phrases_anywhere": st.booleans(),
        "max_word_characters": st.sampled_from([0, 4, 1000]),
        "numbered_citations": st.booleans(),
        "citations": st.sampled_from([(), ("[edit]", "a"), ("[edit]",)]),
        "end_marks": st.sampled_from([(), (".",), ("。", "”", "d")]),
        "no_end_marks": st.sampled_from([(), ("...",), ("。",)]),
        "min_words": st.integers(0, 3),
        "words_with_citations": st.booleans(),
        "min_characters": st.integers(0, 4),
        **dict.fromkeys(("lorem_ipsum", "javascript", "curly_brace", "policy"), PHRASES),
        "badwords_in_lines": st.booleans(),
        "min_sentences": st.integers(0, 4),
    }
)


LINE_RULES = st.fixed_dictionaries(
    {
        **dict.fromkeys(("min_sentences", "min_paragraphs", "max_page_characters"), st.just(0)),
        **dict.fromkeys(("lorem_ipsum", "curly_brace", "citations"), st.just(())),
        **dict.fromkeys(("numbered_citations", "badwords_in_lines"), st.just(False)),
        "end_marks": st.sampled_from([(), (".",), (".", "。"), ("。",)]),
        "no_end_marks": st.sampled_from([(), ("...",)]),
        "min_words": st.integers(0, 3),
        "min_characters": st.integers(0, 8),
        "javascript": st.sampled_from([(), ("javascript",), ("a",)]),
        "policy": st.sampled_from([(), ("policy",), ("b",)]),
    }
)
"""Rules that drop lines but no pages."""


def count(line: str) -> int:
    return len(sentence_spans(pa.array([line])).starts)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lists")
    (folder / "en").write_text("\n".join(ENTRIES), "utf-8")
    return str(folder)


def compare(texts: list[str], rules: Rules, lists: str, documents_of: Callable[..., pa.RecordBatch]) -> None:
    """Documents, reasons, lines and statistics of a batch are those of the oracle."""
    cleaned = Cleaner((C4Step(rules, "builtin", lists),)).clean(documents_of(texts))
    cleaned.rejects.validate(full=True)
    verdicts = [clean_page(text, rules, count, ENTRIES) for text in texts]
    kept = [(n, v.text) for n, v in enumerate(verdicts) if v.text is not None]
    documents = zip(cleaned.documents["position"].to_pylist(), cleaned.documents["text"].to_pylist(), strict=True)
    assert list(documents) == kept
    expected: list[tuple[int, int | None, str, str]] = []
    for page, (text, verdict) in enumerate(zip(texts, verdicts, strict=True)):
        lines = text.splitlines()
        expected += [(page, None, verdict.page, text)] if verdict.page else []
        expected += [(page, number, reason, lines[number].strip()) for number, reason in verdict.lines]
    rows = cleaned.rejects.to_pylist()
    assert [(r["position"], r["line"], r["reason"], r["text"]) for r in rows] == expected
    assert {r["step"] for r in rows} <= {rules.name}
    assert sum(t["rows"] for t in cleaned.tallies.values()) == len(expected) + len(kept)


@pytest.mark.parametrize("rules", PACKS, ids=lambda r: r.name)
@given(texts=st.lists(TEXTS, max_size=3))
@example(texts=["Oh BLAST! it is bad for all. And so on it goes.\n" * 3, "Blast it all, we do say.\n" * 3])
@draws(80)
def test_every_pack_as_the_oracle(
    rules: Rules, texts: list[str], lists: str, documents_of: Callable[..., pa.RecordBatch]
) -> None:
    compare(texts, rules, lists, documents_of)


@given(st.lists(TEXTS, max_size=3), ANY_RULES)
def test_any_rules_as_the_oracle(
    documents_of: Callable[..., pa.RecordBatch], lists: str, texts: list[str], values: dict[str, object]
) -> None:
    compare(texts, dataclasses.replace(PACKS[0], **values), lists, documents_of)


@given(TEXTS, st.one_of(LINE_RULES, ANY_RULES), st.one_of(LINE_RULES, ANY_RULES))
def test_a_chain_applies_packs_one_after_another(
    documents_of: Callable[..., pa.RecordBatch], lists: str, text: str, one: dict[str, object], two: dict[str, object]
) -> None:
    packs = [dataclasses.replace(PACKS[0], name=n, **v) for n, v in (("one", one), ("two", two))]
    steps = tuple(C4Step(pack, "builtin", lists) for pack in packs)
    cleaned = Cleaner(steps).clean(documents_of([text]))
    first = clean_page(text, packs[0], count, ENTRIES)
    second = clean_page(first.text, packs[1], count, ENTRIES) if first.text is not None else first
    assert cleaned.documents["text"].to_pylist() == [second.text] * (second.text is not None)
    rows = cleaned.rejects.to_pylist()
    if second.text is None:
        assert [(r["step"], r["line"], r["reason"], r["text"]) for r in rows] == [
            ("one" if first.text is None else "two", None, second.page, text)
        ]
        return
    lines = [line.strip() for line in text.splitlines()]
    gone = {number for number, _ in first.lines}
    left = [number for number in range(len(lines)) if number not in gone]
    expected = [(n, "one", reason) for n, reason in first.lines]
    expected += [(left[n], "two", reason) for n, reason in second.lines]
    assert [(r["line"], r["step"], r["reason"]) for r in rows] == sorted(expected)
    explained, page = explain(text, Cleaner(steps))
    assert page is None
    assert [(n, reason) for n, _, reason in explained if reason] == [(n, reason) for n, _, reason in sorted(expected)]


def test_the_line_that_drops_a_page_is_shown(lists: str) -> None:
    rules = next(pack for pack in PACKS if pack.name == "c4-tfds-2")
    text = "This is a line that stays.\nBut, oh, blast it all, he said.\nA { which is not reached here.\n"
    lines, page = explain(text, Cleaner((C4Step(rules, "builtin", lists),)))
    assert page == "page:badword"
    assert [reason for _, _, reason in lines] == [None, "page:badword", "page:curly-brace"]


def test_details_of_new_rules(documents_of: Callable[..., pa.RecordBatch], lists: str) -> None:
    by_name = {pack.name: C4Step(pack, "builtin", lists) for pack in PACKS}

    def details(name: str, text: str) -> list[tuple[str, str | None]]:
        rows = Cleaner((by_name[name],)).clean(documents_of([text])).rejects.to_pylist()
        return [(row["reason"], row["detail"]) for row in rows]

    assert details("mc4", "y" * 200 + "\n" + "z" * 200) == [("page:few-paragraphs", "2 paragraphs")]
    assert details("mc4", "短") == [("page:few-paragraphs", "0 paragraphs")]
    chinese = "我们都很好。你们呢？他们也很好。"
    assert details("c4-zh", f"很好。\n{chinese}") == [("line:few-characters", "3 characters")]
    assert details("c4-tfds-2", "We said: oh, blast it all.\n" * 3) == [("page:badword", "blast")]


def test_mc4_does_not_change_text(documents_of: Callable[..., pa.RecordBatch]) -> None:
    text = "\n  " + "\n\n".join(["x" * 250 + " {"] * 3) + " \n"
    step = C4Step(next(pack for pack in PACKS if pack.name == "mc4"))
    step.check()
    assert Cleaner((step,)).clean(documents_of([text])).documents["text"].to_pylist() == [text]


def test_words_are_counted_before_citations_where_datatrove_does() -> None:
    by_name = {pack.name: pack for pack in PACKS}
    line = "Two words [1] [2]."
    assert line_reason(line, by_name["c4-datatrove"], ())[0] is None
    assert line_reason(line, dataclasses.replace(by_name["c4-datatrove"], words_with_citations=False), ())[0] is None
    assert line_reason("Two [1] [2].", by_name["c4-paper"], ())[0] == "line:few-words"


def test_every_pack_records_its_values(documents_of: Callable[..., pa.RecordBatch], tmp_path: Path) -> None:
    for pack in PACKS:
        resources = C4Step(pack, "builtin", str(tmp_path) if not pack.badwords_in_lines else "off").resources()
        assert resources["pack"] == pack.values()
        assert ("sentences" in resources) == bool(pack.min_sentences)


def test_a_pack_is_named_once(lists: str) -> None:
    step = C4Step(PACKS[0], "builtin", lists)
    with pytest.raises(errors.RecipeInvalid, match=f"two steps are called '{PACKS[0].name}'"):
        Cleaner((step, step)).check()
