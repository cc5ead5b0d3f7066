"""Everything that imports Apache Beam: the engine, and transforms for pipelines of your own.

`ReadDocuments`, `RowsToDocuments`, `CleanDocuments`, `DedupeSpans`, `DedupeDocuments`, `CountWords`, `BuildInstances`,
`ReadShards`, `WriteShards` and `WriteManifest` work on RecordBatches. Each is loaded when it is first used:
`BeamEngine` runs local units without Beam, whose import takes more than a second.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_HOMES = {
    "ReadDocuments": "io",
    "RowsToDocuments": "io",
    "ReadShards": "io",
    "WriteShards": "io",
    "WriteManifest": "io",
    "RecordBatchCoder": "io",
    "CleanDocuments": "transforms",
    "DedupeSpans": "dedupe",
    "DedupeDocuments": "dedupe",
    "CountWords": "transforms",
    "BuildInstances": "transforms",
    "BeamEngine": "engine",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "Engine":
        warnings.warn("corpusforge.beam.Engine is now BeamEngine", DeprecationWarning, stacklevel=2)
        name = "BeamEngine"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
