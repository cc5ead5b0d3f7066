"""The family of RoBERTa: byte-pair merges over the bytes of pre-tokens as GPT-2 cuts them; nothing is unknown.

In: merges learned, or the parts of a tokenizer folder. Out: `Vocab`s of this family. The decision: the ids of the
specials are RoBERTa's (facebookresearch/fairseq, data/dictionary.py: <s> 0, <pad> 1, </s> 2, <unk> 3; tasks add <mask>
behind the last learned token), and the padding to a multiple of 64 follows behind: 50,265 becomes 50,304.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.arrays import Bools
from corpusforge.tokens.gpt2_split import BYTES, GPT2, LETTERS, Gpt2Cutting
from corpusforge.tokens.pair_merges import PairMerges
from corpusforge.tokens.vocab import ROLES, Vocab, with_roles

NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
"""RoBERTa's special tokens in the order of `vocab.ROLES`."""

Merges = tuple[tuple[str, str], ...]

_NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
"""RFC 3629, section 1: octets that never appear."""

_MEND = "use a byte-level BPE tokenizer like GPT-2's and RoBERTa's"


@dataclasses.dataclass(frozen=True)
class ByteBpe:
    """Settings of the family; `Family` says what the methods give. ``merges``: pairs of tokens, first come first."""

    merges: Merges
    cutting: Gpt2Cutting = GPT2

    @property
    def name(self) -> str:
        return "bpe"

    def check(self, vocab: Vocab) -> None:
        # A token comes out of text only if it is a byte or what a merge makes; no other entry of the table is read.
        known = set(vocab.tokens)
        missing = [LETTERS[b] for b in range(256) if b not in _NEVER_IN_UTF8 and LETTERS[b] not in known]
        if missing:
            what = f"{len(missing)} bytes have no token ({missing[0]!r} first): text with them would be lost"
            raise errors.ManifestInvalid("vocabulary", what, "learn it with all 256 bytes as its alphabet")
        for left, right in self.merges:
            if not {left, right, left + right} <= known:
                what = f"the merge {left} {right} names a token that is not there"
                raise errors.ManifestInvalid("vocabulary", what, _MEND)
        made = self._reachable()
        open_ = [vocab.tokens[i] for i in vocab.reserved if vocab.tokens[i] in made]
        if open_:
            what = f"plain text could produce the special token {open_[0]!r}"
            raise errors.ManifestInvalid("vocabulary", what, "use a tokenizer without a merge that makes it")

    def word_tokenizer(self, vocab: Vocab) -> Any:
        from tokenizers import Tokenizer, pre_tokenizers

        tokenizer = Tokenizer(self._model(vocab))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return tokenizer

    def word_columns(self, vocab: Vocab) -> PairMerges:
        ids = {token: i for i, token in enumerate(vocab.tokens)}
        symbols = np.array([ids.get(letter, -1) for letter in LETTERS], np.int32)
        return PairMerges([(ids[left], ids[right], ids[left + right]) for left, right in self.merges], symbols)

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        from tokenizers import Tokenizer, decoders

        tokenizer = Tokenizer(self._model(vocab))
        tokenizer.pre_tokenizer = self.cutting.pre_tokenizer()
        tokenizer.decoder = decoders.ByteLevel()
        if added:
            _add_specials(tokenizer, vocab, self.cutting)
        return tokenizer

    def native_files(self, vocab: Vocab) -> dict[str, bytes]:
        ids = {token: i for i, token in enumerate(vocab.tokens)}
        lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges)]
        return {
            "vocab.json": (json.dumps(ids, ensure_ascii=False) + "\n").encode(),
            "merges.txt": "".join(f"{line}\n" for line in lines).encode(),
        }

    def configuration(self, vocab: Vocab) -> dict[str, Any]:
        return {
            "tokenizer_class": "RobertaTokenizer",
            "add_prefix_space": self.cutting.add_prefix_space,
            "trim_offsets": True,
            "bos_token": vocab.tokens[vocab.specials.cls],
            "eos_token": vocab.tokens[vocab.specials.sep],
            "clean_up_tokenization_spaces": False,
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        # As fairseq masks whole words (data/encoders/gpt2_bpe.py, is_beginning_of_word): a space begins them, so that
        # punctuation belongs to the word before it. Tabs and line feeds count as spaces here.
        spaces = tuple(LETTERS[byte] for byte in b" \t\n\r")
        starts = np.array([token.startswith(spaces) for token in vocab.tokens], np.bool_)
        starts[list(vocab.reserved)] = True
        return starts

    def about(self) -> dict[str, Any]:
        return {"merges": f"{len(self.merges):,}", "space before text": self.cutting.add_prefix_space}

    def _reachable(self) -> set[str]:
        return {*LETTERS, *(left + right for left, right in self.merges)}

    def _model(self, vocab: Vocab) -> Any:
        from tokenizers import models

        ids = {token: i for i, token in enumerate(vocab.tokens)}
        return models.BPE(ids, list(self.merges), continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)


def _add_specials(tokenizer: Any, vocab: Vocab, cutting: Gpt2Cutting) -> None:
    """Tell a library tokenizer about special tokens, and to write <s> A </s></s> B </s>."""
    from tokenizers import AddedToken, processors

    # RoBERTa's <mask> eats the space before it, so that "a <mask>" stands for "a word" (transformers, roberta).
    tokenizer.add_special_tokens(
        [
            AddedToken(vocab.tokens[i], normalized=False, lstrip=i == vocab.specials.mask)
            for i in sorted(set(dataclasses.astuple(vocab.specials)))
        ]
    )
    cls, sep = vocab.specials.cls, vocab.specials.sep
    tokenizer.post_processor = processors.RobertaProcessing(
        (vocab.tokens[sep], sep), (vocab.tokens[cls], cls), trim_offsets=True, add_prefix_space=cutting.add_prefix_space
    )


def arrange(merges: Sequence[tuple[str, str]], size: int) -> Vocab:
    """Lay out specials, the 256 bytes, what the merges make, <mask>; unused slots up to ``size``.

    >>> arrange([("a", "b")], 320).tokens[260:263]
    ('ab', '<mask>', '[unused0]')
    """
    pad, unk, cls, sep, mask = NAMES
    learned = dict.fromkeys([*sorted(LETTERS), *(left + right for left, right in merges)])
    tokens = [cls, pad, sep, unk, *learned, mask]
    return with_roles(tokens, ByteBpe(tuple(merges)), dict(zip(ROLES, NAMES, strict=True))).padded(size)


def from_json(where: str, raw: dict[str, Any], tokens: Sequence[str], names: Mapping[str, str]) -> Vocab:
    """From a tokenizer.json; ``tokens``: all of its tokens by id; ``names``: special tokens by role."""
    model, splitter = raw["model"], raw["pre_tokenizer"] or {}
    odd = {key: model[key] for key in _PLAIN if model.get(key)}
    if raw["normalizer"] or splitter.get("type") != "ByteLevel" or not splitter.get("use_regex", True) or odd:
        normalizer = (raw["normalizer"] or {}).get("type")
        what = f"a BPE of another kind: normalizer {normalizer}, pre-tokenizer {splitter.get('type')}, {odd}"
        raise errors.ManifestInvalid(where, what, _MEND)
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
    return _with_merges(where, tokens, pairs, Gpt2Cutting(splitter["add_prefix_space"]), names)


_PLAIN = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
"""Options of the library's BPE model that change ids; GPT-2 and RoBERTa use none of them."""


def from_files(where: str, vocab: bytes, merges: bytes, config: Mapping[str, Any], names: Mapping[str, str]) -> Vocab:
    """From vocab.json and merges.txt alone, as openai/gpt-2 and fairseq publish them."""
    ids = json.loads(vocab)
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise errors.ManifestInvalid(where, "ids have holes or repeat", "number the tokens from 0 without holes")
    lines = merges.decode().removesuffix("\n").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    pairs = [tuple(line.removesuffix("\r").split(" ")) for line in lines if line]
    return _with_merges(where, tokens, pairs, Gpt2Cutting(bool(config.get("add_prefix_space", False))), names)


def _with_merges(
    where: str, tokens: Sequence[str], pairs: Sequence[tuple[str, ...]], cutting: Gpt2Cutting, names: Mapping[str, str]
) -> Vocab:
    broken = [pair for pair in pairs if len(pair) != 2]
    if broken:
        raise errors.ManifestInvalid(where, f"a merge is no pair: {' '.join(broken[0])}", _MEND)
    family = ByteBpe(tuple((pair[0], pair[1]) for pair in pairs), cutting)
    # Entries that no merge makes (<|endoftext|>, madeupword0000) are never drawn in training either.
    made = family._reachable()
    return with_roles(tokens, family, names, [token for token in tokens if token not in made])


def text_of(token: str) -> str:
    """What a token looks like as text; bytes that are no whole character as they are written in the table.

    >>> text_of("Ġthe"), text_of("Ã"), text_of("<mask>")
    (' the', 'Ã', '<mask>')
    """
    try:
        return bytes(BYTES[letter] for letter in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token
