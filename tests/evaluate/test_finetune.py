"""Fine-tuning: the head against transformers, learning, determinism, layer-wise rates."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from corpusforge import errors
from corpusforge.evaluate.finetune import (
    PUBLISHED,
    Classifier,
    Encoded,
    FineTuning,
    SpanExtractor,
    Tuning,
    encode,
    fine_tune,
    scores,
)
from corpusforge.evaluate.likelihood import load_tokenizer
from corpusforge.sections import Evaluate
from corpusforge.trainer.hf_folder import load_model
from tests.evaluate.tiny_models import write_checkpoint

CPU = torch.device("cpu")
QUICK = Tuning(epochs=16, batch=16, learning_rate=5e-3, warmup_share=0.1, weight_decay=0.01, beta_2=0.999, clip=1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path, deviation=0.1, pairs=True)


def pairs_of_words(count: int) -> tuple[list[str], list[str], np.ndarray]:
    """Pairs of texts; the label says whether the first begins with w1."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, count)
    firsts = [f"w{1 if y else 2} w{rng.integers(3, 99)} w{rng.integers(3, 99)}" for y in labels]
    seconds = [" ".join(f"w{k}" for k in rng.integers(3, 99, rng.integers(1, 6))) for _ in labels]
    return firsts, seconds, labels


def encoded(folder: Path, count: int = 96, longest: int = 12) -> tuple[Encoded, torch.Tensor]:
    *texts, labels = pairs_of_words(count)
    return encode(load_tokenizer(folder), texts, longest), torch.from_numpy(labels)


def test_the_classifier_is_that_of_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
    mine = Classifier(load_model(folder), 3).eval()
    mine.output.load_state_dict(theirs.classifier.state_dict())
    firsts, seconds, _ = pairs_of_words(9)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(firsts, seconds, padding=True, truncation=True, max_length=10, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**inputs).logits
    made = encode(load_tokenizer(folder), [firsts, seconds], 10)
    assert made.truncated == sum(len(f.split()) + len(s.split()) > 7 for f, s in zip(firsts, seconds, strict=True))
    found = torch.zeros(9, 3)
    for rows, said in scores(mine, made, 64):
        found[torch.from_numpy(rows)] = said
    assert torch.allclose(found, expected, atol=1e-5)


def test_the_span_extractor_is_that_of_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForQuestionAnswering.from_pretrained(folder).eval()
    mine = SpanExtractor(load_model(folder)).eval()
    mine.output.load_state_dict(theirs.qa_outputs.state_dict())
    inputs, _ = encoded(folder, 1, 20)
    ids, segments, _ = inputs.padded(np.array([0]), mine.encoder.shape, CPU)
    ids, segments = ids[:, : inputs.lengths[0]], segments[:, : inputs.lengths[0]]
    with torch.no_grad():
        expected = theirs(
            input_ids=ids, token_type_ids=segments, start_positions=torch.tensor([2]), end_positions=torch.tensor([4])
        )
        found = mine(ids, segments, None)
    assert torch.allclose(found[..., 0], expected.start_logits, atol=1e-5)
    assert torch.allclose(found[..., 1], expected.end_logits, atol=1e-5)
    assert torch.allclose(mine.loss(found, torch.tensor([[2, 4]])), expected.loss, atol=1e-5)


def test_a_run_that_diverges_is_said(folder: Path) -> None:
    inputs, labels = encoded(folder, 32)
    how = Tuning(2, 16, 1e30, 0.0, 0.01, 0.999, 0.0)
    with pytest.raises(errors.TrainingStopped, match=r"RTE, seed 1: .* lower evaluate\.learning_rate"):
        fine_tune(
            Classifier(load_model(folder), 2),
            inputs,
            labels,
            how,
            seed=1,
            name="RTE, seed 1",
            micro_tokens=9999,
            device=CPU,
        )


@pytest.mark.slow
def test_a_rule_is_learned_and_the_same_seed_is_the_same_model(folder: Path) -> None:
    inputs, labels = encoded(folder)
    made = []
    for seed, micro_tokens in ((1, 10_000), (1, 10_000), (1, 64), (2, 10_000)):
        model = Classifier(load_model(folder), 2)
        fine_tune(model, inputs, labels, QUICK, seed=seed, name="t", micro_tokens=micro_tokens, device=CPU)
        made.append(torch.cat([said for _, said in scores(model, inputs, 512)]))
    rows = np.concatenate([rows for rows, _ in scores(model, inputs, 512)])
    assert (made[0].argmax(1) == labels[torch.from_numpy(rows)]).float().mean() > 0.95
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[3])
    assert made[2].shape == made[0].shape


