"""SQuAD's JSON (Rajpurkar et al. 2016, arXiv 1606.05250; version 2: 2018, arXiv 1806.03822) as inputs of the model.

train*.json and dev*.json are read into `Questions`, in columns, and these split into `Windows`: [CLS] question [SEP]
part of the passage [SEP] as ids, with the position of each token in the passage. A passage is encoded once, whatever
the number of its questions; one that is too long is split into windows that begin every ``STRIDE`` tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.arrays import I32, I64, Bools, offsets_of
from corpusforge.evaluate.finetune import Encoded

STRIDE, QUESTION_TOKENS = 128, 64
"""Tokens between starts of windows, and the most tokens of a question: google-research/bert, `run_squad.py`."""


@dataclass(frozen=True)
class Questions:
    """Columns, one entry per question. ``passage``: index in ``passages``; ``answers``: all right ones, none if there
    is none; ``begin``: where the first begins in the passage, -1 if there is none."""

    passages: list[str]
    passage: I64
    texts: list[str]
    answers: list[list[str]]
    begin: I64

    def __len__(self) -> int:
        return len(self.texts)

    def pick(self, rows: I64) -> Questions:
        """The questions ``rows``."""
        chosen = rows.tolist()
        texts, answers = [self.texts[r] for r in chosen], [self.answers[r] for r in chosen]
        return Questions(self.passages, self.passage[rows], texts, answers, self.begin[rows])

    @property
    def has_unanswerable(self) -> bool:
        """Whether some question has no answer: version 2."""
        return not all(self.answers)


def find_files(folder: str) -> tuple[Path, Path]:
    """The files to train and to evaluate on. Raises `errors.InputMissing`."""
    root = Path(folder)
    if not folder or not root.is_dir():
        what = f"no such folder: {folder}" if folder else "no folder is named"
        raise errors.InputMissing("SQuAD data", what, "name a folder with train*.json and dev*.json")
    paths = []
    for part in ("train", "dev"):
        files = sorted(root.glob(f"{part}*.json"))
        if len(files) != 1:
            what = f"{len(files)} files {part}*.json in it"
            raise errors.InputMissing(folder, what, "it must hold one train*.json and one dev*.json")
        paths.append(files[0])
    return paths[0], paths[1]


def read_questions(path: Path) -> Questions:
    """Read a file. Raises `errors.InputUnreadable` if it is not in the format."""
    mend = "SQuAD's JSON: data, paragraphs, context and qas with id, question and answers (text, answer_start)"
    passages, passage, texts, rights, begin = list[str](), list[int](), list[str](), list[list[str]](), list[int]()
    where = "data"
    try:
        for article in json.loads(path.read_text("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                passages.append(str(paragraph["context"]))
                for asked in paragraph["qas"]:
                    where = f"question {asked.get('id', len(texts) + 1)!r}"
                    answers = [] if asked.get("is_impossible") else asked["answers"]
                    if not answers and not asked.get("is_impossible", False):
                        raise errors.InputUnreadable(str(path), f"{where} has no answers", "mark it is_impossible")
                    texts.append(str(asked["question"]).strip())
                    rights.append([str(answer["text"]) for answer in answers])
                    begin.append(int(answers[0]["answer_start"]) if answers else -1)
                    passage.append(len(passages) - 1)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.InputUnreadable(str(path), f"not as expected at {where} ({error!r})", mend) from None
    if not begin:
        raise errors.InputUnreadable(str(path), "no question in it", mend)
    return Questions(passages, np.array(passage), texts, rights, np.array(begin))


@dataclass(frozen=True)
class Windows:
    """Inputs of the model, one entry per window.

    ``question``: its number; ``front``: tokens before the passage; ``count``: tokens of the passage in the window.
    ``begins``, ``ends``: characters of these tokens in the passage, flat, those of window i from ``offsets[i]`` on, and
    a final 0. ``targets`` [W, 2]: positions of the answer's first and last token in the input, 0 ([CLS]) if the window
    does not hold it.
    """

    inputs: Encoded
    question: I64
    front: I64
    count: I64
    begins: I64
    ends: I64
    offsets: I64
    targets: I64

    def __len__(self) -> int:
        return len(self.question)


def split_windows(tokenizer: Any, questions: Questions, cls: int, sep: int, longest: int) -> Windows:
    """Windows of at most ``longest`` tokens over the passages of all questions."""
    tokenizer.no_truncation()
    between = tokenizer.num_special_tokens_to_add(True) - 2  # one [SEP], or two for RoBERTa
    most = min(QUESTION_TOKENS, (longest - between - 2) // 2)
    texts = [e.ids[:most] for e in tokenizer.encode_batch(questions.texts, add_special_tokens=False)]
    passages = [
        (np.array(e.ids, np.int32), np.array(e.offsets, np.int64).reshape(-1, 2))
        for e in tokenizer.encode_batch(questions.passages, add_special_tokens=False)
    ]
    rows, numbers, spans = [], [], []
    for number, ids in enumerate(texts):  # a loop over questions: each is a few windows of hundreds of tokens
        tokens, characters = passages[questions.passage[number]]
        front = np.array([cls, *ids, *[sep] * between], np.int32)
        room = longest - len(front) - 1
        first, last = _answer_tokens(questions, number, characters)
        for begin in _window_begins(len(tokens), room):
            part = slice(begin, min(begin + room, len(tokens)))
            inside = part.start <= first and last < part.stop
            shift = len(front) - begin
            targets = (first + shift, last + shift) if inside else (0, 0)
            rows.append((front, tokens[part]))
            numbers.append((number, len(front), part.stop - part.start, *targets))
            spans.append(characters[part])
    question, of_front, count, *_ = table = np.array(numbers, np.int64).T.copy()
    begins, ends = np.concatenate([*spans, np.zeros((1, 2), np.int64)]).T.copy()
    return Windows(_inputs(rows, sep), question, of_front, count, begins, ends, offsets_of(count), table[3:].T.copy())


def _window_begins(tokens: int, room: int) -> range:
    """Starts of windows: every STRIDE tokens, or half a window if that is less, until one holds the end.

    >>> list(_window_begins(500, 300)), list(_window_begins(200, 200)), list(_window_begins(150, 60))
    ([0, 128, 256], [0], [0, 30, 60, 90])
    """
    step = min(STRIDE, max(room // 2, 1))
    return range(0, max(tokens - room + step - 1, 0) // step * step + 1, step)


def _answer_tokens(questions: Questions, number: int, characters: I64) -> tuple[int, int]:
    """First and last token of the first answer; (-1, -1) without one, or if it is not at its stated position."""
    begin = int(questions.begin[number])
    if begin < 0 or not len(characters):
        return -1, -1
    answer = questions.answers[number][0]
    if not answer or questions.passages[questions.passage[number]][begin : begin + len(answer)] != answer:
        return -1, -1
    first, last = np.searchsorted(characters[:, 0], [begin, begin + len(answer) - 1], "right") - 1
    return max(int(first), 0), max(int(last), 0)


def is_misplaced(questions: Questions) -> Bools:
    """Which questions have an answer that is not at its stated position, so cannot be learned. ``[questions]``."""
    misplaced = [
        bool(answers) and questions.passages[passage][begin : begin + len(answers[0])] != answers[0]
        for answers, passage, begin in zip(
            questions.answers, questions.passage.tolist(), questions.begin.tolist(), strict=True
        )
    ]
    return np.array(misplaced, bool)


def _inputs(rows: list[tuple[I32, I32]], sep: int) -> Encoded:
    ids, segments = [], []
    for front, part in rows:
        ids.append(np.concatenate([front, part, np.array([sep], np.int32)]))
        segments.append(np.repeat(np.array([0, 1], np.int8), [len(front), len(part) + 1]))
    offsets = offsets_of(np.array([len(row) for row in ids], np.int64))
    return Encoded(np.concatenate(ids), np.concatenate(segments), offsets)
