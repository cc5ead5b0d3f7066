"""The families of SentencePiece: pieces with scores (unigram) or merges (bpe) over words that begin with U+2581.

In: learned pieces, or the parts of a tokenizer folder. Out: `Vocab`s of these families. The decision: `tokenizers`
encodes, because transformers does; spiece.model is written beside it with the same normalisation compiled into its
character map, so that the `sentencepiece` package gives the same ids.

Text never produces a special id: in the unigram model used here every special and unused token has a name with a space
in it, which no word has (the library matches such names in text otherwise); in the bpe model no merge leads to one.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.arrays import Bools
from corpusforge.tokens import sentencepiece_file as files
from corpusforge.tokens.best_path import BestPath
from corpusforge.tokens.pair_merges import PairMerges
from corpusforge.tokens.pieces import SPACE, WHITE, PieceCutting
from corpusforge.tokens.vocab import ROLES, Vocab, with_roles
from corpusforge.tokens.word_columns import WordColumns
from corpusforge.tokens.word_parts import WordParts, sums_are_exact
from corpusforge.tokens.wordpiece import add_specials

NAMES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
"""ALBERT's specials by role; their ids are 0 to 4 (google-research/albert, README: spm_train's options)."""

ALBERT = PieceCutting()
"""Quotes, NFKD, accents stripped, lower case (huggingface/transformers, tokenization_albert.py)."""


@dataclasses.dataclass(frozen=True)
class SentencePiece:
    """Settings of the families; `Family` says what the methods give.

    ``scores``: log-probabilities by id (unigram), for ids behind its end there are none; ``merges``: pairs of pieces in
    the order in which they are joined (bpe).
    """

    algorithm: str
    cutting: PieceCutting = ALBERT
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
            mend = "use a tokenizer whose special tokens are no merges and have two characters or more"
            raise errors.ManifestInvalid("vocabulary", f"plain text could produce the special token {open_[0]!r}", mend)

    def word_tokenizer(self, vocab: Vocab) -> Any:
        return self._tokenizer(vocab, hidden=True)

    def word_columns(self, vocab: Vocab) -> WordColumns:
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
        tokenizer.normalizer = self.cutting.normalizer()
        tokenizer.pre_tokenizer = self.cutting.pre_tokenizer()
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
        charsmap = compiled_charsmap(self.cutting)
        model = files.Model(vocab.tokens, tuple(scores), tuple(kinds), self.algorithm, charsmap)
        ids = {"unk": special.unk, "bos": special.cls, "eos": special.sep, "pad": special.pad}
        return {"spiece.model": files.write_model(model, ids)}

    def configuration(self, vocab: Vocab) -> dict[str, Any]:
        if self.algorithm != "unigram" or not self.cutting.quotes:
            return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        return {
            "tokenizer_class": "AlbertTokenizer",
            "do_lower_case": self.cutting.lowercase,
            "keep_accents": not self.cutting.strip_accents,
            "remove_space": True,
            "bos_token": vocab.tokens[vocab.specials.cls],
            "eos_token": vocab.tokens[vocab.specials.sep],
        }

    def starts_word(self, vocab: Vocab) -> Bools:
        starts = np.array([token.startswith(SPACE) for token in vocab.tokens], np.bool_)
        starts[list(vocab.reserved)] = True
        return starts

    def about(self) -> dict[str, Any]:
        rules = {"quotes": self.cutting.quotes, "accents stripped": self.cutting.strip_accents}
        return {**rules, "lower-cased": self.cutting.lowercase, "character map": bool(self.cutting.charsmap)}

    def scores_of(self, vocab: Vocab) -> list[float]:
        """A score for every id: specials 0, slots the lowest of all pieces, so that [UNK] costs what it did."""
        if self.algorithm == "bpe":
            rank: dict[str, int] = {}
            for left, right in self.merges:
                rank.setdefault(left + right, len(rank))
            # Characters come behind all merges, as sentencepiece's trainer writes them.
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
def compiled_charsmap(cutting: PieceCutting) -> bytes:
    """The normalisation as a character map of SentencePiece; its own where it has nothing but one."""
    if not (cutting.quotes or cutting.strip_accents or cutting.lowercase):
        return base64.b64decode(cutting.charsmap)
    import sentencepiece

    rules = ["60 60\t22", "27 27\t22"] if cutting.quotes else []
    for character, answer in _answers(cutting):
        if answer != character:
            rules.append(f"{ord(character):X}\t{' '.join(f'{ord(c):X}' for c in answer)}")
    sentencepiece.set_min_log_level(2)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write("".join(f"{rule}\n" for rule in rules))
        file.flush()
        found = sentencepiece.SentencePieceNormalizer(rule_tsv=file.name)
    return files.read_charsmap(found.serialized_model_proto())


def _answers(cutting: PieceCutting) -> Iterator[tuple[str, str]]:
    """Every character and what the library makes of it, white space as " "."""
    normalizer, spaces = cutting.normalizer(), str.maketrans(dict.fromkeys(WHITE, " "))
    points = [chr(p) for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000 and p != 0x0A]
    if cutting.charsmap:  # looks at neighbours, so each alone; without those that are no characters yet
        points = [c for c in points if unicodedata.category(c) not in ("Cn", "Co")]
        answers = [normalizer.normalize_str(c) for c in points]
    else:
        answers = normalizer.normalize_str("\n".join(points)).split("\n")
    yield from zip(["\n", *points], [" ", *(answer.translate(spaces) for answer in answers)], strict=True)


def arrange(model: files.Model, size: int, cutting: PieceCutting) -> Vocab:
    """Lay the pieces of a learned model out: ALBERT's specials 0 to 4, pieces, [unusedN] slots up to ``size``."""
    learned = [
        (p, s) for p, s, kind in zip(model.pieces, model.scores, model.kinds, strict=True) if kind == files.NORMAL
    ]
    tokens = [*NAMES, *(piece for piece, _ in learned)]
    family = _family(model.algorithm, cutting, [0.0] * len(NAMES) + [score for _, score in learned], tokens)
    return with_roles(tokens, family, dict(zip(ROLES, NAMES, strict=True))).padded(size)


