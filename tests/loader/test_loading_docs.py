"""The examples of docs/instances.md run as they stand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from corpusforge.loader import Batcher, BatchSettings
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]
PAGE = Path(__file__).resolve().parents[2] / "docs/instances.md"


def test_the_examples_run(make_data: Callable[..., Data], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_data(count=400)
    (tmp_path / "run").mkdir()
    folder = Path(data.instances).rename(tmp_path / "run/instances")
    Path(data.vocabulary).rename(folder / "vocab")
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(first, names)
    batcher = Batcher(str(folder), BatchSettings(131_072, 16_384))
    assert names["resume_at"] == batcher.epoch_size().steps
    assert np.shape(names["labels"]) == np.shape(names["ids"]) == np.shape(names["attention_mask"])
    packed = names["batch"]
    assert names["longest"] == packed.lengths.max()  # type: ignore[attr-defined]
    assert names["max_seqlen"] == names["longest"]
    exec(second, names)
    small = Batcher(str(folder), BatchSettings(400, 256))
    names["loader"] = torch.utils.data.DataLoader(names["Instances"](small, 3), batch_size=None, num_workers=2)  # type: ignore[operator]
    for step, made in enumerate(itertools.islice(names["loader"], 6), 3):  # type: ignore[call-overload]
        for (ids, labels), batch in zip(made, small.step(step), strict=True):
            assert np.array_equal(ids.numpy(), batch.input_ids)
            assert np.array_equal(labels.numpy(), batch.dense_labels())
