"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real text beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/data (real text that is not part of the repository)")
    return SHARED


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The sample that is part of the repository."""
    return ROOT / "sample_data"
