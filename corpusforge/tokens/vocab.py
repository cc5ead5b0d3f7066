"""A vocabulary: which token has which id, and the family that turns text into ids.

`Vocab` is a frozen value; it writes the files of a folder that `AutoTokenizer` of transformers 4 and 5 loads, with the
post-processor that adds [CLS] and [SEP]. `tokens.families` learns vocabularies and reads them from folders.

The padding to a multiple of 64 lies inside the vocabulary as [unusedN] slots (ModernBERT's way), so that
``len(tokenizer) == config.vocab_size``.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import xxhash

from corpusforge import errors
from corpusforge.arrays import Bools
from corpusforge.tokens.column_encoders import ColumnEncoder
from corpusforge.tokens.splitting import Segmentation

MULTIPLE = 64
"""Sizes that keep the output matrix fast on tensor cores (NVIDIA, deep learning performance guide, 2020)."""

ROLES = ("pad", "unk", "cls", "sep", "mask")

_UNUSED = re.compile(r"\[unused(\d+)\]")


@dataclasses.dataclass(frozen=True)
class Specials:
    """Ids of the special tokens, by role. Where a family has one token for two roles, both hold its id."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


class Family(Protocol):
    """How one kind of vocabulary turns text into ids: a frozen, picklable value."""

    @property
    def name(self) -> str:
        """As in the recipe: "wordpiece", ..."""

    @property
    def segmentation(self) -> Segmentation:
        """How text is normalized and segmented into words."""

    def check(self, vocab: Vocab) -> None:
        """Raises `errors.ManifestInvalid` if plain text could produce a special or unused token."""

    def word_tokenizer(self, vocab: Vocab) -> Any:
        """A `tokenizers.Tokenizer` for words of `segmentation`; of special ids it gives unk only."""

    def column_encoder(self, vocab: Vocab) -> ColumnEncoder:
        """Gives the ids of `word_tokenizer` for many words at once; leaves words for which that is not proven."""

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        """The whole `tokenizers.Tokenizer`. ``added`` False: special tokens in text mean nothing, none are added."""

    def native_files(self, vocab: Vocab) -> dict[str, bytes]:
        """The family's own files by name (vocab.txt, ...)."""

    def configuration(self, vocab: Vocab) -> dict[str, Any]:
        """Entries of tokenizer_config.json: the class that loads the folder, and its settings."""

    def starts_word(self, vocab: Vocab) -> Bools:
        """For each id whether a word begins with it, ``[size]``; specials do."""

    def text_of(self, token: str) -> str:
        """The text of a token, without the family's marks; as it is if it is not text."""

    @property
    def byte_level(self) -> bool:
        """Whether tokens are bytes, so that every character has some."""

    def about(self) -> dict[str, Any]:
        """Settings to show in reports, by name."""


