"""The handmade run as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.handmade_run import make_run


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run of all stages."""
    return make_run(tmp_path / "run-by-hand")
