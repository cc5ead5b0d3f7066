"""Whether a vocabulary fits its text, and a training its corpus: unknown tokens, words too long to be masked, epochs.

Comes in: the statistics of train-vocab, build-instances and pretrain, or a plan. Goes out: lines for a person. The one
decision: as in `alarms`, none of these ends a run; a folder that is no use is still a folder that can be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusforge.shards import Manifest

UNKNOWN_BUILT = 0.05
"""More unknown tokens than this in instances are an alarm (own choice: learned from its own text, the families have
below 0.1 % in English, and a vocabulary of another language has most)."""

UNKNOWN_LEARNED = 0.01
"""The same in the sample of a vocabulary, which could still be learned again."""

COVERED = 0.99
"""Fewer characters with a token than this are an alarm (sentencepiece advises 0.9995 for Chinese and Japanese)."""

BUDGET_USED = 0.6
"""Less of the budget of masks used than this is an alarm (own measurement: whole words of English use over 90 %)."""

BARE = 0.1
"""More instances without a single mask than this are an alarm."""

EPOCHS = 100
"""Reading a corpus more often than this is an alarm: BERT read its corpus about 40 times (Devlin et al. 2019, appendix
A.2), and the worth of reading it once more decays to nothing (Muennighoff et al. 2023, arXiv 2305.16264, abstract)."""


def of_vocabulary(manifest: Manifest) -> list[str]:
    """What the figures of train-vocab say against it, and the flag that would mend it."""
    found, section = manifest.statistics, manifest.recipe.get("vocab", {})
    unknown, covered = found.get("unknown_rate", 0.0), found.get("character_coverage", 1.0)
    if not found.get("sample_tokens") or (unknown <= UNKNOWN_LEARNED and covered >= COVERED):
        return []
    said = f"alarm: of the sample {unknown:.2%} of tokens are unknown, and {covered:.2%} of characters have a token: "
    return [said + _mend(section, found)]


def _mend(section: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """
    >>> _mend({"model": "wordpiece", "alphabet": 1000}, {"characters": 1000})
    'raise --alphabet, as 1,000 characters are kept, and --size with it'
    """
    if section.get("adopt"):
        return "the vocabulary taken over does not fit this text; take another, or learn one"
    if section.get("model") in ("unigram", "sentencepiece-bpe"):
        return "raise --coverage and --size"
    kept, most = found.get("characters", 0), section.get("alphabet", 0)
    if kept >= most:
        return f"raise --alphabet, as {most:,} characters are kept, and --size with it"
    if found.get("sample") == "not learned from":
        return "it does not fit the text of --sample; learn from text that is like it"
    return "lower --min-count, or give more text: these characters were in none of the words it learned from"


def of_instances(manifest: Manifest) -> list[str]:
    """What the counts of build-instances say against its vocabulary and its mask unit."""
    encoded, section = manifest.statistics.get("encoded", {}), manifest.recipe.get("instances", {})
    lines = []
    unknown = encoded.get("unknown_tokens", 0) / max(encoded.get("tokens", 0), 1)
    if unknown > UNKNOWN_BUILT:
        what = f"alarm: {unknown:.1%} of tokens are unknown: the vocabulary does not fit the text"
        lines.append(f"{what}; learn one from these documents with train-vocab, or name another with --vocab")
    if encoded.get("units_joined") == 0:
        by = "segmenter" if section.get("mask_segmenter") else "lexicon"
        lines.append(f"alarm: --mask-{by} joins no words: nothing of it is in the text as this vocabulary cuts it")
    # Of dynamic masks only the held-out part has counts.
    masked = [part for part in (manifest.statistics.get(split, {}) for split in ("train", "heldout")) if part]
    return lines + of_masks(next((part["ratios"] for part in masked if part.get("masked")), {}), section)


def of_masks(ratios: Mapping[str, float], section: Mapping[str, Any]) -> list[str]:
    """Masks that words are too long for.

    >>> of_masks({"masked_of_budget": 0.95, "instances_unmasked": 0.01}, {"mask_unit": "span"})
    []
    """
    used, bare = ratios.get("masked_of_budget", 1.0), ratios.get("instances_unmasked", 0.0)
    if section.get("mask_unit", "token") == "token" or (used >= BUDGET_USED and bare <= BARE):
        return []
    said = f"alarm: only {used:.0%} of the budget is masked, and {bare:.0%} of instances have no mask, as words are too"
    return [f"{said} long; take --mask-unit token, or a vocabulary that sets characters apart (--model wordpiece)"]


def of_plan(plan: Mapping[str, Any]) -> list[str]:
    """What a plan of training says against the steps that were asked for, or that a preset has."""
    if plan["epochs"] <= EPOCHS:
        return []
    said = f"alarm: {plan['steps']:,} steps would read the {plan['instances']:,} instances {plan['epochs']:,.0f} times"
    return [f"{said}: too many for this corpus; ask for fewer with --steps, or for a time with --budget"]


def of_training(manifest: Manifest) -> list[str]:
    """What the losses of a finished training say against it: the held-out one where it was measured, beside the
    unigram loss of the same tokens."""
    found = manifest.statistics
    said, of_line = "held-out MLM loss", "unigram loss of the same tokens"
    loss, line = found.get("heldout_loss"), found.get("heldout_unigram")
    if loss is None or line is None:
        said, of_line = "MLM loss", "unigram entropy of the corpus"
        loss, line = found.get("mlm_loss"), found.get("unigram")
    if loss is None or line is None or loss < line:
        return []
    said = f"alarm: the {said} ({loss:.2f}) has not come below the {of_line} ({line:.2f})"
    return [f"{said}: the model knows less than how often words are; more steps, or another learning rate"]
