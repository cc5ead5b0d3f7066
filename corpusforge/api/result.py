"""The result of a stage: its folder, its tables in the forms that people use, and what was dropped and why."""

from __future__ import annotations

import difflib
import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import errors, shards
from corpusforge.report.gather import FOLDERS, gather, step_order, steps_of
from corpusforge.report.gather import funnel as stage_funnel
from corpusforge.schemas import DOCUMENTS, REJECTS, REPEATS
from corpusforge.shards import Manifest
from corpusforge.stages.stage import Outcome, numbers_of

if TYPE_CHECKING:
    import datasets
    import pandas
    import polars

    from corpusforge.stages.preview import Preview

MAIN = ("documents", "train")
"""Tables that hold what a stage is for."""

SHOWN = 4
"""Numbers of a stage without tables that its ``repr`` shows."""

DROPPED = ("rejects", "repeats")
"""Tables that hold what a stage dropped, a row for each page, line or span, with its reason."""


class Result:
    """A finished stage. It is on disk: methods read it when they are called, and ``batches`` in bounded memory.

    ``folder``: where it is. ``manifest``: its record (`corpusforge.shards.Manifest`). ``skipped``: whether it was up to
    date and nothing ran. ``seconds``, ``peak_rss``: wall time, and bytes of memory of all processes; 0 of a folder that
    was loaded. ``plan``: of a dry run of a training, its cost. ``preview``: of other dry runs, what was seen.

    >>> import corpusforge as cf
    >>> pages = ["This page has two lines. The first has three sentences. The second is a menu.\\nMenu"]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> clean.tables, clean.counts["kept"]
    (('documents', 'rejects'), {'rows': 1, 'bytes': 77})
    >>> [row["text"] for row in clean.dropped("line:no-terminal-punctuation")]
    ['Menu']
    """

    def __init__(
        self, outcome: Outcome, *, temporary: bool = False, examples: Mapping[str, list[dict[str, Any]]] | None = None
    ) -> None:
        self.outcome = outcome
        self.folder, self.manifest = outcome.folder, outcome.manifest
        self.skipped, self.seconds, self.peak_rss = outcome.skipped, outcome.seconds, outcome.peak_rss
        self.plan: dict[str, Any] | None = None
        self.preview: Preview | None = None
        self._examples, self._is_temporary = examples, temporary
        if temporary:
            weakref.finalize(self, shutil.rmtree, outcome.folder, True)

    @classmethod
    def of_sample(cls, preview: Preview) -> Result:
        """The result of a dry run, which has counts and examples, and no folder."""
        steps = {"steps": [{"step": name} for name in preview.steps]}
        manifest = _unwritten(preview.stage, preview.tallies, preview.statistics, steps)
        result = cls(Outcome("", manifest, skipped=False), examples=preview.examples)
        result.preview = preview
        return result

    @classmethod
    def of_plan(cls, plan: dict[str, Any]) -> Result:
        """The result of a dry run of a training: its cost."""
        result = cls(Outcome("", _unwritten("pretrain", {}, numbers_of(plan), {}), skipped=False))
        result.plan = plan
        return result

    def __fspath__(self) -> str:
        """The folder: a result may stand wherever a path does."""
        return self.folder

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its tables, the main one first."""
        names = [name for name in MAIN if name in self.manifest.shards]
        return (*names, *(name for name in sorted(self.manifest.shards) if name not in names))

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """``{reason: {"rows": n, "bytes": n}}`` of all that was dropped, and of what was kept under "kept"."""
        return {reason: dict(counts) for reason, counts in self.manifest.tallies.items()}

    @property
    def statistics(self) -> dict[str, Any]:
        """The numbers of the stage: of ``evaluate`` the scores, of ``pretrain`` the losses."""
        return dict(self.manifest.statistics)

    @property
    def funnel(self) -> list[dict[str, Any]]:
        """``{"step": name, "documents": n, "bytes": n}`` that each step left, the input first; [] of later stages."""
        inside = steps_of(self.manifest.statistics, step_order(self.manifest))
        steps = [(step.name, step.documents, step.text_bytes) for step in inside]
        if not steps:
            whole = stage_funnel({self.manifest.stage: self.manifest})
            steps = [(step.label, step.documents, step.text_bytes) for step in whole]
        return [{"step": name, "documents": documents, "bytes": size} for name, documents, size in steps]

    @property
    def warnings(self) -> list[str]:
        """What looks wrong in the counts, as the command line prints it; [] in most cases and for dry runs."""
        from corpusforge.stages import warnings

        return warnings.of_stage(self.folder, self.manifest) if self.folder else []

    @property
    def model(self) -> str:
        """The folder that ``transformers`` loads. Raises `errors.InputMissing` where nothing was trained."""
        if self.manifest.stage != "pretrain" or not self.folder:
            mend = f"it is of {self.manifest.stage}{'' if self.folder else ', a dry run'}"
            raise errors.InputMissing(self.folder or "the result", "has no model", mend)
        return shards.join(self.folder, "model")

    @property
    def log(self) -> list[dict[str, Any]]:
        """Lines of a training's log: the step, losses, the learning rate, the speed; [] of other stages."""
        return gather(self.folder).log if self.folder else []

    def paths(self, name: str = "") -> list[str]:
        """The files of a table, in order."""
        return self.manifest.paths(self.folder, self._name(name))

    def batches(self, name: str = "") -> Iterator[pa.RecordBatch]:
        """A table batch by batch; the main one by default."""
        for path in self.paths(name):
            yield from shards.read_shard(path)

    def table(self, name: str = "") -> pa.Table:
        """A whole table in memory."""
        batches = list(self.batches(name))
        return pa.Table.from_batches(batches) if batches else self._schema(name).empty_table()

    def to_pandas(self, name: str = "") -> pandas.DataFrame:
        """A whole table as a pandas frame."""
        return self.table(name).to_pandas()

    def to_polars(self, name: str = "") -> polars.DataFrame:
        """A whole table as a polars frame."""
        try:
            import polars
        except ImportError:
            raise errors.ExtraMissing("to_polars()", "polars is not installed", "pip install polars") from None
        return polars.DataFrame(polars.from_arrow(self.table(name)))

    def to_datasets(self, name: str = "", *, streaming: bool = False) -> datasets.Dataset:
        """A table as a ``datasets.Dataset``, memory-mapped; ``streaming``: as an ``IterableDataset``."""
        try:
            import datasets
        except ImportError:
            mend = "pip install 'corpusforge[hub]'"
            raise errors.ExtraMissing("to_datasets()", "datasets is not installed", mend) from None
        paths = [path for path, shard in zip(self.paths(name), self._shards(name), strict=True) if shard.rows]
        if not paths:
            return datasets.Dataset(self.table(name))
        form = "parquet" if paths[0].endswith(".parquet") else "arrow"
        return datasets.load_dataset(form, data_files=paths, split="train", streaming=streaming)

    def dropped(self, reason: str = "", n: int = 5) -> list[dict[str, Any]]:
        """Up to ``n`` rows of what was dropped, for one reason or any. Raises `errors.InputMissing` for no such reason.

        The files are read from their beginning until ``n`` rows are there.
        """
        if reason and reason not in self.counts:
            near = difflib.get_close_matches(reason, self.counts, 1, 0.5)
            mend = f"did you mean '{near[0]}'?" if near else f"reasons: {', '.join(self.counts)}"
            raise errors.InputMissing(self.folder or "dry run", f"nothing was dropped as '{reason}'", mend)
        if self._examples is not None:
            rows = [row for name, kept in self._examples.items() if reason in ("", name) for row in kept]
            return rows[:n]
        rows = []
        for name in (table for table in self.tables if table in DROPPED):
            for batch in self.batches(name):
                if reason:
                    batch = batch.filter(pc.equal(batch["reason"].cast(pa.string()), reason))
                rows += batch.slice(0, n - len(rows)).to_pylist()
                if len(rows) >= n:
                    return rows
        return rows

    def _schema(self, name: str) -> pa.Schema:
        """The columns of a table without rows."""
        paths = self.paths(name)
        if paths and not shards.is_remote(paths[0]):
            return pq.read_schema(paths[0]) if paths[0].endswith(".parquet") else pa.ipc.open_stream(paths[0]).schema
        return {"documents": DOCUMENTS, "rejects": REJECTS, "repeats": REPEATS}.get(self._name(name), pa.schema([]))

    def _name(self, name: str) -> str:
        if not self.tables:
            raise errors.InputMissing(self.folder or "dry run", "has no tables", f"it is of {self.manifest.stage}")
        if name and name not in self.tables:
            raise errors.InputMissing(self.folder, f"no table '{name}'", f"its tables: {', '.join(self.tables)}")
        return name or self.tables[0]

    def _shards(self, name: str) -> list[shards.Shard]:
        return self.manifest.shards[self._name(name)]

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {self.manifest.rows.get(name, 0):,} rows" for name in self.tables)
        if not rows:
            numbers = [item for item in self.statistics.items() if isinstance(item[1], int | float)]
            rows = ", ".join(f"{name}: {value:.6g}" for name, value in numbers[:SHOWN])
        where = "dry run" if not self.folder else "temporary folder" if self._is_temporary else repr(self.folder)
        return f"Result({self.manifest.stage}, {where}{', ' if rows else ''}{rows})"

    def _repr_html_(self) -> str:
        from corpusforge.api.html import TEMPORARY, plan_html, result_html

        if self.plan is not None:
            return plan_html(self.plan)
        folder = TEMPORARY if self._is_temporary else self.folder
        return result_html(folder, self.manifest, self.funnel, self.warnings)


