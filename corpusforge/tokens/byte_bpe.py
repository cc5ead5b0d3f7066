"""The family of RoBERTa: byte-pair merges over the bytes of GPT-2's pre-tokens; nothing is unknown.

The ids of the specials are RoBERTa's (facebookresearch/fairseq, data/dictionary.py: <s> 0, <pad> 1, </s> 2, <unk> 3;
tasks add <mask> after the last learned token), and the padding to a multiple of 64 follows: 50,265 becomes 50,304.

Vocabularies are learned by `tokenizers`' BpeTrainer (huggingface/tokenizers, models/bpe/trainer.rs). Memory and time
depend on distinct words, never on the size of the corpus. Counts that need no scaling give what the library learns from
the text directly, with the whole text of a document as one sequence. The library reads words from a hash map, but its
sums do not depend on their order, and of equally frequent pairs it merges the one of lower ids first. Ids are numbered
by the alphabet, which depends on the text; here it is always all 256 bytes, sorted. Two things that the trainer cannot
do are done here:

- its pair counts have 32 bits: counts are scaled down until the bytes fed are fewer than 2**31;
- a very long word (a line of dashes, a data URL) costs it time and memory and teaches nothing: it is left out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, sections
from corpusforge.arrays import I64, Bools
from corpusforge.tokens.column_encoders import PairMerges
from corpusforge.tokens.counts import FED_OCCURRENCES, repeated, scale_counts
from corpusforge.tokens.gpt2_split import BYTES, GPT2, LETTERS, Gpt2Segmentation
from corpusforge.tokens.vocab import ROLES, Learned, Vocab, check_size, tokens_by_id, with_roles

NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
"""RoBERTa's special tokens in the order of `vocab.ROLES`."""

KINDS, FILES = ("BPE",), ("vocab.json", "merges.txt")
"""What the family is read from (`tokens.families`)."""

Merges = tuple[tuple[str, str], ...]

_NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
"""RFC 3629, section 1: octets that never appear."""

_MEND = "use a byte-level BPE tokenizer like GPT-2's and RoBERTa's"

_PLAIN = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
"""Options of the library's BPE model that change ids; GPT-2 and RoBERTa use none of them."""

FEWEST = (256, "bytes")
"""Ids of the smallest vocabulary besides specials and slots, and what they are."""

LONGEST_WORD = 1024
"""Bytes of the longest word learned from: a Chinese paragraph without punctuation is shorter."""


@dataclasses.dataclass(frozen=True)
class ByteBpe:
    """Settings of the family; see `Family` for the methods. ``merges``: pairs of tokens, first ones first."""

    merges: Merges
    segmentation: Gpt2Segmentation = GPT2

    @property
    def name(self) -> str:
        return "bpe"

    def check(self, vocab: Vocab) -> None:
        # Only bytes and the results of merges can come out of text; no other entry of the table is used.
        known = set(vocab.tokens)
        missing = [LETTERS[b] for b in range(256) if b not in _NEVER_IN_UTF8 and LETTERS[b] not in known]
        if missing:
            what = f"{len(missing)} bytes have no token ({missing[0]!r} first): text with them would be lost"
            raise errors.ManifestInvalid("vocabulary", what, "learn it with all 256 bytes as its alphabet")
        for left, right in self.merges:
            if not {left, right, left + right} <= known:
                what = f"the merge {left} {right} names a token that is not there"
                raise errors.ManifestInvalid("vocabulary", what, _MEND)
        reachable = self.reachable()
        open_ = [vocab.tokens[i] for i in vocab.reserved if vocab.tokens[i] in reachable]
        if open_:
            what = f"plain text could produce the special token {open_[0]!r}"
            raise errors.ManifestInvalid("vocabulary", what, "use a tokenizer without a merge that makes it")

    def word_tokenizer(self, vocab: Vocab) -> Any:
        from tokenizers import Tokenizer, pre_tokenizers

        tokenizer = Tokenizer(self._model(vocab))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return tokenizer

    def column_encoder(self, vocab: Vocab) -> PairMerges:
        ids = {token: i for i, token in enumerate(vocab.tokens)}
        symbols = np.array([ids.get(letter, -1) for letter in LETTERS], np.int32)
        return PairMerges([(ids[left], ids[right], ids[left + right]) for left, right in self.merges], symbols)

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        from tokenizers import Tokenizer, decoders

        tokenizer = Tokenizer(self._model(vocab))
        tokenizer.pre_tokenizer = self.segmentation.pre_tokenizer()
        tokenizer.decoder = decoders.ByteLevel()
        if added:
            _add_specials(tokenizer, vocab, self.segmentation)
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
            "add_prefix_space": self.segmentation.add_prefix_space,
            "trim_offsets": True,
            "bos_token": vocab.tokens[vocab.specials.cls],
            "eos_token": vocab.tokens[vocab.specials.sep],
            "clean_up_tokenization_spaces": False,
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        # As in fairseq's whole-word masks (data/encoders/gpt2_bpe.py, is_beginning_of_word): a space begins a word, so
        # that punctuation belongs to the word before it. Tabs and line feeds count as spaces here.
        spaces = tuple(LETTERS[byte] for byte in b" \t\n\r")
        starts = np.array([token.startswith(spaces) for token in vocab.tokens], np.bool_)
        starts[list(vocab.reserved)] = True
        return starts

    def text_of(self, token: str) -> str:
        """
        >>> ByteBpe(()).text_of("Ġthe"), ByteBpe(()).text_of("Ã"), ByteBpe(()).text_of("<mask>")
        (' the', 'Ã', '<mask>')
        """
        try:
            return bytes(BYTES[letter] for letter in token).decode()
        except (KeyError, UnicodeDecodeError):
            return token

    @property
    def byte_level(self) -> bool:
        return True

    def about(self) -> dict[str, Any]:
        return {"merges": f"{len(self.merges):,}", "space before text": self.segmentation.add_prefix_space}

    def reachable(self) -> set[str]:
        """The tokens that text can produce."""
        return {*LETTERS, *(left + right for left, right in self.merges)}

    def _model(self, vocab: Vocab) -> Any:
        from tokenizers import models

        ids = {token: i for i, token in enumerate(vocab.tokens)}
        return models.BPE(ids, list(self.merges), continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)


