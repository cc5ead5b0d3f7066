"""Learn a vocabulary of any family, or read one from a folder.

A family is a module of this room and a row of `sections.vocab.FAMILIES`. Counting words needs only the segmentation of
the family, and learning needs only the counts, so every family goes through the same stage.

The module of a family has

- ``NAMES``: its special tokens by role; ``FEWEST``: the ids of the smallest vocabulary;
- ``KINDS``: models of the library's tokenizer.json that it reads; ``FILES``: its own files;
- ``segmentation_of(settings)``, ``from_json`` and ``from_files``;
- perhaps ``select(blocks, ...)`` in place of `counts.select_counts`.

The module of its learner, usually the same, has ``learn(counts, settings)``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge import errors, sections
from corpusforge.sections.vocab import FAMILIES
from corpusforge.tokens.counts import select_counts
from corpusforge.tokens.splitting import Segmentation
from corpusforge.tokens.vocab import MULTIPLE, ROLES, Learned, Vocab, check_size, tokens_by_id

_MEND = "use the folder of a tokenizer saved by save_pretrained or train-vocab"


def segmentation_of(settings: sections.Vocab) -> Segmentation:
    """How text is normalized and segmented into words for the family of these settings."""
    segmentation: Segmentation = _module(FAMILIES[settings.model].module).segmentation_of(settings)
    return segmentation


def check_sizes(settings: sections.Vocab) -> None:
    """Raise `errors.RecipeInvalid` if the size is wrong for any text.

    Learning checks it again against the characters of the text.
    """
    if settings.adopt:
        return
    check_size(settings.size, allow_any_size=settings.allow_any_size)
    fewest, kind = _module(FAMILIES[settings.model].module).FEWEST
    least = len(ROLES) + settings.unused + fewest
    if settings.size < least:
        what = f"{settings.size:,} is less than the {least:,} of specials, unused slots and {kind}"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --unused")


def select(blocks: Iterable[bytes], settings: sections.Vocab) -> tuple[pa.Table, dict[str, float]]:
    """The words to learn from, of merged blocks of COUNTS, and statistics of what was left out."""
    chosen: Any = getattr(_module(FAMILIES[settings.model].module), "select", select_counts)
    counts, statistics = chosen(blocks, min_count=settings.min_count, max_words=settings.max_words)
    return counts, statistics


def learn(counts: pa.Table, settings: sections.Vocab) -> Learned:
    """Learn a vocabulary from COUNTS in any order.

    It has ``settings.size`` ids, specials and at least ``settings.unused`` slots among them. Where the words do not
    suffice to fill the size, more [unusedN] slots do.

    Raises `errors.RecipeInvalid` if the size is not a multiple of 64 or too small.
    """
    family = FAMILIES[settings.model]
    learned: Learned = _module(family.learner or family.module).learn(counts, settings)
    return learned


def load_vocab(folder: str) -> Vocab:
    """Read a vocabulary from a folder or URL: one written here, or a tokenizer of `transformers`.

    tokenizer.json takes precedence over all other files, because it alone is complete; without one, the own files of a
    family decide.

    Raises `errors.ManifestInvalid` if it is damaged or of another family; `errors.InputMissing` without a folder.
    """
    folder = str(folder).rstrip("/")
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
        return _from_files(folder, config, names)
    try:
        return _from_json(where, raw, names)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None


def adopt_vocab(folder: str) -> Vocab:
    """`load_vocab`, with [unusedN] slots added up to the next multiple of 64."""
    vocab = load_vocab(folder)
    return vocab.padded(-(-vocab.size // MULTIPLE) * MULTIPLE)


def _module(name: str) -> Any:
    return importlib.import_module(f"corpusforge.tokens.{name}")


def _modules() -> list[Any]:
    """The modules of all families, each once."""
    return [_module(name) for name in dict.fromkeys(family.module for family in FAMILIES.values())]


def _special_names(module: Any, names: dict[str, str]) -> dict[str, str]:
    """Special tokens by role: the usual ones of a family where the folder states no others."""
    return {**dict(zip(ROLES, module.NAMES, strict=True)), **names}


def _from_files(folder: str, config: dict[str, Any], names: dict[str, str]) -> Vocab:
    """Read a family's own files, where there is no tokenizer.json; a single file takes precedence over two."""
    for module in sorted(_modules(), key=lambda module: len(module.FILES)):
        data = [_read_bytes(f"{folder}/{name}") for name in module.FILES]
        if None in data:
            continue
        where = f"{folder}/{module.FILES[0]}"
        try:
            vocab: Vocab = module.from_files(where, data, config, _special_names(module, names))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None
        return vocab
    if "://" not in folder and not Path(folder).is_dir():
        raise errors.InputMissing(folder, "no such folder", "check the path")
    files = (" with ".join(module.FILES) for module in _modules())
    what = ", ".join(f"no {name}" for name in ("tokenizer.json", *files))
    kind = config.get("tokenizer_class")
    raise errors.ManifestInvalid(folder, f"the {kind} in it has {what}" if kind else what, _MEND)


def _from_json(where: str, raw: dict[str, Any], names: dict[str, str]) -> Vocab:
    kind = _kind_of(raw)
    readers = {kind: module for module in _modules() for kind in module.KINDS}
    if kind not in readers:
        mend = f"these can be used: {', '.join(readers)}"
        raise errors.ManifestInvalid(where, f"its family is not supported: model {kind}", mend)
    pieces = raw["model"]["vocab"]  # WordPiece and BPE have a table of ids, Unigram a list of (piece, score)
    ids = {piece: i for i, (piece, _) in enumerate(pieces)} if isinstance(pieces, list) else dict(pieces)
    for added in sorted(raw.get("added_tokens") or [], key=lambda entry: entry["id"]):
        if added["content"] not in ids and not added["special"]:
            what = f"the added token {added['content']!r} is an ordinary word matched before all others"
            raise errors.ManifestInvalid(where, what, "remove it from added_tokens")
        ids[added["content"]] = added["id"]
    module = readers[kind]
    vocab: Vocab = module.from_json(where, raw, tokens_by_id(where, ids), _special_names(module, names))
    return vocab


def _kind_of(raw: dict[str, Any]) -> str:
    """The type of the model; a BPE whose words begin with U+2581 is SentencePiece's."""
    kind: str = raw["model"].get("type", "WordPiece")
    splitter = raw.get("pre_tokenizer") or {}
    kinds = {step["type"] for step in splitter.get("pretokenizers", [splitter]) if step}
    return "BPE over U+2581" if kind == "BPE" and "Metaspace" in kinds else kind


def _read_bytes(path: str) -> bytes | None:
    """A file of a local folder or a URL; None if there is none."""
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
