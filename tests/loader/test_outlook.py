"""The outlook is what the batcher counts, or a little more; it opens no shard."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from corpusforge import errors
from corpusforge.instances.measure import LENGTH_BINS
from corpusforge.loader import Batcher, BatchSettings, outlook
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
def test_outlook(make_data: Callable[..., Data], longest: int, packing: bool, copies: int) -> None:
    data = make_data(count=300, longest=60, copies=copies)
    counted(data, longest, copies)
    settings = BatchSettings(tokens=512, packing=packing)
    exact = Batcher(data.instances, settings, vocab_folder=data.vocabulary).extent()
    for path in Path(data.instances).rglob("*.arrow"):
        path.unlink()
    found = outlook(data.instances, settings)
    assert found[1:3] == exact[1:3]
    if longest == 64 or not packing:  # bins of one token, or of eight as the padding is
        assert found == exact
    else:
        assert exact.batches <= found.batches < 1.3 * exact.batches


def test_no_outlook(make_data: Callable[..., Data]) -> None:
    with pytest.raises(errors.StageMismatch, match="counts no instances of 'train'"):
        outlook(make_data().instances)
