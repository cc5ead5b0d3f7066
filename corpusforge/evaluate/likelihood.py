"""Pseudo-log-likelihoods of sentences, in place of the sentence probability that an encoder does not have.

The score of a sentence is the sum of log p(token | the rest), in nats, in two forms:

- ``original`` (Salazar et al. 2020, arXiv 1910.14659): each token is masked alone.
- ``word_l2r`` (Kauf and Ivanova 2023, arXiv 2305.10588, PLL-word-l2r): the later tokens of its word, which would
  reveal it, are masked too.

The model sees each distinct masked row once: the forms share the rows of last tokens of words, the sentences of a
minimal pair those of the token in which they differ. A batch has rows of one length, so there is no padding, and the
last layer computes the masked position only.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from corpusforge import errors
from corpusforge.arrays import F64, I32, I64, offsets_of, ranges
from corpusforge.progress import Progress, Silent
from corpusforge.trainer.model import Encoder, Layer, activate

FORMS = ("original", "word_l2r")

Scores = dict[str, F64]


@dataclass(frozen=True)
class Sentences:
    """Tokenized sentences, flat: sentence i owns ``ids[offsets[i]:offsets[i + 1]]``, [CLS] and [SEP] included.

    ``words``: the number of each token's word in its sentence, -1 for special tokens.
    """

    ids: I32
    words: I32
    offsets: I64

    @property
    def lengths(self) -> I64:
        """Tokens of each sentence."""
        return np.diff(self.offsets)


def tokenize(model_folder: Path, sentences: list[str], longest: int) -> Sentences:
    """Sentences with [CLS] and [SEP], truncated to ``longest`` tokens, by the tokenizer beside the weights; words are
    those of its pre-tokenization."""
    tokenizer = load_tokenizer(model_folder)
    tokenizer.enable_truncation(longest)
    ids: list[list[int]] = []
    words: list[list[int]] = []
    for encoding in tokenizer.encode_batch(sentences):  # the library returns one object per sentence
        ids.append(encoding.ids)
        words.append([-1 if word is None else word for word in encoding.word_ids])
    lengths = np.array([len(row) for row in ids], np.int64)
    flat_ids, flat_words = (np.array([n for row in column for n in row], np.int32) for column in (ids, words))
    return Sentences(flat_ids, flat_words, offsets_of(lengths))


def load_tokenizer(model_folder: Path) -> Any:
    """The `tokenizers.Tokenizer` of a Hugging Face directory. Raises `errors.InputMissing`."""
    from tokenizers import Tokenizer  # 30 ms, needed only here

    try:
        tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    except Exception as error:  # the library raises Exception itself
        what = f"no usable tokenizer.json ({error})"
        raise errors.InputMissing(str(model_folder), what, "name a checkpoint that pretrain wrote") from None
    tokenizer.no_padding()
    return tokenizer


@dataclass(frozen=True)
class Questions:
    """Masked rows of one length, and questions about them for the model to answer.

    ``rows`` [R, T]: distinct masked sentences; ``at`` [R]: the position to predict. Question q asks for the probability
    of token ``label[q]`` in row ``row[q]``; the answer counts for sentence ``sentence[q]`` and form ``form[q]``. Sorted
    by row.
    """

    rows: I32
    at: I64
    row: I64
    label: I64
    sentence: I64
    form: I64


def questions(sentences: Sentences, mask_id: int) -> Iterator[Questions]:
    """All questions, the longest sentences first, so that memory runs out at once or never."""
    lengths = sentences.lengths
    for length in np.unique(lengths)[::-1].tolist():
        if length > 2:
            chosen = np.flatnonzero(lengths == length)
            at = ranges(sentences.offsets[chosen], np.full(len(chosen), length))
            ids, words = (flat[at].reshape(-1, length) for flat in (sentences.ids, sentences.words))
            yield _of_one_length(chosen, ids, words, mask_id)


def _of_one_length(chosen: I64, ids: I32, words: I32, mask_id: int) -> Questions:
    S, T = ids.shape
    sentence, at = np.divmod(np.arange(S * (T - 2)), T - 2)
    at = at + 1
    columns = np.arange(T)
    alone = columns == at[:, None]
    same_word = (words[sentence] == words[sentence, at][:, None]) & (words[sentence, at] >= 0)[:, None]
    masks = np.stack([alone, alone | (same_word & (columns > at[:, None]))])  # [forms, questions, T]
    seen = np.where(masks, np.int32(mask_id), ids[sentence]).reshape(-1, T)
    positions = np.concatenate([at, at])
    keys = np.ascontiguousarray(np.column_stack([seen, positions.astype(np.int32)]))
    row_keys = keys.view(np.dtype((np.void, keys.itemsize * keys.shape[1])))[:, 0]  # a row as one value
    _, first, row = np.unique(row_keys, return_index=True, return_inverse=True)
    order = np.argsort(row, kind="stable")
    form = np.repeat([0, 1], len(at))[order]
    label = np.tile(ids[sentence, at], 2)[order].astype(np.int64)
    return Questions(seen[first], positions[first], row[order], label, np.tile(chosen[sentence], 2)[order], form)


class OnePosition:
    """The hidden state of an encoder at one position of each row, equal to that of `Encoder.encode`.

    The last layer computes keys and values of all positions, and everything else of the one position: a sixth of its
    work. This saves 42 % of the layers of a model of two, 7 % of one of twelve. It shares the weights; no dropout.
    """

    def __init__(self, model: Encoder) -> None:
        self.body = copy.copy(model)  # the same modules, but `encode` runs one layer less
        self.body.shape = dataclasses.replace(model.shape, layers=model.shape.layers - 1)
        self.last: Layer = model.layers[-1]  # type: ignore[assignment]

    def __call__(self, input_ids: Tensor, at: Tensor) -> Tensor:
        """``input_ids`` [B, T] without padding, of the first segment; ``at`` [B]. Returns [B, D]."""
        x = self.body.encode(input_ids, torch.zeros_like(input_ids), None)
        B, T, D = x.shape
        here = x[torch.arange(B, device=x.device), at]
        attention = self.last.attention
        weight, bias = attention.projections.weight, attention.projections.bias
        query = F.linear(here, weight[:D], bias[:D]).view(B, attention.heads, 1, -1)
        others = F.linear(x, weight[D:], bias[D:]).view(B, T, 2, attention.heads, -1)
        key, value = others.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value).reshape(B, D)
        here = attention.norm(here + attention.output(mixed))
        inner = self.last.output(activate(self.last.inner(here), self.last.activation))
        out: Tensor = self.last.norm(here + inner)
        return out


@torch.no_grad()
def pseudo_log_likelihoods(
    model: Encoder,
    sentences: Sentences,
    mask_id: int,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> Scores:
    """The score of each sentence by form, ``{form: [n]}``. Equal ids give exactly equal scores."""
    shown, hidden = progress or Silent(), OnePosition(model)
    scores = {form: np.zeros(len(sentences.lengths), np.float64) for form in FORMS}
    lengths = sentences.lengths
    shown.start("pseudo-log-likelihoods", int(np.maximum(lengths - 2, 0).sum()), "tokens")
    for group in questions(sentences, mask_id):
        answers = np.zeros(len(group.row), np.float64)
        size = max(1, batch_tokens // group.rows.shape[1])
        for begin in range(0, len(group.rows), size):
            chosen = slice(*np.searchsorted(group.row, [begin, begin + size]))
            rows = torch.from_numpy(group.rows[begin : begin + size].astype(np.int64)).to(device)
            at = torch.from_numpy(group.at[begin : begin + size]).to(device)
            row = torch.from_numpy(group.row[chosen] - begin).to(device)
            label = torch.from_numpy(group.label[chosen]).to(device)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                logits = model.predict(hidden(rows, at)).float()
            answers[chosen] = (logits[row, label] - logits.logsumexp(-1)[row]).double().cpu().numpy()
            shown.advance(int((group.form[chosen] == 0).sum()))
        # Summed in float64, token by token: sentences are compared by differences of sums.
        order = np.lexsort((group.at[group.row], group.sentence))
        for number, form in enumerate(FORMS):
            of_form = order[group.form[order] == number]
            scores[form] += np.bincount(group.sentence[of_form], answers[of_form], minlength=len(lengths))
    shown.finish()
    return scores