@dataclasses.dataclass(frozen=True)
class Vocab:
    """Tokens by id. ``unused``: ids that no text produces and training never draws: [unusedN] slots, other specials."""

    tokens: tuple[str, ...]
    specials: Specials
    unused: tuple[int, ...]
    family: Family

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise errors.ManifestInvalid("vocabulary", "a token occurs in it twice", "learn or adopt it again")
        self.family.check(self)

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.tokens)

    @property
    def segmentation(self) -> Segmentation:
        """How text is normalized and segmented into words."""
        return self.family.segmentation

    @property
    def reserved(self) -> tuple[int, ...]:
        """Ids that no text produces, [UNK] apart: specials and unused slots, ascending."""
        return tuple(sorted({*dataclasses.astuple(self.specials), *self.unused}))

    @property
    def digest(self) -> str:
        """xxh3-128 of everything that decides ids, 32 hex digits; independent of library versions."""
        whole = {**dataclasses.asdict(self), "model": self.family.name}
        whole["family"]["cutting"] = whole["family"].pop("segmentation")  # the name it had when digests were defined
        return xxhash.xxh3_128_hexdigest(json.dumps(whole, sort_keys=True).encode())

    def save_files(self) -> dict[str, bytes]:
        """The folder's files by name: tokenizer.json, tokenizer_config.json, special_tokens_map.json, native ones."""
        names = {f"{key}_token": self.tokens[id_] for key, id_ in dataclasses.asdict(self.specials).items()}
        config = {**self.family.configuration(self), "model_max_length": 512, **names}
        return {
            "tokenizer.json": (self.library_tokenizer().to_str(pretty=True) + "\n").encode(),
            "tokenizer_config.json": _json(config),
            "special_tokens_map.json": _json(names),
            **self.family.native_files(self),
        }

    def library_tokenizer(self, *, added: bool = True) -> Any:
        """The same vocabulary as a `tokenizers.Tokenizer`. ``added`` False: special tokens in text mean nothing."""
        return self.family.library_tokenizer(self, added=added)

    def padded(self, size: int) -> Vocab:
        """The same ids, followed by new [unusedN] slots up to ``size``; N continues after the highest in use."""
        taken = [int(m[1]) for token in self.tokens if (m := _UNUSED.fullmatch(token))]
        first = max(taken, default=-1) + 1
        more = tuple(f"[unused{first + k}]" for k in range(size - self.size))
        unused = (*self.unused, *range(self.size, size))
        return dataclasses.replace(self, tokens=self.tokens + more, unused=unused)


class Learned(NamedTuple):
    """A learned vocabulary, and statistics of how it came about."""

    vocab: Vocab
    statistics: dict[str, float]


def check_size(size: int, *, allow_any_size: bool = False) -> None:
    """Raises `errors.RecipeInvalid` naming the two nearest sizes if ``size`` is not a multiple of 64."""
    if size % MULTIPLE and not allow_any_size:
        below = size // MULTIPLE * MULTIPLE
        nearest = f"use {below:,} or {below + MULTIPLE:,}" if below else f"use {MULTIPLE}"
        what = f"{size:,} is not a multiple of {MULTIPLE}"
        raise errors.RecipeInvalid("vocab.size", what, f"{nearest}, or pass --allow-any-size (vocab.allow_any_size)")


def with_roles(tokens: Sequence[str], family: Family, names: Mapping[str, str], extra: Sequence[str] = ()) -> Vocab:
    """A vocabulary whose special tokens are given by ``names`` (role to token); ``extra``: further special tokens.

    Raises `errors.ManifestInvalid` if one of them is missing.
    """
    ids = {token: i for i, token in enumerate(tokens)}
    missing = [name for name in names.values() if name not in ids]
    if missing:
        raise errors.ManifestInvalid("vocabulary", f"no special token {missing[0]}", "use a BERT-like tokenizer")
    specials = Specials(**{key: ids[names[key]] for key in ROLES})
    taken = set(dataclasses.astuple(specials))
    unused = [i for t, i in ids.items() if i not in taken and (_UNUSED.fullmatch(t) or t in extra)]
    return Vocab(tuple(tokens), specials, tuple(sorted(unused)), family)


def tokens_by_id(where: str, ids: Mapping[str, int]) -> list[str]:
    """The tokens in the order of their ids. Raises `errors.ManifestInvalid` if ids have holes or repeat."""
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise errors.ManifestInvalid(where, "ids have holes or repeat", "number the tokens from 0 without holes")
    return tokens


def add_specials(tokenizer: Any, vocab: Vocab) -> None:
    """Register the special tokens with a library tokenizer, and let it put [CLS] and [SEP] around text."""
    from tokenizers import AddedToken, processors

    special = [vocab.tokens[i] for i in sorted(dataclasses.astuple(vocab.specials))]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    cls, sep = vocab.tokens[vocab.specials.cls], vocab.tokens[vocab.specials.sep]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, vocab.specials.cls), (sep, vocab.specials.sep)],
    )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
