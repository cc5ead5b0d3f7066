"""The checkpoint a run starts from: any BERT, RoBERTa or ALBERT in Hugging Face's format.

The run takes the checkpoint's shape (epsilon, activation and positions too, so that the model computes what it computed
before). Layers, width, heads and inner width must equal the preset's, unless ``init_shape`` takes any shape. The
tokenizer beside the weights must be the vocabulary of the data, or its beginning: `train-vocab --from` appends
[unusedN] slots to a vocabulary it adopts, and their rows are initialized. So are missing heads; the optimizer starts
fresh.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.sections.presets import PRESETS, Preset
from corpusforge.tokens.families import load_vocab
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import model_folder, read_architecture, read_heads, read_weights, weight_files
from corpusforge.trainer.hf_names import transformers_names
from corpusforge.trainer.model import Encoder

_ROWS = ("tokens.weight", "bias")
"""Weights with one row for each entry of the vocabulary."""
_HEADS = {
    "transform": "MLM head",
    "transform_norm": "MLM head",
    "bias": "MLM head",
    "pooler": "pooler",
    "pair": "pair head",
    "boundary": "span boundary head",
}
"""What a checkpoint may lack, as a bare encoder has none of it, and what a report calls it."""


@dataclass(frozen=True)
class InitCheckpoint:
    """A checkpoint to start from. ``shape``: its own."""

    folder: Path
    shape: Architecture

    @property
    def digest(self) -> str:
        """Digest of its weight files."""
        digests = [shards.file_digest(str(path)) for path in weight_files(self.folder)]
        return digests[0] if len(digests) == 1 else ",".join(digests)

    def shape_of(self, wanted: Architecture, longest: int) -> Architecture:
        """The shape of the run: the checkpoint's, except for what the preset and the data decide (``wanted``).

        ``longest``: positions of the longest row. Raises `errors.StageMismatch` if they do not fit.
        """
        own = self.shape
        if own.longest < longest:
            what = f"it has {own.longest} positions, and rows of the data up to {longest}"
            raise errors.StageMismatch(str(self.folder), what, "build shorter instances, or name another checkpoint")
        if own.family == "roberta" and own.padding_id != wanted.padding_id:
            what = f"its padding id is {own.padding_id}, from which its positions count; the vocabulary's is "
            what += str(wanted.padding_id)
            raise errors.StageMismatch(str(self.folder), what, "name instances built with its own vocabulary")
        if own.vocabulary > wanted.vocabulary:
            what = f"its embeddings have {own.vocabulary:,} rows, and the vocabulary {wanted.vocabulary:,} entries"
            raise errors.StageMismatch(str(self.folder), what, "adopt its vocabulary: train-vocab --from")
        names = ("vocabulary", "padding_id", "dropout", "pairs", "span_positions")
        return dataclasses.replace(own, **{name: getattr(wanted, name) for name in names})


@dataclass(frozen=True)
class Filled:
    """What a checkpoint did not fill: heads and rows that were initialized; and weights that were left out."""

    initialized: tuple[str, ...]
    rows: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """The line that is reported.

        >>> str(Filled(("pooler",), 0, ()))
        'initialized: pooler; left out: nothing'
        """
        initialized = [*self.initialized, *([f"{self.rows:,} rows of the vocabulary"] if self.rows else [])]
        return f"initialized: {', '.join(initialized) or 'nothing'}; left out: {', '.join(self.left_out) or 'nothing'}"


def find_init(
    folder: str, preset: Preset, vocab_folder: str, *, any_shape: bool, any_vocabulary: bool
) -> InitCheckpoint:
    """The checkpoint in a folder, or in its ``model/``, checked against preset and vocabulary.

    Raises `errors.InputMissing`, `errors.ManifestInvalid` and `errors.StageMismatch`.
    """
    path = model_folder(folder)
    if path is None:
        if not Path(folder).exists():
            mend = "name a folder on disk; nothing is downloaded, a model of the hub is fetched with 'hf download'"
            raise errors.InputMissing(folder, "no such folder", mend)
        what = "no config.json in it or its model/"
        raise errors.InputMissing(folder, what, "name the folder of a model in Hugging Face's format")
    init = InitCheckpoint(path, read_architecture(path))
    weight_files(path)
    _check_shape(init, preset, any_shape=any_shape)
    if not any_vocabulary:
        _check_vocabulary(init, vocab_folder)
    return init


def _check_shape(init: InitCheckpoint, preset: Preset, *, any_shape: bool) -> None:
    shape, where = init.shape, str(init.folder)
    if shape.family != preset.family:
        raise errors.StageMismatch(
            where, f"it is a {shape.family}, and the preset a {preset.family}", f"name a preset of {shape.family}"
        )
    names = ("layers", "width", "heads", "inner")
    own, wanted = ([getattr(one, name) for name in names] for one in (shape, preset))
    if any_shape or own == wanted:
        return
    pairs = zip(names, own, wanted, strict=True)
    what = f"it has {', '.join(f'{name} {a} (the preset: {b})' for name, a, b in pairs if a != b)}"
    like = [k for k, p in PRESETS.items() if p.family == shape.family and [getattr(p, n) for n in names] == own]
    mend = f"name the preset {like[0]}, or " if like else ""
    raise errors.StageMismatch(where, what, f"{mend}pass --init-shape to take the preset's training but not its shape")


def _check_vocabulary(init: InitCheckpoint, vocab_folder: str) -> None:
    """Refuse a tokenizer other than the data's: every embedding would belong to another token."""
    own, wanted = load_vocab(str(init.folder)), load_vocab(vocab_folder)
    if own.size <= wanted.size and own.padded(wanted.size).digest == wanted.digest:
        return
    what = f"its tokenizer ({own.size:,} entries) is not the vocabulary of the data ({wanted.size:,})"
    mend = "build the data with train-vocab --from it, or pass --init-any-vocabulary"
    raise errors.StageMismatch(str(init.folder), what, mend)


