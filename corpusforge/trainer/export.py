"""A model as a Hugging Face directory, and back.

Goes out: ``config.json``, ``model.safetensors`` (tied weights once), the tokenizer's files, ``README.md``. It loads in
`transformers` (`BertForPreTraining` for pair data, else `BertForMaskedLM`; `RobertaForMaskedLM`) with no key missing
and none unexpected. The names are those of transformers' `modeling_bert.py` and `modeling_roberta.py`, which keep
query, key and value apart where `model.Attention` has them in one matrix.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.trainer.model import Architecture, Encoder

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
)

_HEADS = {
    "bert": {
        "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm",
        "bias": "cls.predictions.bias",
        "pooler": "bert.pooler.dense",
        "pair": "cls.seq_relationship",
    },
    "roberta": {"transform": "lm_head.dense", "transform_norm": "lm_head.layer_norm", "bias": "lm_head.bias"},
}
_EMBEDDINGS = {
    "tokens": "word_embeddings",
    "positions": "position_embeddings",
    "segments": "token_type_embeddings",
    "norm": "LayerNorm",
}
_LAYER = {
    "attention.output": "attention.output.dense",
    "attention.norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "output": "output.dense",
    "norm": "output.LayerNorm",
}


def their_names(name: str, family: str) -> list[str]:
    """What transformers calls one of our weights; three names for the joint query, key and value matrix.

    >>> their_names("layers.0.inner.bias", "bert")
    ['bert.encoder.layer.0.intermediate.dense.bias']
    """
    if name in _HEADS[family]:
        return [_HEADS[family][name]]
    module, kind = name.rsplit(".", 1)
    if module in _HEADS[family]:
        return [f"{_HEADS[family][module]}.{kind}"]
    if module in _EMBEDDINGS:
        return [f"{family}.embeddings.{_EMBEDDINGS[module]}.{kind}"]
    _, number, inner = module.split(".", 2)
    stem = f"{family}.encoder.layer.{number}"
    if inner == "attention.projections":
        return [f"{stem}.attention.self.{part}.{kind}" for part in ("query", "key", "value")]
    return [f"{stem}.{_LAYER[inner]}.{kind}"]


def their_weights(model: Encoder) -> Iterator[tuple[str, Tensor]]:
    """Weights under transformers' names, on the CPU."""
    for name, weight in model.state_dict().items():
        names = their_names(name, model.shape.family)
        for their_name, part in zip(names, weight.detach().cpu().chunk(len(names)), strict=True):
            yield their_name, part.contiguous()


def config(shape: Architecture, ids: dict[str, int]) -> dict[str, Any]:
    """``config.json``; ``ids``: the vocabulary's ``cls`` and ``sep``."""
    named = {
        "architectures": ["RobertaForMaskedLM"],
        "model_type": shape.family,
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.inner,
        "hidden_act": "gelu",  # the one with erf
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.dropout,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.segments,
        "initializer_range": 0.02,
        "layer_norm_eps": shape.epsilon,
        "pad_token_id": shape.padding_id,
        "tie_word_embeddings": True,
        "dtype": "float32",
    }
    if shape.family == "bert":
        return named | {"architectures": ["BertForPreTraining" if shape.pairs else "BertForMaskedLM"]}
    return named | {"bos_token_id": ids["cls"], "eos_token_id": ids["sep"]}


def architecture(values: dict[str, Any], where: str) -> Architecture:
    """The architecture a ``config.json`` describes.

    Raises `errors.StageMismatch` for a model that is none of ours.
    """
    try:
        return Architecture(
            family=values["model_type"],
            layers=values["num_hidden_layers"],
            width=values["hidden_size"],
            heads=values["num_attention_heads"],
            inner=values["intermediate_size"],
            vocabulary=values["vocab_size"],
            positions=values["max_position_embeddings"],
            segments=values["type_vocab_size"],
            epsilon=values["layer_norm_eps"],
            dropout=values["hidden_dropout_prob"],
            padding_id=values["pad_token_id"],
            pairs={"bert": values["architectures"] == ["BertForPreTraining"], "roberta": False}[values["model_type"]],
        )
    except KeyError as error:
        what = f"its config.json is not of a BERT or RoBERTa pretrained here (at {error})"
        raise errors.StageMismatch(where, what, "name a folder that pretrain wrote") from None


