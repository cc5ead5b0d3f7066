"""The families of vocabularies: one table, through which a vocabulary is learned or read from a folder.

A family is a module of this room and a row of `FAMILIES`. Counting words needs no more than the segmentation of the
family, and learning no more than the counts, so every family goes through the same stage. The names are the values of
``vocab.model``, which `corpusforge.sections` lists with their help.

The module of a family has ``NAMES``, ``FEWEST``, ``segmentation_of(settings)``, ``from_json`` and ``from_files``, and
may have ``select(blocks, ...)`` in place of `counts.select_counts`; that of its learner, mostly the same, has
``learn(counts, settings)``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from corpusforge import errors, sections
from corpusforge.tokens.counts import select_counts
from corpusforge.tokens.splitting import Segmentation
from corpusforge.tokens.vocab import MULTIPLE, ROLES, Learned, Vocab, check_size, tokens_by_id


class Row(NamedTuple):
    """Modules by name, because only those that are used are imported.

    ``kind``: model of the library's tokenizer.json ("": read as another family); ``files``: the family's own files.
    """

    family: str
    learner: str
    kind: str
    files: tuple[str, ...]


FAMILIES: Mapping[str, Row] = {
    "wordpiece": Row("wordpiece", "wordpiece", "WordPiece", ("vocab.txt",)),
    "wordpiece-likelihood": Row("wordpiece", "likelihood", "", ("vocab.txt",)),
    "bpe": Row("byte_bpe", "byte_bpe", "BPE", ("vocab.json", "merges.txt")),
    "unigram": Row("sentencepiece_family", "sentencepiece_family", "Unigram", ("spiece.model",)),
    "sentencepiece-bpe": Row("sentencepiece_family", "sentencepiece_family", "BPE over U+2581", ("spiece.model",)),
}

_KINDS = {row.kind: row for row in FAMILIES.values() if row.kind}

_MEND = "use the folder of a tokenizer saved by save_pretrained or train-vocab"


def segmentation_of(settings: sections.Vocab) -> Segmentation:
    """How text is normalized and segmented into words for the family of these settings."""
    segmentation: Segmentation = _module(FAMILIES[settings.model].family).segmentation_of(settings)
    return segmentation


def check_sizes(settings: sections.Vocab) -> None:
    """Raise `errors.RecipeInvalid` where the size is wrong whatever the text that is counted.

    Learning checks it again against the characters of the text.
    """
    if settings.adopt:
        return
    check_size(settings.size, allow_any_size=settings.allow_any_size)
    fewest, kind = _module(FAMILIES[settings.model].family).FEWEST
    least = len(ROLES) + settings.unused + fewest
    if settings.size < least:
        what = f"{settings.size:,} is less than the {least:,} of specials, unused slots and {kind}"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --unused")


def select(blocks: Iterable[bytes], settings: sections.Vocab) -> tuple[pa.Table, dict[str, float]]:
    """The words to learn from, of merged blocks of COUNTS, and statistics of what was left out."""
    chosen: Any = getattr(_module(FAMILIES[settings.model].family), "select", select_counts)
    counts, statistics = chosen(blocks, min_count=settings.min_count, max_words=settings.max_words)
    return counts, statistics


def learn(counts: pa.Table, settings: sections.Vocab) -> Learned:
    """Learn a vocabulary from COUNTS in any order.

    It has ``settings.size`` ids, specials and at least ``settings.unused`` slots among them. Where the words do not
    suffice to fill the size, more [unusedN] slots do.

    Raises `errors.RecipeInvalid` if the size is not a multiple of 64 or too small.
    """
    learned: Learned = _module(FAMILIES[settings.model].learner).learn(counts, settings)
    return learned


def load_vocab(folder: str) -> Vocab:
    """Read a vocabulary from a folder or URL: one written here, or a tokenizer of `transformers`.

    tokenizer.json takes precedence over all other files, because it alone is complete; without one, the family is that
    whose own files are there.

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


def _reader(row: Row, names: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """The family's module, and the names of its special tokens: the usual ones where the folder states no others."""
    module = _module(row.family)
    return module, {**dict(zip(ROLES, module.NAMES, strict=True)), **names}


def _from_files(folder: str, config: dict[str, Any], names: dict[str, str]) -> Vocab:
    """Read a family's own files, where there is no tokenizer.json; a single file takes precedence over two."""
    for row in sorted(_KINDS.values(), key=lambda row: len(row.files)):
        data = [_read_bytes(f"{folder}/{name}") for name in row.files]
        if None in data:
            continue
        module, named = _reader(row, names)
        where = f"{folder}/{row.files[0]}"
        try:
            vocab: Vocab = module.from_files(where, data, config, named)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise errors.ManifestInvalid(where, f"unreadable tokenizer ({error!r})", _MEND) from None
        return vocab
    if "://" not in folder and not Path(folder).is_dir():
        raise errors.InputMissing(folder, "no such folder", "check the path")
    files = dict.fromkeys(" with ".join(row.files) for row in _KINDS.values())
    what = ", ".join(f"no {name}" for name in ("tokenizer.json", *files))
    kind = config.get("tokenizer_class")
    raise errors.ManifestInvalid(folder, f"the {kind} in it has {what}" if kind else what, _MEND)


def _from_json(where: str, raw: dict[str, Any], names: dict[str, str]) -> Vocab:
    kind = _kind_of(raw)
    if kind not in _KINDS:
        what = f"its family is not built: model {kind}"
        raise errors.ManifestInvalid(where, what, f"built are {', '.join(_KINDS)}")
    pieces = raw["model"]["vocab"]  # WordPiece and BPE have a table of ids, Unigram a list of (piece, score)
    ids = {piece: i for i, (piece, _) in enumerate(pieces)} if isinstance(pieces, list) else dict(pieces)
    for added in sorted(raw.get("added_tokens") or [], key=lambda entry: entry["id"]):
        if added["content"] not in ids and not added["special"]:
            what = f"the added token {added['content']!r} is an ordinary word matched before all others"
            raise errors.ManifestInvalid(where, what, "remove it from added_tokens")
        ids[added["content"]] = added["id"]
    module, named = _reader(_KINDS[kind], names)
    vocab: Vocab = module.from_json(where, raw, tokens_by_id(where, ids), named)
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
