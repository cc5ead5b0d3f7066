"""Weights as others store them: any file of a Hugging Face directory, under the names of today's transformers.

Comes in: a folder with ``model.safetensors`` or ``pytorch_model.bin``, whole or in shards. Goes out: tensors by name.
Decision: a pickle is opened by ``torch.load(weights_only=True)`` alone, which makes tensors and nothing else; one that
holds more is refused, as opening it could run what a stranger wrote.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from corpusforge import errors

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
HEADS = "heads.safetensors"
"""Of a checkpoint of ours: weights that have no place in a Hugging Face directory, under our own names."""


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights of a folder: safetensors before pickles, one file before shards.

    Raises `errors.InputMissing` where there are none.
    """
    for name in (SAFE, PICKLED):
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            try:
                return sorted({folder / part for part in json.loads(index.read_text("utf-8"))["weight_map"].values()})
            except (ValueError, KeyError, AttributeError) as error:
                what = f"no index of weights ({error})"
                raise errors.ManifestInvalid(str(index), what, "name another checkpoint") from None
    what = f"no {SAFE} and no {PICKLED} in it"
    raise errors.InputMissing(str(folder), what, "name the folder of a model in Hugging Face's format")


def read_weights(folder: Path, family: str) -> dict[str, Tensor]:
    """All weights of a folder under the names that transformers has for a model of this family with its heads.

    Raises `errors.InputMissing`, and `errors.ManifestInvalid` for files that cannot be read.
    """
    found: dict[str, Tensor] = {}
    for path in weight_files(folder):
        found |= _read(path)
    return {_todays_name(name, family): weight for name, weight in found.items()}


def read_heads(folder: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint that have no place in a Hugging Face directory, if there are any."""
    return _read(folder / HEADS) if (folder / HEADS).is_file() else {}


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            tensors: dict[str, Tensor] = load_file(path)
            return tensors
        loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
        if not all(isinstance(weight, Tensor) for weight in loaded.values()):
            raise ValueError("it holds other things than tensors")
        return dict(loaded)
    except Exception as error:  # safetensors and pickle have classes of their own, derived from Exception alone
        said = str(error).strip().splitlines()
        what = f"unreadable weights ({said[0] if said else type(error).__name__})"
        raise errors.ManifestInvalid(str(path), what, "name another checkpoint, or convert it to safetensors") from None


def _todays_name(name: str, family: str) -> str:
    """A name without what older or headless models differ in: ``gamma`` and ``beta``, the missing name of the family,
    the decoder's copy of the bias.

    >>> _todays_name("embeddings.LayerNorm.gamma", "bert")
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
