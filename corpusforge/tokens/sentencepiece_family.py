"""The families of SentencePiece: pieces with scores (unigram) or merges (bpe) over words that begin with U+2581.

`tokenizers` encodes, because transformers does; spiece.model is written beside it with the same normalization compiled
into its character map, so that the `sentencepiece` package gives the same ids.

Text never produces a special id: in the unigram model used here every special and unused token has a name with a space
in it, which no word has (the library matches such names in text otherwise); in the bpe model no merge leads to one.

The `sentencepiece` package learns. It reads words with their counts (``input_format="tsv"``) and counts the words of
text itself first, so that bpe's result is that of reading the text. One number does not come from the counts but from
the lines: how often a string occurs when the first pieces of unigram are proposed (a string seen once is not proposed).
So a word is written on several lines that share its count: as many as it has occurrences in a small corpus, a share of
them in a large one, two at least. Unigram's result is then exactly that of reading sorted words, one per line; from
whole sentences the library learns 95 % of the same pieces, and another order of lines changes 1 % of them.

Text without spaces (Chinese, Japanese) makes long words that rarely recur; beyond a bound they are sampled by hash, and
the statistics say how many.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import io
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, sections, seeds
from corpusforge.arrays import Bools
from corpusforge.tokens import sentencepiece_file as files
from corpusforge.tokens.column_encoders import BestPath, ColumnEncoder, PairMerges, WordParts, sums_are_exact
from corpusforge.tokens.counts import COUNTS, merge_tables, pack_counts, read_counts, scale_counts, select_counts
from corpusforge.tokens.sentencepiece_split import SPACE, WHITE, SentencePieceSegmentation
from corpusforge.tokens.vocab import ROLES, Learned, Vocab, add_specials, check_size, with_roles

NAMES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
"""ALBERT's specials by role; their ids are 0 to 4 (google-research/albert, README: spm_train's options)."""

KINDS, FILES = ("Unigram", "BPE over U+2581"), ("spiece.model",)
"""What the family is read from (`tokens.families`)."""

ALBERT = SentencePieceSegmentation()
"""Quotes, NFKD, accents stripped, lower case (huggingface/transformers, tokenization_albert.py)."""

FEWEST = (1, "one character")
"""Ids of the smallest vocabulary besides specials and slots, and what they are."""

MOST_OCCURRENCES = 1 << 40
"""The trainer sums counts in floats of 32 bits; far below 64-bit overflow, and no word is read twice."""

MAX_WORD_BYTES = 4192
"""Longer words are left out and counted (sentencepiece's max_sentence_length, which skips such lines silently)."""

SEGMENTED_BYTES = 64
"""Longer words count as text without spaces; of English words 1 in 100,000 is longer."""

SAMPLED_BYTES = 64 << 20
"""Most text without spaces that the trainer reads: 20 M characters of Chinese."""

LINE_BYTES = 32 << 20
"""About how much text unigram's first pieces are counted on; the trainer's suffix array takes 20 times that."""

COVERAGE = {"unigram": 0.99995, "bpe": 0.9995}
"""Share of characters with a piece by algorithm: ALBERT's (google-research/albert, README), sentencepiece's default."""

THREADS = 16
"""The trainer sums floats per thread, so its result depends on their number: always its default, on any machine."""


@dataclasses.dataclass(frozen=True)
class SentencePiece:
    """Settings of the families; see `Family` for the methods.

    ``scores``: log-probabilities of the first ids (unigram); ``merges``: pairs of pieces in the order in which they are
    joined (bpe).
    """

    algorithm: str
    segmentation: SentencePieceSegmentation = ALBERT
    scores: tuple[float, ...] = ()
    merges: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return "unigram" if self.algorithm == "unigram" else "sentencepiece-bpe"

    def check(self, vocab: Vocab) -> None:
        reserved = {vocab.tokens[i] for i in vocab.reserved}
        joined = {left + right for left, right in self.merges}
        open_ = sorted(token for token in reserved if len(token) < 2 or token in joined)
        if open_:
            mend = "use a tokenizer whose special tokens are not merges and have two characters or more"
            raise errors.ManifestInvalid("vocabulary", f"plain text could produce the special token {open_[0]!r}", mend)

    def word_tokenizer(self, vocab: Vocab) -> Any:
        return self._tokenizer(vocab, hidden=True)

    def column_encoder(self, vocab: Vocab) -> ColumnEncoder:
        reserved = set(vocab.reserved)
        ids = {token: i for i, token in enumerate(vocab.tokens) if i not in reserved}
        if self.algorithm == "unigram":
            scores = self.scores_of(vocab)
            paths = BestPath(list(ids), list(ids.values()), scores)
            return WordParts(paths, ids) if sums_are_exact(scores) else paths
        symbols = np.full(0x110000, -1, np.int32)
        for token in ids:
            if len(token) == 1:
                symbols[ord(token)] = ids[token]
        pairs = [(ids[left], ids[right], ids[left + right]) for left, right in self.merges]
        return WordParts(PairMerges(pairs, symbols), ids)

    def library_tokenizer(self, vocab: Vocab, *, added: bool = True) -> Any:
        from tokenizers import decoders

        tokenizer = self._tokenizer(vocab, hidden=not added)
        tokenizer.normalizer = self.segmentation.normalizer()
        tokenizer.pre_tokenizer = self.segmentation.pre_tokenizer()
        tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
        if added:
            add_specials(tokenizer, vocab)
        return tokenizer

    def native_files(self, vocab: Vocab) -> dict[str, bytes]:
        special = vocab.specials
        kinds = [files.NORMAL] * vocab.size
        for i in vocab.unused:
            kinds[i] = files.UNUSED
        for i in (special.pad, special.cls, special.sep, special.mask):
            kinds[i] = files.CONTROL
        kinds[special.unk] = files.UNKNOWN
        scores = self.scores_of(vocab)
        charsmap = compiled_charsmap(self.segmentation)
        model = files.Model(vocab.tokens, tuple(scores), tuple(kinds), self.algorithm, charsmap)
        ids = {"unk": special.unk, "bos": special.cls, "eos": special.sep, "pad": special.pad}
        return {"spiece.model": files.write_model(model, ids)}

    def configuration(self, vocab: Vocab) -> dict[str, Any]:
        if self.algorithm != "unigram" or not self.segmentation.quotes:
            return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        return {
            "tokenizer_class": "AlbertTokenizer",
            "do_lower_case": self.segmentation.lowercase,
            "keep_accents": not self.segmentation.strip_accents,
            "remove_space": True,
            "bos_token": vocab.tokens[vocab.specials.cls],
            "eos_token": vocab.tokens[vocab.specials.sep],
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        starts = np.array([token.startswith(SPACE) for token in vocab.tokens], np.bool_)
        starts[list(vocab.reserved)] = True
        return starts

    def text_of(self, token: str) -> str:
        return token.replace(SPACE, " ")

    @property
    def byte_level(self) -> bool:
        return False

    def about(self) -> dict[str, Any]:
        rules = {"quotes": self.segmentation.quotes, "accents stripped": self.segmentation.strip_accents}
        return {**rules, "lower-cased": self.segmentation.lowercase, "character map": bool(self.segmentation.charsmap)}

    def scores_of(self, vocab: Vocab) -> list[float]:
        """A score for every id: specials 0, slots the lowest of all pieces, so that [UNK] costs what it did."""
        if self.algorithm == "bpe":
            rank: dict[str, int] = {}
            for left, right in self.merges:
                rank.setdefault(left + right, len(rank))
            # Characters come after all merges, as sentencepiece's trainer writes them.
            return [float(-rank.get(token, len(rank) + i)) for i, token in enumerate(vocab.tokens)]
        reserved = set(vocab.reserved)
        lowest = min((s for i, s in enumerate(self.scores) if i not in reserved), default=0.0)
        scores = [*self.scores, *[lowest] * (vocab.size - len(self.scores))]
        special = set(dataclasses.astuple(vocab.specials))
        return [0.0 if i in special else lowest if i in reserved else s for i, s in enumerate(scores)]

    def _tokenizer(self, vocab: Vocab, *, hidden: bool) -> Any:
        from tokenizers import Tokenizer, models

        unknown = vocab.specials.unk
        if self.algorithm == "bpe":
            ids = {token: i for i, token in enumerate(vocab.tokens)}
            merges = list(self.merges)
            return Tokenizer(models.BPE(ids, merges, unk_token=vocab.tokens[unknown], fuse_unk=True))
        names = list(vocab.tokens)
        for i in vocab.reserved if hidden else ():
            names[i] = f" {i}"
        return Tokenizer(models.Unigram(list(zip(names, self.scores_of(vocab), strict=True)), unknown, False))


@functools.cache
def compiled_charsmap(segmentation: SentencePieceSegmentation) -> bytes:
    """The normalization as a character map of SentencePiece; its own where it consists of one."""
    if not (segmentation.quotes or segmentation.strip_accents or segmentation.lowercase):
        return base64.b64decode(segmentation.charsmap)
    import sentencepiece

    rules = ["60 60\t22", "27 27\t22"] if segmentation.quotes else []
    for character, answer in _answers(segmentation):
        if answer != character:
            rules.append(f"{ord(character):X}\t{' '.join(f'{ord(c):X}' for c in answer)}")
    sentencepiece.set_min_log_level(2)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write("".join(f"{rule}\n" for rule in rules))
        file.flush()
        normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=file.name)
    return files.read_charsmap(normalizer.serialized_model_proto())


def _answers(segmentation: SentencePieceSegmentation) -> Iterator[tuple[str, str]]:
    """Every character and the library's normalization of it, white space as " "."""
    normalizer, spaces = segmentation.normalizer(), str.maketrans(dict.fromkeys(WHITE, " "))
    points = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000 and p != 0x0A]
    if segmentation.charsmap:  # it depends on neighbors, so each alone; without unassigned code points
        points = [c for c in points if unicodedata.category(c) not in ("Cn", "Co")]
        answers = [normalizer.normalize_str(c) for c in points]
    else:
        answers = normalizer.normalize_str("\n".join(points)).split("\n")
    yield from zip(["\n", *points], [" ", *(answer.translate(spaces) for answer in answers)], strict=True)