def _unwritten(stage: str, tallies: shards.Tallies, statistics: Mapping[str, Any], recipe: dict[str, Any]) -> Manifest:
    """The manifest of a dry run."""
    return Manifest(stage, "", {}, {}, {}, {}, tallies, dict(statistics), recipe, upstream={}, versions={})


class RunResult:
    """The stages of a run, by name, and the path of its report (None where none was written).

    >>> import corpusforge as cf
    >>> sample = cf.run("quickstart", until="clean", progress=False)
    >>> sample["clean"].table().num_rows, sample.report
    (129, None)
    """

    def __init__(self, folder: str, stages: Mapping[str, Result], report: str | None, *, temporary: bool = False):
        self.folder, self.stages, self.report = folder, dict(stages), report
        if temporary:
            weakref.finalize(self, shutil.rmtree, folder, True)

    def __fspath__(self) -> str:
        return self.folder

    def __getitem__(self, stage: str) -> Result:
        """The result of a stage: ``run["clean"]``."""
        if stage not in self.stages:
            raise errors.InputMissing(self.folder, f"no stage '{stage}'", f"it has: {', '.join(self.stages)}")
        return self.stages[stage]

    @cached_property
    def model(self) -> str:
        """The folder that ``transformers`` loads. Raises `errors.InputMissing` where nothing was trained."""
        return self["pretrain"].model

    def __repr__(self) -> str:
        return f"RunResult({self.folder!r}, {', '.join(self.stages)})"

    def _repr_html_(self) -> str:
        from corpusforge.api.html import report_html

        parts = [result._repr_html_() for result in self.stages.values()]
        return "".join([*parts, report_html(self.report) if self.report else ""])


