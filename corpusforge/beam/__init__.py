"""Everything that knows Apache Beam, and the transforms that fit into anyone's own pipeline.

`ReadDocuments`, `CleanDocuments`, `DedupeSpans`, `DedupeDocuments`, `CountWords`, `BuildInstances`, `ReadShards`,
`WriteShards` and `WriteManifest` pass RecordBatches. They are loaded when they are asked for: worker processes of the
local pool import this package and need no Beam, which takes 0.7 s to load.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ReadDocuments": "io",
    "ReadShards": "io",
    "WriteShards": "io",
    "WriteManifest": "io",
    "RecordBatchCoder": "io",
    "CleanDocuments": "clean",
    "DedupeSpans": "spans",
    "DedupeDocuments": "documents",
    "CountWords": "vocab",
    "BuildInstances": "build",
    "BeamEngine": "engine",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
