"""The family of BERT: greedy longest match over words split at spaces and punctuation, ``##`` inside words.

Ids of the specials are BERT's own where there are enough slots (google-research/bert, vocab.txt of
uncased_L-12_H-768_A-12: [PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103), so that software written for BERT's
vocabulary works with any.

Vocabularies are learned by `tokenizers`' WordPieceTrainer, which is byte-pair merges written as ``##`` pieces
(huggingface/tokenizers, trainers/wordpiece.rs); Google never released BERT's own trainer. Memory and time depend on
distinct words, never on the size of the corpus. The trainer's result depends on the iteration order of its hash maps in
three places, each of which is fixed here, so that every run gives the same vocabulary:

- which of equally frequent characters stay within the alphabet limit: the alphabet is chosen here (count, then code
  point);
- the numbering of ``##c`` characters, which breaks ties between merges: they are handed over in order, as if special;
- a character outside the alphabet is skipped inside its word, so that its neighbors look adjacent: such words, which
  encoding turns into [UNK] anyway, are left out.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, sections
from corpusforge.arrays import I64, U32, Bools
from corpusforge.tokens.bert_split import UNCASED, BertSegmentation
from corpusforge.tokens.column_encoders import LongestMatch
from corpusforge.tokens.counts import FED_OCCURRENCES, repeated, scale_counts
from corpusforge.tokens.vocab import ROLES, Learned, Vocab, add_specials, check_size, with_roles

BERT_UNUSED = 99
"""[unusedN] slots between [PAD] 0 and [UNK] 100 in BERT's own vocabularies."""

MAX_WORD_CHARACTERS = 100
"""Longer words are [UNK] (huggingface/tokenizers, models/wordpiece; google-research/bert: 200)."""

NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

KINDS, FILES = ("WordPiece",), ("vocab.txt",)
"""What the family is read from (`tokens.families`)."""

FEWEST = (1, "one character")
"""Ids of the smallest vocabulary besides specials and slots, and what they are."""

_SLICE_WORDS = 1 << 18
"""Words whose characters are processed together: bounds memory at four million words."""


@dataclasses.dataclass(frozen=True)
class WordPiece:
    """Settings of the family; see `Family` for the methods."""

    segmentation: BertSegmentation = UNCASED
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
        from tokenizers import Tokenizer, models

        model = models.WordPiece(
            {token: i for i, token in enumerate(vocab.tokens)},
            unk_token=vocab.tokens[vocab.specials.unk],
            max_input_chars_per_word=self.max_word_characters,
            continuing_subword_prefix="##",
        )
        return Tokenizer(model)

    def column_encoder(self, vocab: Vocab) -> LongestMatch:
        return LongestMatch(vocab.tokens, "##", vocab.specials.unk, self.max_word_characters)

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        from tokenizers import decoders, pre_tokenizers

        tokenizer = self.word_tokenizer(vocab)
        tokenizer.normalizer = self.segmentation.normalizer()
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
            "do_lower_case": self.segmentation.lowercase,
            "strip_accents": self.segmentation.strip_accents,
            "tokenize_chinese_chars": self.segmentation.isolate_chinese,
            "clean_up_tokenization_spaces": True,
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        inside = {i for i, token in enumerate(vocab.tokens) if token.startswith("##")} - set(vocab.reserved)
        return ~np.isin(np.arange(vocab.size), sorted(inside))

    def text_of(self, token: str) -> str:
        return token.removeprefix("##")

    @property
    def byte_level(self) -> bool:
        return False

    def about(self) -> dict[str, Any]:
        return {"lower-cased": self.segmentation.lowercase}


def is_punctuation(character: str) -> bool:
    """BERT's punctuation: every ASCII character that is neither letter, digit nor space, and Unicode's P classes."""
    ascii_sign = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_sign or unicodedata.category(character).startswith("P")


def arrange(pieces: Sequence[str], size: int, unused: int, segmentation: BertSegmentation) -> Vocab:
    """Lay learned pieces out with specials and ``unused`` slots; what is missing to ``size`` becomes unused slots too.

    With at least 99 slots the specials have BERT's ids: [PAD] 0, [unused0] to [unused98], [UNK] 100, [CLS] 101,
    [SEP] 102, [MASK] 103, more slots, pieces. With fewer: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, slots, pieces.

    >>> arrange(["a", "##b"], 8, 1, BertSegmentation()).tokens
    ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[unused0]', 'a', '##b')
    """
    slots = [f"[unused{k}]" for k in range(unused)]
    ahead = BERT_UNUSED if unused >= BERT_UNUSED else 0
    tokens = [NAMES[0], *slots[:ahead], *NAMES[1:], *slots[ahead:], *pieces]
    return with_roles(tokens, WordPiece(segmentation), dict(zip(ROLES, NAMES, strict=True))).padded(size)


def from_json(where: str, raw: dict[str, Any], tokens: Sequence[str], names: Mapping[str, str]) -> Vocab:
    """From a tokenizer.json; ``tokens``: all of its tokens by id; ``names``: special tokens by role."""
    model, normalizer, splitter = raw["model"], raw["normalizer"] or {}, raw["pre_tokenizer"] or {}
    kinds = (normalizer.get("type"), splitter.get("type"), model["continuing_subword_prefix"])
    if kinds != ("BertNormalizer", "BertPreTokenizer", "##"):
        what = "a WordPiece of another kind: normalizer {}, pre-tokenizer {}, prefix {}".format(*kinds)
        raise errors.ManifestInvalid(where, what, "WordPiece vocabularies of BERT's kind can be used")
    segmentation = BertSegmentation(
        normalizer["lowercase"],
        normalizer["strip_accents"],
        normalizer["handle_chinese_chars"],
        normalizer["clean_text"],
    )
    extra = [added["content"] for added in raw.get("added_tokens") or [] if added["special"]]
    return with_roles(tokens, WordPiece(segmentation, model["max_input_chars_per_word"]), names, extra)


