"""A model as a Hugging Face directory, and back.

Goes out: ``config.json``, ``model.safetensors`` (tied weights once), the tokenizer's files, ``README.md``. It loads in
`transformers` with no key missing and none unexpected: `BertForPreTraining` or `AlbertForPreTraining` for pair data,
else `BertForMaskedLM`, `RobertaForMaskedLM` or `AlbertForMaskedLM`. Decision: what transformers has no name for (the
head for the bounds of spans) stays out of it and lies in checkpoints only; a SpanBERT goes out as a BERT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from corpusforge import errors, shards
from corpusforge.trainer.model import Architecture, Encoder
from corpusforge.trainer.names import architecture, config, their_names
from corpusforge.trainer.stored import read_heads, read_weights

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"),
)


def their_weights(model: Encoder) -> Iterator[tuple[str, Tensor]]:
    """Weights under transformers' names, on the CPU, without those it has no name for."""
    for name, weight in model.state_dict().items():
        if names := their_names(name, model.shape.family):
            for their_name, part in zip(names, weight.detach().cpu().chunk(len(names)), strict=True):
                yield their_name, part.contiguous()


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


def own_weights(model: Encoder) -> dict[str, Tensor]:
    """Weights that transformers has no name for, under ours, on the CPU."""
    state = model.state_dict()
    return {n: w.detach().cpu().contiguous() for n, w in state.items() if not their_names(n, model.shape.family)}


def load_weights(model: Encoder, folder: Path) -> None:
    """Copy the weights of a Hugging Face directory into a model of the same architecture.

    A model with a head that has no place in one takes it from the checkpoint's `stored.HEADS`. Raises
    `errors.ManifestInvalid` where a weight is missing or has another shape, and what `stored.read_weights` raises.
    """
    family = model.shape.family
    stored = read_weights(folder, family)
    try:
        ours = read_heads(folder) if own_weights(model) else {}
        for name in model.state_dict():
            if names := their_names(name, family):
                ours[name] = torch.cat([stored[n] for n in names])
        model.load_state_dict(ours)
    except Exception as error:  # safetensors has an exception class of its own, derived from Exception alone
        what = f"its weights do not fit its config.json ({error})"
        raise errors.ManifestInvalid(str(folder), what, "name another checkpoint") from None


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

    ``card``: ``name``, ``corpus`` (fingerprint), ``funnel`` (label, documents, bytes of each place), ``rows`` (of the
    instances), ``tallies`` ({stage: {reason: {"rows", "bytes"}}}), ``training`` (plain facts), ``differs`` (preset,
    lines), ``settings`` ({section: {name: value}}); whatever is missing is left out.
    """
    shape = model.shape
    count = sum(weight.numel() for name, weight in model.named_parameters() if their_names(name, shape.family))
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
        lines += [f"## Where it is not {preset} as published", "", *(f"- {line}" for line in differs), ""]
    if card.get("settings"):
        lines += ["## Recipe", "", "```toml"]
        for section, settings in card["settings"].items():
            lines += [f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in settings.items())]
        lines += ["```", ""]
    return "\n".join(lines)


def _metadata(card: dict[str, Any]) -> list[str]:
    """What the hub sorts models by. Its licence is not known here: it depends on the text."""
    lines = ["---", "library_name: transformers", "pipeline_tag: fill-mask", "tags: [fill-mask, corpusforge]"]
    language = card.get("settings", {}).get("clean", {}).get("language")
    return [*lines, *([f"language: {language}"] if language else []), "---", ""]


def _length(shape: Architecture, card: dict[str, Any]) -> str:
    """How long a text may be; places that no instance reached have the embeddings they were drawn with."""
    said = f"It takes texts of at most {shape.longest:,} tokens"
    trained = card.get("settings", {}).get("instances", {}).get("length", shape.longest)
    if trained >= shape.longest:
        return f"{said}."
    return f"{said}, but was trained on {trained:,} at most: places behind those are not trained."


_USE = [
    *("## Use", "", "```python", "from transformers import pipeline", ""),
    'fill = pipeline("fill-mask", model="this folder, or its name on the hub")',
    'fill(f"A sentence with one {fill.tokenizer.mask_token} left out.")',
    *("```", ""),
]


def _of_corpus(card: dict[str, Any]) -> list[str]:
    """What the model read: its digest, how much each stage let through, and why the rest went."""
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
    """A plain value as TOML has it, which is JSON for all there are.

    >>> _toml([1e-4, "a", True])
    '[0.0001, "a", true]'
    """
    return json.dumps(value, ensure_ascii=False)
