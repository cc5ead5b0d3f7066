"""Beam is imported quietly, and a missing Beam is one clear error."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_beam_is_imported_quietly() -> None:
    code = "import corpusforge.beam.sdk, logging; print(logging.getLogger().handlers)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_missing_beam_is_one_clear_error() -> None:
    code = (
        "import sys; sys.modules['apache_beam'] = None\n"
        "from corpusforge import errors\n"
        "try: import corpusforge.beam.sdk\n"
        "except errors.ExtraMissing as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'corpusforge[beam]'" in done.stdout