def from_files(where: str, data: Sequence[bytes], config: dict[str, Any], names: Mapping[str, str]) -> Vocab:
    """From a vocab.txt alone, as google-research/bert publishes them; uncased unless ``config`` says otherwise."""
    tokens = data[0].decode(errors="replace").removesuffix("\n").split("\n")
    segmentation = BertSegmentation(
        config.get("do_lower_case", True),
        config.get("strip_accents"),
        config.get("tokenize_chinese_chars", True),
    )
    return with_roles([token.rstrip("\r") for token in tokens], WordPiece(segmentation), names)


def segmentation_of(settings: sections.Vocab) -> BertSegmentation:
    """How text is normalized and segmented into words."""
    return BertSegmentation(settings.lowercase)


def learn(counts: pa.Table, settings: sections.Vocab, *, fed: int = FED_OCCURRENCES) -> Learned:
    """Learn by merging the most frequent pairs; see `families.learn`.

    Settings: size, unused, lowercase, allow_any_size; alphabet: most distinct characters kept. ``fed``: most word
    occurrences the trainer reads. Statistics: characters, words used and left out, ``count_scale`` (1: counts as they
    are), merges.
    """
    prepared = prepare(counts, settings)
    scaled, scale = scale_counts(prepared.kept["count"].to_numpy(), fed)
    pieces = _train(prepared, scaled)
    vocab = arrange(pieces, settings.size, settings.unused, prepared.segmentation)
    statistics = {
        **prepared.statistics,
        "words_learned_from": int(np.count_nonzero(scaled)),
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "count_scale": scale,
        "merges": len(pieces) - len(prepared.first),
    }
    return Learned(vocab, statistics)


class Prepared(NamedTuple):
    """The input of a learner of WordPiece: words of the alphabet alone, sorted, and its characters.

    ``characters`` begin words, ``inner`` are those that occur inside, as ``##c``; ``room``: ids for both and merges.
    """

    kept: pa.Table
    characters: list[str]
    inner: list[str]
    room: int
    segmentation: BertSegmentation
    statistics: dict[str, float]

    @property
    def first(self) -> list[str]:
        """The pieces before any merge."""
        return [*self.characters, *self.inner]


def prepare(counts: pa.Table, settings: sections.Vocab) -> Prepared:
    """Check the size, choose the alphabet, and leave out words that are too long or not made of it.

    Raises `errors.RecipeInvalid` if the size is not a multiple of 64 or too small for specials, slots and characters.
    """
    check_size(settings.size, allow_any_size=settings.allow_any_size)
    segmentation = segmentation_of(settings)
    ordered = counts.take(pc.sort_indices(counts["word"]))
    short = ordered.filter(pc.less_equal(pc.utf8_length(ordered["word"]), MAX_WORD_CHARACTERS))
    characters, kept = _limit_alphabet(short, settings.alphabet)
    splitter = segmentation.splitter()
    inner = [f"##{c}" for c in characters if len(splitter.words_of(f"a{c}a")) == 1]
    room = settings.size - len(NAMES) - settings.unused
    if room < len(characters) + len(inner):
        least = settings.size - room + len(characters) + len(inner)
        what = f"{settings.size:,} is less than the {least:,} of characters, specials and unused slots"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower vocab.alphabet (--alphabet) or --unused")
    statistics: dict[str, float] = {
        "characters": len(characters),
        "words_too_long": len(counts) - len(short),
        "words_outside_alphabet": len(short) - len(kept),
    }
    return Prepared(kept, characters, inner, room, segmentation, statistics)


def _limit_alphabet(counts: pa.Table, limit: int) -> tuple[list[str], pa.Table]:
    """The most frequent characters, sorted, and the words that are made of them alone."""
    parts = [counts.slice(row, _SLICE_WORDS) for row in range(0, len(counts), _SLICE_WORDS)]
    if not parts:
        return [], counts
    sums = []
    for part in parts:
        points, owners = characters_of(part)
        # Arrow adds up in 64-bit integers; NumPy's weighted bincount would use floats.
        table = pa.table({"point": points, "count": part["count"].take(pa.array(owners))})
        sums.append(table.group_by("point", use_threads=False).aggregate([("count", "sum")]))
    totals = pa.concat_tables(sums).group_by("point", use_threads=False).aggregate([("count_sum", "sum")])
    order = pc.sort_indices(totals, sort_keys=[("count_sum_sum", "descending"), ("point", "ascending")])
    chosen = np.sort(totals["point"].take(order.slice(0, limit)).to_numpy())
    inside = []
    for part in parts:
        points, owners = characters_of(part)
        foreign = np.bincount(owners[~np.isin(points, chosen)], minlength=len(part))
        inside.append(part.filter(pa.array(foreign == 0)))
    return [chr(point) for point in chosen.tolist()], pa.concat_tables(inside)


def characters_of(counts: pa.Table) -> tuple[U32, I64]:
    """Code points of all words, one after another, and the number of the word each belongs to."""
    words = counts["word"]
    points = np.frombuffer("".join(words.to_pylist()).encode("utf-32-le"), np.uint32)
    return points, np.repeat(np.arange(len(words)), pc.utf8_length(words).to_numpy())


def _train(prepared: Prepared, counts: I64) -> list[str]:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=prepared.room,
        min_frequency=1,
        special_tokens=prepared.first,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    tokenizer.train_from_iterator(repeated(prepared.kept["word"].to_pylist(), counts), trainer)
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.__getitem__)
