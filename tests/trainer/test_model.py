"""Every family: memorizes one batch, resumes to the bit, and is exported as a model that transformers loads."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from corpusforge import errors
from corpusforge.instances.masking import Masker, MaskSettings
from corpusforge.loader.batcher import Batcher, load_specials
from corpusforge.loader.corpus import cut_to_length, draw_masks, gather, open_table
from corpusforge.loader.packing import BatchSettings
from corpusforge.sections import Pretrain
from corpusforge.sections.presets import PRESETS
from corpusforge.shards import Manifest
from corpusforge.trainer import checkpoint
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.batches import to_tensors
from corpusforge.trainer.cost import flops_per_token, parameters
from corpusforge.trainer.hf_names import config
from corpusforge.trainer.init_checkpoint import fill
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.optimizers import make_optimizer
from corpusforge.trainer.prepare import prepare
from corpusforge.trainer.step import batch_losses, gradients, update
from tests.laid_out import laid_out
from tests.made_up_instances import Data
from tests.prestarted import Commands
from tests.trainer.test_ranks import assert_close, launch, weights
from tests.trainer.training_runs import assert_equal_runs, stop_at, train

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]
SPANS = MaskSettings(unit="span")
FAMILIES = {  # what each reads: pairs where it has a head for them, spans where it has one for these
    "bert-tiny": {"pairs": True},
    "roberta-tiny": {},
    "albert-tiny": {"pairs": True},
    "spanbert-tiny": {"words": True, "instances": {"mask_unit": "span"}},
}


def settings_of(preset: str, run: Pretrain, **changes: Any) -> Pretrain:
    return dataclasses.replace(run, preset=preset, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("preset", FAMILIES)
def test_overfits_one_batch(make_data: MakeData, small_run: Pretrain, preset: str) -> None:
    data = make_data(count=4, longest=24, **FAMILIES[preset])
    job = prepare(data.instances, settings_of(preset, small_run, dropout=0.0), vocab_folder=data.vocabulary)
    model, batches = Encoder(job.shape), job.batches(0)
    initialize(model, 0)
    rate = 1e-3 if preset == "albert-tiny" else 3e-3  # wider, and its layers are one
    optimizer = make_optimizer(model, job.plan.preset, rate)
    losses: list[list[float]] = []
    while len(losses) < 200 and (not losses or sum(losses[-1]) >= 0.01):
        sums = gradients(model, batches, seed=0, step=0, device=job.device, dtype=None)
        assert sums is not None
        update(model, optimizer, learning_rate=rate * min(1.0, len(losses) / 10), clip=1.0)
        losses.append([float(loss / count) for loss, _, count in sums.view(3, 3) if count])
    assert len(losses[0]) == (2 if FAMILIES[preset] else 1)
    assert sum(losses[-1]) < 0.01
    assert min(losses[0]) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["albert-tiny", "spanbert-tiny"])
def test_a_resumed_run_is_bit_equal_and_goes_out(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, preset: str
) -> None:
    transformers = pytest.importorskip("transformers")
    data, settings = make_data(**FAMILIES[preset]), settings_of(preset, small_run)
    train(data, tmp_path / "straight", settings)
    stop_at(data, tmp_path / "stopped", settings, 7)
    train(data, tmp_path / "stopped", settings, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    heads = checkpoint.all_folders(tmp_path / "straight")[0] / "heads.safetensors"
    assert heads.exists() == (preset == "spanbert-tiny")
    if heads.exists():
        theirs = load_file(checkpoint.all_folders(tmp_path / "stopped")[0] / heads.name)
        assert all(torch.equal(weight, theirs[key]) for key, weight in load_file(heads).items())
    assert not (tmp_path / "straight/model/heads.safetensors").exists()
    card = (tmp_path / "straight/model/README.md").read_text()
    assert f"## Differences from {preset} as published" in card
    assert "- steps 10 (paper: " in card
    name = "AlbertForPreTraining" if preset == "albert-tiny" else "BertForMaskedLM"
    _, told = getattr(transformers, name).from_pretrained(tmp_path / "straight/model", output_loading_info=True)
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))


@pytest.mark.parametrize("most", [1, 15])
def test_batches_carry_the_bounds_of_spans(make_data: MakeData, most: int) -> None:
    """Row by row in plain Python, from the spans that the mask function names."""
    data = make_data(words=True, instances={"mask_unit": "span"})
    corpus = open_table(data.instances, Manifest.load(data.instances), "train")
    masker = Masker(load_specials(data.vocabulary), SPANS, 3)
    rows = draw_masks(gather(corpus, cut_to_length(corpus, 48), np.arange(len(corpus))), masker, 5)
    expected = set()
    for k in range(len(corpus)):
        one = gather(corpus, cut_to_length(corpus, 48), np.array([k]))
        drawn = masker(one.ids, one.offsets, one.keys, 5, one.word_starts)
        assert drawn.spans is not None
        for begin, end in drawn.spans.tolist():
            for place in range(begin, min(end, begin + most)):
                expected.add((tuple(drawn.input_ids.tolist()), begin - 1, end, place - begin, int(one.ids[place])))
    found = set()
    for laid in laid_out(rows, BatchSettings(micro_batch_tokens=200), 0):
        batch = to_tensors(laid, segments=True, pairs=False, spans=most)
        assert batch.spans is not None and batch.span_labels is not None
        T = batch.input_ids.shape[1]
        for (left, right, nth), label in zip(batch.spans.tolist(), batch.span_labels.tolist(), strict=True):
            row = batch.input_ids[left // T]
            ids = row if batch.is_real is None else row[batch.is_real[left // T]]
            assert left // T == right // T
            found.add((tuple(ids.tolist()), left % T, right % T, nth, label))
    assert found == expected


@pytest.mark.parametrize("packing", [False, True])
def test_batches_of_the_loader_carry_them_too(make_data: MakeData, packing: bool) -> None:
    data = make_data(words=True, instances={"mask_unit": "span"})
    batcher = Batcher(
        data.instances,
        BatchSettings(batch_tokens=400, micro_batch_tokens=192, packing=packing),
        masking=SPANS,
        vocab_folder=data.vocabulary,
    )
    for batch in itertools.chain(*batcher.steps(range(batcher.epoch_size().steps))):
        assert batch.span_sides is not None
        ends, is_masked = batch.begins + batch.lengths, np.zeros(batch.size, bool)
        is_masked[batch.masked] = True
        for place, (left, right) in zip(batch.masked.tolist(), batch.span_sides.tolist(), strict=True):
            instance = np.searchsorted(batch.begins, place, "right") - 1
            assert batch.begins[instance] <= left < place < right < ends[instance]
            assert is_masked[left + 1 : right].all()


def test_the_head_for_spans_is_the_one_of_the_paper(make_data: MakeData, small_run: Pretrain) -> None:
    data = make_data(words=True, instances={"mask_unit": "span"})
    job = prepare(data.instances, settings_of("spanbert-tiny", small_run), vocab_folder=data.vocabulary)
    model, batch = Encoder(job.shape).eval(), job.batches(0)[0]
    initialize(model, 1, deviation=0.2)
    head = model.boundary
    assert head is not None and batch.spans is not None
    with torch.no_grad():
        logits = model(batch.input_ids, batch.segment_ids, batch.is_real, batch.masked, batch.spans).spans
        hidden = model.encode(batch.input_ids, batch.segment_ids, batch.is_real).reshape(-1, 128)
        for (left, right, nth), found in zip(batch.spans.tolist(), logits, strict=True):
            h0 = torch.cat([hidden[left], hidden[right], head.positions.weight[nth]])
            assert h0.shape == (2 * 128 + 200,)
            h1 = F.layer_norm(F.gelu(head.first.weight @ h0 + head.first.bias), (128,), eps=1e-12)
            y = F.layer_norm(F.gelu(head.second.weight @ h1 + head.second.bias), (128,), eps=1e-12)
            assert torch.allclose(found, model.tokens.weight @ y + head.bias, atol=1e-4)


def test_a_head_for_spans_is_begun_from_where_a_checkpoint_has_it(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    data, settings = (
        make_data(words=True, instances={"mask_unit": "span"}),
        settings_of("spanbert-tiny", small_run, steps=2),
    )
    train(data, tmp_path / "first", settings)
    newest = checkpoint.all_folders(tmp_path / "first")[0]
    for folder, anew in ((newest, "nothing"), (tmp_path / "first/model", "span boundary head")):
        job = prepare(data.instances, dataclasses.replace(settings, init=str(folder)), vocab_folder=data.vocabulary)
        model = Encoder(job.shape)
        initialize(model, 9)
        assert job.init is not None
        assert str(fill(model, job.init)) == f"initialized: {anew}; left out: nothing"
        heads = load_file(newest / "heads.safetensors")
        ours = {name: weight for name, weight in model.state_dict().items() if name in heads}
        assert ours.keys() == heads.keys()
        assert all(torch.equal(weight, heads[name]) for name, weight in ours.items()) == (anew == "nothing")


def test_spans_are_needed_and_said_to_be(make_data: MakeData, small_run: Pretrain) -> None:
    settings = dataclasses.replace(small_run, preset="spanbert-tiny")
    data = make_data(words=True)
    with pytest.raises(errors.StageMismatch, match="--mask-unit span"):
        prepare(data.instances, settings, vocab_folder=data.vocabulary)
    spans = {"mask_unit": "span"}
    stored, plain = make_data(copies=1, instances=spans, name="stored"), make_data(instances=spans, name="plain")
    for other, what in ((stored, "stored"), (plain, "word starts")):
        with pytest.raises(errors.StageMismatch, match=what):
            prepare(other.instances, settings, vocab_folder=other.vocabulary)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("pairs", [False, True])
def test_presets_have_the_sizes_of_transformers_models(preset: str, pairs: bool) -> None:
    """Counted on the meta device; transformers has no span boundary head."""
    transformers = pytest.importorskip("transformers")
    chosen = PRESETS[preset]
    if pairs and (chosen.family == "roberta" or chosen.has_boundary_head):
        return
    positions, segments, vocabulary = (514, 1, 50_265) if chosen.family == "roberta" else (512, 2, 30_000)
    shape = Architecture(
        *(chosen.family, chosen.layers, chosen.width, chosen.heads, chosen.inner, vocabulary, positions, segments),
        *(chosen.epsilon, chosen.dropout, 1 if chosen.family == "roberta" else 0, pairs),
        embedding=chosen.embedding,
        activation=chosen.activation,
        is_shared=chosen.is_shared,
    )
    values = config(shape, {"cls": 2, "sep": 3})
    with torch.device("meta"):
        theirs = getattr(transformers, values["architectures"][0])(transformers.AutoConfig.for_model(**values))
    count = parameters(shape)
    assert count == sum(weight.numel() for weight in theirs.parameters())
    published = {"albert-base": 12, "albert-large": 18, "albert-xlarge": 60, "albert-xxlarge": 235}  # table 1
    if pairs and preset in published:
        assert abs(count / 1e6 - published[preset]) < (1 if preset != "albert-xxlarge" else 13)


@pytest.mark.parametrize("preset", FAMILIES)
def test_losses_of_all_heads_do_not_depend_on_micro_batches(
    make_data: MakeData, small_run: Pretrain, preset: str
) -> None:
    data, found = make_data(**FAMILIES[preset]), []
    for budget in (10_000, 160):
        changes = {"micro_batch_tokens": budget, "dropout": 0.0, "batch_tokens": 1000}
        job = prepare(data.instances, settings_of(preset, small_run, **changes), vocab_folder=data.vocabulary)
        model = Encoder(job.shape)
        initialize(model, 0)
        sums = gradients(model, job.batches(7), seed=0, step=7, device=job.device, dtype=None)
        assert sums is not None
        found.append((sums, {name: weight.grad for name, weight in model.named_parameters()}))
    (sums, whole), (other_sums, parts) = found
    assert torch.allclose(sums, other_sums, rtol=1e-5)
    for name, gradient in whole.items():
        assert gradient is not None, name  # every weight of every head learns
        assert torch.allclose(gradient, parts[name], atol=1e-6, rtol=1e-3), name


@pytest.mark.parametrize("preset", FAMILIES)
def test_flops_are_those_that_torch_counts(make_data: MakeData, small_run: Pretrain, preset: str) -> None:
    """But for the pooler and the pair head, which see one token of a sequence."""
    data = make_data(words=True, instances={"mask_unit": "span"})
    settings = settings_of(preset, small_run, packing=False, dropout=0.0, micro_batch_tokens=200)
    job = prepare(data.instances, settings, vocab_folder=data.vocabulary)
    model = Encoder(job.shape)
    batch = dataclasses.replace(job.batches(0)[0], is_real=None)  # padding costs what text does
    assert batch.spans is None or len(batch.spans) == len(batch.masked)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        batch_losses(model, batch, None)[1].mean(1, 1).backward()
    expected = flops_per_token(job.shape, batch.input_ids.shape[1], len(batch.masked) / batch.size) * batch.size
    assert counter.get_total_flops() == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_a_shared_layer_is_sharded_as_others_are(
    corpusforge: Commands, make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    """ALBERT's one layer is gathered and resharded each time it is applied; LAMB's norms are of full weights."""
    changes = {"steps": 4, "dropout": 0.0, "optimizer": "lamb", "micro_batch_tokens": 100, "log_steps": 1}
    run, data = settings_of("albert-tiny", small_run, **changes), make_data(pairs=True)
    launch(corpusforge, data, tmp_path / "one", run, 1)
    launch(corpusforge, data, tmp_path / "two", dataclasses.replace(run, sharding="fsdp"), 2)
    assert_close(weights(tmp_path / "one"), weights(tmp_path / "two"), 2e-3)
