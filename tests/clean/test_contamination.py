"""Contamination: exactly the n-grams of evaluation files are found."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import pickle
import tarfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.clean import contamination
from corpusforge.clean.contamination import ContaminationStep, evaluation_texts
from corpusforge.clean.ngrams import composed, normal_words
from tests.oracles.contamination import contaminated, words

Documents = Callable[..., pa.RecordBatch]
PIECES = [
    *"\u0301\u0323é\u0307q가\u1100\u1161\u11a8は\u309aΩ\u212a豈",
    *"ab .,-'\n\tZÉéßİЖж中か・〜。Ａ！—…«×ªµ한",
    "word",
    "The",
    "longer-than-eight",
    " ",
    " ",
    " ",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
SENTENCE = "Every student who has read the old books of that library likes some of them a lot."


@given(st.lists(st.one_of(TEXTS, st.text(max_size=40)), max_size=4))
@example(["中", "文a", "b中"])
def test_words_are_those_of_the_oracle(texts: list[str]) -> None:
    texts = [t.encode("utf-8", "replace").decode() for t in texts]
    found = normal_words(pa.array(["x", *texts, "y"], pa.string()).slice(1, len(texts)))
    bounds = zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True)
    assert [found.text(a, b - a).split(" ") if a < b else [] for a, b in bounds] == [words(t) for t in texts]


ROWS = st.lists(st.sampled_from(["a", "b", "A,", "b-a", "中"]), max_size=24).map(" ".join)


@given(
    texts=st.lists(ROWS, min_size=1, max_size=4),
    evaluation=st.lists(ROWS, min_size=1, max_size=4),
    length=st.sampled_from([8, 10, 13]),
)
def test_decisions_are_those_of_the_oracle(
    texts: list[str],
    evaluation: list[str],
    length: int,
    documents_of: Documents,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("evaluation") / "e.txt"
    path.write_text("\n".join(evaluation), "utf-8")
    found = ContaminationStep((str(path),), length).apply(documents_of(texts))
    assert found.codes.tolist() == [int(contaminated(t, evaluation, length)) for t in texts]


def test_hashes_of_one_word_and_many_agree() -> None:
    found = normal_words(pa.array([f"{SENTENCE} {'x' * 100} {'x' * 64 + 'y' * 36}", SENTENCE.upper()]))
    places = found.offsets[:-1]
    for length in range(1, 17):
        first, second = found.ngrams(length)[places].tolist()
        assert first == second == found.ngrams_at(places, length)[0]
    assert len(found.ngrams(1000)) == 0


def _layouts(folder: Path) -> None:
    rows = [{"a": SENTENCE, "b": {"c": ["short", f"2 {SENTENCE}"]}, "n": 3}]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "a.jsonl").write_bytes(lines)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    (folder / "c.json").write_text(json.dumps(rows))
    (folder / "d.txt.bz2").write_bytes(bz2.compress(f"short\n{SENTENCE}\n2 {SENTENCE}".encode()))
    (folder / "e.tsv").write_text(f'n\ttext\n3\t{SENTENCE}\n4\t2 {SENTENCE}" unmatched\n')
    with (folder / "f.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["n", "text"], ["3", SENTENCE], ["4", f"2 {SENTENCE}\nsecond line"]])
    table = pa.table({"a": [SENTENCE], "b": [[{"c": f"2 {SENTENCE}"}]], "n": [3]})
    pq.write_table(table, folder / "g.parquet")
    with tarfile.open(folder / "h.tar.gz", "w:gz") as archive:
        for name in ("../up/x.jsonl", "data/y.parquet", "z.bin"):
            content = lines if "jsonl" in name else (folder / "g.parquet").read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (folder / "i.bin").write_bytes(b"\x00")


def test_every_layout_is_read(tmp_path: Path) -> None:
    _layouts(tmp_path)
    found: dict[str, list[str]] = {}
    for name, column in evaluation_texts([str(tmp_path)]):
        found.setdefault(name.removeprefix(f"{tmp_path.name}/"), []).extend(column.to_pylist())
    assert list(found) == [
        *("a.jsonl", "b.jsonl.gz", "c.json", "d.txt.bz2", "e.tsv", "f.csv", "g.parquet"),
        *("h.tar.gz:../up/x.jsonl", "h.tar.gz:data/y.parquet"),
    ]
    assert all(SENTENCE in texts and any(t.startswith(f"2 {SENTENCE}") for t in texts) for texts in found.values())
    assert not (tmp_path.parent / "up").exists()


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_composed_and_decomposed_characters_match(
    forms: tuple[str, str], tmp_path: Path, documents_of: Documents
) -> None:
    sentences = [
        "Où était l'élève français né à Orléans, où a été trouvé le trésor caché près du château ?",
        "할아버지께서는 어제 저녁에 우리 가족 모두와 함께 오래된 한국 음식을 아주 맛있게 드셨다고 말씀하셨다.",
    ]
    (tmp_path / "e.txt").write_text("\n".join(unicodedata.normalize(forms[0], s) for s in sentences), "utf-8")
    given = [unicodedata.normalize(forms[1], f"Before. {s} Behind.") for s in sentences]
    verdict = ContaminationStep((str(tmp_path / "e.txt"),), 8).apply(documents_of([*given, "Something else."]))
    assert verdict.codes.tolist() == [1, 1, 0]


@given(st.lists(st.text(max_size=12), max_size=5))
def test_composed_as_unicodedata_composes(texts: list[str]) -> None:
    texts = [t.encode("utf-8", "replace").decode() for t in texts]
    found = composed(pa.array(["x", *texts, "y"], pa.string()).slice(1, len(texts)))
    assert found.to_pylist() == [unicodedata.normalize("NFC", t) for t in texts]


def test_files_in_a_bucket_are_read() -> None:
    import fsspec

    with fsspec.open("memory://exams/a/x.txt", "w") as file:
        file.write(SENTENCE)
    found = {name: column.to_pylist() for name, column in evaluation_texts(["memory://exams"])}
    assert found == {"exams/a/x.txt": [SENTENCE]}
    with pytest.raises(errors.InputMissing, match="no such evaluation file"):
        next(evaluation_texts(["memory://other"]))
    with pytest.raises(errors.InputMissing, match="cannot be looked into"):
        next(evaluation_texts(["nosuch://other"]))


def test_unreadable_files_are_one_line_errors(tmp_path: Path) -> None:
    for name, content in {
        "a.jsonl": b'{"a": 1}\n{"a"',
        "b.parquet": b"no",
        "c.tar.gz": b"no",
        "d.txt.gz": b"no",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.InputUnreadable, match="cannot be read as an evaluation file") as caught:
            ContaminationStep((str(tmp_path / name),)).check()
        assert "\n" not in str(caught.value)
    deep = tmp_path / "e.jsonl"
    deep.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(errors.InputUnreadable, match=r"e\.jsonl: .*line 1"):
        ContaminationStep((str(deep),)).check()
    odd = tmp_path / "f.odd"
    odd.write_text(SENTENCE)
    with pytest.raises(errors.InputUnreadable, match="ending is not known"):
        ContaminationStep((str(odd),)).check()
    with pytest.raises(errors.InputMissing, match="no such evaluation file"):
        ContaminationStep((str(tmp_path / "none"),)).check()
    few = tmp_path / "few.txt"
    few.write_text("only seven words are in this line\n")
    with pytest.raises(errors.InputMissing, match="no text of 8 words or more"):
        ContaminationStep((str(few),)).check()
    with pytest.raises(errors.RecipeInvalid, match="14 words; from 8 to 13"):
        ContaminationStep((str(few),), 14).check()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"x" * 3000, "line 1 is longer than 1000"),
        ("a.jsonl.gz", gzip.compress(b'"a"\n"' + b"x" * 100_000 + b'"'), "line 2 is longer than 1000"),
        ("a.json", b'["' + b"x" * 3000 + b'"]', "larger than 2000 bytes"),
        ("a.csv", b'"a\n",' * 1000, "a row is longer than 1000"),
        ("a.tsv", b"words of a line\n" * 1000, "more than 5000 bytes of text"),
    ],
)
def test_files_that_are_too_large_are_refused(
    name: str, data: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the run, and before they fill the memory, also if packed."""
    for limit, value in {"MOST_ROW": 1000, "MOST_JSON": 2000, "MOST_TEXT": 5000, "BATCH_BYTES": 1000}.items():
        monkeypatch.setattr(contamination, limit, value)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(errors.InputUnreadable, match=message) as caught:
        ContaminationStep((str(tmp_path / name),)).check()
    assert name in str(caught.value) and "\n" not in str(caught.value)


