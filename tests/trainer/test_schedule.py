"""The rate of every step against google-research/bert's rule, written out."""

from __future__ import annotations

import pytest

from corpusforge import errors
from corpusforge.trainer.presets import PRESETS, find_preset
from corpusforge.trainer.schedule import learning_rate
from corpusforge.trainer.settings import Settings, differences, resolve


def by_the_book(step: int, peak: float, warmup: int, steps: int) -> float:
    """`optimization.py`: polynomial decay of power 1 over all steps, replaced while warming up."""
    decayed = (peak - 0.0) * (1 - min(step, steps) / steps) ** 1.0 + 0.0
    is_warming_up = float(step < warmup)
    return (1.0 - is_warming_up) * decayed + is_warming_up * peak * (step / warmup if warmup else 0)


@pytest.mark.parametrize(("warmup", "steps"), [(0, 10), (10, 100), (100, 1000)])
def test_warm_up_replaces_the_decayed_rate(warmup: int, steps: int) -> None:
    for step in range(steps):
        mine = learning_rate(step, peak=1e-4, warmup=warmup, steps=steps)
        assert mine == pytest.approx(by_the_book(step, 1e-4, warmup, steps), rel=1e-12)


def test_presets_have_the_published_sizes() -> None:
    from corpusforge.trainer.model import Architecture
    from corpusforge.trainer.plan import parameters

    def count(name: str, vocabulary: int, *, pairs: bool) -> int:
        p = PRESETS[name]
        positions, segments = (512, 2) if p.family == "bert" else (514, 1)
        sizes = (p.layers, p.width, p.heads, p.inner, vocabulary, positions, segments)
        return parameters(Architecture(p.family, *sizes, p.epsilon, p.dropout, 0, pairs))

    # BERT-base with its heads, as counted in transformers' BertForPreTraining; RoBERTa-base in RobertaForMaskedLM.
    assert count("bert-base", 30_522, pairs=True) == 110_106_428
    assert count("bert-large", 30_522, pairs=True) == 336_226_108
    assert count("roberta-base", 50_265, pairs=False) == 124_697_433
    assert PRESETS["bert-base"].warmup_share * PRESETS["bert-base"].steps == 10_000
    assert PRESETS["roberta-base"].warmup_share * PRESETS["roberta-base"].steps == 24_000
    assert PRESETS["roberta-large"].warmup_share * PRESETS["roberta-large"].steps == 30_000
    with pytest.raises(errors.RecipeInvalid, match="bert-base"):
        find_preset("bertbase")


def test_what_is_left_open_comes_from_the_preset() -> None:
    found = resolve(Settings(preset="bert-base"), 512)
    assert (found.steps, found.warmup_steps, found.learning_rate) == (1_000_000, 10_000, 1e-4)
    assert [(p.start, p.stop, p.length, p.batch_tokens) for p in found.parts] == [
        (0, 900_000, 128, 256 * 128),
        (900_000, 1_000_000, 512, 256 * 512),
    ]
    assert [found.part_of(step) for step in (0, 899_999, 900_000, 999_999)] == [0, 0, 1, 1]
    short = resolve(Settings(preset="bert-base", steps=10, warmup_steps=0, batch_tokens=4096), 128)
    assert [(p.start, p.stop, p.length, p.batch_tokens) for p in short.parts] == [(0, 10, 128, 4096)]


def test_a_batch_smaller_than_an_instance_is_refused() -> None:
    with pytest.raises(errors.RecipeInvalid, match="batch_tokens"):
        resolve(Settings(preset="bert-tiny", steps=10, batch_tokens=100), 128)
    with pytest.raises(errors.RecipeInvalid, match="micro_batch_tokens"):
        resolve(Settings(preset="bert-tiny", steps=10, micro_batch_tokens=100), 128)


def test_differences_name_what_changes_numbers() -> None:
    import dataclasses
    import json

    settings = Settings()
    stored = json.loads(json.dumps(dataclasses.asdict(settings)))
    assert differences(stored, settings) == []
    assert differences(stored, dataclasses.replace(settings, seed=1, log_steps=7)) == ["seed"]
