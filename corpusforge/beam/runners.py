"""Beam runners by name: which are accepted, which are refused and why; and how a pipeline runs on one.

``local`` is Beam's in-memory FnApiRunner, named explicitly. Plain DirectRunner first looks for a Prism binary to
download, which hangs behind some proxies, and Prism listens on all interfaces; so that name means ``local`` here too.
Names are checked without importing Beam, which takes more than a second.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corpusforge import errors
from corpusforge.pool import signals_unwind

LOCAL = "local"

SAME_AS_LOCAL = ("FnApiRunner", "DirectRunner", "BundleBasedDirectRunner", "SwitchingDirectRunner")

KNOWN = (
    "DataflowRunner", "BundleBasedDirectRunner", "DirectRunner", "SwitchingDirectRunner", "InteractiveRunner",
    "FlinkRunner", "FnApiRunner", "KafkaStreamsRunner", "PortableRunner", "PrismRunner", "SparkRunner",
    "TestDirectRunner", "TestDataflowRunner",
)  # fmt: skip
"""Beam's names (`StandardOptions.KNOWN_RUNNER_NAMES` of Beam 2.77; a test compares the two)."""

REFUSED = {
    "DaskRunner": (
        "Beam's Dask runner silently loses data (ignores tagged outputs, runs only the last branch) and reports DONE"
    ),
    "RayRunner": "it does not work with this version of Beam",
    "InteractiveRunner": "it is for notebooks and caches every element",
}


def check_runner(name: str) -> str:
    """The canonical name of a runner, ``"local"`` for the in-memory one.

    Raises `errors.RunnerRefused` for unknown names (with the nearest) and for runners known to lose data.
    """
    known = [LOCAL, *KNOWN]
    by_lower = {known_name.lower(): known_name for known_name in [*known, *REFUSED]}
    by_lower |= {lower.removesuffix("runner"): by_lower[lower] for lower in by_lower if lower != LOCAL}
    runner = by_lower.get(name.lower())
    if runner is None and "." in name:
        return name  # a class by its full name, as Beam takes it
    if runner is None:
        near = difflib.get_close_matches(name.lower(), by_lower, 1, 0.5)
        mend = f"did you mean '{by_lower[near[0]]}'?" if near else f"runners: {', '.join(known)}"
        raise errors.RunnerRefused(f"--runner {name}", "no runner of that name", mend)
    if runner in REFUSED:
        mend = "use local, FlinkRunner, SparkRunner or DataflowRunner"
        raise errors.RunnerRefused(f"--runner {name}", REFUSED[runner], mend)
    return LOCAL if runner in SAME_AS_LOCAL else runner


def make_runner(name: str) -> Any:
    """A Beam runner of a name that `check_runner` has passed.

    Raises `errors.RunnerRefused` if Beam cannot load it.
    """
    is_google = "dataflow" in name.lower()
    mend = f"pip install 'corpusforge[{'gcp' if is_google else 'beam'}]'"
    if is_google and importlib.util.find_spec("apitools") is None:  # Beam itself would notice after building the graph
        raise errors.RunnerRefused(f"--runner {name}", "the parts of Beam for Google Cloud are not installed", mend)
    from corpusforge.beam.sdk import beam

    if name == LOCAL:
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner

        return FnApiRunner()
    try:
        return beam.runners.runner.create_runner(name)
    except (ImportError, ValueError) as error:
        raise errors.RunnerRefused(f"--runner {name}", f"it cannot be loaded ({error})", mend) from None


def make_pipeline(name: str, options: Sequence[str]) -> Any:
    """An empty pipeline for a runner that `check_runner` has passed.

    Raises `errors.RunnerRefused` if the runner cannot be loaded or misses an option.
    """
    from corpusforge.beam.sdk import beam

    runner = make_runner(name)
    try:
        return beam.Pipeline(runner=runner, options=beam.options.pipeline_options.PipelineOptions(list(options)))
    except ValueError as error:
        what = "; ".join(line.strip() for line in str(error).splitlines()[1:]) or str(error)
        raise errors.RunnerRefused(f"--runner {name}", what, "give its options after --") from None


@contextmanager
def outside_notebooks() -> Iterator[None]:
    """Inside, Beam builds and runs pipelines in a notebook as in a script.

    Otherwise it prefixes labels with the number of the cell, and keeps files for a runner that we refuse. For this it
    imports Beam's data frames, which takes seconds, and fails with pandas 3 (Beam 2.77).
    """
    from apache_beam import pipeline

    plain: dict[str, Any] = {"alter_label_if_ipython": lambda *_: None, "is_in_ipython": lambda: False}
    before = {name: getattr(pipeline, name) for name in plain if hasattr(pipeline, name)}
    try:
        for name in before:
            setattr(pipeline, name, plain[name])
        yield
    finally:
        for name, function in before.items():
            setattr(pipeline, name, function)


def run_pipeline(pipeline: Any, name: str) -> Any:
    """Run a pipeline to its end; returns Beam's result.

    Raises the `errors.CorpusForgeError` that a worker raised, also where a remote runner reports only its text. Any
    other failure of a remote runner becomes an `errors.CorpusForgeError` that names the runner.
    """
    try:
        with signals_unwind():
            result = pipeline.run()
            state = result.wait_until_finish()
    except errors.CorpusForgeError:
        raise
    except Exception as error:  # a remote runner may raise anything (gRPC, HTTP, a worker's error as text)
        if name == LOCAL:
            raise
        raise _from_text(name, str(error)) from error
    if state in ("FAILED", "CANCELLED"):
        raise _from_text(name, f"the pipeline ended as {state}")
    return result


_OUR_ERROR = re.compile(r"corpusforge\.errors\.(\w+): (.*?): (.*); (.*?)(?: \[while running .*)?$", re.MULTILINE)


def _from_text(name: str, text: str) -> errors.CorpusForgeError:
    """The error a worker raised, read back from the traceback a runner reports."""
    if match := _OUR_ERROR.search(text):
        kind = getattr(errors, match[1], errors.CorpusForgeError)
        return kind(*match.groups()[1:])  # type: ignore[no-any-return]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    return errors.CorpusForgeError(
        f"--runner {name}", f"the pipeline failed ({lines[-1][:300]})", "see the runner's own log"
    )
