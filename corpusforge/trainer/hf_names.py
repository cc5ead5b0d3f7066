"""Names of weights and of ``config.json`` in transformers, and the architecture that a ``config.json`` describes.

The names are those of transformers' `modeling_bert.py`, `modeling_roberta.py` and `modeling_albert.py`. These have
separate weights for query, key and value, which `attention.Attention` has in one matrix, and no span boundary head, so
its weights have no name there. Every value of ``config.json`` that a family reads is written, as the defaults of its
class are those of one model among several: `RobertaConfig()` has 512 positions, 2 segments and an epsilon of 1e-12,
`AlbertConfig()` is ALBERT-xxlarge.
"""

from __future__ import annotations

from typing import Any

from corpusforge import errors
from corpusforge.trainer.architecture import Architecture

_HEADS = {
    "bert": {
        "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm",
        "bias": "cls.predictions.bias",
        "pooler": "bert.pooler.dense",
        "pair": "cls.seq_relationship",
    },
    "roberta": {"transform": "lm_head.dense", "transform_norm": "lm_head.layer_norm", "bias": "lm_head.bias"},
    "albert": {
        "transform": "predictions.dense",
        "transform_norm": "predictions.LayerNorm",
        "bias": "predictions.bias",
        "pooler": "albert.pooler",
        "pair": "sop_classifier.classifier",
        "widen": "albert.encoder.embedding_hidden_mapping_in",
    },
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
_ALBERT_LAYER = {
    "attention.output": "attention.dense",
    "attention.norm": "attention.LayerNorm",
    "inner": "ffn",
    "output": "ffn_output",
    "norm": "full_layer_layer_norm",
}
_CLASSES = {
    "bert": ("BertForMaskedLM", "BertForPreTraining"),
    "roberta": ("RobertaForMaskedLM", ""),
    "albert": ("AlbertForMaskedLM", "AlbertForPreTraining"),
}
"""transformers' classes: without a head for pairs, and with one."""
_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {"hidden_act": "gelu", "pad_token_id": 0, "hidden_dropout_prob": 0.1},
    "roberta": {"hidden_act": "gelu", "pad_token_id": 1, "hidden_dropout_prob": 0.1},
    "albert": {"hidden_act": "gelu_new", "pad_token_id": 0, "hidden_dropout_prob": 0.0},
}
"""Defaults of transformers' classes for what a ``config.json`` may leave out (besides segments and epsilon, below)."""
_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new"}


def transformers_names(name: str, family: str) -> list[str]:
    """The names of one of our weights in transformers: three for the joint query, key and value, none if it has none.

    >>> transformers_names("layers.0.inner.bias", "bert")
    ['bert.encoder.layer.0.intermediate.dense.bias']
    """
    if name in _HEADS[family]:
        return [_HEADS[family][name]]
    module, kind = name.rsplit(".", 1)
    if module in _HEADS[family]:
        return [f"{_HEADS[family][module]}.{kind}"]
    if module in _EMBEDDINGS:
        return [f"{family}.embeddings.{_EMBEDDINGS[module]}.{kind}"]
    if module.split(".")[0] == "boundary":
        return []
    _, number, inner = module.split(".", 2)
    is_albert = family == "albert"  # one shared layer: one group of one layer
    stem = "albert.encoder.albert_layer_groups.0.albert_layers.0" if is_albert else f"{family}.encoder.layer.{number}"
    if inner == "attention.projections":
        prefix = "attention" if is_albert else "attention.self"
        return [f"{stem}.{prefix}.{part}.{kind}" for part in ("query", "key", "value")]
    return [f"{stem}.{(_ALBERT_LAYER if is_albert else _LAYER)[inner]}.{kind}"]


def config(shape: Architecture, ids: dict[str, int]) -> dict[str, Any]:
    """``config.json``; ``ids``: the vocabulary's ``cls`` and ``sep``."""
    values = {
        "architectures": [_CLASSES[shape.family][shape.pairs]],
        "model_type": shape.family,
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.inner,
        "hidden_act": shape.activation,
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
        return values
    values |= {"bos_token_id": ids["cls"], "eos_token_id": ids["sep"]}
    if shape.family == "albert":
        values |= {"embedding_size": shape.embedding_width, "num_hidden_groups": 1, "inner_group_num": 1}
        values |= {"classifier_dropout_prob": 0.1}  # of fine-tuning: transformers' albert-base-v2 has it
    return values


def architecture(values: dict[str, Any], where: str) -> Architecture:
    """The architecture a ``config.json`` describes.

    Raises `errors.StageMismatch` for a model that is not a BERT, RoBERTa or ALBERT, or a variant of one.
    """
    try:
        family = values["model_type"]
        classes = _CLASSES[family]
        values = {"type_vocab_size": 2, "layer_norm_eps": 1e-12} | _DEFAULTS[family] | values
        shape = Architecture(
            family=family,
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
            pairs=(values.get("architectures") or [""])[0] == (classes[1] or None),
            embedding=values["embedding_size"] if family == "albert" else 0,
            activation=_ACTIVATIONS[values["hidden_act"]],
            is_shared=family == "albert",
        )
    except KeyError as error:
        what = f"its config.json is not of a BERT, RoBERTa or ALBERT that can be read here (at {error})"
        raise errors.StageMismatch(where, what, "name a folder that pretrain wrote, or one like it") from None
    _check_computed(values, where)
    return shape


def _check_computed(values: dict[str, Any], where: str) -> None:
    """Refuse variants of the families whose weights have the same names but mean something else."""
    plain = {
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
    }
    for key, value in plain.items():
        if values.get(key, value) != value:
            what = f"its config.json has {key} {values[key]!r}, and models here have {value!r}"
            raise errors.StageMismatch(where, what, "name another checkpoint")
