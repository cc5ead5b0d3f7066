"""Fixtures from `made_up_instances`; test modules use them with ``pytest_plugins = ["tests.made_up_data"]``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusforge import shards
from corpusforge.sections import Pretrain
from tests.made_up_instances import Data, instance_rows, with_masks, write_table, write_vocabulary


@pytest.fixture
def make_data(tmp_path: Path) -> Callable[..., Data]:
    """Write a corpus with ``make_data(...)``.

    ``copies``: with stored masks, 0 for dynamic ones; ``words``: with word starts, which mask units other than the
    token need; ``instances``: the section of the recipe.
    """

    def make(
        *,
        count: int = 60,
        longest: int = 48,
        pairs: bool = False,
        copies: int = 0,
        files: int = 2,
        words: bool = False,
        instances: dict[str, Any] | None = None,
        name: str = "data",
    ) -> Data:
        folder = tmp_path / name
        specials = write_vocabulary(folder / "vocabulary")
        rows = instance_rows(specials, count, longest, pairs=pairs, seed=1)
        heldout = with_masks(instance_rows(specials, 12, longest, pairs=pairs, seed=2), specials, 0, 1)
        train = with_masks(rows, specials, 0, copies) if copies else rows
        if words:
            train = [row | {"word_starts": [k % 3 != 2 for k in range(row["length"] - 1)] + [True]} for row in train]
        tables = {
            "train": write_table(folder / "instances", "train", train, files, masks=bool(copies), words=words),
            "heldout": write_table(folder / "instances", "heldout", heldout, 1, masks=True),
        }
        counts = {table: sum(s.rows for s in parts) for table, parts in tables.items()}
        sizes = {table: sum(s.bytes for s in parts) for table, parts in tables.items()}
        recipe = {"instances": instances or {}}
        manifest = shards.Manifest("build-instances", name, {}, counts, sizes, tables, {}, {}, recipe, {}, {})
        manifest.save(str(folder / "instances"))
        return Data(str(folder / "instances"), str(folder / "vocabulary"))

    return make


@pytest.fixture
def small_run() -> Pretrain:
    """Settings of a run that takes seconds: 10 steps, the first 6 with length 24."""
    return Pretrain(
        preset="bert-tiny",
        steps=10,
        batch_tokens=320,
        micro_batch_tokens=160,
        learning_rate=1e-3,
        warmup_steps=2,
        short_length=24,
        short_share=0.6,
        checkpoint_steps=1000,
        evaluate_steps=5,
        log_steps=2,
        tensorboard=False,
        threads=1,
    )
