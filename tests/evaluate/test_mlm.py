"""The held-out loss against a plain loop, the unigram loss against counts by hand."""

from __future__ import annotations

import dataclasses
import json
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from corpusforge import errors, shards
from corpusforge.evaluate import mlm
from corpusforge.evaluate.run import evaluate
from corpusforge.loader.batcher import load_specials
from corpusforge.loader.corpus import open_corpus
from corpusforge.loader.unigram import token_counts, unigram_loss
from corpusforge.sections import Evaluate, Pretrain
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.heldout import frozen_batches
from corpusforge.trainer.hf_folder import load_model
from corpusforge.trainer.model import Encoder
from corpusforge.trainer.run import pretrain
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]


def paths(data: Data, table: str) -> list[str]:
    return shards.Manifest.load(data.instances).paths(data.instances, table)


def rows_of(data: Data, table: str) -> list[dict]:  # type: ignore[type-arg]
    return [row for path in paths(data, table) for batch in shards.read_shard(path) for row in batch.to_pylist()]


@pytest.mark.parametrize("pairs", [False, True])
def test_mlm_is_the_plain_loop(make_data: MakeData, small_run: Pretrain, tmp_path: Path, pairs: bool) -> None:
    data = make_data(pairs=pairs)
    facts = pretrain(
        data.instances,
        str(tmp_path / "run"),
        dataclasses.replace(small_run, steps=3),
        vocab_folder=data.vocabulary,
        manifest_digest="d",
        recipe={},
        card={},
    )
    found = evaluate(str(tmp_path / "run"), Evaluate(batch_tokens=256), data.instances)["tasks"]["mlm"]
    assert json.loads(json.dumps(found)) == found
    assert found["loss"] == pytest.approx(facts["heldout"]["loss"], abs=1e-5)
    assert found["unigram_loss"] == facts["heldout"]["unigram"]
    model, losses, labels = load_model(tmp_path / "run/model"), [], []
    of_row: list[range] = []
    for row in rows_of(data, "heldout"):
        ids, first = torch.tensor([row["input_ids"]]), row["segment_lengths"][0]
        segments = (torch.arange(ids.shape[1])[None] >= first).long()
        with torch.no_grad():
            logits, *_ = model(ids, segments, None, torch.tensor(row["masked_positions"]))
        losses += torch.nn.functional.cross_entropy(
            logits, torch.tensor(row["masked_labels"]), reduction="none"
        ).tolist()
        labels += row["masked_labels"]
        of_row.append(range(len(losses) - len(row["masked_labels"]), len(losses)))
    assert (found["masked"], found["loss"]) == (len(losses), pytest.approx(np.mean(losses), abs=1e-5))
    assert ("pair_loss" in found) == pairs
    lengths = [row["length"] for row in rows_of(data, "heldout")]
    for group in found["by_length"]:
        mine = [n for n, length in enumerate(lengths) if group["longest"] / 2 < length <= group["longest"]]
        assert group["instances"] == len(mine)
        assert group["loss"] == pytest.approx(np.mean([losses[k] for n in mine for k in of_row[n]]), abs=1e-5)
    assert sum(group["masked"] for group in found["by_length"]) == found["masked"]
    specials = load_specials(data.vocabulary)
    counts = Counter(t for row in rows_of(data, "train") for t in row["input_ids"])
    words = specials.words().tolist()
    total = sum(counts[w] + 1 for w in words)
    assert found["unigram_loss"] == pytest.approx(-np.mean([np.log((counts[t] + 1) / total) for t in labels]))


def test_stored_masks_are_undone_before_counting(make_data: MakeData) -> None:
    plain, stored = make_data(name="plain"), make_data(copies=2, name="stored")
    counts = [token_counts(open_corpus(paths(d, "train")), 192).tolist() for d in (plain, stored)]
    assert counts[0] == counts[1]
    assert sum(counts[0]) == sum(row["length"] for row in rows_of(plain, "train"))


def test_a_large_corpus_is_sampled(make_data: MakeData) -> None:
    corpus = open_corpus(paths(make_data(), "train"))
    assert 0 < token_counts(corpus, 192, limit=400).sum() < 800


def test_unigram_loss_of_uniform_counts_is_the_log_of_the_words(make_data: MakeData) -> None:
    specials = load_specials(make_data().vocabulary)
    words = specials.words().astype(np.int64)
    asked = np.bincount(words, minlength=192)
    assert unigram_loss(np.zeros(192, np.int64), asked, specials) == pytest.approx(np.log(len(words)))


def test_held_out_batches_are_not_all_held(make_data: MakeData, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data()
    specials = load_specials(data.vocabulary)
    shape = Architecture("bert", 1, 64, 1, 64, specials.size, 512, 2, 1e-12, 0.0, specials.pad, False)
    seen: list[weakref.ref[Batch]] = []
    most = 0

    def watched(*arguments: Any, **more: Any) -> Iterator[Batch]:
        nonlocal most
        for batch in frozen_batches(*arguments, **more):
            seen.append(weakref.ref(batch))
            yield batch
            most = max(most, sum(reference() is not None for reference in seen))

    monkeypatch.setattr(mlm, "frozen_batches", watched)
    heldout = open_corpus(paths(data, "heldout"))
    mlm.heldout_loss(Encoder(shape), heldout, None, specials, batch_tokens=8, device=torch.device("cpu"))
    assert len(seen) > 5
    assert most <= 4


def test_what_cannot_be_evaluated_is_said(make_data: MakeData, tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing):
        evaluate(str(tmp_path), Evaluate())
    with pytest.raises(errors.RecipeInvalid, match="unknown task 'cloze'; tasks: mlm, blimp, glue, squad"):
        evaluate(str(tmp_path), Evaluate(tasks=("cloze",)))
    empty = tmp_path / "empty.arrow"
    with pa.ipc.new_stream(str(empty), pa.schema([("a", pa.int8())])) as writer:
        writer.write_batch(pa.record_batch({"a": pa.array([1], pa.int8())}))
    with pytest.raises(errors.ManifestInvalid, match="no column"):
        open_corpus([str(empty)])
