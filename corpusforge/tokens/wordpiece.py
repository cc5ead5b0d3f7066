"""The family of BERT: greedy longest match over words cut at spaces and punctuation, ``##`` inside words.

In: learned pieces, or the parts of a tokenizer folder. Out: `Vocab`s of this family. The decision: ids of the specials
are BERT's own where there are slots enough (google-research/bert, vocab.txt of uncased_L-12_H-768_A-12: [PAD] 0,
[UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103), so that what was written for BERT's vocabulary works with any.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.arrays import Bools
from corpusforge.tokens.longest_match import LongestMatch
from corpusforge.tokens.vocab import ROLES, Vocab, with_roles
from corpusforge.tokens.words import UNCASED, Normalization

BERT_UNUSED = 99
"""[unusedN] slots between [PAD] 0 and [UNK] 100 in BERT's own vocabularies."""

MAX_WORD_CHARACTERS = 100
"""Longer words are [UNK] (huggingface/tokenizers, models/wordpiece; google-research/bert said 200)."""

NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclasses.dataclass(frozen=True)
class WordPiece:
    """Settings of the family; `Family` says what the methods give."""

    cutting: Normalization = UNCASED
    max_word_characters: int = MAX_WORD_CHARACTERS

    @property
    def name(self) -> str:
        return "wordpiece"

    def check(self, vocab: Vocab) -> None:
        # Text is split at every punctuation, so a longer token with one in it can never come out of text.
        reserved = (vocab.tokens[i] for i in vocab.reserved)
        open_ = [token for token in reserved if len(token) < 2 or not any(map(is_punctuation, token))]
        if open_:
            mend = "use a tokenizer whose special tokens contain punctuation, like [MASK]"
            raise errors.ManifestInvalid("vocabulary", f"plain text could produce the special token {open_[0]!r}", mend)

    def word_tokenizer(self, vocab: Vocab) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer(self._model(vocab))

    def word_columns(self, vocab: Vocab) -> LongestMatch:
        return LongestMatch(vocab.tokens, "##", vocab.specials.unk, self.max_word_characters)

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        from tokenizers import decoders, pre_tokenizers

        tokenizer = self.word_tokenizer(vocab)
        tokenizer.normalizer = self.cutting.normalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix="##")
        if added:
            add_specials(tokenizer, vocab)
        return tokenizer

    def native_files(self, vocab: Vocab) -> dict[str, bytes]:
        return {"vocab.txt": "".join(f"{token}\n" for token in vocab.tokens).encode()}

    def configuration(self, vocab: Vocab) -> dict[str, Any]:
        return {
            # Read by transformers 4 (as its Fast class) and 5 alike; without it 5 falls back to a generic class.
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.cutting.lowercase,
            "strip_accents": self.cutting.strip_accents,
            "tokenize_chinese_chars": self.cutting.isolate_chinese,
            "clean_up_tokenization_spaces": True,
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        inside = {i for i, token in enumerate(vocab.tokens) if token.startswith("##")} - set(vocab.reserved)
        return ~np.isin(np.arange(vocab.size), sorted(inside))

    def about(self) -> dict[str, Any]:
        return {"lower-cased": self.cutting.lowercase}

    def _model(self, vocab: Vocab) -> Any:
        from tokenizers import models

        return models.WordPiece(
            {token: i for i, token in enumerate(vocab.tokens)},
            unk_token=vocab.tokens[vocab.specials.unk],
            max_input_chars_per_word=self.max_word_characters,
            continuing_subword_prefix="##",
        )


def add_specials(tokenizer: Any, vocab: Vocab) -> None:
    """Tell a library tokenizer about special tokens, and to put [CLS] and [SEP] around text."""
    from tokenizers import AddedToken, processors

    special = [vocab.tokens[i] for i in sorted(dataclasses.astuple(vocab.specials))]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    cls, sep = vocab.tokens[vocab.specials.cls], vocab.tokens[vocab.specials.sep]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, vocab.specials.cls), (sep, vocab.specials.sep)],
    )


def arrange(pieces: Sequence[str], size: int, unused: int, normalization: Normalization) -> Vocab:
    """Lay learned pieces out with specials and ``unused`` slots; what is missing to ``size`` becomes unused slots too.

    With at least 99 slots the specials have BERT's ids: [PAD] 0, [unused0] to [unused98], [UNK] 100, [CLS] 101,
    [SEP] 102, [MASK] 103, more slots, pieces. With fewer: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, slots, pieces.

    >>> arrange(["a", "##b"], 8, 1, Normalization()).tokens
    ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[unused0]', 'a', '##b')
    """
    slots = [f"[unused{k}]" for k in range(unused)]
    ahead = BERT_UNUSED if unused >= BERT_UNUSED else 0
    tokens = [NAMES[0], *slots[:ahead], *NAMES[1:], *slots[ahead:], *pieces]
    return with_roles(tokens, WordPiece(normalization), dict(zip(ROLES, NAMES, strict=True))).padded(size)


def is_punctuation(character: str) -> bool:
    """BERT's punctuation: every ASCII character that is neither letter, digit nor space, and Unicode's P classes."""
    ascii_sign = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_sign or unicodedata.category(character).startswith("P")


def from_json(where: str, raw: dict[str, Any], tokens: Sequence[str], names: Mapping[str, str]) -> Vocab:
    """From a tokenizer.json; ``tokens``: all of its tokens by id; ``names``: special tokens by role."""
    model, normalizer, splitter = raw["model"], raw["normalizer"] or {}, raw["pre_tokenizer"] or {}
    kinds = (normalizer.get("type"), splitter.get("type"), model["continuing_subword_prefix"])
    if kinds != ("BertNormalizer", "BertPreTokenizer", "##"):
        what = "a WordPiece of another kind: normalizer {}, pre-tokenizer {}, prefix {}".format(*kinds)
        raise errors.ManifestInvalid(where, what, "WordPiece vocabularies of BERT's kind can be used")
    normalization = Normalization(
        normalizer["lowercase"],
        normalizer["strip_accents"],
        normalizer["handle_chinese_chars"],
        normalizer["clean_text"],
    )
    extra = [added["content"] for added in raw.get("added_tokens") or [] if added["special"]]
    return with_roles(tokens, WordPiece(normalization, model["max_input_chars_per_word"]), names, extra)


def from_lines(data: bytes, config: dict[str, Any], names: Mapping[str, str]) -> Vocab:
    """From a vocab.txt alone, as google-research/bert publishes them; uncased unless its settings say not."""
    tokens = data.decode(errors="replace").removesuffix("\n").split("\n")
    normalization = Normalization(
        config.get("do_lower_case", True),
        config.get("strip_accents"),
        config.get("tokenize_chinese_chars", True),
    )
    return with_roles([token.rstrip("\r") for token in tokens], WordPiece(normalization), names)
