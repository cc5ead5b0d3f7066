"""Reads tokenizer folders: finds the special tokens and the family, and lets the family do the rest.

In: a local folder or a URL. Out: a `Vocab`. The decision: tokenizer.json is believed before all other files, because
it alone says everything; a vocab.txt without one is BERT's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpusforge import errors
from corpusforge.tokens import wordpiece
from corpusforge.tokens.vocab import ROLES, Vocab

_MEND = "use the folder of a tokenizer saved by save_pretrained or train-vocab"

_FAMILIES: dict[str, Callable[[str, dict[str, Any], Sequence[str], Mapping[str, str]], Vocab]] = {
    "WordPiece": wordpiece.from_json,
}
"""Readers of tokenizer.json by the type of its model; each gets (where, the file, tokens by id, special names)."""


def load(folder: str) -> Vocab:
    """The vocabulary in a folder. Raises `errors.ManifestInvalid`."""
    where = f"{folder}/tokenizer.json"
    config = _read_json(f"{folder}/tokenizer_config.json") or {}
    names = dict(zip(ROLES, wordpiece.NAMES, strict=True))
    for source in (config, _read_json(f"{folder}/special_tokens_map.json") or {}):
        for key in ROLES:
            value = source.get(f"{key}_token")
            value = value.get("content") if isinstance(value, dict) else value
            names[key] = value or names[key]
    raw = _read_json(where)
    if raw is None:
        lines = read_bytes(f"{folder}/vocab.txt")
        if lines is None:
            raise errors.ManifestInvalid(folder, "no tokenizer.json and no vocab.txt", _MEND)
        return wordpiece.from_lines(lines, config, names)
    try:
        return _from_json(where, raw, names)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None


def _from_json(where: str, raw: dict[str, Any], names: dict[str, str]) -> Vocab:
    kind = raw["model"].get("type", "WordPiece")
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
    return _FAMILIES[kind](where, raw, tokens, names)


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
