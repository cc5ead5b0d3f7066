"""The rate of every step against google-research/bert's rule, written out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge import errors, recipe, sections
from corpusforge.sections import Pretrain
from corpusforge.trainer.checkpoint import differences
from corpusforge.trainer.presets import PRESETS, find_preset
from corpusforge.trainer.run import pretrain
from corpusforge.trainer.training_plan import learning_rate, training_plan
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]


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


@pytest.mark.parametrize(("warmup", "steps"), [(0, 10), (10, 100), (24, 500), (10, 10)])
def test_roberta_decays_from_its_peak(warmup: int, steps: int) -> None:
    """fairseq's polynomial_decay and transformers' linear schedule, written out."""
    rates = [learning_rate(s, peak=6e-4, warmup=warmup, steps=steps, from_peak=True) for s in range(steps)]
    theirs = [6e-4 * (s / warmup if s < warmup else 1 - (s - warmup) / (steps - warmup)) for s in range(steps)]
    assert rates == pytest.approx(theirs, rel=1e-12)
    assert max(rates) == (6e-4 if warmup < steps else pytest.approx(6e-4 * (warmup - 1) / warmup))


@pytest.mark.parametrize(("preset", "first"), [("bert-tiny", 0.8e-3), ("roberta-tiny", 1e-3)])
def test_a_run_takes_the_form_of_its_preset(
    make_data: Callable[..., Data], small_run: Pretrain, tmp_path: Path, preset: str, first: float
) -> None:
    data, settings = make_data(), dataclasses.replace(small_run, preset=preset, steps=10, log_steps=1)
    pretrain(
        data.instances,
        str(tmp_path / "out"),
        settings,
        vocab_folder=data.vocabulary,
        manifest_digest="d",
        recipe={},
        card={},
    )
    lines = [json.loads(line) for line in (tmp_path / "out/log.jsonl").read_text().splitlines()]
    assert next(line["lr"] for line in lines if line["step"] == 3) == pytest.approx(first)  # warm-up: two steps


def test_roberta_trains_at_full_length_throughout() -> None:
    found = training_plan(Pretrain(preset="roberta-base"), 512)
    assert [(p.start, p.stop, p.length, p.batch_tokens) for p in found.parts] == [(0, 500_000, 512, 8192 * 512)]
    told = training_plan(Pretrain(preset="roberta-base", short_share=0.5), 512)
    assert [p.length for p in told.parts] == [128, 512]
    assert sections.Pretrain().short_share == Pretrain().short_share
    assert recipe.load("roberta-base").pretrain.short_share == -1


def test_the_help_names_all_presets() -> None:
    named = sections.settings()["pretrain.preset"].help.partition(": ")[2]
    assert named.split(", ") == list(PRESETS)


def test_presets_have_the_published_sizes() -> None:
    from corpusforge.trainer.architecture import Architecture
    from corpusforge.trainer.cost import parameters

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
    found = training_plan(Pretrain(preset="bert-base"), 512)
    assert (found.steps, found.warmup_steps, found.learning_rate) == (1_000_000, 10_000, 1e-4)
    assert [(p.start, p.stop, p.length, p.batch_tokens) for p in found.parts] == [
        (0, 900_000, 128, 256 * 128),
        (900_000, 1_000_000, 512, 256 * 512),
    ]
    assert [found.part_of(step) for step in (0, 899_999, 900_000, 999_999)] == [0, 0, 1, 1]
    short = training_plan(Pretrain(preset="bert-base", steps=10, warmup_steps=0, batch_tokens=4096), 128)
    assert [(p.start, p.stop, p.length, p.batch_tokens) for p in short.parts] == [(0, 10, 128, 4096)]


def test_a_batch_smaller_than_an_instance_is_refused() -> None:
    with pytest.raises(errors.RecipeInvalid, match="batch_tokens"):
        training_plan(Pretrain(preset="bert-tiny", steps=10, batch_tokens=100), 128)
    with pytest.raises(errors.RecipeInvalid, match="micro_batch_tokens"):
        training_plan(Pretrain(preset="bert-tiny", steps=10, micro_batch_tokens=100), 128)


def test_differences_name_what_changes_numbers() -> None:
    settings = dataclasses.asdict(Pretrain()) | {"seed": 0}
    stored = json.loads(json.dumps(settings)) | {"heldout_tokens": 131_072}  # an older version had another setting
    assert differences(stored, settings) == []
    assert differences(stored, settings | {"seed": 1, "log_steps": 7}) == ["seed"]
