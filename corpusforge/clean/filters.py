"""A cleaning step that calls a function of the user: a filter of documents, or an edit of their text.

The function travels to worker processes of this run by cloudpickle; it is never read from a file. What it drops is in
the rejects under ``filter:NAME``. The stage's digest covers what the function does (`function_digest`).
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.clean.function_digest import Undigestible, function_digest
from corpusforge.clean.step import Edits, Verdict

KINDS = {
    "text": "text -> True (keep), False (drop) or a reason for dropping it",
    "batch": "RecordBatch -> a mask of the documents to keep, or a column of reasons (null: keep)",
    "edit": "text -> text",
}
"""What a function may be, by the name of its kind."""

REASON_CHARACTERS = 64
"""A reason is the name of a kind of document, and so short; a longer one is most likely the text itself."""

MOST_REASONS = 100
"""Reasons of one filter in a batch: codes of a verdict are 8 bits."""


@dataclass(frozen=True)
class Filter:
    """A function of one's own in ``clean``, which runs after the rule packs, the language and the bad words.

    ``kind``: one of `KINDS`; "" takes it from the function's annotations: "batch" where the argument is a
    ``RecordBatch``, "edit" where a ``str`` is returned, else "text". ``name``: in rejects and counts; that of the
    function by default. ``version``: stands for the function in the stage's digest, for a function that cannot be
    digested, such as one that holds a model: change it when the function changes.

    >>> import corpusforge as cf
    >>> long = cf.Filter(lambda text: len(text) > 20, name="long")
    >>> long.kind
    'text'
    >>> pages = ["A page that is long enough.", "A short page."]
    >>> cf.clean(iter(pages), rules=[], language="", badwords="off", filters=[long], progress=False).counts
    {'filter:long': {'rows': 1, 'bytes': 13}, 'kept': {'rows': 1, 'bytes': 27}}
    """

    function: Callable[..., Any]
    kind: str = ""
    name: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            what = f"{self.function!r} is not a function"
            raise errors.FilterFailed("filters", what, "pass functions from a text to True, False or a reason")
        name = self.name or str(getattr(self.function, "__name__", type(self.function).__name__)).strip("<>")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "kind", self.kind or _kind_of(self.function))
        if self.kind not in KINDS:
            raise errors.FilterFailed(f"filter {name}", f"unknown kind '{self.kind}'", f"kinds: {', '.join(KINDS)}")

    @cached_property
    def digest(self) -> str:
        """What the stage's digest holds of the function. Raises `errors.FilterFailed` where that needs a version."""
        if self.version:
            return f"version {self.version}"
        try:
            return function_digest(self.function)
        except Undigestible as error:
            path, kind = error.args
            what = f"no digest can be made of {path}, which is a {kind}"
            mend = f"name a version of the function: Filter({self.name}, version='1'), and change it with the function"
            raise errors.FilterFailed(f"filter {self.name}", what, mend) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Lambdas and functions of notebooks and scripts travel by value."""
        import cloudpickle

        module = inspect.getmodule(self.function)
        by_value = module is not None and module.__name__ in _LOADED_FROM_FILES
        if by_value:
            cloudpickle.register_pickle_by_value(module)
        try:
            packed = cloudpickle.dumps(self.function)
        except Exception as error:  # whatever a user's object raises when it is pickled
            what = f"cannot be sent to worker processes ({error})"
            raise errors.FilterFailed(f"filter {self.name}", what, "open what it holds inside the function") from None
        finally:
            if by_value:
                cloudpickle.unregister_pickle_by_value(module)
        return _unpacked, (packed, self.kind, self.name, self.version)


_LOADED_FROM_FILES: set[str] = set()
"""Modules that `load_filter` made, which workers cannot import."""


def _unpacked(packed: bytes, kind: str, name: str, version: str) -> Filter:
    import cloudpickle

    return Filter(cloudpickle.loads(packed), kind, name, version)


def _kind_of(function: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (TypeError, ValueError, NameError):  # of C, or with annotations that name nothing
        return "text"
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.annotation is pa.RecordBatch:
        return "batch"
    return "edit" if signature.return_annotation is str else "text"


def as_filters(functions: Iterable[Callable[..., Any] | Filter] | Callable[..., Any] | Filter) -> tuple[Filter, ...]:
    """Functions as filters, several of one name numbered; what is a `Filter` stays as it is."""
    listed = [functions] if isinstance(functions, str | Filter) or callable(functions) else list(functions)
    filters: list[Filter] = []
    for given in listed:
        made = given if isinstance(given, Filter) else Filter(given)
        same = sum(other.name == made.name or other.name.startswith(f"{made.name}-") for other in filters)
        filters.append(replace(made, name=f"{made.name}-{same + 1}") if same and made is not given else made)
    return tuple(filters)


@dataclass(frozen=True)
class FilterStep:
    """A `Filter` as a step. ``on_error``: "stop" the run, or "drop" the document as ``filter:NAME:error``."""

    filter: Filter
    on_error: str = "stop"

    @property
    def name(self) -> str:
        """The name of the filter."""
        return self.filter.name

    def check(self) -> None:
        """Raises `errors.FilterFailed` where the function has no digest, or cannot travel."""
        _ = self.filter.digest
        self.filter.__reduce__()

    def resources(self) -> dict[str, Any]:
        """What the function does, and what happens where it fails."""
        return {"filter": self.filter.digest, "kind": self.filter.kind, "on_error": self.on_error}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Call the function on a batch, or on each of its texts."""
        if self.filter.kind == "edit":
            return self._edit(documents)
        if self.filter.kind == "text":
            reasons, failures = self._each(documents, documents["text"].to_pylist(), self._reason)
            return self._verdict(documents, reasons, failures)
        try:
            return self._verdict(documents, self._reasons(self.filter.function(documents), documents.num_rows), {})
        except errors.FilterFailed:
            raise
        except Exception:  # the user's function may raise anything; called on each document alone, it shows on which
            alone = [documents.slice(at, 1) for at in range(documents.num_rows)]
            reasons, failures = self._each(documents, alone, lambda value: self._reasons(value, 1)[0])
            return self._verdict(documents, reasons, failures)

    def _each(
        self, documents: pa.RecordBatch, values: Sequence[Any], judge: Callable[[Any], Any]
    ) -> tuple[list[Any], dict[int, str]]:
        """What ``judge`` makes of the function's result for each document, and ``{document: exception}`` of the rest.

        This is a loop over documents because the function is the user's and takes one text; a filter of the kind
        "batch" takes a column.
        """
        results: list[Any] = []
        failures: dict[int, str] = {}
        for at, value in enumerate(values):
            try:
                results.append(judge(self.filter.function(value)))
            except errors.FilterFailed:
                raise
            except Exception as error:  # the user's function may raise anything; SIGTERM is a SystemExit
                failures[at] = f"{type(error).__name__}: {error}"
                results.append(None)
                if self.on_error == "stop":
                    raise self._failure(documents, at, error) from error
        return results, failures

    def _failure(self, documents: pa.RecordBatch, at: int, error: Exception) -> errors.FilterFailed:
        row = documents.slice(at, 1).to_pylist()[0]
        frames = traceback.extract_tb(error.__traceback__)[1:]  # without ours
        own = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "the call"
        place = f" ({row['url']})" if row["url"] else ""
        what = f"raised {type(error).__name__}: {error} in {own}, on {row['id']}{place}"
        return errors.FilterFailed(f"filter {self.name}", what, "mend it, or set filter_errors to drop such documents")

    def _reason(self, value: Any) -> str | None:
        """The reason for dropping a document; None keeps it."""
        if isinstance(value, bool | np.bool_):
            return None if value else f"filter:{self.name}"
        if not isinstance(value, str):
            what = f"returned {value!r}" if value is None else f"returned a {type(value).__name__}"
            mend = "return True to keep the document, and False or a reason to drop it"
            raise errors.FilterFailed(f"filter {self.name}", what, mend)
        if not 0 < len(value) <= REASON_CHARACTERS or not value.isprintable():
            what = f"returned a text of {len(value)} characters as its reason"
            mend = "name a kind of document; or is it an edit? Then annotate it '-> str' or pass Filter(f, kind='edit')"
            raise errors.FilterFailed(f"filter {self.name}", what, mend)
        return f"filter:{self.name}:{value}"

    def _reasons(self, value: Any, rows: int) -> list[str | None]:
        """The reasons of a batch from a mask or a column of reasons."""
        column = pa.array(value) if not isinstance(value, pa.Array | pa.ChunkedArray) else value
        if len(column) != rows:
            what = f"returned {len(column)} values for a batch of {rows} documents"
            raise errors.FilterFailed(f"filter {self.name}", what, "return one value for each document")
        is_mask = pa.types.is_boolean(column.type)
        values = column.to_pylist() if is_mask else [True if v is None else v for v in column.to_pylist()]
        return [self._reason(value) for value in values]

    def _verdict(self, documents: pa.RecordBatch, reasons: list[str | None], failures: dict[int, str]) -> Verdict:
        failed = f"filter:{self.name}:error"
        names = ("kept", *sorted({reason for reason in reasons if reason}), *([failed] if failures else []))
        if len(names) > MOST_REASONS:
            what = f"gave more than {MOST_REASONS} reasons in one batch, as {names[1]!r}"
            raise errors.FilterFailed(f"filter {self.name}", what, "name a few kinds of documents")
        codes = [names.index(failed if at in failures else reason or "kept") for at, reason in enumerate(reasons)]
        return Verdict(names, np.array(codes, np.int8), documents["text"], failures)

    def _edit(self, documents: pa.RecordBatch) -> Verdict:
        texts = documents["text"].to_pylist()
        edited, failures = self._each(documents, texts, self._text)
        empty = f"filter:{self.name}:empty"
        reasons = [empty if new is not None and not new.strip() else None for new in edited]
        try:
            after = pa.array([old if new is None else new for old, new in zip(texts, edited, strict=True)], pa.string())
        except UnicodeEncodeError as error:
            what = f"returned a text that is no valid Unicode ({error.reason})"
            raise errors.FilterFailed(f"filter {self.name}", what, "replace halves of surrogate pairs") from None
        changed = np.flatnonzero(np.asarray(pc.not_equal(after, documents["text"])))
        sizes = np.asarray(pc.binary_length(documents["text"]), np.int64)[changed]
        edits = Edits((f"edit:{self.name}",), changed, np.zeros(len(changed), np.int8), sizes)
        return replace(self._verdict(documents, reasons, failures), texts=after, edits=edits)

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        mend = "an edit returns the text, changed or not"
        raise errors.FilterFailed(f"filter {self.name}", f"returned a {type(value).__name__}", mend)


def load_filter(path: str, name: str) -> Filter:
    """The function ``name`` of a Python file that the user named on the command line. It runs the file."""
    file = Path(path)
    where = f"{path}:{name}"
    if not file.is_file():
        raise errors.InputMissing(where, "no such file", "name a Python file and a function in it, as filters.py:keep")
    module_name = f"corpusforge_filters_{file.stem}_{xxhash.xxh3_64_hexdigest(bytes(file.resolve()))}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    _LOADED_FROM_FILES.add(module_name)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        raise errors.FilterFailed(where, f"the file raised {type(error).__name__}: {error}", "mend the file") from error
    functions = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
    if name not in functions:
        raise errors.InputMissing(where, "no such function in the file", f"it has: {', '.join(functions) or 'none'}")
    found = getattr(module, name)
    return found if isinstance(found, Filter) else Filter(found, name=name)
