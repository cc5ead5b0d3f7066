"""SQuAD's format: figures against their definitions, windows that lose no token, bad files, a task end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors
from corpusforge.evaluate.finetune import FineTuning
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.evaluate.squad import (
    LONGEST,
    Answers,
    answers,
    best_spans,
    best_threshold,
    exact_and_f1,
    figures,
    squad,
)
from corpusforge.evaluate.squad_data import find_files, is_misplaced, read_questions, split_windows
from corpusforge.sections import Evaluate
from corpusforge.trainer.hf_folder import load_model
from tests.evaluate.tiny_models import specials_of, write_checkpoint
from tests.oracles import squad as oracle


def paragraph(context: str, *asked: tuple[str, list[str]]) -> dict[str, Any]:
    """A paragraph with questions; no answers: the question has none."""
    qas = []
    for number, (question, right) in enumerate(asked):
        found = [{"text": text, "answer_start": context.find(text)} for text in right]
        qas.append({"id": f"q{number}", "question": question, "answers": found, "is_impossible": not right})
    return {"context": context, "qas": qas}


SAMPLE = [
    paragraph(
        "The mill at Bracken Ford was built in 1784 by Ann Holloway. It ground rye, and later paper pulp.",
        ("Who built the mill?", ["Ann Holloway", "Holloway"]),
        ("What did it grind first?", ["rye"]),
        ("When did the mill burn down?", []),
    ),
    paragraph("Copper melts at 1,085 °C; tin at 232 °C.", ("At what temperature does tin melt?", ["232 °C"])),
]


def write(folder: Path, train: list[dict[str, Any]], dev: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, paragraphs in (("train-v2.0", train), ("dev-v2.0", dev)):
        (folder / f"{name}.json").write_text(json.dumps({"version": "2", "data": [{"paragraphs": paragraphs}]}))
    return folder


TEXTS = st.lists(st.sampled_from(["the", "A", "an", "cat", "Cat.", "U.S.", "theft", "-", "  ", "42%"]), max_size=5).map(
    " ".join
)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_exact_match_and_f1_are_by_definition(said: str, right: list[str]) -> None:
    assert exact_and_f1(said, right) == (oracle.exact(said, right), pytest.approx(oracle.f1(said, right)))


@given(st.integers(0, 3), st.integers(1, 40), st.integers(0, 2), st.randoms(use_true_random=False))
def test_the_best_span_is_the_best_of_all(front: int, count: int, behind: int, random: Any) -> None:
    size = front + count + behind
    scores = torch.tensor([[[random.randint(-9, 9) / 2 for _ in range(2)] for _ in range(size)]])
    first, last, best = best_spans(scores, np.array([front]), np.array([count]))
    inside = scores[0, front : front + count].T.tolist()
    assert best[0] == oracle.best_span(*inside, LONGEST)
    assert front <= first[0] <= last[0] < front + count
    assert last[0] - first[0] < LONGEST
    assert scores[0, first[0], 0] + scores[0, last[0], 1] == best[0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.booleans()), min_size=1, max_size=12))
def test_the_best_threshold_is_the_best_of_all(cases: list[tuple[int, int, bool]]) -> None:
    has_answer = [has for _, _, has in cases]
    raw = [quarter / 4 if has else float(quarter == 4) for quarter, _, has in cases]
    null = [float(n) for _, n, _ in cases]
    mean, threshold = best_threshold(np.array(raw), np.array(null), np.array(has_answer))
    assert mean == pytest.approx(oracle.best_mean(raw, null, has_answer))
    counted = [float(not has) if n > threshold else r for r, n, has in zip(raw, null, has_answer, strict=True)]
    assert np.mean(counted) == pytest.approx(mean)


def test_no_answer_is_said_above_the_threshold(tmp_path: Path) -> None:
    questions = read_questions(find_files(str(write(tmp_path, SAMPLE, SAMPLE)))[1])
    said = Answers(["ann holloway", "rye and wheat", "1784", "232 °C"], np.array([-3.0, 1.0, 2.0, -1.0]))
    found = figures(questions, said, 0.0)
    assert found["exact"] == pytest.approx((1 + 0 + 1 + 1) / 4)
    assert (found["no_answer"], found["exact_answerable"]) == (1.0, pytest.approx(2 / 3))
    assert found["best_f1"] == pytest.approx((1 + 2 / 4 + 1 + 1) / 4)
    assert found["best_f1_threshold"] == 1.0
    assert figures(questions, said, 9.0)["no_answer"] == 0.0


@pytest.mark.parametrize("longest", [24, 30, 64])
def test_windows_hold_every_token_and_know_where_it_stands(tmp_path: Path, longest: int) -> None:
    words = [f"w{k}" for k in range(90)]
    context = " ".join(words)
    folder = write(tmp_path / "data", [paragraph(context, ("w5 w6?", ["w40 w41"]), ("w9", []))], SAMPLE)
    questions = read_questions(find_files(str(folder))[0])
    checkpoint = write_checkpoint(tmp_path / "made")
    tokenizer, specials = load_tokenizer(checkpoint), specials_of(checkpoint)
    windows = split_windows(tokenizer, questions, specials.cls, specials.sep, longest)
    assert windows.inputs.lengths.max() <= longest
    seen: list[set[str]] = [set(), set()]
    for number in range(len(windows)):
        places = slice(windows.offsets[number], windows.offsets[number + 1])
        texts = [context[b:e] for b, e in zip(windows.begins[places], windows.ends[places], strict=True)]
        ids = windows.inputs.ids[windows.inputs.offsets[number] : windows.inputs.offsets[number + 1]].tolist()
        front = windows.front[number]
        assert ids[front : front + windows.count[number]] == [tokenizer.token_to_id(text) for text in texts]
        pair = tokenizer.encode(questions.texts[windows.question[number]], " ".join(texts))
        assert (ids, pair.type_ids) == (
            pair.ids,
            windows.inputs.segments[slice(*windows.inputs.offsets[number:][:2])].tolist(),
        )
        first, last = windows.targets[number].tolist()
        if windows.question[number] == 0 and {"w40", "w41"} <= set(texts):
            assert [tokenizer.id_to_token(k) for k in ids[first : last + 1]] == ["w40", "w41"]
        else:
            assert (first, last) == (0, 0)
        seen[windows.question[number]] |= set(texts)
    assert seen == [set(words), set(words)]
    assert (windows.targets.sum(1) > 0).any()


def test_the_answer_of_a_question_is_the_best_of_its_windows(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", [paragraph(" ".join(f"w{k}" for k in range(60)), ("w5", ["w7"]))], SAMPLE)
    questions = read_questions(find_files(str(folder))[0])
    checkpoint = write_checkpoint(tmp_path / "made")
    specials = specials_of(checkpoint)
    windows = split_windows(load_tokenizer(checkpoint), questions, specials.cls, specials.sep, 24)
    said = torch.zeros(len(windows), 24, 2)
    said[1, windows.front[1] + 2, 0] = said[1, windows.front[1] + 3, 1] = 4
    said[0, 0], said[1, 0] = torch.tensor([3.0, 3.0]), torch.tensor([1.0, 1.5])
    said[2:, 0] = 9
    found = answers(
        questions, windows, [(np.array([number]), said[number : number + 1]) for number in range(len(said))]
    )
    begin = int(windows.count[0]) // 2 + 2  # windows shorter than two strides begin at half of the one before
    assert found.texts == [f"w{begin} w{begin + 1}"]
    assert found.null.tolist() == [2.5 - 8]


@pytest.mark.slow
def test_a_task_end_to_end(tmp_path: Path) -> None:
    """The answer is the one word from w100 on; a passage without one has no answer."""
    rng = np.random.default_rng(0)

    def made(count: int) -> list[dict[str, Any]]:
        found = []
        for number in range(count):
            words = [f"w{k}" for k in rng.integers(10, 99, rng.integers(5, 40))]
            right = [f"w{rng.integers(100, 105)}"] if number % 4 else []
            words[rng.integers(len(words))] = right[0] if right else "w50"
            found.append(paragraph(" ".join(words) + ".", ("w0?", right)))
        return found

    folder = write(tmp_path / "data", made(64), made(40))
    checkpoint = write_checkpoint(tmp_path / "made", deviation=0.1)
    wanted = FineTuning(Evaluate(epochs=20, batch=8, learning_rate=5e-3, seeds=1, max_length=32))
    arguments: dict[str, Any] = {"batch_tokens": 4096, "device": torch.device("cpu")}
    found = squad(load_model(checkpoint), checkpoint, str(folder), specials_of(checkpoint), wanted, **arguments)
    assert found["score"] == found["f1"] > 0.8
    assert (found["version"], found["questions"]) == (2, {"train": 64, "dev": 40})
    assert found["windows"]["dev"] > 40
    assert found["no_answer"] > 0.5
    assert found["best_f1"] >= found["f1"]
    assert json.loads(json.dumps(found)) == found


def test_answers_that_stand_elsewhere_are_not_learned(tmp_path: Path) -> None:
    moved = json.loads(json.dumps(SAMPLE))
    moved[0]["qas"][0]["answers"][0]["answer_start"] += 1
    questions = read_questions(find_files(str(write(tmp_path, moved, SAMPLE)))[0])
    assert is_misplaced(questions).tolist() == [True, False, False, False]


def test_bad_files_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing, match="no folder is named"):
        find_files("")
    with pytest.raises(errors.InputMissing, match=r"0 files train\*\.json"):
        find_files(str(tmp_path))
    path = tmp_path / "train.json"
    asked = '{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "x7", "question": "q"%s}]}]}]}'
    for text, said in (
        ("no json", "not as expected at data"),
        ('{"data": []}', "no question in it"),
        (asked % "", "at question 'x7'"),
        (asked % ', "answers": []', "no answers"),
    ):
        path.write_text(text)
        with pytest.raises(errors.InputUnreadable, match=said):
            read_questions(path)


def test_real_files_in_the_layout_are_read(shared_data: Path) -> None:
    questions = read_questions(shared_data / "text_zh/cmrc2018_dev.json")
    assert (len(questions.passages), len(questions)) == (848, 3219)
    assert is_misplaced(questions).mean() < 0.1
