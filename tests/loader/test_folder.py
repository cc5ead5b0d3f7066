"""The size of an epoch from the manifest is what the batcher counts, or close to it; no shard is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from corpusforge import errors
from corpusforge.instances.measure import LENGTH_BINS
from corpusforge.loader import Batcher, BatchSettings, epoch_size
from corpusforge.shards import Manifest
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]


def counted(data: Data, longest: int, copies: int) -> None:
    """Give a made-up folder the statistics that build-instances writes."""
    manifest = Manifest.load(data.instances)
    lengths = Batcher(data.instances, BatchSettings(), vocab_folder=data.vocabulary).corpus.lengths
    bins = np.bincount((lengths * LENGTH_BINS + longest - 1) // longest - 1, minlength=LENGTH_BINS)
    found = {"instances": len(lengths), "tokens": int(lengths.sum()), "lengths": bins.tolist()}
    section = {"length": longest, "masking": "duplicated" if copies else "dynamic", "copies": copies or 10}
    recipe = {"instances": section, "seed": 0}
    dataclasses.replace(manifest, statistics={"train": found}, recipe=recipe).save(data.instances)


@pytest.mark.parametrize("copies", [0, 3])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("longest", [64, 512])
def test_epoch_size(make_data: Callable[..., Data], longest: int, packing: bool, copies: int) -> None:
    data = make_data(count=300, longest=60, copies=copies)
    counted(data, longest, copies)
    settings = BatchSettings(batch_tokens=2048, micro_batch_tokens=512, packing=packing)
    exact = Batcher(data.instances, settings, vocab_folder=data.vocabulary).epoch_size()
    short = dataclasses.replace(settings, length=32)
    exact_short = Batcher(data.instances, short, vocab_folder=data.vocabulary).epoch_size()
    for path in Path(data.instances).rglob("*.arrow"):
        path.unlink()
    size = epoch_size(data.instances, settings)
    assert size[:3] == exact[:3]
    assert size.padding == pytest.approx(exact.padding, abs=0.1)
    if longest == 64:  # bins of one token
        assert epoch_size(data.instances, short)[:3] == exact_short[:3]
    else:
        assert exact_short.steps <= epoch_size(data.instances, short).steps < 1.3 * exact_short.steps


def test_no_epoch_size(make_data: Callable[..., Data]) -> None:
    with pytest.raises(errors.StageMismatch, match="counts no instances of 'train'"):
        epoch_size(make_data().instances)