def fill(model: Encoder, init: InitCheckpoint) -> Filled:
    """Copy the checkpoint's weights into an initialized model; what it lacks keeps its initial values.

    Raises `errors.ManifestInvalid` if a weight of the encoder is missing or has another shape.
    """
    family = model.shape.family
    stored = read_weights(init.folder, family)
    heads = read_heads(init.folder) if model.boundary is not None else {}
    _untie(stored, family, init)
    state, initialized, used = model.state_dict(), [], set()
    for name, weight in state.items():
        names, module = transformers_names(name, family), name.split(".")[0]
        if name in heads:  # of one of our checkpoints
            _copy(heads[name], weight, name, init)
            continue
        if not names or any(n not in stored for n in names):
            if module not in _HEADS:
                missing = next(n for n in names if n not in stored)
                raise errors.ManifestInvalid(str(init.folder), f"no weight {missing}", "name another checkpoint")
            initialized.append(_HEADS[module])
            continue
        used.update(names)
        _copy(torch.cat([stored[n] for n in names]).float(), weight, name, init)
    left = sorted({n.rsplit(".", 1)[0] for n in stored if n not in used})
    rows = model.shape.vocabulary - init.shape.vocabulary
    return Filled(tuple(dict.fromkeys(initialized)), rows, tuple(left))


def _copy(stored: Tensor, weight: Tensor, name: str, init: InitCheckpoint) -> None:
    rows = len(stored) if name in _ROWS and len(stored) <= len(weight) else len(weight)
    if stored.shape != weight[:rows].shape:
        what = f"its weight {name} is {list(stored.shape)}, and should be {list(weight.shape)}"
        raise errors.ManifestInvalid(str(init.folder), what, "name another checkpoint")
    weight[:rows].copy_(stored)


def _untie(stored: dict[str, Tensor], family: str, init: InitCheckpoint) -> None:
    """Remove copies of tied weights, and tables that are not weights; refuse a decoder that is not tied."""
    embeddings = stored.get(f"{family}.embeddings.word_embeddings.weight")
    for name in [n for n in stored if n.endswith(("position_ids", "token_type_ids"))]:
        del stored[name]
    for name in [n for n in stored if n.endswith(("predictions.decoder.weight", "lm_head.decoder.weight"))]:
        decoder = stored.pop(name)
        if embeddings is not None and not torch.equal(decoder, embeddings):
            what = "its decoder is not tied to its embeddings, as it must be here"
            raise errors.StageMismatch(str(init.folder), what, "name another checkpoint")
