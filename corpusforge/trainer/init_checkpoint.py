"""The checkpoint a run starts from: any BERT, RoBERTa or ALBERT in Hugging Face's format.

The run takes the checkpoint's shape (epsilon, activation and positions too, so that the model computes what it
computed), which must equal the preset's in layers, width, heads and inner width unless the preset is to give no shape.
The tokenizer beside the weights must be the vocabulary of the data, or its beginning: `train-vocab --from` appends
[unusedN] slots to a vocabulary it adopts, and their rows are initialized. So are missing heads; the optimizer starts
fresh.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.sections.presets import PRESETS, Preset
from corpusforge.tokens.families import load_vocab
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import read_heads, read_weights, weight_files
from corpusforge.trainer.hf_names import architecture, their_names
from corpusforge.trainer.model import Encoder

_HEADS = ("transform", "transform_norm", "bias", "pooler", "pair", "boundary")
"""What a checkpoint may lack: a bare encoder has none of these."""
_ROWS = ("tokens.weight", "bias")
"""Weights with one row for each entry of the vocabulary."""
_TITLES = {
    "transform": "MLM head",
    "transform_norm": "MLM head",
    "bias": "MLM head",
    "pooler": "pooler",
    "pair": "pair head",
    "boundary": "span boundary head",
}


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
        """The shape of the run: the checkpoint's, but for what the preset and the data decide (``wanted``).

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
        kept = ("vocabulary", "padding_id", "dropout", "pairs", "span_positions")
        return dataclasses.replace(own, **{name: getattr(wanted, name) for name in kept})


@dataclass(frozen=True)
class Filled:
    """What became of a checkpoint's weights: heads and rows that were initialized, weights without a place."""

    anew: tuple[str, ...]
    rows: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """As it is reported.

        >>> str(Filled(("pooler",), 0, ()))
        'initialized: pooler; left out: nothing'
        """
        anew = [*self.anew, *([f"{self.rows:,} rows of the vocabulary"] if self.rows else [])]
        return f"initialized: {', '.join(anew) or 'nothing'}; left out: {', '.join(self.left_out) or 'nothing'}"


def find_init(
    folder: str, preset: Preset, vocab_folder: str, *, any_shape: bool, any_vocabulary: bool
) -> InitCheckpoint:
    """The checkpoint in a folder, or in its ``model/``, checked against preset and vocabulary.

    Raises `errors.InputMissing`, `errors.ManifestInvalid` and `errors.StageMismatch`.
    """
    path = next((p for p in (Path(folder), Path(folder) / "model") if (p / "config.json").is_file()), None)
    if path is None:
        if not Path(folder).exists():
            mend = "name a folder on disk; nothing is downloaded, a model of the hub is fetched with 'hf download'"
            raise errors.InputMissing(folder, "no such folder", mend)
        what = "no config.json in it or its model/"
        raise errors.InputMissing(folder, what, "name the folder of a model in Hugging Face's format")
    try:
        values = json.loads((path / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise errors.ManifestInvalid(str(path / "config.json"), f"not JSON ({error})", "name another model") from None
    init = InitCheckpoint(path, architecture(values, str(path)))
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
    theirs, ours = ([getattr(one, name) for name in names] for one in (shape, preset))
    if any_shape or theirs == ours:
        return
    pairs = zip(names, theirs, ours, strict=True)
    what = f"it has {', '.join(f'{name} {a} (the preset: {b})' for name, a, b in pairs if a != b)}"
    like = [k for k, p in PRESETS.items() if p.family == shape.family and [getattr(p, n) for n in names] == theirs]
    mend = f"name the preset {like[0]}, or " if like else ""
    raise errors.StageMismatch(where, what, f"{mend}pass --init-shape to take the preset's training but not its shape")


def _check_vocabulary(init: InitCheckpoint, vocab_folder: str) -> None:
    """Refuse a tokenizer other than the data's: every embedding would belong to another token."""
    theirs, ours = load_vocab(str(init.folder)), load_vocab(vocab_folder)
    if theirs.size <= ours.size and theirs.padded(ours.size).digest == ours.digest:
        return
    what = f"its tokenizer ({theirs.size:,} entries) is not the vocabulary of the data ({ours.size:,})"
    mend = "build the data with train-vocab --from it, or pass --init-any-vocabulary"
    raise errors.StageMismatch(str(init.folder), what, mend)


def fill(model: Encoder, init: InitCheckpoint) -> Filled:
    """Copy the checkpoint's weights into an initialized model; what it lacks keeps its initial values.

    Raises `errors.ManifestInvalid` if a weight of the encoder is missing or has another shape.
    """
    family = model.shape.family
    stored = read_weights(init.folder, family)
    own = read_heads(init.folder) if model.boundary is not None else {}
    _untied(stored, family, init)
    state, anew, used = model.state_dict(), [], set()
    for name, weight in state.items():
        names, module = their_names(name, family), name.split(".")[0]
        if name in own:  # of one of our checkpoints
            _copy(own[name], weight, name, init)
            continue
        if not names or any(n not in stored for n in names):
            if module not in _HEADS:
                missing = next(n for n in names if n not in stored)
                raise errors.ManifestInvalid(str(init.folder), f"no weight {missing}", "name another checkpoint")
            anew.append(_TITLES[module])
            continue
        used.update(names)
        _copy(torch.cat([stored[n] for n in names]).float(), weight, name, init)
    left = sorted({n.rsplit(".", 1)[0] for n in stored if n not in used})
    rows = model.shape.vocabulary - init.shape.vocabulary
    return Filled(tuple(dict.fromkeys(anew)), rows, tuple(left))


def _copy(theirs: Tensor, ours: Tensor, name: str, init: InitCheckpoint) -> None:
    rows = len(theirs) if name in _ROWS and len(theirs) <= len(ours) else len(ours)
    if theirs.shape != ours[:rows].shape:
        what = f"its weight {name} is {list(theirs.shape)}, and should be {list(ours.shape)}"
        raise errors.ManifestInvalid(str(init.folder), what, "name another checkpoint")
    ours[:rows].copy_(theirs)


def _untied(stored: dict[str, Tensor], family: str, init: InitCheckpoint) -> None:
    """Remove copies of tied weights, and tables that are not weights; refuse a decoder that is not tied."""
    embeddings = stored.get(f"{family}.embeddings.word_embeddings.weight")
    for name in [n for n in stored if n.endswith(("position_ids", "token_type_ids"))]:
        del stored[name]
    for name in [n for n in stored if n.endswith(("predictions.decoder.weight", "lm_head.decoder.weight"))]:
        decoder = stored.pop(name)
        if embeddings is not None and not torch.equal(decoder, embeddings):
            what = "its decoder is not tied to its embeddings, as it must be here"
            raise errors.StageMismatch(str(init.folder), what, "name another checkpoint")
