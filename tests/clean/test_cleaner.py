"""The cleaner against the oracle on any text, and the reasons and details of what it dropped."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.cleaner import Cleaner, cleaner_of, explain
from corpusforge.clean.packs import load_pack, load_rules
from corpusforge.schemas import DOCUMENTS, REJECTS
from corpusforge.sections import Clean
from corpusforge.sentences import punkt as punkt_parameters
from corpusforge.sentences.splitter import sentence_spans
from tests.oracles.c4_tfds import CITATION, clean_page

RULES = load_rules("c4-tfds-3.1")
BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
SPACES = [" ", " ", " ", "\t", "\x1f", "\xa0", "\u1680", "\u2003", "\u202f", "\u3000", "\u200b", "\ufeff"]
WORDS = [
    "[1]", "[]", "[٣]", "[²]", "[edit]", "[Edit]", "[citation needed]", "[1", "]", "Lorem ipsum", "LOREM IPSUM",
    "javascript", "JavaScript", "JAVASCRİPT", "java", "script", "Terms of Use", "privacy policy", "uses cooKies",
    "use cookies", "{", "}", ".", "?", "!", '"', "...", "..", "…", "word", "a", "İ", "ß", "中文", "é", "Dr.", "U.S.",
    "x" * 1000, "x" * 1001, "é" * 1000, "中" * 1001, "\U0001f600" * 1001, "One two three four five.", "\x00",
    "This line is a good one. It has two sentences.",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from([*BREAKS, *SPACES, *SPACES, *WORDS, *WORDS, *WORDS]), max_size=60).map("".join),
    st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
)


def builtin_count(line: str) -> int:
    return len(sentence_spans(pa.array([line])).starts)


def cleaner(rules: Rules, **changes: Any) -> Cleaner:
    plain: dict[str, Any] = {"language": "", "sentences": "builtin", "badwords": "off"}
    return cleaner_of(Clean(**(plain | changes)), packs=[rules])


def compare(texts: list[str], made: Cleaner, documents_of: Callable[..., pa.RecordBatch], count: Any) -> None:
    """Documents, reasons and tallies of a batch are those of the oracle, page by page."""
    cleaned = made.clean(documents_of(texts))
    cleaned.documents.validate(full=True)
    cleaned.rejects.validate(full=True)
    assert cleaned.documents.schema == DOCUMENTS and cleaned.rejects.schema == REJECTS
    verdicts = [clean_page(text, count) for text in texts]
    kept = [(n, v.text) for n, v in enumerate(verdicts) if v.text is not None]
    assert (
        list(zip(cleaned.documents["position"].to_pylist(), cleaned.documents["text"].to_pylist(), strict=True)) == kept
    )
    expected: list[tuple[int, int | None, str, str]] = []
    for page, (text, verdict) in enumerate(zip(texts, verdicts, strict=True)):
        if verdict.page:
            expected.append((page, None, verdict.page, text))
        lines = text.splitlines()
        expected += [(page, number, reason, lines[number].strip()) for number, reason in verdict.lines]
    rows = cleaned.rejects.to_pylist()
    assert [(r["position"], r["line"], r["reason"], r["text"]) for r in rows] == expected
    tallies: dict[str, dict[str, int]] = {}
    for reason, text in [(e[2], e[3]) for e in expected] + [("kept", t) for _, t in kept]:
        tally = tallies.setdefault(reason, {"rows": 0, "bytes": 0})
        tally["rows"], tally["bytes"] = tally["rows"] + 1, tally["bytes"] + len(text.encode())
    assert cleaned.tallies == tallies


@given(st.lists(TEXTS, max_size=4))
@example(["."])
@example(["java", "script is one of five words."])
@example(["[1]\u3000One two three four five. Six\n" * 3, "a b c d e.[1] [2]", "x[12] is not so very long.[3]\n" * 3])
@example(["JAVASCRİPT is one of five words.\nKooKie and use cooKies is what we do.\n" * 3])
def test_any_text_as_the_oracle(documents_of: Callable[..., pa.RecordBatch], texts: list[str]) -> None:
    compare(texts, cleaner(RULES), documents_of, builtin_count)


@given(st.lists(TEXTS, max_size=3))
def test_any_text_as_the_oracle_with_punkt(
    documents_of: Callable[..., pa.RecordBatch], nltk_punkt: Any, texts: list[str]
) -> None:
    compare(texts, cleaner(RULES, sentences="punkt"), documents_of, lambda line: len(nltk_punkt.tokenize(line)))


def test_long_pages_are_dropped_by_characters(documents_of: Callable[..., pa.RecordBatch]) -> None:
    line = "These are exactly five words é.\n"
    fits, long = (line * 6000)[:190_000], (line * 6000)[:190_001]
    compare([long, fits, "", long], cleaner(RULES), documents_of, lambda _: 1)
    rejects = cleaner(RULES).clean(documents_of([long])).rejects.to_pylist()
    assert [(r["reason"], r["detail"]) for r in rejects] == [("page:too-long", "190001 characters")]


def test_slices_batches_and_pickles_change_nothing(documents_of: Callable[..., pa.RecordBatch]) -> None:
    page = "One two three four five. Six.[1]\nbad\nThe terms of use are long reading.\nYes, that is all we know.\n"
    texts = [page * n for n in range(5)] + ["No { here is what we like.", ""]
    batch = documents_of(texts)
    made = pickle.loads(pickle.dumps(cleaner(RULES)))
    whole = made.clean(batch)
    parts = [made.clean(batch.slice(n, 1)) for n in range(len(texts))]
    for table in ("documents", "rejects"):
        rows = [row for part in parts for row in getattr(part, table).to_pylist()]
        assert getattr(whole, table).to_pylist() == rows
    assert whole.statistics == {
        "documents_in": 7,
        "documents_out": 4,
        "text_bytes_in": sum(len(t) for t in texts),
        "text_bytes_out": sum(len(t) for t in whole.documents["text"].to_pylist()),
        "lines_in": sum(len(t.splitlines()) for t in texts),
        "lines_out": 20,
        "steps": {"c4-tfds-3.1": {"documents": 4, "text_bytes": whole.statistics["text_bytes_out"]}},
    }


def test_details_are_what_the_rule_saw(documents_of: Callable[..., pa.RecordBatch]) -> None:
    page = "Too short.\n" + "This is a line of seven words.\n" * 3
    rejects = cleaner(RULES).clean(documents_of([page, "This line stands here alone."])).rejects.to_pylist()
    assert [(r["reason"], r["detail"]) for r in rejects] == [
        ("line:few-words", "2 words"),
        ("page:few-sentences", "fewer than 3 sentences in 1 line"),
    ]


@pytest.mark.parametrize("detector", ["langdetect", "fast"])
def test_pages_in_other_languages_are_dropped(documents_of: Callable[..., pa.RecordBatch], detector: str) -> None:
    english = "The weather was fine on the day that we walked along the river to the old mill.\n" * 3
    german = "Das Wetter war schön an dem Tag, an dem wir am Fluss entlang zur alten Mühle gingen.\n" * 3
    made = cleaner(RULES, language="en", detector=detector)
    cleaned = made.clean(documents_of([german, english, german]))
    assert cleaned.documents["position"].to_pylist() == [1]
    assert cleaned.documents["language"].to_pylist() == ["en"]
    rows = cleaned.rejects.to_pylist()
    assert [r["reason"] for r in rows] == ["page:language"] * 2
    assert not any(r["detail"].startswith("en ") for r in rows)
    assert made.clean(documents_of([english])).documents["text"][0] == cleaned.documents["text"][0]


def test_bad_words_are_those_of_the_language_of_the_page(
    documents_of: Callable[..., pa.RecordBatch], tmp_path: Path
) -> None:
    (tmp_path / "en").write_text("darn it\nblast\n")
    (tmp_path / "zh").write_text("性\n坏\n")
    fine = "The blaster and the darning went on for all of the day.\n" * 3
    foul = "They said: Blast! That is what they all said today.\n" * 3
    chinese = "A B C 这是坏的 D E.\n" * 3
    texts, languages = [fine, foul, chinese, foul, foul], ["en", "en", "zh", "fr", None]
    cleaned = cleaner(RULES, badwords=str(tmp_path)).clean(documents_of(texts, languages))
    assert cleaned.documents["position"].to_pylist() == [0, 3, 4]
    assert [(r["position"], r["reason"], r["detail"]) for r in cleaned.rejects.to_pylist()] == [
        (1, "page:badword", "blast"),
        (2, "page:badword", "坏"),
    ]


def test_missing_resources_are_reported_before_the_run(
    rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(errors.ResourceMissing, match="corpusforge rules fetch badwords"):
        cleaner(rules, language="en", detector="fast", badwords="fetched").check()
    with pytest.raises(errors.RecipeInvalid, match="fast knows no 'xx'"):
        cleaner(rules, language="xx", detector="fast").check()
    monkeypatch.setattr(punkt_parameters, "folders", list)
    punkt_parameters.load.cache_clear()
    with pytest.raises(errors.ResourceMissing, match=r"NLTK_DATA.*rules fetch punkt.*--sentences builtin"):
        cleaner(rules, sentences="punkt").check()


def test_explain_shows_every_line(rules: Rules) -> None:
    text = "Menu\nAll of this is one good line.[1]\n\nWe use cookies on this site.\nMore { of it is here, too.\n"
    lines, page = explain(text, cleaner(rules))
    assert page == "page:curly-brace"
    assert lines == [
        (0, "Menu", "line:no-terminal-punctuation"),
        (1, "All of this is one good line.[1]", None),
        (2, "", "line:blank"),
        (3, "We use cookies on this site.", "line:policy"),
        (4, "More { of it is here, too.", "page:curly-brace"),
    ]
    assert explain("", cleaner(rules)) == ([], "page:no-lines")


def test_an_empty_batch_stays_empty(documents_of: Callable[..., pa.RecordBatch]) -> None:
    compare([], cleaner(RULES), documents_of, builtin_count)
    compare(["", "\n", "\u3000"], cleaner(RULES), documents_of, builtin_count)


@pytest.mark.slow
def test_a_long_chain_does_not_depend_on_batches(
    documents_of: Callable[..., pa.RecordBatch], shared_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(
        'kind = "patterns"\ntitle = "x"\n[drop_lines]\nvalue = ["^The "]\nsource = "x"\n'
        '[drop_pages]\nvalue = ["(?i)football"]\nsource = "x"\n'
    )
    with gzip.open(shared_data / "text_en/enwiki2018-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(next(file))["text"] for _ in range(160)]
    packs = [load_pack(name) for name in ("c4-tfds-3.1", str(tmp_path / "mine.toml"), "gopher", "fineweb", "c4-paper")]
    lists = str(shared_data / "badwords/LDNOOBW")
    made = cleaner_of(Clean(detector="fast", sentences="builtin", badwords=lists), packs=packs)
    batch = documents_of(texts)
    whole = made.clean(batch)
    assert {row["step"] for row in whole.rejects.to_pylist()} >= {"c4-tfds-3.1", "mine", "gopher", "badwords"}
    assert 0 < whole.documents.num_rows < 160
    for size in (1, 23):
        parts = [made.clean(batch.slice(n, size)) for n in range(0, 160, size)]
        for table in ("documents", "rejects"):
            rows = [row for part in parts for row in getattr(part, table).to_pylist()]
            assert getattr(whole, table).to_pylist() == rows
    kept = set(whole.documents["id"].to_pylist())
    for row in whole.rejects.to_pylist():
        if row["line"] is not None:  # numbered as in the input text, whichever step dropped it
            came = texts[row["position"]].splitlines()[row["line"]]
            assert CITATION.sub("", came).strip() == CITATION.sub("", row["text"]).strip()
            assert row["document"] in kept