def arrange(model: files.Model, size: int, segmentation: SentencePieceSegmentation) -> Vocab:
    """Lay the pieces of a learned model out: ALBERT's specials 0 to 4, pieces, [unusedN] slots up to ``size``."""
    learned = [
        (p, s) for p, s, kind in zip(model.pieces, model.scores, model.kinds, strict=True) if kind == files.NORMAL
    ]
    tokens = [*NAMES, *(piece for piece, _ in learned)]
    family = _family(model.algorithm, segmentation, [0.0] * len(NAMES) + [score for _, score in learned], tokens)
    return with_roles(tokens, family, dict(zip(ROLES, NAMES, strict=True))).padded(size)


def _family(
    algorithm: str, segmentation: SentencePieceSegmentation, scores: Sequence[float], tokens: Sequence[str]
) -> SentencePiece:
    if algorithm == "unigram":
        return SentencePiece("unigram", segmentation, tuple(scores))
    return SentencePiece("bpe", segmentation, merges=_merges(tokens, scores))


def _merges(tokens: Sequence[str], scores: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """All ways to join two pieces into a third, best first: what sentencepiece's bpe does with scores alone."""
    known, merges = set(tokens), []
    for i in sorted(range(len(tokens)), key=lambda i: -scores[i]):
        splits = ((tokens[i][:at], tokens[i][at:]) for at in range(1, len(tokens[i])))
        merges += [(left, right) for left, right in splits if left in known and right in known]
    return tuple(merges)


def from_json(where: str, raw: dict[str, Any], tokens: Sequence[str], names: Mapping[str, str]) -> Vocab:
    """From a tokenizer.json; ``tokens``: all of its tokens by id; ``names``: special tokens by role."""
    model = raw["model"]
    segmentation = _segmentation_in(where, raw)
    extra = [added["content"] for added in raw.get("added_tokens") or [] if added["special"]]
    if isinstance(model["vocab"], list):
        if model.get("byte_fallback") or model["unk_id"] != tokens.index(names["unk"]):
            raise errors.ManifestInvalid(where, "a Unigram of another kind", "ALBERT's kind can be used")
        family = SentencePiece("unigram", segmentation, tuple(score for _, score in model["vocab"]))
    else:
        if model.get("byte_fallback") or not model.get("fuse_unk"):
            raise errors.ManifestInvalid(where, "a BPE that falls back to bytes", "one with fuse_unk can be used")
        merges = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
        family = SentencePiece("bpe", segmentation, merges=tuple((left, right) for left, right in merges))
    return _without_last_scores(with_roles(tokens, family, names, extra))


def _without_last_scores(vocab: Vocab) -> Vocab:
    """The same vocabulary, scores ending at the last piece: those of the slots after it are not part of it."""
    family, reserved = vocab.family, set(vocab.reserved)
    assert isinstance(family, SentencePiece)
    last = max((i for i in range(len(family.scores)) if i not in reserved), default=-1)
    return dataclasses.replace(vocab, family=dataclasses.replace(family, scores=family.scores[: last + 1]))


def _segmentation_in(where: str, raw: dict[str, Any]) -> SentencePieceSegmentation:
    """The segmentation whose library objects are those of the file. Raises where there is none."""
    steps, splitters = _flat(raw["normalizer"], "normalizers"), _flat(raw["pre_tokenizer"], "pretokenizers")
    kinds = [step["type"] for step in steps]
    charsmap = next((step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled"), "")
    # WhitespaceSplit handles spaces in a row, so a rule that makes them one changes nothing.
    wanted = [k for k, s in zip(kinds, steps, strict=True) if s.get("pattern") != {"Regex": " {2,}"}]
    segmentation = SentencePieceSegmentation(
        wanted[:2] == ["Replace"] * 2, "NFKD" in kinds, "Lowercase" in kinds, charsmap
    )
    made = [type(step).__name__ for step in segmentation.steps()] + ["Precompiled"] * bool(charsmap)
    metaspace = splitters[-1] if splitters else {}
    always = metaspace.get("prepend_scheme", "always" if metaspace.get("add_prefix_space") else "never") == "always"
    ends = [step["type"] for step in splitters] == ["WhitespaceSplit", "Metaspace"] and always
    if wanted != made or not ends:
        what = f"a SentencePiece tokenizer of another kind: {', '.join(kinds + [s['type'] for s in splitters])}"
        raise errors.ManifestInvalid(where, what, "those of ALBERT's kind can be used (WhitespaceSplit, Metaspace)")
    return segmentation


def _flat(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The steps of a Sequence, or the one step."""
    if step is None:
        return []
    return list(step[key]) if step["type"] == "Sequence" else [step]


def from_files(where: str, data: Sequence[bytes], config: dict[str, Any], names: Mapping[str, str]) -> Vocab:
    """From a spiece.model alone: ALBERT's rules before its own character map, unless ``config`` says otherwise."""
    model = files.read_model(data[0], where)
    charsmap = base64.b64encode(model.charsmap).decode()
    strip, lower = not config.get("keep_accents", False), config.get("do_lower_case", True)
    segmentation = SentencePieceSegmentation(True, strip, lower, charsmap)
    usable = [
        score if kind in (files.NORMAL, files.USER_DEFINED) else 0.0
        for score, kind in zip(model.scores, model.kinds, strict=True)
    ]
    family = _family(model.algorithm, segmentation, usable, model.pieces)
    kinds = zip(model.pieces, model.kinds, strict=True)
    extra = [piece for piece, kind in kinds if kind not in (files.NORMAL, files.USER_DEFINED)]
    return _without_last_scores(with_roles(model.pieces, family, names, extra))


def segmentation_of(settings: sections.Vocab) -> SentencePieceSegmentation:
    """How text is normalized and segmented into words."""
    if settings.normalization == "albert":
        return SentencePieceSegmentation(strip_accents=settings.lowercase, lowercase=settings.lowercase)
    return SentencePieceSegmentation(False, False, False, charsmap_of(settings.normalization))


def learn(counts: pa.Table, settings: sections.Vocab) -> Learned:
    """Learn unigram or bpe with the `sentencepiece` package; see `families.learn`.

    Settings: model, size, unused, allow_any_size, normalization, lowercase; coverage: share of characters with a piece
    of their own, 0: `COVERAGE`.
    """
    size, unused, algorithm = settings.size, settings.unused, settings.model.removeprefix("sentencepiece-")
    check_size(size, allow_any_size=settings.allow_any_size)
    fed, left_out = _fed(counts)
    if size - unused <= len(NAMES):
        raise _too_small(size, len(NAMES) + unused + 1)
    if not fed:
        raise errors.InputMissing("words", "there are none to learn from", "give more text, or lower --min-count")
    lines = _lines(fed, LINE_BYTES if algorithm == "unigram" else 0)
    try:
        model = _train(lines, size - unused, algorithm, settings.coverage or COVERAGE[algorithm])
    except RuntimeError as error:
        raise _refusal(str(error), size, unused) from None
    vocab = arrange(model, size, segmentation_of(settings))
    statistics = {
        "characters": sum(len(p) == 1 for p, k in zip(model.pieces, model.kinds, strict=True) if k == files.NORMAL),
        "words_learned_from": len(fed),
        **left_out,
    }
    return Learned(vocab, statistics)


def _fed(counts: pa.Table) -> tuple[dict[str, int], dict[str, float]]:
    """The words that the trainer reads, in order, with counts that it can sum; and how many are left out."""
    ordered = counts.take(pc.sort_indices(counts["word"]))
    short = ordered.filter(pc.less_equal(pc.binary_length(ordered["word"]), MAX_WORD_BYTES))
    scaled, scale = scale_counts(short["count"].to_numpy(), MOST_OCCURRENCES)
    words = [word.removeprefix(SPACE) for word in short["word"].to_pylist()]
    fed = {word: count for word, count in zip(words, scaled.tolist(), strict=True) if word and count}
    left_out = {
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "words_too_long": len(counts) - len(short),
        "count_scale": scale,
    }
    return fed, left_out


def select(
    blocks: Iterable[bytes], *, min_count: int, max_words: int, sampled_bytes: int = SAMPLED_BYTES
) -> tuple[pa.Table, dict[str, float]]:
    """As `counts.select_counts`, but words of text without spaces are sampled by hash, however rare they are.

    The share is halved whenever there are too many, which gives the same sample in any order of blocks. Further
    statistics: ``unsegmented_words`` of more than `SEGMENTED_BYTES`, ``unsegmented_share`` of them kept.
    """
    long, share, distinct = COUNTS.empty_table(), 1.0, 0

    def short_blocks() -> Iterator[bytes]:
        nonlocal long, share, distinct
        for block in blocks:
            table = read_counts(block)
            longer = pc.greater(pc.binary_length(table["word"]), SEGMENTED_BYTES)
            distinct += pc.sum(longer).as_py() or 0
            long = _thinned(pa.concat_tables([long, table.filter(longer)]), share)
            while (pc.sum(pc.binary_length(long["word"])).as_py() or 0) > sampled_bytes:
                share /= 2
                long = _thinned(long, share)
            yield from (packed for _, packed in pack_counts(table.filter(pc.invert(longer)), 1))

    short, statistics = select_counts(short_blocks(), min_count=min_count, max_words=max_words)
    both = merge_tables([short, long])
    return both, {**statistics, "unsegmented_words": distinct, "unsegmented_share": share}


def _thinned(counts: pa.Table, share: float) -> pa.Table:
    if share == 1.0 or not len(counts):
        return counts
    keys = seeds.document_keys(counts["word"].to_pylist())
    return counts.filter(pa.array(seeds.uniforms(0, "sentencepiece-sample", keys) < share)).combine_chunks()


def _lines(counts: dict[str, int], limit: int) -> Iterator[str]:
    """Words with counts, each on as many lines as its share of ``limit`` bytes, two at least; ``limit`` 0: one."""
    total = sum(len(word.encode()) * count for word, count in counts.items())
    share = limit / max(total, 1)
    for word, count in counts.items():
        lines = min(max(round(count * share), 2), count) if limit else 1
        yield f"{word}\t{count - lines + 1}"
        for _ in range(lines - 1):
            yield f"{word}\t1"


def _train(lines: Iterator[str], size: int, algorithm: str, coverage: float) -> files.Model:
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=written,
        input_format="tsv",
        model_type=algorithm,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=coverage,
        normalization_rule_name="identity",  # words are normalized
        max_sentence_length=MAX_WORD_BYTES + 32,
        num_threads=THREADS,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=list(NAMES[2:]),
        minloglevel=2,
    )
    return files.read_model(written.getvalue())


def _refusal(message: str, size: int, unused: int) -> errors.RecipeInvalid:
    """The library's refusal of a size, in terms of our flags.

    >>> print(_refusal("INTERNAL: ... smaller than required_chars. 61 vs 300. Increase vocab_size or ...", 64, 3))
    vocab.size: 64 is less than the 303 of characters, specials and unused slots; raise --size, or lower --coverage or --unused
    """  # noqa: E501
    needed = re.search(r"required_chars\. \d+ vs (\d+)", message)
    if needed:
        return _too_small(size, int(needed[1]) + unused)
    what = f"sentencepiece cannot learn {size:,} ids from this text ({' '.join(message.split())})"
    return errors.RecipeInvalid("vocab.size", what, "raise --size, lower --coverage, or give more text")


def _too_small(size: int, least: int) -> errors.RecipeInvalid:
    what = f"{size:,} is less than the {least:,} of characters, specials and unused slots"
    return errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --coverage or --unused")


@functools.cache
def charsmap_of(rule: str) -> str:
    """The compiled character map of one of the library's rules ("nmt_nfkc", ...), base64."""
    import sentencepiece

    proto = sentencepiece.SentencePieceNormalizer(rule_name=rule).serialized_model_proto()
    return base64.b64encode(files.read_charsmap(proto)).decode()
