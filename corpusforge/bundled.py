"""Where the recipes, rule packs and sample that travel with CorpusForge lie: in the wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path


def bundled(name: str) -> Path:
    """The folder ``pipelines``, ``rules`` or ``sample_data`` of this installation.

    >>> bundled("rules").name
    'rules'
    """
    installed = Path(__file__).parent / "data" / name
    return installed if installed.is_dir() else Path(__file__).parent.parent / name