def export(model: Encoder, folder: Path, *, vocab_folder: str, ids: dict[str, int], card: dict[str, Any]) -> None:
    """Write the Hugging Face directory into an existing folder."""
    # transformers refuses a file without this metadata.
    save_file(dict(their_weights(model)), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(model.shape, ids), indent=2) + "\n")
    for name in TOKENIZER_FILES:
        if shards.exists(shards.join(vocab_folder, name)):
            with shards.open_binary(shards.join(vocab_folder, name)) as file:
                (folder / name).write_bytes(file.read())
    _fit_tokenizer(folder / "tokenizer_config.json", model.shape)
    (folder / "README.md").write_text(model_card(model, card), "utf-8")


def _fit_tokenizer(path: Path, shape: Architecture) -> None:
    """Tell the tokenizer, which knows its vocabulary only, how long the model's input may be and what it consists of.

    A model with one segment must not be handed token_type_ids: those of a pair's second sentence are out of its table.
    """
    values = json.loads(path.read_text("utf-8")) if path.exists() else {}
    segments = ["token_type_ids"] if shape.segments > 1 else []
    inputs = ["input_ids", *segments, "attention_mask"]
    values |= {"model_max_length": shape.longest, "model_input_names": inputs}
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")


def load_weights(model: Encoder, folder: Path) -> None:
    """Copy the weights of a Hugging Face directory into a model of the same architecture.

    Raises `errors.ManifestInvalid` where a weight is missing or has another shape.
    """
    path = folder / "model.safetensors"
    try:
        stored = load_file(path)
        ours = {
            name: torch.cat([stored[n] for n in their_names(name, model.shape.family)]) for name in model.state_dict()
        }
        model.load_state_dict(ours)
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise errors.ManifestInvalid(str(path), f"unreadable weights ({error})", "name another checkpoint") from None
    except Exception as error:  # safetensors has an exception class of its own, derived from Exception alone
        raise errors.ManifestInvalid(str(path), f"unreadable weights ({error})", "name another checkpoint") from None


def load_model(folder: Path) -> Encoder:
    """An encoder from a Hugging Face directory that `export` wrote, or one like it."""
    path = folder / "config.json"
    try:
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise errors.InputMissing(str(folder), "no config.json in it", "name a checkpoint folder") from None
    except ValueError as error:
        raise errors.ManifestInvalid(str(path), f"not JSON ({error})", "name another checkpoint") from None
    model = Encoder(architecture(values, str(folder)))
    load_weights(model, folder)
    return model.eval()


def model_card(model: Encoder, card: dict[str, Any]) -> str:
    """``README.md``: what the model is, what it read, and what was dropped on the way.

    ``card``: ``name``, ``corpus`` (fingerprint), ``tallies`` ({stage: {reason: {"rows", "bytes"}}}), ``training``
    (plain facts); whatever is missing is left out.
    """
    count = sum(weight.numel() for weight in model.parameters())
    shape = model.shape
    size = f"{shape.layers} layers, width {shape.width}, {shape.heads} heads, vocabulary {shape.vocabulary:,}"
    lines = ["---", "library_name: transformers", "tags: [fill-mask, corpusforge]", "---", ""]
    lines += [f"# {card.get('name', 'An encoder')}", ""]
    lines += [f"A {shape.family} encoder of {count:,} parameters ({size}), pretrained with CorpusForge.", ""]
    if "corpus" in card:
        lines += ["## Corpus", "", f"Fingerprint of the training data: `{card['corpus']}`", ""]
    for stage, tallies in card.get("tallies", {}).items():
        if tallies:
            lines += [f"### Dropped in {stage}", "", "| reason | rows | bytes |", "|---|---:|---:|"]
            rows = sorted(tallies.items(), key=lambda item: -item[1].get("rows", 0))
            lines += [f"| `{why}` | {n.get('rows', 0):,} | {n.get('bytes', 0):,} |" for why, n in rows] + [""]
    if card.get("training"):
        lines += ["## Training", "", "| | |", "|---|---|"]
        lines += [f"| {key} | {value} |" for key, value in card["training"].items()] + [""]
    return "\n".join(lines)
