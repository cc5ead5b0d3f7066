"""Learning rates, ramps and mask rates of every step, against the published rules written out and other schedulers."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors, recipe, sections
from corpusforge.loader.order import Part, Ramp
from corpusforge.sections import Pretrain
from corpusforge.sections.fields import duration
from corpusforge.sections.presets import PRESETS, find_preset
from corpusforge.trainer.checkpoint import differences
from corpusforge.trainer.prepare import prepare
from corpusforge.trainer.run import pretrain
from corpusforge.trainer.training_plan import learning_rate, training_plan
from tests.made_up_instances import Data
from tests.trainer.training_runs import assert_equal_runs, logged, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


def rates(decay: str, warmup: int, steps: int, **more: float) -> list[float]:
    return [learning_rate(s, peak=1.0, warmup=warmup, steps=steps, decay=decay, **more) for s in range(steps)]


@pytest.mark.parametrize(("warmup", "steps"), [(3, 12), (5, 40)])
def test_one_cycle_is_that_of_torch(warmup: int, steps: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    share = (warmup + 1) / (steps + 1)  # torch counts its last step, which this schedule reaches behind the run
    slow = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=steps + 1, pct_start=share, cycle_momentum=False
    )
    for rate in rates("one-cycle", warmup, steps):
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        slow.step()
    assert max(rates("one-cycle", warmup, steps)) == 1.0


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_cosine_and_linear_are_those_of_transformers(name: str) -> None:
    get_scheduler = pytest.importorskip("transformers").get_scheduler
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = get_scheduler(name, optimizer, num_warmup_steps=7, num_training_steps=50)
    for rate in rates("cosine" if name == "cosine" else "linear-hf", 7, 50):
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_wsd_is_flat_and_then_cools() -> None:
    found = rates("wsd", 4, 40, decay_share=0.25)
    assert found[:5] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert set(found[4:31]) == {1.0}
    assert found[31:] == pytest.approx([1 - math.sqrt((s - 30) / 10) for s in range(31, 40)])


def test_linear_forms_can_be_named() -> None:
    assert rates("linear-bert", 2, 10) == rates("linear", 2, 10) == rates("linear-bert", 2, 10, from_peak=True)
    assert rates("linear-hf", 2, 10) == rates("linear", 2, 10, from_peak=True)


@given(
    st.sampled_from(sections.settings()["pretrain.decay"].choices),
    st.integers(0, 30),
    st.integers(1, 30),
    st.floats(0, 1),
)
def test_no_schedule_leaves_its_bounds(decay: str, warmup: int, more: int, share: float) -> None:
    steps = warmup + more
    for step in range(steps + 3):
        rate = learning_rate(step, peak=1.0, warmup=warmup, steps=steps, decay=decay, decay_share=share)
        assert 0 <= rate <= 1


@given(st.floats(0.01, 1), st.integers(0, 40), st.integers(0, 30), st.integers(1, 30))
def test_a_ramp_reads_what_its_shares_add_up_to(first: float, over: int, start: int, count: int) -> None:
    part = Part(start, start + count, 8, 1000, Ramp(first, over))
    slow = 0.0
    for step in range(start, start + count):
        assert abs(part.tokens_before(step) - slow) <= 1
        slow += 1000 * (first + (1 - first) * step / over if step < over else 1.0)
    assert abs(part.tokens - slow) <= 1


def test_a_ramp_grows_the_batch_and_loses_no_chunk(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    ramped = dataclasses.replace(small_run, batch_ramp=0.25, batch_ramp_share=0.8, batch_tokens=640, log_steps=1)
    job = prepare(make_data().instances, ramped, vocab_folder=make_data(name="again").vocabulary)
    sizes = [sum(batch.tokens for batch in job.batches(step)) for step in range(10)]
    wanted = [640 * min(1, 0.25 + 0.75 * step / 8) for step in range(10)]
    assert all(abs(size - want) < 48 for size, want in zip(sizes, wanted, strict=True))
    first = [c for step in range(6) for _, chosen in job.streams[0].step(step) for c in chosen.tolist()]
    assert len(first) >= len(job.streams[0].chunks.rows)  # an epoch is over: nobody twice before everyone once
    assert len(set(first[: len(job.streams[0].chunks.rows)])) == len(job.streams[0].chunks.rows)


def test_a_ramp_too_small_for_an_instance_is_refused() -> None:
    with pytest.raises(errors.RecipeInvalid, match="batch_ramp"):
        training_plan(
            Pretrain(preset="bert-tiny", steps=10, batch_tokens=256, batch_ramp=0.25, batch_ramp_share=1.0), 128
        )


def test_mask_rates_fall_from_step_to_step(make_data: MakeData, small_run: Pretrain) -> None:
    falling = dataclasses.replace(small_run, mask_rate_start=0.3, mask_rate_end=0.15, batch_tokens=2000)
    data = make_data()
    job = prepare(data.instances, falling, vocab_folder=data.vocabulary)
    found = []
    for step in (0, 9):
        batches = job.batches(step)
        found.append(sum(len(b.labels) for b in batches) / sum(b.tokens for b in batches))
        assert found[-1] == pytest.approx(job.plan.mask_rate(step), abs=0.02)
    assert (job.plan.mask_rate(0), job.plan.mask_rate(10)) == (0.3, 0.15)
    same = dataclasses.replace(small_run, mask_rate_start=0.15, mask_rate_end=0.15, batch_tokens=2000)
    plain = prepare(data.instances, dataclasses.replace(same, mask_rate_end=-1.0), vocab_folder=data.vocabulary)
    other = prepare(data.instances, same, vocab_folder=data.vocabulary)
    for mine, theirs in zip(plain.batches(3), other.batches(3), strict=True):
        assert torch.equal(mine.input_ids, theirs.input_ids)


def test_a_cap_of_predictions_follows_the_rate(make_data: MakeData, small_run: Pretrain) -> None:
    data = make_data(instances={"max_predictions": 3})
    changes: dict[str, Any] = {"mask_rate_start": 0.3, "mask_rate_end": 0.15, "batch_tokens": 2000}
    changes["packing"] = False
    job = prepare(data.instances, dataclasses.replace(small_run, **changes), vocab_folder=data.vocabulary)
    most = [max(int(np.bincount(b.masked // b.input_ids.shape[1]).max()) for b in job.batches(s)) for s in (0, 9)]
    assert most == [6, 4]


def test_stored_masks_have_no_rate_to_change(make_data: MakeData, small_run: Pretrain) -> None:
    data = make_data(copies=2)
    with pytest.raises(errors.StageMismatch, match="dynamic masks"):
        prepare(data.instances, dataclasses.replace(small_run, mask_rate_start=0.3), vocab_folder=data.vocabulary)


@pytest.mark.parametrize("kind", ["dynamic", "pairs"])
def test_a_resumed_run_is_bit_equal_inside_every_schedule(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, kind: str
) -> None:
    ramp = {"batch_ramp": 0.5, "batch_ramp_share": 0.9, "mask_rate_start": 0.3, "mask_rate_end": 0.15}
    settings = dataclasses.replace(small_run, decay="wsd", decay_share=0.4, **ramp)
    data = make_data(pairs=kind == "pairs")
    train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, 5)
    train(data, tmp_path / "stopped", settings, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")


@pytest.mark.slow
def test_a_switch_that_is_resumed_carries_no_schedule_that_has_ended(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    """A run of the short part alone has decayed to nothing; resumed, the rate is that of the full run."""
    data, step_by_step = make_data(), dataclasses.replace(small_run, log_steps=1, decay="linear-hf")
    train(data, tmp_path / "whole", step_by_step)
    train(data, tmp_path / "parts", dataclasses.replace(step_by_step, steps=6, short_share=1.0))
    ended = json.loads((tmp_path / "parts/log.jsonl").read_text().splitlines()[-2])
    train(data, tmp_path / "parts", step_by_step, resume=True)
    whole, parts = ({line["step"]: line.get("lr") for line in logged(tmp_path / run)} for run in ("whole", "parts"))
    assert [parts[step] for step in (7, 8, 9)] == [whole[step] for step in (7, 8, 9)]
    assert parts[7] > ended["lr"] > 0


def test_times_are_read_as_people_write_them() -> None:
    assert [duration(text) for text in ("", "30m", "1h30m", "45s")] == [None] * 4
    assert all(duration(text) for text in ("30", "m", "0s", "1d", "half"))


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