def _family(algorithm: str, cutting: PieceCutting, scores: Sequence[float], tokens: Sequence[str]) -> SentencePiece:
    if algorithm == "unigram":
        return SentencePiece("unigram", cutting, tuple(scores))
    return SentencePiece("bpe", cutting, merges=_merges(tokens, scores))


def _merges(tokens: Sequence[str], scores: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """All ways to join two pieces into a third, best first: what sentencepiece's bpe does with scores alone."""
    known, found = set(tokens), []
    for i in sorted(range(len(tokens)), key=lambda i: -scores[i]):
        splits = ((tokens[i][:at], tokens[i][at:]) for at in range(1, len(tokens[i])))
        found += [(left, right) for left, right in splits if left in known and right in known]
    return tuple(found)


def from_json(where: str, raw: dict[str, Any], tokens: Sequence[str], names: Mapping[str, str]) -> Vocab:
    """From a tokenizer.json; ``tokens``: all of its tokens by id; ``names``: special tokens by role."""
    model = raw["model"]
    cutting = _cutting_of(where, raw)
    extra = [added["content"] for added in raw.get("added_tokens") or [] if added["special"]]
    if isinstance(model["vocab"], list):
        if model.get("byte_fallback") or model["unk_id"] != tokens.index(names["unk"]):
            raise errors.ManifestInvalid(where, "a Unigram of another kind", "ALBERT's kind can be used")
        family = SentencePiece("unigram", cutting, tuple(score for _, score in model["vocab"]))
    else:
        if model.get("byte_fallback") or not model.get("fuse_unk"):
            raise errors.ManifestInvalid(where, "a BPE that falls back to bytes", "one with fuse_unk can be used")
        merges = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
        family = SentencePiece("bpe", cutting, merges=tuple((left, right) for left, right in merges))
    return _without_last_scores(with_roles(tokens, family, names, extra))


def _without_last_scores(vocab: Vocab) -> Vocab:
    """The same vocabulary, scores ending at the last piece: what a folder says of slots behind it is no part of it."""
    family, reserved = vocab.family, set(vocab.reserved)
    assert isinstance(family, SentencePiece)
    last = max((i for i in range(len(family.scores)) if i not in reserved), default=-1)
    return dataclasses.replace(vocab, family=dataclasses.replace(family, scores=family.scores[: last + 1]))


def _cutting_of(where: str, raw: dict[str, Any]) -> PieceCutting:
    """The cutting whose library objects are those of the file. Raises where there is none."""
    steps, splitters = _flat(raw["normalizer"], "normalizers"), _flat(raw["pre_tokenizer"], "pretokenizers")
    kinds = [step["type"] for step in steps]
    charsmap = next((step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled"), "")
    # Spaces in a row are left to WhitespaceSplit, so a rule that makes them one changes nothing.
    wanted = [k for k, s in zip(kinds, steps, strict=True) if s.get("pattern") != {"Regex": " {2,}"}]
    cutting = PieceCutting(wanted[:2] == ["Replace"] * 2, "NFKD" in kinds, "Lowercase" in kinds, charsmap)
    made = [type(step).__name__ for step in cutting.steps()] + ["Precompiled"] * bool(charsmap)
    metaspace = splitters[-1] if splitters else {}
    always = metaspace.get("prepend_scheme", "always" if metaspace.get("add_prefix_space") else "never") == "always"
    ends = [step["type"] for step in splitters] == ["WhitespaceSplit", "Metaspace"] and always
    if wanted != made or not ends:
        what = f"a SentencePiece tokenizer of another kind: {', '.join(kinds + [s['type'] for s in splitters])}"
        raise errors.ManifestInvalid(where, what, "those of ALBERT's kind can be used (WhitespaceSplit, Metaspace)")
    return cutting


def _flat(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The steps of a Sequence, or the one step."""
    if step is None:
        return []
    return list(step[key]) if step["type"] == "Sequence" else [step]


def from_model(data: bytes, where: str, config: dict[str, Any], names: Mapping[str, str]) -> Vocab:
    """From a spiece.model alone: ALBERT's rules before its own character map, unless the settings say not."""
    model = files.read_model(data, where)
    charsmap = base64.b64encode(model.charsmap).decode()
    strip, lower = not config.get("keep_accents", False), config.get("do_lower_case", True)
    cutting = PieceCutting(True, strip, lower, charsmap)
    usable = [
        score if kind in (files.NORMAL, files.USER_DEFINED) else 0.0
        for score, kind in zip(model.scores, model.kinds, strict=True)
    ]
    family = _family(model.algorithm, cutting, usable, model.pieces)
    kinds = zip(model.pieces, model.kinds, strict=True)
    extra = [piece for piece, kind in kinds if kind not in (files.NORMAL, files.USER_DEFINED)]
    return _without_last_scores(with_roles(model.pieces, family, names, extra))
