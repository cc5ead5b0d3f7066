"""Filters of the user's own: what they drop, what they edit, how they fail, how they travel."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from corpusforge import errors
from corpusforge.clean.cleaner import Cleaner
from corpusforge.clean.filters import REASON_CHARACTERS, Filter, FilterStep, load_filter
from corpusforge.schemas import DOCUMENTS

TEXTS = ["one two three", "four", "", "five six seven eight"]


def batch(texts: list[str] = TEXTS) -> pa.RecordBatch:
    rows = [
        {"id": f"d{n}", "url": f"http://x/{n}", "source": "s", "position": n, "text": text}
        for n, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_pylist(rows, DOCUMENTS)


def cleaned(function: Any, on_error: str = "stop", **how: Any) -> Any:
    filter = function if isinstance(function, Filter) else Filter(function, **how)
    return Cleaner((FilterStep(filter, on_error),)).clean(batch())


def reasons_of(outcome: Any) -> dict[int, str]:
    return dict(zip(outcome.rejects["position"].to_pylist(), outcome.rejects["reason"].to_pylist(), strict=True))


def keep_long(text: str) -> bool:
    return len(text.split()) > 2


def test_false_drops_under_the_name_of_the_function() -> None:
    outcome = cleaned(keep_long)
    assert outcome.documents["text"].to_pylist() == [TEXTS[0], TEXTS[3]]
    assert reasons_of(outcome) == {1: "filter:keep_long", 2: "filter:keep_long"}
    assert outcome.rejects["step"].to_pylist() == ["keep_long"] * 2
    assert outcome.tallies["filter:keep_long"] == {"rows": 2, "bytes": 4}


def test_a_reason_is_part_of_the_name() -> None:
    outcome = cleaned(lambda text: True if keep_long(text) else "empty" if not text else "short", name="size")
    assert reasons_of(outcome) == {1: "filter:size:short", 2: "filter:size:empty"}


def mask(documents: pa.RecordBatch) -> Any:
    return pc.greater(pc.utf8_length(documents["text"]), 4)


MASKS = [
    mask,
    lambda documents: np.asarray(mask(documents)),
    lambda documents: mask(documents).to_pylist(),
    lambda documents: pc.if_else(mask(documents), None, "short"),
]


@pytest.mark.parametrize("function", MASKS)
def test_a_batch_filter_gives_a_mask_or_reasons(function: Any) -> None:
    outcome = cleaned(Filter(function, kind="batch", name="size"))
    assert outcome.documents["text"].to_pylist() == [TEXTS[0], TEXTS[3]]
    assert set(reasons_of(outcome)) == {1, 2}


def test_annotations_give_the_kind() -> None:
    def edit(text: str) -> str:
        return text

    def reason(text: str) -> str | bool:
        return True

    def columns(documents: pa.RecordBatch) -> Any:
        return mask(documents)

    kinds = {Filter(f).name: Filter(f).kind for f in (keep_long, edit, reason, columns, len)}
    assert kinds == {"keep_long": "text", "edit": "edit", "reason": "text", "columns": "batch", "len": "text"}


def test_an_edit_replaces_the_text_and_is_counted() -> None:
    outcome = cleaned(lambda text: text.replace("four", "4"), kind="edit", name="digits")
    assert outcome.documents["text"].to_pylist() == [TEXTS[0], "4", TEXTS[3]]
    assert outcome.tallies["edit:digits"] == {"rows": 1, "bytes": 4}
    assert reasons_of(outcome) == {2: "filter:digits:empty"}


def divide(text: str) -> bool:
    return 1 / len(text) < 1


@pytest.mark.parametrize("kind", ["text", "edit", "batch"])
def test_an_exception_names_the_document_or_drops_it(kind: str) -> None:
    functions: dict[str, Any] = {
        "text": divide,
        "edit": lambda text: text if divide(text) else "",
        "batch": lambda documents: [divide(text) for text in documents["text"].to_pylist()],
    }
    filter = Filter(functions[kind], kind=kind, name="divide")
    with pytest.raises(
        errors.FilterFailed, match=r"ZeroDivisionError.*test_filters.py, line \d+, on d2 \(http://x/2\)"
    ):
        cleaned(filter)
    outcome = cleaned(filter, on_error="drop")
    assert reasons_of(outcome) == {2: "filter:divide:error"}
    assert outcome.rejects["detail"].to_pylist() == ["ZeroDivisionError: division by zero"]
    assert outcome.documents.num_rows == 3


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda text: None, "text", "returned None; return True"),
        (lambda text: 1, "text", "returned a int"),
        (lambda text: "x" * (REASON_CHARACTERS + 1), "text", "is it an edit"),
        (lambda text: "a\nb", "text", "is it an edit"),
        (lambda text: True, "edit", "returned a bool"),
        (lambda documents: [True], "batch", "1 values for a batch of 4"),
        (lambda documents: [1, 2, 3, 4], "batch", "returned a int"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "drop"])
def test_a_wrong_result_stops_in_any_case(function: Any, kind: str, message: str, on_error: str) -> None:
    with pytest.raises(errors.FilterFailed, match=message):
        cleaned(Filter(function, kind=kind, name="wrong"), on_error)


def test_too_many_reasons_are_refused() -> None:
    documents = batch([f"text {n}" for n in range(200)])
    step = FilterStep(Filter(lambda text: text, name="all", kind="text"))
    with pytest.raises(errors.FilterFailed, match="more than 100 reasons"):
        step.apply(documents)


def test_a_filter_decides_about_each_document_alone() -> None:
    step = FilterStep(Filter(keep_long))
    whole = step.apply(batch()).codes.tolist()
    assert whole == [int(step.apply(batch().slice(at, 1)).codes[0]) for at in range(4)]
    assert step.apply(batch().slice(0, 0)).codes.tolist() == []


def test_lambdas_and_closures_travel() -> None:
    least = 3
    packed = pickle.dumps(FilterStep(Filter(lambda text: len(text) > least, name="long", version="2"), "drop"))
    step = pickle.loads(packed)
    assert (step.filter.name, step.filter.version, step.on_error) == ("long", "2", "drop")
    assert step.filter.function("four") and not step.filter.function("abc")


def test_what_cannot_be_digested_needs_a_version() -> None:
    stream = iter("ab")
    with pytest.raises(errors.FilterFailed, match=r"<lambda> > stream.*iterator.*version"):
        FilterStep(Filter(lambda text: next(stream), name="next")).check()
    Filter(lambda text: next(stream), name="next", version="1").digest.index("1")


def test_what_cannot_travel_is_refused_before_the_run() -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(errors.FilterFailed, match="cannot be sent to worker processes"):
        FilterStep(Filter(lambda text: lock.locked(), name="locked", version="1")).check()


def test_a_function_of_a_file_travels_by_value(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("LEAST = 3\ndef helper(t): return len(t)\ndef keep(text): return helper(text) > LEAST\n")
    loaded = load_filter(str(file), "keep")
    packed = pickle.dumps(loaded)
    assert b"LEAST" in packed and loaded.name == "keep"
    file.unlink()
    assert pickle.loads(packed).function("four")


@pytest.mark.parametrize(
    ("source", "name", "error", "message"),
    [
        ("def keep(t): return True", "kep", errors.InputMissing, "it has: keep"),
        ("1 / 0", "keep", errors.FilterFailed, "ZeroDivisionError"),
        (None, "keep", errors.InputMissing, "no such file"),
    ],
)
def test_a_file_that_does_not_have_it_is_one_line(
    tmp_path: Path, source: str | None, name: str, error: type[errors.CorpusForgeError], message: str
) -> None:
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    with pytest.raises(error, match=message):
        load_filter(str(tmp_path / "mine.py"), name)
