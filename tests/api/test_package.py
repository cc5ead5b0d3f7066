"""``import corpusforge``: what it offers, what it costs, and that its functions and its rooms get along."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import corpusforge as cf
from corpusforge import errors, sections

STAGES = ("clean", "dedupe", "train_vocab", "build_instances", "pretrain", "evaluate")


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_import_is_cheap_and_brings_nothing_heavy() -> None:
    code = """if 1:
        import sys, time
        before, began = set(sys.modules), time.process_time()
        import corpusforge as cf
        dir(cf)
        import json
        print(json.dumps([time.process_time() - began, sorted(set(sys.modules) - before)]))"""
    seconds, modules = min((json.loads(_python(code)) for _ in range(3)), key=lambda run: run[0])
    assert seconds < 0.2
    heavy = {"numpy", "pyarrow", "torch", "apache_beam", "click", "rich", "fsspec", "transformers", "pandas"}
    assert not heavy & set(modules)


def test_all_names_are_there() -> None:
    assert set(cf.__all__) <= set(dir(cf))
    for name in cf.__all__:
        assert getattr(cf, name).__name__ == name, name


@pytest.mark.parametrize("name", cf.__all__)
def test_every_name_has_an_example_that_runs(name: str) -> None:
    """It is run with all doctests of the package; here: that there is one, written as a user would."""
    value = getattr(cf, name)
    (test,) = (test for test in doctest.DocTestFinder(recurse=False).find(value, name))
    code = "".join(example.source for example in test.examples)
    assert "import corpusforge as cf" in code
    assert f"cf.{name}(" in code or name in ("Result", "RunResult")
    assert not any(example.options.get(doctest.SKIP) for example in test.examples)


def test_a_function_stays_itself_beside_the_room_of_its_name() -> None:
    function = cf.clean
    importlib.import_module("corpusforge.clean.cleaner")
    importlib.reload(importlib.import_module("corpusforge.clean"))
    from corpusforge.clean import cleaner

    assert cf.clean is function and callable(cf.evaluate) and callable(cf.report)
    assert cleaner.__name__ == "corpusforge.clean.cleaner"


@pytest.mark.parametrize("name", STAGES)
def test_signature_and_help_list_every_setting(name: str) -> None:
    function = getattr(cf, name)
    parameters = inspect.signature(function).parameters
    section = {"train_vocab": "vocab", "build_instances": "instances"}.get(name, name)
    for key, setting in sections.settings().items():
        part, _, field = key.partition(".")
        if part == section:
            assert parameters[field].default == setting.default
            assert f"{field}: {setting.help}" in function.__doc__
    assert not {"args", "given", "paths"} & set(parameters)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"languge": "en"}, r"clean\(\): no keyword 'languge'; did you mean 'language'"),
        ({"zzzz": 1}, "no keyword 'zzzz'; help"),
        ({"paths": ["a"]}, "no keyword 'paths'"),
    ],
)
def test_a_wrong_keyword_is_a_type_error_that_suggests(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cf.clean("x", **keywords)


def test_required_keywords_workers_and_two_names_of_one_setting_are_checked(tmp_path: Path) -> None:
    functions: dict[str, Any] = {name: getattr(cf, name) for name in STAGES}
    with pytest.raises(TypeError, match=r"build_instances\(\): needs the keyword 'vocab'"):
        functions["build_instances"](tmp_path)
    with pytest.raises(TypeError, match=r"clean\(\): workers=-1"):
        cf.clean("x", workers=-1)
    with pytest.raises(TypeError, match="'memory_budget' and 'memory_megabytes' are two names"):
        functions["dedupe"](tmp_path, memory_megabytes=500, memory_budget=500)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"overwrite": "no"}, "overwrite='no'; True or False"),
        ({"workers": 1.5}, "workers=1.5"),
        ({"settings": 5}, "settings=5"),
        ({"output": ""}, "output=''"),
        ({"language": "de", "settings": {"clean.language": "en"}}, "'language' is also in settings"),
    ],
)
def test_keywords_that_are_no_settings_are_checked(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cf.clean("x", **keywords)


def test_a_notebook_sees_functions_with_their_keywords() -> None:
    """IPython reads the attribute of the module; a property of its class would show as one."""
    assert not any(name in vars(type(cf)) for name in cf.__all__)
    assert "language" in inspect.signature(cf.clean).parameters


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"detector": "slow"}, "detector: clean.detector = 'slow'; it must be one of"),
        ({"min_language_probability": 2}, "min_language_probability: .* between 0 and 1"),
        ({"language": 3}, "is not text"),
        ({"settings": {"clean.langage": "en"}}, "settings: unknown key 'clean.langage'; did you mean"),
        ({"settings": {"dedupe.keep": "newest"}}, r"clean does not read \[dedupe\]"),
        ({"contamination_ngram": 8}, "contamination_ngram"),
        ({"recipe": "no-such"}, "no bundled recipe"),
    ],
)
def test_a_wrong_value_is_named_by_its_keyword(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.CorpusForgeError, match=message):
        cf.clean("x", **keywords)


def test_a_second_positional_argument_is_refused() -> None:
    positional: Any = cf.clean
    with pytest.raises(TypeError, match="one positional argument"):
        positional("x", "y")


def test_names_of_flags_are_keywords_too(tmp_path: Path) -> None:
    with pytest.raises(errors.RecipeInvalid, match="memory_budget: "):
        cf.dedupe(tmp_path, memory_budget=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("language='de', min_language_probability=1, rules=['gopher'], workers=2, dry_run=True", ""),
        ("languge='de'", 'Unexpected keyword argument "languge"'),
        ("language=3", 'Argument "language" to "clean" has incompatible type "int"'),
        ("workers='2'", 'Argument "workers" to "clean" has incompatible type "str"'),
    ],
)
def test_a_type_checker_knows_the_keywords(tmp_path: Path, call: str, complaint: str) -> None:
    api = pytest.importorskip("mypy.api")
    (tmp_path / "user.py").write_text(f"import corpusforge as cf\nx: cf.Result = cf.clean('a', {call})\n")
    cache = Path(__file__).resolve().parents[2] / ".mypy_cache" / "users"
    output, *_ = api.run(["--strict", f"--cache-dir={cache}", str(tmp_path / "user.py")])
    own = [line for line in output.splitlines() if "user.py" in line and "error" in line]
    assert [complaint in line for line in own] == ([True] if complaint else [])