def load(folder: str | os.PathLike[str]) -> Result | Any:
    """Open the folder of a finished stage, or of a run of several: a `Result`, or a `RunResult`.

    A type checker takes it for a result or anything, since only the folder knows. Folders of earlier releases open too.

    Raises `errors.ManifestInvalid` where the stage is missing or unfinished.

    >>> import corpusforge as cf
    >>> pages = ["The first sentence is here. The second one follows it. The third ends the page."]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> cf.load(clean.folder).counts == clean.counts
    True
    """
    path = os.fspath(folder).rstrip("/")
    if not shards.exists(shards.join(path, shards.MANIFEST)):
        below = {name: shards.join(path, part) for name, part in FOLDERS.items()}
        done = {name: at for name, at in below.items() if shards.exists(shards.join(at, shards.MANIFEST))}
        if done:
            report = shards.join(path, "report.html")
            stages = {name: _loaded(at) for name, at in done.items()}
            return RunResult(path, stages, report if shards.exists(report) else None)
    return _loaded(path)


def _loaded(folder: str) -> Result:
    return Result(Outcome(folder, Manifest.load(folder), skipped=True))


def folder_of(stage: Result | str | os.PathLike[str]) -> str:
    """The folder of a result, or the path itself. Raises `errors.InputUnreadable` for anything else."""
    if not isinstance(stage, Result | str | os.PathLike) or not os.fspath(stage):
        what = f"{'an empty path' if stage == '' else f'a {type(stage).__name__}'} is no finished stage"
        raise errors.InputUnreadable("the input", what, "pass a result or its folder; text is read by clean(...) first")
    return os.fspath(stage)
