"""Every deviation from the published training is reported, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusforge.sections import Pretrain
from corpusforge.sections.presets import PRESETS
from corpusforge.trainer import run_summary
from corpusforge.trainer.architecture import SPAN_POSITIONS, Architecture
from corpusforge.trainer.cost import estimate, parameters
from corpusforge.trainer.deviations import PUBLISHED, deviations
from corpusforge.trainer.prepare import prepare
from tests.made_up_instances import Data
from tests.trainer.training_runs import RecordedProgress, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]

ALWAYS = (
    "reads this corpus",
    "vocabulary of 192",
    "a step is a number of tokens",
    "optimizer adamw (paper: bert-adam)",
    "the short part reads parts",
)
"""Deviations that no setting removes, of a run as published on generated data."""


def lines_of(data: Data, settings: Pretrain, **instances: object) -> list[str]:
    job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
    return deviations(dataclasses.replace(job, instances=instances))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_as_published_differs_in_what_it_must(make_data: MakeData, preset: str) -> None:
    published = PRESETS[preset]
    paper = PUBLISHED[published.paper]
    data = make_data(words=published.mask_unit != "token", instances={"mask_unit": published.mask_unit})
    settings = Pretrain(preset=preset, short_length=24)
    found = lines_of(data, settings, format=paper.format, masking=paper.masking, length=512)
    own = found[: len(published.notes) + published.is_own]
    assert own[published.is_own :] == list(published.notes)
    assert published.is_own == ("no such model was published" in own[0] if own else False)
    assert all(line.startswith(ALWAYS) for line in found[len(own) :]), found


def test_what_is_changed_is_told_with_the_value_of_the_paper(make_data: MakeData, small_run: Pretrain) -> None:
    changes = {"optimizer": "lamb", "decay": "cosine", "dropout": 0.0, "mask_rate_start": 0.3, "mask_rate_end": 0.15}
    run = dataclasses.replace(small_run, preset="bert-base", short_share=0.0, **changes)
    found = lines_of(make_data(), run, format="doc-sentences", masking="dynamic", length=48, name="ignored")
    for line in (
        "format doc-sentences (paper: segment-pair)",
        "masking dynamic (paper: duplicated)",
        "length 48 (paper: 512)",
        "masks 30% to 15% of the tokens (paper: 15%)",
        "steps 10 (paper: 1,000,000)",
        "warm-up steps 2 (paper: 10,000)",
        "optimizer lamb (paper: bert-adam)",
        "learning rate 0.001 (paper: 0.0001)",
        "decay cosine (paper: linear)",
        "dropout 0 (paper: 0.1)",
        "320 tokens a step at length 47 (paper: 256 sequences)",
        "one length throughout (paper: 90% of the steps at 128)",
    ):
        assert line in found
    albert = dataclasses.replace(small_run, preset="albert-base")
    assert "mask unit token (paper: ngram)" in lines_of(make_data(name="other"), albert)


def test_the_plan_tells_them(make_data: MakeData, small_run: Pretrain) -> None:
    data = make_data()
    figures = estimate(data.instances, small_run, vocab_folder=data.vocabulary)
    assert [figures["part_1"], figures["part_2"]]
    lines = [str(value) for key, value in figures.items() if key.startswith("differs_")]
    assert lines == lines_of(data, small_run)


@pytest.mark.slow
def test_a_run_tells_them_before_its_first_step_and_once(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, first, again, few = make_data(), RecordedProgress(), RecordedProgress(), RecordedProgress()
    train(data, tmp_path / "out", small_run, progress=first)
    train(data, tmp_path / "out", small_run, progress=again, resume=True)
    expected = deviations(prepare(data.instances, small_run, vocab_folder=data.vocabulary))
    mark = "not bert-tiny as published: "
    counted = f"it differs in {len(expected)} points, which a dry run and the model card list"
    assert [line.removeprefix(mark) for line in first.lines if line.startswith(mark)] == [counted]
    assert not [line for line in again.lines if line.startswith(mark)]
    monkeypatch.setattr(run_summary, "LISTED_DEVIATIONS", len(expected))
    train(data, tmp_path / "few", small_run, progress=few)
    assert [line.removeprefix(mark) for line in few.lines if line.startswith(mark)] == expected


def test_the_table_of_presets_in_the_docs_is_right() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/training.md").read_text("utf-8")
    rows = {cells[0].strip("`"): cells[1:] for cells in (line.strip("| ").split(" | ") for line in page.splitlines())}
    assert rows.keys() >= PRESETS.keys()
    for name, p in PRESETS.items():
        size, count, taken, update, warmup, entries = rows[name]
        vocabulary = int(entries.replace(",", ""))
        shape = Architecture(
            *(p.family, p.layers, p.width, p.heads, p.inner, vocabulary, 514 if p.family == "roberta" else 512),
            *(
                1 if p.family == "roberta" else 2,
                p.epsilon,
                p.dropout,
                0,
                p.family != "roberta" and not p.has_boundary_head,
            ),
            embedding=p.embedding,
            is_shared=p.is_shared,
            span_positions=SPAN_POSITIONS if p.has_boundary_head else 0,
        )
        assert size == f"{p.layers} x {p.width} x {p.heads}", name
        assert count == f"{parameters(shape) / 1e6:.1f} M", name
        steps = p.steps / 1e6
        assert taken == f"{f'{steps:g} M' if steps >= 1 else f'{p.steps / 1e3:g} k'} x {p.batch_sequences:,}", name
        kind, rate = update.split()
        assert (kind.lower(), float(rate)) == (p.optimizer, p.learning_rate), name
        assert warmup == f"{round(p.warmup_share * p.steps):,}", name
