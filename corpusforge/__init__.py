"""CorpusForge: from raw web pages to a pretrained encoder.

>>> import corpusforge as cf
>>> pages = ["A page of one line. It has three sentences, and each ends well. The last one is here."]
>>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
>>> clean.table()["text"][0].as_py() == pages[0]
True

Functions: `clean`, `dedupe`, `train_vocab`, `build_instances`, `pretrain` and `evaluate` run a stage, `run` all stages
of a recipe; `load` opens what they wrote, `inspect` prints it, `report` draws it. Nothing heavy is imported before the
first of them is used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from corpusforge.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from corpusforge.api.calls import (
        build_instances,
        clean,
        dedupe,
        evaluate,
        inspect,
        pretrain,
        report,
        run,
        train_vocab,
    )
    from corpusforge.api.result import Result, RunResult, load
    from corpusforge.clean.filters import Filter

__all__ = [
    "Filter", "Result", "RunResult", "build_instances", "clean", "dedupe", "evaluate", "inspect", "load", "pretrain",
    "report", "run", "train_vocab",
]  # fmt: skip

_MODULES = {"Filter": "corpusforge.clean.filters", "Result": "corpusforge.api.result"}
_MODULES |= dict.fromkeys(("RunResult", "load"), "corpusforge.api.result")
"""Modules of the names that are not in `corpusforge.api.calls`."""


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_MODULES.get(name, "corpusforge.api.calls")), name)
    return globals()[name]


class _Package(ModuleType):
    """The package, whose functions are imported when they are first used.

    Some have the name of a room (`corpusforge.clean`), which Python's import puts into the package when it loads one:
    ``corpusforge.clean`` stays the function, and ``from corpusforge.clean import cleaner`` goes on finding the room.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
