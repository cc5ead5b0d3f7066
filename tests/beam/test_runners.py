"""Runners by name."""

from __future__ import annotations

import pytest

from corpusforge import errors
from corpusforge.beam.runners import KNOWN, check_runner, make_runner


@pytest.mark.parametrize("name", ["local", "FnApiRunner", "DirectRunner", "direct"])
def test_local_names(name: str) -> None:
    assert check_runner(name) == "local"
    assert type(make_runner("local")).__name__ == "FnApiRunner"


def test_names_are_beams_own() -> None:
    assert check_runner("flinkrunner") == "FlinkRunner"
    assert check_runner("DataflowRunner") == "DataflowRunner"
    assert check_runner("my.own.Runner") == "my.own.Runner"


def test_known_names_are_all_of_beams() -> None:
    from apache_beam.options.pipeline_options import StandardOptions

    assert set(KNOWN) == set(StandardOptions.KNOWN_RUNNER_NAMES)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("DaskRunner", "silently loses data"),
        ("dask", "silently loses data"),
        ("RayRunner", "does not work"),
        ("FlinkRuner", "did you mean 'FlinkRunner'"),
        ("xyz", "runners: local, "),
    ],
)
def test_refused(name: str, reason: str) -> None:
    with pytest.raises(errors.RunnerRefused, match=reason):
        check_runner(name)
