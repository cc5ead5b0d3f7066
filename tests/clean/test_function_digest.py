"""A function's digest changes with what it does, and with nothing else."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from corpusforge.clean.function_digest import Undigestible, function_digest


def function_of(source: str, **names: Any) -> FunctionType:
    """The function ``f`` of a source text, whose globals are ``names``."""
    scope: dict[str, Any] = {"__name__": "__main__", **names}
    exec(source, scope)
    return scope["f"]  # type: ignore[no-any-return]


SAME = [
    ("def f(t): return len(t) > 9", "\n\n\ndef f(t):\n    # why\n    return len(t) > 9"),
    ("f = lambda t: len(t) > 9", "\nf = lambda t: len(t) > 9"),
]
OTHER = [
    ("def f(t): return len(t) > 9", "def f(t): return len(t) > 8"),
    ("def f(t): return len(t) > 9", "def f(t): return len(t) >= 9"),
    ("def f(t): return t.count('a')", "def f(t): return t.find('a')"),
    ("def f(t, k=1): return k", "def f(t, k=2): return k"),
    ("def f(t, *, k=1): return k", "def f(t, *, k=2): return k"),
    ("def f(t): return [x for x in t if x != 'a']", "def f(t): return [x for x in t if x != 'b']"),
    ("def f(t): return t in {'a', 'b'}", "def f(t): return t in {'a', 'c'}"),
    ("def f(t):\n try: return int(t)\n except ValueError: return 0", "def f(t): return int(t)"),
    ("k = 1\ndef f(t): return k", "k = 2\ndef f(t): return k"),
    ("k = {'a': [1]}\ndef f(t): return k", "k = {'a': [2]}\ndef f(t): return k"),
    ("def g(t): return 1\ndef f(t): return g(t)", "def g(t): return 2\ndef f(t): return g(t)"),
    ("def f(t): return (lambda: len)()", "def f(t): return (lambda: max)()"),
    ("class C:\n def m(s): return 1\ndef f(t): return C()", "class C:\n def m(s): return 2\ndef f(t): return C()"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_place_and_comments_do_not_count(first: str, second: str) -> None:
    assert function_digest(function_of(first)) == function_digest(function_of(second))


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_a_change_of_meaning_counts(first: str, second: str) -> None:
    assert function_digest(function_of(first)) != function_digest(function_of(second))


VALUES: list[tuple[Any, Any]] = [
    (re.compile("a"), re.compile("a", re.I)),
    (np.arange(3), np.arange(1, 4)),
    (np.zeros(2), np.zeros(2, np.int8)),
    (math.floor, math.ceil),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (Path("a"), Path("b")),
    ("x".join, "y".join),
    (frozenset("ab"), frozenset("ac")),
    (1, True),
    (1, 1.0),
]


@pytest.mark.parametrize(("first", "second"), VALUES, ids=lambda value: type(value).__name__)
def test_values_of_globals_and_closures_count(first: Any, second: Any) -> None:
    def over(value: Any) -> Callable[[str], Any]:
        return lambda text: value

    assert function_digest(over(first)) == function_digest(over(first))
    assert function_digest(over(first)) != function_digest(over(second))
    source = "def f(t): return value"
    assert function_digest(function_of(source, value=first)) != function_digest(function_of(source, value=second))


def test_attributes_are_not_globals() -> None:
    """A global that the function does not read is none of its business, even where an attribute has its name."""
    source = "def f(t): return t.count('a')"
    assert function_digest(function_of(source, count=1)) == function_digest(function_of(source, count=threading.Lock()))


def test_a_function_that_calls_itself_has_a_digest() -> None:
    source = "def f(t): return f(t[1:]) if t else {}"
    assert function_digest(function_of(source.format(1))) != function_digest(function_of(source.format(2)))


@dataclasses.dataclass
class _Longer:
    """A callable object: its fields and its class count."""

    than: int

    def __call__(self, text: str) -> bool:
        return len(text) > self.than


def test_callable_objects_count_by_their_fields() -> None:
    assert function_digest(_Longer(1)) == function_digest(_Longer(1)) != function_digest(_Longer(2))
    assert function_digest(_Longer(1).__call__) != function_digest(_Longer(2).__call__)


@pytest.mark.parametrize(
    "value", [threading.Lock(), open, (x for x in "ab"), sys.stdout, object()], ids=lambda value: type(value).__name__
)
def test_what_has_no_digest_is_named(value: Any) -> None:
    if value is open:
        assert function_digest(function_of("def f(t): return value", value=value))
        return
    with pytest.raises(Undigestible) as raised:
        function_digest(function_of("def f(t): return value", value=[value]))
    assert raised.value.args[0].startswith("f > value[0]")


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("helpers_of_mine", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_of_the_user_counts_by_its_file(tmp_path: Path) -> None:
    digests = []
    for number in (1, 2, 1):
        (tmp_path / "helpers_of_mine.py").write_text(f"K = {number}\ndef g(t): return K\n")
        module = _module(tmp_path / "helpers_of_mine.py")
        digests.append(function_digest(function_of("def f(t): return helpers.g(t)", helpers=module)))
    assert digests[0] == digests[2] != digests[1]


def test_the_digest_is_the_same_in_another_process() -> None:
    """With other hash seeds, so that sets come in another order, and other addresses."""
    code = """if 1:
        import re
        from corpusforge.clean.function_digest import function_digest
        K, W = {"b", "a", "c"}, re.compile("x")
        def g(t): return W.search(t) and t in K
        def f(t, d=("k", {"z", "y", "x"})): return g(t) if t not in {"p", "q", "r"} else d
        print(function_digest(f))"""
    runs = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1] and len(runs[0].strip()) == 32
