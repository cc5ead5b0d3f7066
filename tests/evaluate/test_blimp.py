"""BLiMP scores: pseudo-log-likelihoods against transformers, ties, reading of the files."""

from __future__ import annotations

import io
import json
import math
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.arrays import offsets_of
from corpusforge.evaluate.blimp import Pair, blimp, read_pairs
from corpusforge.evaluate.likelihood import Sentences, pseudo_log_likelihoods, questions, tokenize
from corpusforge.evaluate.run import evaluate
from corpusforge.sections import Evaluate
from corpusforge.trainer.model import Encoder
from tests.evaluate.tiny_models import write_checkpoint
from tests.oracles import pseudo_likelihood

CPU = torch.device("cpu")
MASK = 4


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


def load(folder: Path) -> Encoder:
    from corpusforge.trainer.hf_folder import load_model

    return load_model(folder)


SENTENCES = ["w1 w2 w3", "w9", "w5 w5 w5 w5 w5 w5 w5", "w100 w20 w3", "", "W1 w2 w3", "w7 w8", "w12w7 w5", "w9-w12w7w1"]


@pytest.mark.parametrize("budget", [64, 10_000])
def test_pseudo_log_likelihood_is_the_plain_loop_over_transformers(model_folder: Path, budget: int) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(model_folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    tokens = tokenize(model_folder, SENTENCES, 64)
    assert np.split(tokens.ids, tokens.offsets[1:-1])[-1].tolist() == tokenizer(SENTENCES[-1])["input_ids"]
    mine = pseudo_log_likelihoods(load(model_folder), tokens, MASK, batch_tokens=budget, device=CPU)
    for form, scores in mine.items():
        expected = [pseudo_likelihood.score(theirs, tokenizer, sentence, form) for sentence in SENTENCES]
        assert np.allclose(scores, expected, atol=1e-4), form
        assert scores[4] == 0.0
        assert scores[0] == scores[5]  # the same ids: exactly the same score
    assert set(np.flatnonzero(mine["original"] != mine["word_l2r"])) == {7, 8}  # those with words of several tokens


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=5))
def test_every_question_is_asked_once_of_the_right_row(sentences: list[list[int]]) -> None:
    """``sentences``: each token's word and id in one: 0 continues the word before it."""
    words = [np.cumsum([0, *(token > 0 for token in tokens)])[1:].tolist() for tokens in sentences]
    ids = [[1, *(10 + token for token in tokens), 2] for tokens in sentences]
    flat = Sentences(
        np.array([i for row in ids for i in row], np.int32),
        np.array([w for row in words for w in (-1, *row, -1)], np.int32),
        offsets_of(np.array([len(row) for row in ids])),
    )
    expected, rows = set(), set()
    for number, (tokens, of_word) in enumerate(zip(ids, words, strict=True)):
        for at in range(1, len(tokens) - 1):
            for form in (0, 1):
                later = [
                    k for k in range(at, len(tokens) - 1) if k == at or (form and of_word[k - 1] == of_word[at - 1])
                ]
                row = tuple(MASK if k in later else token for k, token in enumerate(tokens))
                expected.add((number, at, form, row, tokens[at]))
                rows.add((row, at))
    found, seen = set(), []
    for asked in questions(flat, MASK):
        seen += [(tuple(row), at) for row, at in zip(asked.rows.tolist(), asked.at.tolist(), strict=True)]
        assert (np.diff(asked.row) >= 0).all()
        for q, row in enumerate(asked.row.tolist()):
            whole = tuple(asked.rows[row].tolist())
            found.add((int(asked.sentence[q]), int(asked.at[row]), int(asked.form[q]), whole, int(asked.label[q])))
    assert found == expected
    assert sorted(seen) == sorted(rows)


def test_ties_count_half_and_paradigms_count_alike(model_folder: Path) -> None:
    scores = pseudo_log_likelihoods(
        load(model_folder), tokenize(model_folder, ["w1 w2 w3", "w9 w4"], 64), MASK, batch_tokens=99, device=CPU
    )["original"]
    better, worse = ("w1 w2 w3", "w9 w4") if scores[0] > scores[1] else ("w9 w4", "w1 w2 w3")
    pairs = [
        Pair(better, worse, "a", "x"),
        Pair(better, worse, "a", "x"),
        Pair(worse, better, "a", "x"),
        Pair("w1 w2 w3", "W1 w2 w3", "b", "x"),  # a tie for an uncased vocabulary
        Pair(better, worse, "c", "y"),
    ]
    found = blimp(load(model_folder), model_folder, MASK, pairs, batch_tokens=999, device=CPU)
    for figures in (found, found["word_l2r"]):  # all words are one token here
        assert figures["paradigms"] == {"a": pytest.approx(2 / 3), "b": 0.5, "c": 1.0}
        assert figures["accuracy"] == pytest.approx((2 / 3 + 0.5 + 1.0) / 3)
        assert figures["phenomena"] == {"x": pytest.approx((2 / 3 + 0.5) / 2), "y": 1.0}
        assert figures["ties"] == 0.2


def lines(uid: str, count: int) -> bytes:
    rows: list[dict[str, Any]] = [
        {"sentence_good": f"w{k} w2", "sentence_bad": f"w{k} w3", "UID": uid, "linguistics_term": f"{uid}-term"}
        for k in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_reads_folders_and_archives_alike(tmp_path: Path) -> None:
    folder, archive = tmp_path / "data", tmp_path / "data.tar.gz"
    folder.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        for uid in ("two", "one"):
            (folder / f"{uid}.jsonl").write_bytes(lines(uid, 5))
            member = tarfile.TarInfo(f"data/{uid}.jsonl")
            member.size = len(lines(uid, 5))
            tar.addfile(member, io.BytesIO(lines(uid, 5)))
    assert read_pairs(str(folder), 0) == read_pairs(str(archive), 0)
    assert len(read_pairs(str(folder), 0)) == 10
    assert [p.paradigm for p in read_pairs(str(archive), 2)] == ["one", "one", "two", "two"]


def test_bad_files_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing):
        read_pairs(str(tmp_path / "nothing"), 0)
    with pytest.raises(errors.InputMissing):
        read_pairs(str(tmp_path), 0)
    (tmp_path / "bad.jsonl").write_text('{"sentence_good": "a"}\n')
    with pytest.raises(errors.InputUnreadable, match="line 1"):
        read_pairs(str(tmp_path), 0)
    (tmp_path / "bad.tar.gz").write_bytes(b"no archive")
    with pytest.raises(errors.InputUnreadable):
        read_pairs(str(tmp_path / "bad.tar.gz"), 0)


def test_real_blimp_reads_whole(shared_data: Path) -> None:
    pairs = read_pairs(str(shared_data / "eval/blimp-data.tar.gz"), 0)
    paradigms = {p.paradigm for p in pairs}
    assert (len(pairs), len(paradigms)) == (67_000, 67)
    assert len({p.phenomenon for p in pairs}) == 12  # as in the paper's table 4


def test_an_untrained_model_is_near_chance_on_real_pairs(shared_data: Path, model_folder: Path) -> None:
    archive = str(shared_data / "eval/blimp-data.tar.gz")
    found = evaluate(str(model_folder.parent), Evaluate(tasks=("blimp",), blimp_data=archive, blimp_pairs=1))
    assert found["tasks"]["blimp"]["pairs"] == 67
    # Every word is unknown to this vocabulary: pairs of equal length tie.
    assert 0.2 < found["tasks"]["blimp"]["accuracy"] < 0.8
    assert math.isfinite(found["tasks"]["blimp"]["accuracy"])
