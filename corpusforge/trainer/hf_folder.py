"""Hugging Face directories: a model written as one, and weights read from any.

`export` writes ``config.json``, ``model.safetensors`` (tied weights once), the tokenizer's files and ``README.md``. The
folder loads in `transformers` without missing or unexpected keys: `BertForPreTraining` or `AlbertForPreTraining` for
pair data, else `BertForMaskedLM`, `RobertaForMaskedLM` or `AlbertForMaskedLM`. What transformers has no name for (the
span boundary head) is kept in checkpoints only; a SpanBERT is exported as a BERT.

Models of other authors are read too: ``model.safetensors`` or ``pytorch_model.bin``, in one file or in shards, under
the present and older names of transformers. A pickle is opened by ``torch.load(weights_only=True)`` only, which builds
tensors and nothing else; one that holds more is refused, as opening it could run foreign code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_names import architecture, config, transformers_names
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.model_card import model_card

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
)

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
HEADS = "heads.safetensors"
"""File of our checkpoints: weights that have no place in a Hugging Face directory, under our own names."""


def transformers_weights(model: Encoder) -> Iterator[tuple[str, Tensor]]:
    """Weights under transformers' names, on the CPU; those that have no name there are left out."""
    for name, weight in model.state_dict().items():
        if names := transformers_names(name, model.shape.family):
            for key, part in zip(names, weight.detach().cpu().chunk(len(names)), strict=True):
                yield key, part.contiguous()


def export(model: Encoder, folder: Path, *, vocab_folder: str, ids: dict[str, int], card: dict[str, Any]) -> None:
    """Write the Hugging Face directory into an existing folder."""
    # transformers refuses a file without this metadata.
    save_file(dict(transformers_weights(model)), folder / SAFE, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(model.shape, ids), indent=2) + "\n")
    for name in TOKENIZER_FILES:
        if shards.exists(shards.join(vocab_folder, name)):
            with shards.open_binary(shards.join(vocab_folder, name)) as file:
                (folder / name).write_bytes(file.read())
    _fit_tokenizer(folder / "tokenizer_config.json", model.shape)
    (folder / "README.md").write_text(model_card(model, card), "utf-8")


def _fit_tokenizer(path: Path, shape: Architecture) -> None:
    """Add to the tokenizer's settings the maximum length of the model's input and the names of its tensors.

    A model with one segment must not get token_type_ids: those of a pair's second sentence are outside its table.
    """
    values = json.loads(path.read_text("utf-8")) if path.exists() else {}
    segments = ["token_type_ids"] if shape.segments > 1 else []
    inputs = ["input_ids", *segments, "attention_mask"]
    values |= {"model_max_length": shape.longest, "model_input_names": inputs}
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")


def own_weights(model: Encoder) -> dict[str, Tensor]:
    """Weights that have no name in transformers, under our own names, on the CPU."""
    state = model.state_dict()
    return {n: w.detach().cpu().contiguous() for n, w in state.items() if not transformers_names(n, model.shape.family)}


def load_weights(model: Encoder, folder: Path) -> None:
    """Copy the weights of a Hugging Face directory into a model of the same architecture.

    A head that has no place in such a directory is read from the checkpoint's `HEADS`. Raises `errors.ManifestInvalid`
    if a weight is missing or has another shape, and what `read_weights` raises.
    """
    family = model.shape.family
    stored = read_weights(folder, family)
    try:
        state = read_heads(folder) if own_weights(model) else {}
        for name in model.state_dict():
            if names := transformers_names(name, family):
                state[name] = torch.cat([stored[n] for n in names])
        model.load_state_dict(state)
    except Exception as error:  # safetensors raises a class of its own, derived from Exception alone
        what = f"its weights do not fit its config.json ({error})"
        raise errors.ManifestInvalid(str(folder), what, "name another checkpoint") from None


def model_folder(path: str) -> Path | None:
    """The Hugging Face directory at ``path``: the folder itself, or its ``model/``; None if there is neither."""
    folders = (Path(path), Path(path) / "model")
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def read_architecture(folder: Path) -> Architecture:
    """The architecture in the ``config.json`` of a folder.

    Raises `errors.InputMissing` without one, `errors.ManifestInvalid` for one that is not JSON, and what
    `hf_names.architecture` raises.
    """
    path = folder / "config.json"
    try:
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise errors.InputMissing(str(folder), "no config.json in it", "name a checkpoint folder") from None
    except ValueError as error:
        raise errors.ManifestInvalid(str(path), f"not JSON ({error})", "name another checkpoint") from None
    return architecture(values, str(folder))


def load_model(folder: Path) -> Encoder:
    """The encoder of a Hugging Face directory that `export` wrote, or one like it."""
    model = Encoder(read_architecture(folder))
    load_weights(model, folder)
    return model.eval()


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a folder: safetensors rather than pickles, one file rather than shards.

    Raises `errors.InputMissing` if there are none.
    """
    for name in (SAFE, PICKLED):
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            try:
                return sorted({folder / part for part in json.loads(index.read_text("utf-8"))["weight_map"].values()})
            except (ValueError, KeyError, AttributeError) as error:
                what = f"not an index of weights ({error})"
                raise errors.ManifestInvalid(str(index), what, "name another checkpoint") from None
    what = f"no {SAFE} and no {PICKLED} in it"
    raise errors.InputMissing(str(folder), what, "name the folder of a model in Hugging Face's format")


def read_weights(folder: Path, family: str) -> dict[str, Tensor]:
    """All weights of a folder, under transformers' names for a model of this family with its heads.

    Raises `errors.InputMissing`, and `errors.ManifestInvalid` for files that cannot be read.
    """
    weights: dict[str, Tensor] = {}
    for path in weight_files(folder):
        weights |= _read(path)
    return {_current_name(name, family): weight for name, weight in weights.items()}


def read_heads(folder: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint that have no place in a Hugging Face directory, if any."""
    return _read(folder / HEADS) if (folder / HEADS).is_file() else {}


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            tensors: dict[str, Tensor] = load_file(path)
            return tensors
        loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
        if not all(isinstance(weight, Tensor) for weight in loaded.values()):
            raise ValueError("it holds more than tensors")
        return dict(loaded)
    except Exception as error:  # safetensors and pickle have classes of their own, derived from Exception alone
        lines = str(error).strip().splitlines()
        what = f"unreadable weights ({lines[0] if lines else type(error).__name__})"
        raise errors.ManifestInvalid(str(path), what, "name another checkpoint, or convert it to safetensors") from None


def _current_name(name: str, family: str) -> str:
    """The present name of a weight of an older or headless model: ``gamma`` and ``beta``, a missing family name, the
    decoder's copy of the bias.

    >>> _current_name("embeddings.LayerNorm.gamma", "bert")
    'bert.embeddings.LayerNorm.weight'
    """
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        if name.endswith(old):
            name = name.removesuffix(old) + new
    if name.split(".")[0] in ("embeddings", "encoder", "pooler"):
        name = f"{family}.{name}"
    if family == "albert":
        name = name.replace(".pooler.dense.", ".pooler.")
    return re.sub(r"(predictions|lm_head)\.decoder\.bias$", r"\1.bias", name)
