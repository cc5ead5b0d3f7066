"""Reads tokenizer folders: finds the special tokens and the family, and lets the family do the rest.

In: a local folder or a URL. Out: a `Vocab`. The decision: tokenizer.json is believed before all other files, because
it alone says everything; without one a vocab.txt is BERT's, a vocab.json with merges.txt RoBERTa's, and a spiece.model
ALBERT's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.tokens import byte_bpe, sentencepiece_family, wordpiece
from corpusforge.tokens.vocab import ROLES, Vocab

_MEND = "use the folder of a tokenizer saved by save_pretrained or train-vocab"

_FAMILIES: dict[str, Callable[[str, dict[str, Any], Sequence[str], Mapping[str, str]], Vocab]] = {
    "WordPiece": wordpiece.from_json,
    "BPE": byte_bpe.from_json,
    "Unigram": sentencepiece_family.from_json,
    "BPE over U+2581": sentencepiece_family.from_json,
}
"""Readers of tokenizer.json by `_kind_of`; each gets (where, the file, tokens by id, special names)."""

_NAMES = {
    "WordPiece": wordpiece.NAMES,
    "BPE": byte_bpe.NAMES,
    "Unigram": sentencepiece_family.NAMES,
    "BPE over U+2581": sentencepiece_family.NAMES,
}
"""What special tokens are called where a folder does not say it, in the order of ROLES."""


def load(folder: str) -> Vocab:
    """The vocabulary in a folder. Raises `errors.ManifestInvalid`; `errors.InputMissing` where there is no folder."""
    where = f"{folder}/tokenizer.json"
    config = _read_json(f"{folder}/tokenizer_config.json") or {}
    names: dict[str, str] = {}
    for source in (config, _read_json(f"{folder}/special_tokens_map.json") or {}):
        for key in ROLES:
            value = source.get(f"{key}_token")
            value = value.get("content") if isinstance(value, dict) else value
            if value:
                names[key] = value
    raw = _read_json(where)
    if raw is None:
        return _from_native(folder, config, names)
    try:
        return _from_json(where, raw, names)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None


def _from_native(folder: str, config: dict[str, Any], names: dict[str, str]) -> Vocab:
    """From a family's own files, where there is no tokenizer.json."""
    lines = read_bytes(f"{folder}/vocab.txt")
    if lines is not None:
        return wordpiece.from_lines(lines, config, _with_defaults(names, "WordPiece"))
    model = read_bytes(f"{folder}/spiece.model")
    if model is not None:
        named = _with_defaults(names, "Unigram")
        return sentencepiece_family.from_model(model, f"{folder}/spiece.model", config, named)
    ids, merges = read_bytes(f"{folder}/vocab.json"), read_bytes(f"{folder}/merges.txt")
    if ids is None or merges is None:
        if "://" not in folder and not Path(folder).is_dir():
            raise errors.InputMissing(folder, "no such folder", "check the path")
        kind = config.get("tokenizer_class")
        what = "no tokenizer.json, no vocab.txt, no vocab.json with merges.txt, no spiece.model"
        what = f"the {kind} in it has {what}" if kind else what
        raise errors.ManifestInvalid(folder, what, _MEND)
    try:
        return byte_bpe.from_files(folder, ids, merges, config, _with_defaults(names, "BPE"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.ManifestInvalid(f"{folder}/vocab.json", f"unreadable tokenizer ({error!r})", _MEND) from None


def _with_defaults(names: dict[str, str], kind: str) -> dict[str, str]:
    return {**dict(zip(ROLES, _NAMES[kind], strict=True)), **names}


def _from_json(where: str, raw: dict[str, Any], names: dict[str, str]) -> Vocab:
    kind = _kind_of(raw)
    if kind not in _FAMILIES:
        raise errors.ManifestInvalid(
            where, f"its family is not built: model {kind}", f"built are {', '.join(_FAMILIES)}"
        )
    ids = _ids_of_model(raw["model"]["vocab"])
    for added in sorted(raw.get("added_tokens") or [], key=lambda entry: entry["id"]):
        if added["content"] not in ids and not added["special"]:
            what = f"the added token {added['content']!r} is an ordinary word matched before all others"
            raise errors.ManifestInvalid(where, what, "remove it from added_tokens")
        ids[added["content"]] = added["id"]
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise errors.ManifestInvalid(where, "ids have holes or repeat", "number the tokens from 0 without holes")
    return _FAMILIES[kind](where, raw, tokens, _with_defaults(names, kind))


def _kind_of(raw: dict[str, Any]) -> str:
    """The type of the model; a BPE whose words begin with U+2581 is SentencePiece's."""
    kind: str = raw["model"].get("type", "WordPiece")
    splitter = raw.get("pre_tokenizer") or {}
    kinds = {step["type"] for step in splitter.get("pretokenizers", [splitter]) if step}
    return "BPE over U+2581" if kind == "BPE" and "Metaspace" in kinds else kind


def _ids_of_model(vocab: Any) -> dict[str, int]:
    """Ids by token: WordPiece and BPE have a table, Unigram a list of (piece, score)."""
    return {piece: i for i, (piece, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)


def read_bytes(path: str) -> bytes | None:
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
    data = read_bytes(path)
    try:
        return None if data is None else json.loads(data)
    except ValueError as error:
        raise errors.ManifestInvalid(path, f"no valid JSON ({error})", _MEND) from None
