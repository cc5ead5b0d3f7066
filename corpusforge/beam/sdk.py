"""Apache Beam itself, imported once and quietly; a counter for each reason, and how our errors pass through Beam.

Every module of this room that needs Beam takes it from here, so that a missing Beam is one clear error. Without the
`gcp` extra, importing Beam logs a warning about BigQuery, which is not used here, and installs a handler on the root
logger; both are suppressed. The garbage collector is off during the import: it would walk the hundred thousand objects
of 2,000 modules again and again and free nothing, which takes a quarter of the import's time (own measurement).
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator
from typing import Any

from corpusforge import errors, shards

NAMESPACE = "corpusforge"
"""Namespace of the Beam counters, one for each reason."""


def _import() -> Any:
    root, silent = logging.getLogger(), logging.NullHandler()

    def is_not_about_bigquery(record: logging.LogRecord) -> bool:
        return "apitools not found" not in record.getMessage()

    root.addHandler(silent)
    root.addFilter(is_not_about_bigquery)
    collects = gc.isenabled()
    gc.disable()
    try:
        import apache_beam
    except ModuleNotFoundError as error:
        raise errors.ExtraMissing(
            "corpusforge.beam", f"{error.name} is not installed", "pip install 'corpusforge[beam]'"
        ) from None
    finally:
        if collects:
            gc.enable()
        root.removeFilter(is_not_about_bigquery)
        root.removeHandler(silent)
    return apache_beam


beam: Any = _import()


@contextlib.contextmanager
def as_itself() -> Iterator[None]:
    """Let our errors pass through Beam unchanged.

    Beam logs the traceback of what a DoFn raises, and raises it again with "[while running 'step']" in its message; it
    leaves errors alone that already carry its mark (apache_beam/runners/common.py, `_reraise_augmented`).
    """
    try:
        yield
    except errors.CorpusForgeError as error:
        error._tagged_with_step = True  # type: ignore[attr-defined]
        raise


def count(tallies: shards.Tallies) -> None:
    """Increment Beam's counter of each reason by the rows that a unit or batch dropped for it."""
    for reason, tally in tallies.items():
        beam.metrics.Metrics.counter(NAMESPACE, reason).inc(tally["rows"])
