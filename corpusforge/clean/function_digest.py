"""A digest of what a Python function does: its code, defaults, closure, and the globals that it names.

It is how a stage notices that a user's filter has changed. Code is digested as bytecode without file names and line
numbers, so moving a function changes nothing and a newer Python may. Functions of the user are followed into what they
call; installed packages count by name and version, the user's own modules by the content of their files.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import importlib.metadata
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash


class Undigestible(Exception):
    """A value that a digest cannot stand for. ``args``: how the function reaches it, and its type."""


def function_digest(function: Callable[..., Any]) -> str:
    """xxh3-128 of what a function does, 32 hex digits. Raises `Undigestible`.

    >>> function_digest(lambda text: len(text) > 9) == function_digest(lambda text: len(text) > 9)
    True
    >>> function_digest(lambda text: len(text) > 9) == function_digest(lambda text: len(text) > 8)
    False
    """
    return _Reader().digest(function, getattr(function, "__name__", "the function"))


class _Reader:
    """Follows a function to all values that it depends on; each is read once, so that recursion ends."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._held: list[Any] = []  # what was seen stays alive: an id may otherwise be used again

    def digest(self, value: Any, path: str) -> str:
        return xxhash.xxh3_128_hexdigest(repr(self._form(value, path)).encode())

    def _form(self, value: Any, path: str) -> Any:
        """Nested tuples of strings and numbers that are equal where the values do the same."""
        if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
            return (type(value).__name__, repr(value))
        if isinstance(value, tuple):
            return ("tuple", *(self._form(item, f"{path}[{at}]") for at, item in enumerate(value)))
        if id(value) in self._seen:
            return ("seen", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        self._held.append(value)
        return self._object(value, path)

    def _object(self, value: Any, path: str) -> Any:
        if isinstance(value, FunctionType):
            return self._function(value, path)
        if isinstance(value, CodeType):
            return self._code(value, path)
        if isinstance(value, ModuleType):
            return ("module", value.__name__, _origin(value.__name__, value, path))
        if isinstance(value, type):
            return self._class(value, path)
        if isinstance(value, MethodType):
            return ("method", self._form(value.__func__, path), self._form(value.__self__, path))
        if isinstance(value, BuiltinFunctionType) or type(value).__name__ in _BUILT_IN:
            owner = getattr(value, "__self__", None)
            bound = None if isinstance(owner, ModuleType) else self._form(owner, path)
            return ("builtin", getattr(value, "__module__", None) or "", value.__qualname__, bound)
        if isinstance(value, functools.partial):
            return ("partial", *(self._form(part, path) for part in (value.func, value.args, value.keywords)))
        return self._data(value, path)

    def _data(self, value: Any, path: str) -> Any:
        kind = type(value).__name__
        if isinstance(value, list):
            return (kind, *(self._form(item, f"{path}[{at}]") for at, item in enumerate(value)))
        if isinstance(value, set | frozenset):
            return (kind, *sorted(_Reader().digest(item, path) for item in value))  # sets have no order of their own
        if isinstance(value, Mapping):
            return (kind, *((self._form(k, path), self._form(v, f"{path}[{k!r}]")) for k, v in value.items()))
        if isinstance(value, re.Pattern):
            return ("pattern", repr(value.pattern), value.flags)
        if isinstance(value, PurePath):
            return ("path", str(value))
        if isinstance(value, range | slice):
            return (kind, repr(value))
        if isinstance(value, enum.Enum):
            return ("enum", self._form(type(value), path), value.name)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return ("array", str(value.dtype), value.shape, xxhash.xxh3_128_hexdigest(value.tobytes()))
        if isinstance(value, np.generic | np.dtype | pa.DataType | pa.Scalar):
            return (kind, repr(value))
        if isinstance(value, pa.Array | pa.ChunkedArray):
            return (kind, str(value.type), self._form(value.to_pylist(), path))
        if hasattr(value, "__dict__") and (
            dataclasses.is_dataclass(value) or not _is_installed(type(value).__module__)
        ):
            return ("object", self._form(type(value), path), self._form(vars(value), path))
        raise Undigestible(path, type(value).__qualname__)

    def _function(self, function: FunctionType, path: str) -> Any:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closure = tuple((name, self._cell(cell, f"{path} > {name}")) for name, cell in cells)
        defaults = self._form((function.__defaults__, function.__kwdefaults__), f"{path} (a default)")
        own = ("function", self._form(function.__code__, path), defaults, closure)
        if _is_installed(function.__module__):  # what it calls is of the same version
            return (*own, _origin(function.__module__, None, path))
        used = sorted(name for name in _global_names(function.__code__) if name in function.__globals__)
        return (*own, tuple((name, self._form(function.__globals__[name], f"{path} > {name}")) for name in used))

    def _cell(self, cell: Any, path: str) -> Any:
        try:
            return self._form(cell.cell_contents, path)
        except ValueError:  # not assigned yet
            return ("empty",)

    def _code(self, code: CodeType, path: str) -> Any:
        arguments = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        parts = (code.co_code.hex(), code.co_exceptiontable.hex(), code.co_names, arguments)
        return ("code", *parts, tuple(self._form(value, path) for value in code.co_consts))

    def _class(self, value: type, path: str) -> Any:
        name = (value.__module__, value.__qualname__)
        if _is_installed(value.__module__):
            return ("class", *name, _origin(value.__module__, sys.modules.get(value.__module__), path))
        own = {k: v for k, v in vars(value).items() if k not in _OF_EVERY_CLASS and not _is_slot(v)}
        members = tuple((key, self._form(_unwrapped(member), f"{path}.{key}")) for key, member in sorted(own.items()))
        return ("class", *name, tuple(self._form(base, path) for base in value.__bases__), members)


def _origin(name: str, module: ModuleType | None, path: str) -> str:
    """The version of an installed package, the content of the user's own module."""
    if _is_installed(name):
        return _version(name.partition(".")[0])
    file = getattr(module, "__file__", None)
    if not file or not Path(file).is_file():
        raise Undigestible(path, f"module {name}")
    return xxhash.xxh3_128_hexdigest(Path(file).read_bytes())


def _is_installed(name: str | None) -> bool:
    """Whether a module is Python's or an installed package's, and not the user's own."""
    top = (name or "__main__").partition(".")[0]
    if top == "__main__":  # of a program that runs from a package it may be that package's file
        return False
    if top == "corpusforge" or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is not None and any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


@functools.cache
def _version(top: str) -> str:
    """The version of an installed package, or of Python for its own modules."""
    if top in sys.stdlib_module_names:
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    names = importlib.metadata.packages_distributions().get(top) or [top]
    return importlib.metadata.version(names[0])


_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_BUILT_IN = ("method_descriptor", "wrapper_descriptor", "method-wrapper", "ufunc", "builtin_function_or_method")
_OF_EVERY_CLASS = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__firstlineno__",
    "__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__slots__",
    "__abstractmethods__", "_abc_impl", "__annotate__", "__annotations_cache__",
}  # fmt: skip


def _global_names(code: CodeType) -> set[str]:
    """Names of the globals that a code object and those within it read."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(value) for value in code.co_consts if isinstance(value, CodeType)))


def _is_slot(value: Any) -> bool:
    return type(value).__name__ in ("member_descriptor", "getset_descriptor")


def _unwrapped(member: Any) -> Any:
    """The functions of a class member that wraps some."""
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, property):
        return (member.fget, member.fset)
    return member.func if isinstance(member, functools.cached_property) else member
