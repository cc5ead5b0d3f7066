"""A vocabulary: which token has which id, and how text is normalised before it is cut into tokens.

In: learned pieces, or a tokenizer folder of `transformers`. Out: a frozen `Vocab`, and the files of a folder that
`AutoTokenizer` of transformers 4 and 5 loads, with the post-processor that adds [CLS] and [SEP]. The decision: the
padding to a multiple of 64 lies inside the vocabulary as [unusedN] slots (ModernBERT's way), so that
``len(tokenizer) == config.vocab_size``. Ids of the specials are BERT's own where there are slots enough
(google-research/bert, vocab.txt of uncased_L-12_H-768_A-12: [PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103).
"""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xxhash

from corpusforge import errors
from corpusforge.tokens.words import Normalization

MULTIPLE = 64
"""Sizes that keep the output matrix fast on tensor cores (NVIDIA, deep learning performance guide, 2020)."""

BERT_UNUSED = 99
"""[unusedN] slots between [PAD] 0 and [UNK] 100 in BERT's own vocabularies."""

MAX_WORD_CHARACTERS = 100
"""Longer words are [UNK] (huggingface/tokenizers, models/wordpiece; google-research/bert said 200)."""

_UNUSED = re.compile(r"\[unused(\d+)\]")
_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_KEYS = ("pad", "unk", "cls", "sep", "mask")


