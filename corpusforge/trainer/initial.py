"""A model to begin from: any BERT, RoBERTa or ALBERT in Hugging Face's format, as the first weights of a run.

Comes in: its folder, the preset, the vocabulary of the data. Goes out: the shape of the run and, later, its weights.
The shape is the checkpoint's (epsilon, activation and positions with it, so that the model computes what it computed),
and has to be the preset's in layers, width, heads and inner width, unless the preset is told to give no shape.
Decision: the tokenizer beside the weights has to be the vocabulary of the data, or that vocabulary's beginning:
`train-vocab --from` adds [unusedN] slots behind what it adopts, and their rows are drawn anew. Heads that are missing
are, too; the optimiser begins afresh.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.tokens.families import load_vocab
from corpusforge.trainer.model import Architecture, Encoder
from corpusforge.trainer.names import architecture, their_names
from corpusforge.trainer.presets import PRESETS, Preset
from corpusforge.trainer.stored import read_heads, read_weights, weight_files

_HEADS = ("transform", "transform_norm", "bias", "pooler", "pair", "boundary")
"""What a checkpoint may lack: a bare encoder has none of them."""
_ROWS = ("tokens.weight", "bias")
"""Weights with a row for each entry of the vocabulary."""
_CALLED = {
    "transform": "MLM head",
    "transform_norm": "MLM head",
    "bias": "MLM head",
    "pooler": "pooler",
    "pair": "head for pairs",
    "boundary": "head for spans",
}


@dataclass(frozen=True)
class Initial:
    """A checkpoint to begin from. ``shape``: its own."""

    folder: Path
    shape: Architecture

    @property
    def digest(self) -> str:
        """Digest of its weights' files."""
        digests = [shards.file_digest(str(path)) for path in weight_files(self.folder)]
        return digests[0] if len(digests) == 1 else ",".join(digests)

    def shape_of(self, wanted: Architecture, longest: int) -> Architecture:
        """The shape of the run: ``wanted`` (the preset's, on this data) with the checkpoint's own numbers.

        ``longest``: positions of the longest row. Raises `errors.StageMismatch` where they do not fit.
        """
        own = self.shape
        if own.longest < longest:
            what = f"it has {own.longest} positions, and rows of the data up to {longest}"
            raise errors.StageMismatch(str(self.folder), what, "build shorter instances, or name another checkpoint")
        if own.family == "roberta" and own.padding_id != wanted.padding_id:
            what = f"its padding id is {own.padding_id}, which its positions are counted from, and the vocabulary's "
            what += str(wanted.padding_id)
            raise errors.StageMismatch(str(self.folder), what, "name instances of a vocabulary that it was made for")
        if own.vocabulary > wanted.vocabulary:
            what = f"its embeddings have {own.vocabulary:,} rows, and the vocabulary {wanted.vocabulary:,} entries"
            raise errors.StageMismatch(str(self.folder), what, "take its vocabulary over: train-vocab --from")
        kept = ("vocabulary", "padding_id", "dropout", "pairs", "span_positions")
        return dataclasses.replace(own, **{name: getattr(wanted, name) for name in kept})


@dataclass(frozen=True)
class Filled:
    """What was done with a checkpoint's weights: heads drawn anew, rows drawn anew, weights that have no place."""

    anew: tuple[str, ...]
    rows: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """As a person is told.

        >>> str(Filled(("pooler",), 0, ()))
        'drawn anew: pooler; left out: nothing'
        """
        anew = [*self.anew, *([f"{self.rows:,} rows of the vocabulary"] if self.rows else [])]
        return f"drawn anew: {', '.join(anew) or 'nothing'}; left out: {', '.join(self.left_out) or 'nothing'}"


def find_initial(folder: str, preset: Preset, vocab_folder: str, *, any_shape: bool, any_vocabulary: bool) -> Initial:
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
    found = Initial(path, architecture(values, str(path)))
    weight_files(path)
    _check_shape(found, preset, any_shape=any_shape)
    if not any_vocabulary:
        _check_vocabulary(found, vocab_folder)
    return found


def _check_shape(found: Initial, preset: Preset, *, any_shape: bool) -> None:
    shape, where = found.shape, str(found.folder)
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


def _check_vocabulary(found: Initial, vocab_folder: str) -> None:
    """Refuse another tokenizer than the data were encoded with: every embedding would be of another word."""
    theirs, ours = load_vocab(str(found.folder)), load_vocab(vocab_folder)
    if theirs.size <= ours.size and theirs.padded(ours.size).digest == ours.digest:
        return
    what = f"its tokenizer ({theirs.size:,} entries) is not the vocabulary of the data ({ours.size:,})"
    mend = "build the data with train-vocab --from it, or pass --init-any-vocabulary"
    raise errors.StageMismatch(str(found.folder), what, mend)


def fill(model: Encoder, initial: Initial) -> Filled:
    """Copy the checkpoint's weights into a model that was initialised; what it lacks stays as it was drawn.

    Raises `errors.ManifestInvalid` where a weight of the encoder is missing or has another shape.
    """
    family = model.shape.family
    stored = read_weights(initial.folder, family)
    own = read_heads(initial.folder) if model.boundary is not None else {}
    _untied(stored, family, initial)
    state, anew, used = model.state_dict(), [], set()
    for name, weight in state.items():
        names, module = their_names(name, family), name.split(".")[0]
        if name in own:  # of a checkpoint of ours
            _copy(own[name], weight, name, initial)
            continue
        if not names or any(n not in stored for n in names):
            if module not in _HEADS:
                missing = next(n for n in names if n not in stored)
                raise errors.ManifestInvalid(str(initial.folder), f"no weight {missing}", "name another checkpoint")
            anew.append(_CALLED[module])
            continue
        used.update(names)
        _copy(torch.cat([stored[n] for n in names]).float(), weight, name, initial)
    left = sorted({n.rsplit(".", 1)[0] for n in stored if n not in used})
    rows = model.shape.vocabulary - initial.shape.vocabulary
    return Filled(tuple(dict.fromkeys(anew)), rows, tuple(left))


def _copy(theirs: Tensor, ours: Tensor, name: str, initial: Initial) -> None:
    rows = len(theirs) if name in _ROWS and len(theirs) <= len(ours) else len(ours)
    if theirs.shape != ours[:rows].shape:
        what = f"its weight {name} is {list(theirs.shape)}, and should be {list(ours.shape)}"
        raise errors.ManifestInvalid(str(initial.folder), what, "name another checkpoint")
    ours[:rows].copy_(theirs)


def _untied(stored: dict[str, Tensor], family: str, initial: Initial) -> None:
    """Forget copies of tied weights and tables that are no weights; refuse a decoder that is not the embeddings."""
    embeddings = stored.get(f"{family}.embeddings.word_embeddings.weight")
    for name in [n for n in stored if n.endswith(("position_ids", "token_type_ids"))]:
        del stored[name]
    for name in [n for n in stored if n.endswith(("predictions.decoder.weight", "lm_head.decoder.weight"))]:
        decoder = stored.pop(name)
        if embeddings is not None and not torch.equal(decoder, embeddings):
            what = "its decoder is not tied to its embeddings, as it is here"
            raise errors.StageMismatch(str(initial.folder), what, "name another checkpoint")