def test_row_groups_that_are_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contamination, "MOST_JSON", 2000)
    pq.write_table(pa.table({"text": [f"text {i}" for i in range(2000)]}), tmp_path / "a.parquet")
    with pytest.raises(errors.InputUnreadable, match="row group is larger than 2000"):
        list(evaluation_texts([str(tmp_path)]))


def test_an_error_names_the_file_by_the_path_that_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad/bin/deep").mkdir(parents=True)
    (tmp_path / "bad/bin/deep/garbage.jsonl").write_text("no json\n")
    named = {"bad": "bin/deep/", "bad/bin": "deep/", "bad/bin/": "deep/", "bad/bin/deep/garbage.jsonl": ""}
    for typed, below in named.items():
        with pytest.raises(errors.InputUnreadable) as caught:
            list(evaluation_texts([typed]))
        assert caught.value.where == (f"{typed.rstrip('/')}/{below}garbage.jsonl" if below else typed)


def test_resources_describe_the_evaluation_files(tmp_path: Path, documents_of: Documents) -> None:
    path = tmp_path / "e.txt"
    path.write_text(f"{SENTENCE}\nonly seven words are in this line\n")
    step = ContaminationStep((str(path),))
    found = step.resources()
    assert {k: found[k] for k in ("files", "texts", "too_short", "ngrams")} == {
        "files": 1,
        "texts": 2,
        "too_short": 1,
        "ngrams": 5,
    }
    other = tmp_path / "other" / "e.txt"
    other.parent.mkdir()
    other.write_text(f"{SENTENCE} More.")
    assert ContaminationStep((str(other),)).resources()["digest"] != found["digest"]
    verdict = pickle.loads(pickle.dumps(step)).apply(documents_of([f"See: {SENTENCE.upper()}", "Nothing."]))
    assert verdict.codes.tolist() == [1, 0] and verdict.reasons[1] == "page:contaminated"
    assert verdict.details == {0: "e.txt: every student who has read the old books of that library likes some"}


@pytest.mark.slow
def test_planted_copies_of_real_benchmarks_are_all_found(shared_data: Path, documents_of: Documents) -> None:
    step = ContaminationStep((str(shared_data / "eval/blimp-data.tar.gz"), str(shared_data / "eval/glue/RTE/dev.tsv")))
    step.check()
    planted, clean = [], []
    filler = "It was a plain day, and nothing at all had been planned for it by anyone."
    for number, (_, column) in enumerate(evaluation_texts(step.paths)):
        for text in column.to_pylist()[number % 7 :: 97]:
            count = len(words(text))
            around = f"{filler} (“{' '.join(text.upper().split())}”) {filler}"
            (planted if count >= 8 else clean).append(around)
    assert len(planted) > 500 and len(clean) > 500
    assert step.apply(documents_of(planted)).codes.all()
    assert not step.apply(documents_of(clean)).codes.any()