def _add_specials(tokenizer: Any, vocab: Vocab, segmentation: Gpt2Segmentation) -> None:
    """Register the special tokens with a library tokenizer, and let it write <s> A </s></s> B </s>."""
    from tokenizers import AddedToken, processors

    # RoBERTa's <mask> eats the space before it, so that "a <mask>" replaces "a word" (transformers, roberta).
    tokenizer.add_special_tokens(
        [
            AddedToken(vocab.tokens[i], normalized=False, lstrip=i == vocab.specials.mask)
            for i in sorted(set(dataclasses.astuple(vocab.specials)))
        ]
    )
    cls, sep = vocab.specials.cls, vocab.specials.sep
    tokenizer.post_processor = processors.RobertaProcessing(
        (vocab.tokens[sep], sep),
        (vocab.tokens[cls], cls),
        trim_offsets=True,
        add_prefix_space=segmentation.add_prefix_space,
    )


def arrange(merges: Sequence[tuple[str, str]], size: int) -> Vocab:
    """Lay out specials, the 256 bytes, the results of the merges, <mask>, and unused slots up to ``size``.

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
    return _with_merges(where, tokens, pairs, Gpt2Segmentation(splitter["add_prefix_space"]), names)


def from_files(where: str, data: Sequence[bytes], config: Mapping[str, Any], names: Mapping[str, str]) -> Vocab:
    """From vocab.json and merges.txt alone, as openai/gpt-2 and fairseq publish them."""
    tokens = tokens_by_id(where, json.loads(data[0]))
    lines = data[1].decode().removesuffix("\n").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    pairs = [tuple(line.removesuffix("\r").split(" ")) for line in lines if line]
    return _with_merges(where, tokens, pairs, Gpt2Segmentation(bool(config.get("add_prefix_space", False))), names)


def _with_merges(
    where: str,
    tokens: Sequence[str],
    pairs: Sequence[tuple[str, ...]],
    segmentation: Gpt2Segmentation,
    names: Mapping[str, str],
) -> Vocab:
    broken = [pair for pair in pairs if len(pair) != 2]
    if broken:
        raise errors.ManifestInvalid(where, f"a merge is not a pair: {' '.join(broken[0])}", _MEND)
    family = ByteBpe(tuple((pair[0], pair[1]) for pair in pairs), segmentation)
    # Entries that no merge produces (<|endoftext|>, madeupword0000) are never drawn in training either.
    reachable = family.reachable()
    return with_roles(tokens, family, names, [token for token in tokens if token not in reachable])


def segmentation_of(settings: sections.Vocab) -> Gpt2Segmentation:
    """How text is segmented into words."""
    return GPT2


def learn(counts: pa.Table, settings: sections.Vocab, *, fed: int = FED_OCCURRENCES) -> Learned:
    """Learn by merging the most frequent pairs; see `families.learn`.

    Settings: size, unused, allow_any_size. ``fed``: most word occurrences the trainer reads. Statistics: words used and
    left out, ``count_scale`` (1: counts as they are), merges.
    """
    size, unused = settings.size, settings.unused
    check_size(size, allow_any_size=settings.allow_any_size)
    least = FEWEST[0] + len(NAMES) + unused
    if size < least:
        what = f"{size:,} is less than the {least:,} of bytes, specials and unused slots"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --unused")
    ordered = counts.take(pc.sort_indices(counts["word"]))
    lengths = pc.binary_length(ordered["word"])
    short = ordered.filter(pc.less_equal(lengths, LONGEST_WORD))
    scaled, scale = scale_counts(short["count"].to_numpy(), _bound(short, fed))
    merges = _train(short["word"].to_pylist(), scaled, size - len(NAMES) - unused)
    vocab = arrange(merges, size)
    statistics = {
        "words_learned_from": int(np.count_nonzero(scaled)),
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "words_too_long": len(counts) - len(short),
        "count_scale": scale,
        "merges": len(merges),
    }
    return Learned(vocab, statistics)


def _bound(counts: pa.Table, fed: int) -> int:
    """Occurrences to feed: at most ``fed``, and so few that their bytes, and so any pair count, fit in 31 bits."""
    occurrences = counts["count"].to_numpy().astype(np.float64)
    if not len(occurrences):
        return fed
    bytes_ = float(np.dot(occurrences, pc.binary_length(counts["word"]).to_numpy()))
    # Rounding may add one occurrence to the share of a word; half of the range is reserved for that.
    return min(fed, max(1, int(occurrences.sum() * min(1.0, 2**30 / bytes_))))


def _train(words: list[str], counts: I64, room: int) -> list[tuple[str, str]]:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=room, min_frequency=1, initial_alphabet=LETTERS, show_progress=False)
    # Without a pre-tokenizer each string read is one word: bytes are written as letters here, once a distinct word.
    spelled = [word.encode().decode("latin-1").translate(dict(enumerate(LETTERS))) for word in words]
    tokenizer.train_from_iterator(repeated(spelled, counts), trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]