@dataclasses.dataclass(frozen=True)
class Specials:
    """Ids of the special tokens, by role."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


@dataclasses.dataclass(frozen=True)
class Vocab:
    """Tokens by id. ``unused``: ids that no text produces and training never draws: [unusedN] slots, extra specials.

    ``model``: the family; ``"wordpiece"`` is built now (pieces inside a word begin with ``##``).
    """

    tokens: tuple[str, ...]
    specials: Specials
    unused: tuple[int, ...]
    normalization: Normalization
    model: str = "wordpiece"
    max_word_characters: int = MAX_WORD_CHARACTERS

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise errors.ManifestInvalid("vocabulary", "a token stands in it twice", "learn or adopt it again")
        reserved = [*dataclasses.astuple(self.specials), *self.unused]
        # Text is split at every punctuation, so a longer token with one in it can never come out of text.
        open_ = [t for t in (self.tokens[i] for i in reserved) if len(t) < 2 or not any(map(is_punctuation, t))]
        if open_:
            mend = "use a tokenizer whose special tokens contain punctuation, like [MASK]"
            raise errors.ManifestInvalid("vocabulary", f"plain text could produce the special token {open_[0]!r}", mend)

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.tokens)

    @property
    def lowercase(self) -> bool:
        """Whether text is lower-cased (uncased)."""
        return self.normalization.lowercase

    @property
    def digest(self) -> str:
        """xxh3-128 of everything that decides ids, 32 hex digits; independent of library versions."""
        return xxhash.xxh3_128_hexdigest(json.dumps(dataclasses.asdict(self), sort_keys=True).encode())

    def save_files(self) -> dict[str, bytes]:
        """The folder's files by name: tokenizer.json, tokenizer_config.json, special_tokens_map.json, vocab.txt."""
        names = {f"{key}_token": self.tokens[id_] for key, id_ in dataclasses.asdict(self.specials).items()}
        config = {
            # Read by transformers 4 (as its Fast class) and 5 alike; without it 5 falls back to a generic class.
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.normalization.lowercase,
            "strip_accents": self.normalization.strip_accents,
            "tokenize_chinese_chars": self.normalization.isolate_chinese,
            "clean_up_tokenization_spaces": True,
            "model_max_length": 512,
            **names,
        }
        return {
            "tokenizer.json": (self.library_tokenizer().to_str(pretty=True) + "\n").encode(),
            "tokenizer_config.json": _json(config),
            "special_tokens_map.json": _json(names),
            "vocab.txt": "".join(f"{token}\n" for token in self.tokens).encode(),
        }

    def library_model(self) -> Any:
        """The `tokenizers` model alone: what turns one word into ids."""
        from tokenizers import models

        return models.WordPiece(
            {token: i for i, token in enumerate(self.tokens)},
            unk_token=self.tokens[self.specials.unk],
            max_input_chars_per_word=self.max_word_characters,
            continuing_subword_prefix="##",
        )

    def library_tokenizer(self, *, added: bool = True) -> Any:
        """The same vocabulary as a `tokenizers.Tokenizer`. ``added`` False: special tokens in text mean nothing."""
        from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers, processors

        tokenizer = Tokenizer(self.library_model())
        tokenizer.normalizer = self.normalization.normalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix="##")
        if added:
            special = [self.tokens[i] for i in sorted(dataclasses.astuple(self.specials))]
            tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
            cls, sep = self.tokens[self.specials.cls], self.tokens[self.specials.sep]
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{cls}:0 $A:0 {sep}:0",
                pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
                special_tokens=[(cls, self.specials.cls), (sep, self.specials.sep)],
            )
        return tokenizer

    @classmethod
    def load(cls, folder: str) -> Vocab:
        """Read a vocabulary folder: one written here, or a BERT-like tokenizer of `transformers`.

        Raises `errors.ManifestInvalid` where it is missing, damaged, or of a family that is not built.
        """
        return _load(str(folder).rstrip("/"))

    @classmethod
    def adopt(cls, folder: str) -> Vocab:
        """A tokenizer folder taken over: `load`, with [unusedN] slots added up to the next multiple of 64."""
        vocab = cls.load(folder)
        return vocab.padded(-(-vocab.size // MULTIPLE) * MULTIPLE)

    def padded(self, size: int) -> Vocab:
        """The same ids, followed by new [unusedN] slots up to ``size``; N goes on behind the highest in use."""
        taken = [int(m[1]) for token in self.tokens if (m := _UNUSED.fullmatch(token))]
        first = max(taken, default=-1) + 1
        more = tuple(f"[unused{first + k}]" for k in range(size - self.size))
        unused = (*self.unused, *range(self.size, size))
        return dataclasses.replace(self, tokens=self.tokens + more, unused=unused)


def check_size(size: int, *, allow_any_size: bool = False) -> None:
    """Raises `errors.RecipeInvalid` naming the two nearest sizes where ``size`` is no multiple of 64."""
    if size % MULTIPLE and not allow_any_size:
        below = size // MULTIPLE * MULTIPLE
        nearest = f"use {below:,} or {below + MULTIPLE:,}" if below else f"use {MULTIPLE}"
        what = f"{size:,} is no multiple of {MULTIPLE}"
        raise errors.RecipeInvalid("vocab.size", what, f"{nearest}, or set vocab.allow_any_size")


def arrange(pieces: Sequence[str], size: int, unused: int, normalization: Normalization) -> Vocab:
    """Lay learned pieces out with specials and ``unused`` slots; what is missing to ``size`` becomes unused slots too.

    With at least 99 slots the specials have BERT's ids: [PAD] 0, [unused0] to [unused98], [UNK] 100, [CLS] 101,
    [SEP] 102, [MASK] 103, more slots, pieces. With fewer: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, slots, pieces.

    >>> arrange(["a", "##b"], 8, 1, Normalization()).tokens
    ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '[unused0]', 'a', '##b')
    """
    slots = [f"[unused{k}]" for k in range(unused)]
    ahead = BERT_UNUSED if unused >= BERT_UNUSED else 0
    tokens = [_NAMES[0], *slots[:ahead], *_NAMES[1:], *slots[ahead:], *pieces]
    return _with_roles(tokens, normalization, dict(zip(_KEYS, _NAMES, strict=True)), ()).padded(size)


def is_punctuation(character: str) -> bool:
    """BERT's punctuation: every ASCII character that is neither letter, digit nor space, and Unicode's P classes."""
    ascii_sign = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_sign or unicodedata.category(character).startswith("P")


def _with_roles(
    tokens: Sequence[str], normalization: Normalization, names: dict[str, str], extra: Sequence[str], **more: Any
) -> Vocab:
    ids = {token: i for i, token in enumerate(tokens)}
    missing = [name for name in names.values() if name not in ids]
    if missing:
        raise errors.ManifestInvalid("vocabulary", f"no special token {missing[0]}", "use a BERT-like tokenizer")
    specials = Specials(**{key: ids[names[key]] for key in _KEYS})
    taken = set(dataclasses.astuple(specials))
    unused = [i for t, i in ids.items() if i not in taken and (_UNUSED.fullmatch(t) or t in extra)]
    return Vocab(tuple(tokens), specials, tuple(sorted(unused)), normalization, **more)


def _load(folder: str) -> Vocab:
    where = f"{folder}/tokenizer.json"
    config = _read_json(f"{folder}/tokenizer_config.json") or {}
    names = dict(zip(_KEYS, _NAMES, strict=True))
    for source in (config, _read_json(f"{folder}/special_tokens_map.json") or {}):
        for key in _KEYS:
            value = source.get(f"{key}_token")
            value = value.get("content") if isinstance(value, dict) else value
            names[key] = value or names[key]
    raw = _read_json(where)
    if raw is None:
        return _from_lines(folder, config, names)
    try:
        return _from_json(where, raw, names)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None


_MEND = "use the folder of a WordPiece tokenizer, saved by save_pretrained or train-vocab"


def _from_json(where: str, raw: dict[str, Any], names: dict[str, str]) -> Vocab:
    model, normalizer, splitter = raw["model"], raw["normalizer"] or {}, raw["pre_tokenizer"] or {}
    kinds = (model.get("type", "WordPiece"), normalizer.get("type"), splitter.get("type"))
    if kinds != ("WordPiece", "BertNormalizer", "BertPreTokenizer") or model["continuing_subword_prefix"] != "##":
        what = "its family is not built yet: model {}, normalizer {}, pre-tokenizer {}".format(*kinds)
        raise errors.ManifestInvalid(where, what, "WordPiece vocabularies of BERT's kind can be used")
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    for added in sorted(raw.get("added_tokens") or [], key=lambda entry: entry["id"]):
        if added["content"] not in model["vocab"]:
            if not added["special"]:
                what = f"the added token {added['content']!r} is an ordinary word matched before all others"
                raise errors.ManifestInvalid(where, what, "remove it from added_tokens")
            tokens.append(added["content"])
    extra = [added["content"] for added in raw.get("added_tokens") or [] if added["special"]]
    ids = {**model["vocab"], **{added["content"]: added["id"] for added in raw.get("added_tokens") or []}}
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise errors.ManifestInvalid(where, "ids have holes or repeat", "number the tokens from 0 without holes")
    normalization = Normalization(
        normalizer["lowercase"],
        normalizer["strip_accents"],
        normalizer["handle_chinese_chars"],
        normalizer["clean_text"],
    )
    longest = model["max_input_chars_per_word"]
    return _with_roles(tokens, normalization, names, extra, max_word_characters=longest)


def _from_lines(folder: str, config: dict[str, Any], names: dict[str, str]) -> Vocab:
    """A folder with vocab.txt alone, as google-research/bert publishes them; uncased unless its settings say not."""
    data = _read_bytes(f"{folder}/vocab.txt")
    if data is None:
        raise errors.ManifestInvalid(folder, "no tokenizer.json and no vocab.txt", _MEND)
    tokens = data.decode(errors="replace").removesuffix("\n").split("\n")
    normalization = Normalization(
        config.get("do_lower_case", True),
        config.get("strip_accents"),
        config.get("tokenize_chinese_chars", True),
    )
    return _with_roles([token.rstrip("\r") for token in tokens], normalization, names, ())


def _read_bytes(path: str) -> bytes | None:
    """A file of a local folder or a URL; None where there is none."""
    try:
        if "://" not in path:
            return Path(path).read_bytes()
        import fsspec  # only URLs need it, and it takes 50 ms to import

        with fsspec.open(path, "rb") as file:
            return file.read()  # type: ignore[no-any-return]
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_json(path: str) -> Any:
    data = _read_bytes(path)
    try:
        return None if data is None else json.loads(data)
    except ValueError as error:
        raise errors.ManifestInvalid(path, f"no valid JSON ({error})", _MEND) from None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