@pytest.mark.slow
def test_micro_batches_change_nothing(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, deviation=0.1, dropout=0.0)
    inputs, labels = encoded(folder)
    weights = []
    for micro_tokens in (10_000, 64):
        model = Classifier(load_model(folder), 2)
        fine_tune(model, inputs, labels, QUICK, seed=1, name="t", micro_tokens=micro_tokens, device=CPU)
        weights.append(torch.cat([said for _, said in scores(model, inputs, 512)]))
    assert torch.allclose(weights[0], weights[1], atol=1e-3)


def test_numbers_are_learned(folder: Path) -> None:
    inputs, labels = encoded(folder)
    model = Classifier(load_model(folder), 1)
    fine_tune(model, inputs, labels.float() * 5, QUICK, seed=1, name="t", micro_tokens=9999, device=CPU)
    said = torch.cat([some[:, 0] for _, some in scores(model, inputs, 512)])
    rows = torch.from_numpy(np.concatenate([rows for rows, _ in scores(model, inputs, 512)]))
    assert np.corrcoef(said, labels[rows])[0, 1] > 0.8


def test_rates_fall_towards_the_embeddings(folder: Path) -> None:
    model = Classifier(load_model(folder), 2)
    names = {id(weight): name for name, weight in model.named_parameters()}
    factors = {names[id(w)]: g["factor"] for g in model.groups(0.5, 0.01) for w in g["params"]}  # type: ignore[attr-defined]
    expected = {"output": 1.0, "encoder.pooler": 0.5, "encoder.layers.1": 0.25, "encoder.layers.0": 0.125}
    expected |= {"encoder.tokens": 1 / 16, "encoder.positions": 1 / 16, "encoder.norm": 1 / 16}
    for part, factor in expected.items():
        assert {f for name, f in factors.items() if name.startswith(f"{part}.")} == {factor}, part
    assert not [name for name in factors if name.startswith(("encoder.transform", "encoder.bias", "encoder.pair"))]
    decayed = {names[id(w)] for g in model.groups(1.0, 0.01) if g["weight_decay"] for w in g["params"]}  # type: ignore[attr-defined]
    assert "encoder.layers.0.inner.weight" in decayed
    assert not [name for name in decayed if name.endswith("bias") or "norm" in name]


def test_with_a_layer_decay_of_almost_nothing_only_the_head_moves(folder: Path) -> None:
    inputs, labels = encoded(folder)
    model = Classifier(load_model(folder), 2)
    before = copy.deepcopy(model.state_dict())
    how = Tuning(1, 16, 1e-3, 0.1, 0.0, 0.999, 1.0, layer_decay=1e-6)
    fine_tune(model, inputs, labels, how, seed=1, name="t", micro_tokens=9999, device=CPU)
    moved = {name: float((weight - before[name]).abs().max()) for name, weight in model.state_dict().items()}
    assert moved["output.weight"] > 1e-4
    assert max(change for name, change in moved.items() if name.startswith("encoder.layers")) < 1e-6


def test_span_scores_leave_padding_out(folder: Path) -> None:
    inputs, _ = encoded(folder, 5, 20)
    model = SpanExtractor(load_model(folder))
    model.initialize(0)
    for rows, said in scores(model, inputs, 10_000):
        real = torch.arange(said.shape[1]) < torch.from_numpy(inputs.lengths[rows])[:, None]
        assert torch.isfinite(said[real]).all()
        assert torch.isinf(said[~real]).all()


def test_what_is_asked_goes_before_what_is_published() -> None:
    assert FineTuning().tuning("bert", "glue") == PUBLISHED["bert", "glue"]
    assert FineTuning().tuning("albert", "squad") == PUBLISHED["bert", "squad"]
    changed = FineTuning(Evaluate(epochs=7, layer_decay=0.8)).tuning("roberta", "glue")
    assert (changed.epochs, changed.layer_decay, changed.learning_rate) == (7, 0.8, 2e-5)
    assert FineTuning(Evaluate(seeds=3), seed=9).run_seeds() == [9, 10, 11]
    sample = FineTuning(Evaluate(train_examples=5)).sample(100, "RTE")
    assert len(set(sample.tolist())) == 5
    assert FineTuning(Evaluate(train_examples=500)).sample(100, "RTE").tolist() == list(range(100))
