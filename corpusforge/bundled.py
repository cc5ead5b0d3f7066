"""Locate resources: recipes, rule packs and the sample bundled with CorpusForge, and the user's cache of others."""

from __future__ import annotations

import os
from pathlib import Path


def bundled(name: str) -> Path:
    """The folder ``pipelines``, ``rules`` or ``sample_data`` of this installation.

    >>> bundled("rules").name
    'rules'
    """
    installed = Path(__file__).parent / "data" / name
    return installed if installed.is_dir() else Path(__file__).parent.parent / name


def cache_folder(name: str) -> Path:
    """``$XDG_CACHE_HOME/corpusforge/name``, by default below ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "corpusforge" / name
