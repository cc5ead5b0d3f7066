"""The model card: ``README.md`` of a model, from what is known of its data and training.

The cards of a checkpoint and of a published model are the same text. It names no paths, as it may be published.
"""

from __future__ import annotations

import json
from typing import Any

from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_names import transformers_names
from corpusforge.trainer.model import Encoder


def model_card(model: Encoder, card: dict[str, Any]) -> str:
    """``README.md``: what the model is, what it was trained on, and what was dropped on the way.

    ``card``: ``name``, ``corpus`` (fingerprint), ``funnel`` (label, documents, bytes of each stage), ``rows`` (of the
    instances), ``tallies`` ({stage: {reason: {"rows", "bytes"}}}), ``training`` (plain facts), ``differs`` (preset,
    lines), ``settings`` ({section: {name: value}}); whatever is missing is left out.
    """
    shape = model.shape
    count = sum(weight.numel() for name, weight in model.named_parameters() if transformers_names(name, shape.family))
    size = f"{shape.layers} layers, width {shape.width}, {shape.heads} heads, vocabulary {shape.vocabulary:,}"
    lines = [*_metadata(card), f"# {card.get('name', 'An encoder')}", ""]
    lines += [f"A {shape.family} encoder of {count:,} parameters ({size}), pretrained with CorpusForge.", ""]
    lines += [*_USE, _length(shape, card), ""]
    lines += _of_corpus(card)
    if card.get("training"):
        lines += ["## Training", "", "| | |", "|---|---|"]
        lines += [f"| {key} | {value} |" for key, value in card["training"].items()] + [""]
    preset, differs = card.get("differs", ("", []))
    if differs:
        lines += [f"## Differences from {preset} as published", "", *(f"- {line}" for line in differs), ""]
    if card.get("settings"):
        lines += ["## Recipe", "", "```toml"]
        for section, settings in card["settings"].items():
            lines += [f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in settings.items())]
        lines += ["```", ""]
    return "\n".join(lines)


def _metadata(card: dict[str, Any]) -> list[str]:
    """The metadata by which the hub sorts models. The license depends on the text and is unknown here."""
    lines = ["---", "library_name: transformers", "pipeline_tag: fill-mask", "tags: [fill-mask, corpusforge]"]
    language = card.get("settings", {}).get("clean", {}).get("language")
    return [*lines, *([f"language: {language}"] if language else []), "---", ""]


def _length(shape: Architecture, card: dict[str, Any]) -> str:
    """The maximum length of a text; positions that no instance reached still have random embeddings."""
    takes = f"It takes texts of at most {shape.longest:,} tokens"
    trained = card.get("settings", {}).get("instances", {}).get("length", shape.longest)
    if trained >= shape.longest:
        return f"{takes}."
    return f"{takes}, but was trained on {trained:,} at most: later positions are untrained."


_USE = [
    *("## Use", "", "```python", "from transformers import pipeline", ""),
    'fill = pipeline("fill-mask", model="this folder, or its name on the hub")',
    'fill(f"A sentence with one {fill.tokenizer.mask_token} left out.")',
    *("```", ""),
]


def _of_corpus(card: dict[str, Any]) -> list[str]:
    """The training data: its digest, how much each stage kept, and why the rest was dropped."""
    if "corpus" not in card:
        return []
    lines = ["## Corpus", "", f"Fingerprint of the training data: `{card['corpus']}`", ""]
    if card.get("funnel"):
        lines += ["| | documents | bytes |", "|---|---:|---:|"]
        lines += [f"| {label} | {documents:,} | {size:,} |" for label, documents, size in card["funnel"]] + [""]
    if card.get("rows"):
        lines += [f"Instances: {', '.join(f'{count:,} {part}' for part, count in card['rows'].items())}.", ""]
    for stage, tallies in card.get("tallies", {}).items():
        if tallies:
            lines += [f"### Dropped in {stage}", "", "| reason | rows | bytes |", "|---|---:|---:|"]
            rows = sorted(tallies.items(), key=lambda item: -item[1].get("rows", 0))
            lines += [f"| `{why}` | {n.get('rows', 0):,} | {n.get('bytes', 0):,} |" for why, n in rows] + [""]
    return lines


def _toml(value: Any) -> str:
    """A plain value in TOML, which equals JSON for all values that occur here.

    >>> _toml([1e-4, "a", True])
    '[0.0001, "a", true]'
    """
    return json.dumps(value, ensure_ascii=False)
