"""Apache Beam itself, imported once and quietly; its counters, and how our errors pass through it.

Every module of this room that needs Beam takes it from here, so that a missing Beam is one clear error. Without the
`gcp` extra, importing Beam logs a warning about BigQuery, which is not used here, and installs a handler on the root
logger; both are suppressed. The garbage collector is off during the import: it would walk the hundred thousand objects
of 2,000 modules again and again and find nothing, a quarter of the import's time (own measurement).
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Iterator
from typing import Any

from corpusforge import errors, shards

NAMESPACE = "corpusforge"
"""Namespace of the Beam counters, one a reason."""


def _import() -> Any:
    root, silent = logging.getLogger(), logging.NullHandler()

    def about_bigquery(record: logging.LogRecord) -> bool:
        return "apitools not found" not in record.getMessage()

    root.addHandler(silent)
    root.addFilter(about_bigquery)
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
        root.removeFilter(about_bigquery)
        root.removeHandler(silent)
    return apache_beam


beam: Any = _import()


@contextlib.contextmanager
def as_itself() -> Iterator[None]:
    """Let our errors pass through Beam unchanged.

    Beam logs the traceback of whatever a DoFn raises, and raises it again with "[while running 'step']" in its message.
    Errors that already carry its mark (apache_beam/runners/common.py, `_reraise_augmented`) it leaves as they are.
    """
    try:
        yield
    except errors.CorpusForgeError as error:
        error._tagged_with_step = True  # type: ignore[attr-defined]
        raise


def count(tallies: shards.Tallies) -> None:
    """Raise Beam's counter of each reason by the rows that a unit or batch dropped for it."""
    for reason, tally in tallies.items():
        beam.metrics.Metrics.counter(NAMESPACE, reason).inc(tally["rows"])


def counters(result: Any) -> dict[str, int]:
    """The counters per reason of a finished pipeline (empty where the runner does not report them)."""
    try:
        found = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))["counters"]
    except NotImplementedError:
        return {}
    return {metric.key.metric.name: int(metric.result) for metric in found}
