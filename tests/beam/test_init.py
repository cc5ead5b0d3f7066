"""The names of the room."""

from __future__ import annotations

import pytest

import corpusforge.beam as transforms


def test_all_names_load() -> None:
    assert all(getattr(transforms, name) for name in transforms.__all__)
    with pytest.raises(AttributeError):
        _ = transforms.Nothing


def test_the_old_name_of_the_engine_warns() -> None:
    with pytest.warns(DeprecationWarning, match="BeamEngine"):
        assert transforms.Engine is transforms.BeamEngine
