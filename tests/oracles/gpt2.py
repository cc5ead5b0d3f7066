"""The slow, obvious way for byte-level BPE: the `tokenizers` library, one text at a time, and the published pattern."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from corpusforge.tokens.gpt2_split import BYTES, Gpt2Segmentation
from corpusforge.tokens.vocab import Vocab

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
"""openai/gpt-2, src/encoder.py."""


def words(text: str, segmentation: Gpt2Segmentation) -> list[str]:
    """Pre-tokens of one text, as text."""
    pieces = segmentation.pre_tokenizer().pre_tokenize_str(text)
    return [bytes(BYTES[letter] for letter in piece).decode() for piece, _ in pieces]


def encode(rows: Iterable[str], vocab: Vocab) -> list[list[int]]:
    """Ids of each row; special tokens in the text are ordinary text, and none are added."""
    library = vocab.library_tokenizer(added=False)
    return [library.encode(row, add_special_tokens=False).ids for row in rows]
