"""Apache Beam itself, imported once and quietly.

Every module of this room takes Beam from here, so that a missing Beam is one clear error. Where the `gcp` extra is
absent, importing Beam logs a warning about BigQuery that concerns nobody here and, worse, installs a handler on the
root logger; both are kept away while the import runs.
"""

from __future__ import annotations

import logging
from typing import Any

from corpusforge import errors


def _import() -> Any:
    root, silent = logging.getLogger(), logging.NullHandler()

    def about_bigquery(record: logging.LogRecord) -> bool:
        return "apitools not found" not in record.getMessage()

    root.addHandler(silent)
    root.addFilter(about_bigquery)
    try:
        import apache_beam
    except ModuleNotFoundError as error:
        raise errors.ExtraMissing(
            "corpusforge.beam", f"{error.name} is not installed", "pip install 'corpusforge[beam]'"
        ) from None
    finally:
        root.removeFilter(about_bigquery)
        root.removeHandler(silent)
    return apache_beam


beam: Any = _import()
