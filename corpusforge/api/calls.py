"""One function per command: its input, its keywords, its result.

The keywords of each are the fields of the sections that its stage reads (`keywords`), so a type checker knows them, and
``help`` lists them with their units. The command line calls these functions.
"""

from __future__ import annotations

import functools
import inspect as signatures
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from corpusforge import errors, recipe
from corpusforge.api.keywords import Call, FromRecipe, OnWorkers, Path, call_of, paths_of, settings_text, signature_of
from corpusforge.api.result import Result, RunResult, folder_of
from corpusforge.sections import Clean, Dedupe, Evaluate, Input, Instances, Pretrain, Urls, Vocab
from corpusforge.stages.stage import Outcome

P = ParamSpec("P")
In = TypeVar("In")
Out = TypeVar("Out")

SAMPLE = 1000
"""Records of a dry run."""

Stage = Result | str | os.PathLike[str]
"""A finished stage: its result, its folder, or its URL."""


def _command(
    name: str, keywords: Callable[P, object], *, is_recipe: bool = False
) -> Callable[[Callable[[In, Call], Out]], Callable[Concatenate[In, P], Out]]:
    """Give a function the fields of a dataclass as keywords, checked and resolved to a `Call`.

    ``is_recipe``: the function's argument is the recipe to take settings from.
    """
    kind: Any = keywords

    def decorate(function: Callable[[In, Call], Out]) -> Callable[Concatenate[In, P], Out]:
        @functools.wraps(function)
        def called(first: In, /, *args: P.args, **given: P.kwargs) -> Out:
            if args:
                what, mend = "takes one positional argument", "name the others, as output='folder'"
                raise errors.KeywordInvalid(f"{function.__name__}()", what, mend)
            return function(first, call_of(name, kind, {"recipe": first, **given} if is_recipe else given))

        first, *_ = signatures.signature(function).parameters.values()
        first = first.replace(kind=signatures.Parameter.POSITIONAL_ONLY)
        shown: Any = called
        shown.__signature__ = signature_of(kind, first)
        settings = settings_text(kind)
        listed = f"\n\nSettings, with their defaults:\n{settings}\n" if settings else ""
        shown.__doc__ = f"{signatures.getdoc(function)}{listed}"
        return called

    return decorate


def _result(call: Call, run_stage: Callable[[str], Outcome]) -> Result:
    """The result of a stage in the output folder of a call, or in a temporary one."""
    with _folder(call) as folder:
        return Result(run_stage(folder), temporary=not call.output)


@contextmanager
def _folder(call: Call) -> Iterator[str]:
    """The output folder of a call; a temporary one is removed where the block fails, and is its result's otherwise."""
    if call.output:
        yield call.output
        return
    folder = tempfile.mkdtemp(prefix="corpusforge-")
    try:
        yield folder
    except BaseException:  # an interrupt too leaves no folder
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _files(inputs: Any, call: Call) -> AbstractContextManager[list[str]]:
    """Data in memory as files."""
    from corpusforge.api.inputs import as_files

    return as_files(inputs, call.recipe.input, call.execution.progress)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Clean(Clean, Input, Urls, OnWorkers, FromRecipe):
    filters: Sequence[Any] = ()
    dry_run: bool = False
    sample: int | None = None


@_command("clean", _Clean)
def clean(inputs: Any, call: Call) -> Result:
    """Read raw pages and keep what passes the rules; every dropped line and page is in ``rejects`` with its reason.

    ``inputs``: a path, glob or URL, or a list of them; or a table of Arrow, a ``datasets.Dataset``, a frame of pandas
    or polars, or an iterator of texts or of dicts. ``filters``: functions of your own, from a text to True, False or a
    reason for dropping it, or to another text (`corpusforge.Filter`). ``dry_run``: clean ``sample`` records (1000),
    write nothing.

    Raises an error of `corpusforge.errors` where the input, a setting or a resource is wrong, before anything is done.

    >>> import corpusforge as cf
    >>> pages = ["This page has two lines. The first has three sentences. The second is a menu.\\nMenu"]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> clean.table()["text"].to_pylist()
    ['This page has two lines. The first has three sentences. The second is a menu.']
    >>> sorted(clean.counts)
    ['kept', 'line:no-terminal-punctuation']
    """
    sample = call.extra["sample"]
    if sample is not None and (sample < 1 or not call.extra["dry_run"]):
        what = f"sample={sample}: a dry run reads so many records, at least 1; a run reads the whole input"
        raise errors.KeywordInvalid("clean()", what, "pass dry_run=True, or leave sample out")
    filters, paths = call.extra["filters"], paths_of(inputs)
    if call.recipe.clean.filter_errors != "stop" and not filters:
        raise errors.RecipeInvalid("filter_errors", "there is no filter of your own", "name one, or leave it out")
    with _files(inputs, call) if paths is None else nullcontext(paths) as named:
        source: dict[str, Any] = {"input.paths": named or list(call.recipe.input.paths)}
        made = recipe.override(call.recipe, source | ({} if paths is not None else {"input.format": "parquet"}))
        if call.extra["dry_run"]:
            from corpusforge.stages import preview

            return Result.of_sample(preview.clean(made, sample or SAMPLE, filters))
        from corpusforge.stages.clean import clean as run_stage

        return _result(call, lambda folder: run_stage(made, folder, call.execution, filters))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Dedupe(Dedupe, OnWorkers, FromRecipe):
    dry_run: bool = False


@_command("dedupe", _Dedupe)
def dedupe(documents: Stage, call: Call) -> Result:
    """Remove duplicates from cleaned documents; one copy of each is kept, and ``repeats`` has the others.

    ``documents``: a result or folder of ``clean`` or ``dedupe``. ``dry_run``: find duplicates, remove nothing.

    >>> import corpusforge as cf
    >>> twice = ["The first sentence is here. The second one follows it. The third ends the page."] * 2
    >>> clean = cf.clean(iter(twice), language="", badwords="off", sentences="builtin", progress=False)
    >>> documents = cf.dedupe(clean, progress=False)
    >>> clean.table().num_rows, documents.table().num_rows, documents.counts["span:repeated"]["rows"]
    (2, 1, 1)
    """
    if call.extra["dry_run"]:
        from corpusforge.stages import preview

        return Result.of_sample(preview.dedupe(call.recipe, folder_of(documents), call.execution))
    from corpusforge.stages.dedupe import dedupe as run_stage

    return _result(call, lambda folder: run_stage(call.recipe, folder_of(documents), folder, call.execution))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _TrainVocab(Vocab, OnWorkers, FromRecipe):
    pass


@_command("train-vocab", _TrainVocab)
def train_vocab(documents: Stage, call: Call) -> Result:
    """Learn a vocabulary from documents; ``transformers.AutoTokenizer`` loads its folder.

    ``documents``: a result or folder of ``clean`` or ``dedupe``.

    >>> import corpusforge as cf
    >>> pages = ["The first sentence is here. The second one follows it. The third ends the page."]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> vocab = cf.train_vocab(clean, size=128, unused=8, progress=False)
    >>> vocab.manifest.statistics["size"]
    128
    """
    from corpusforge.stages.train_vocab import train_vocab as run_stage

    return _result(call, lambda folder: run_stage(call.recipe, folder_of(documents), folder, call.execution))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _BuildInstances(Instances, OnWorkers, FromRecipe):
    vocab: Stage


@_command("build-instances", _BuildInstances)
def build_instances(documents: Stage, call: Call) -> Result:
    """Encode documents and build training instances: ``train`` and ``heldout``.

    ``documents``: a result or folder of ``clean`` or ``dedupe``. ``vocab``: of ``train_vocab``.

    >>> import corpusforge as cf
    >>> pages = ["The first sentence is here. The second one follows it. The third ends the page."]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> vocab = cf.train_vocab(clean, size=128, unused=8, progress=False)
    >>> instances = cf.build_instances(clean, vocab=vocab, format="doc-sentences", length=64, progress=False)
    >>> instances.tables, instances.table().num_rows
    (('train', 'heldout'), 1)
    """
    from corpusforge.stages.build_instances import build_instances as run_stage

    vocab = folder_of(call.extra["vocab"])
    return _result(call, lambda folder: run_stage(call.recipe, folder_of(documents), vocab, folder, call.execution))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Pretrain(Pretrain, FromRecipe):
    resume: bool = True
    dry_run: bool = False


@_command("pretrain", _Pretrain)
def pretrain(instances: Stage, call: Call) -> Result:
    """Train a model on instances; its folder ``model/`` loads in ``transformers``.

    ``instances``: a result or folder of ``build_instances``. ``resume``: from the newest valid checkpoint of the output
    folder. ``dry_run``: parameters, FLOPs, memory and steps as ``.plan`` of the result; train nothing.

    >>> import corpusforge as cf
    >>> sample = cf.run("quickstart", until="build-instances", progress=False)
    >>> plan = cf.pretrain(sample["build-instances"], preset="bert-tiny", steps=100, dry_run=True, progress=False).plan
    >>> plan["steps"], plan["tokens"]
    (100, 3276800)
    """
    from corpusforge.stages import pretrain as stage

    if call.extra["dry_run"]:
        return Result.of_plan(stage.plan(call.recipe, folder_of(instances)))
    data, resume = folder_of(instances), call.extra["resume"]
    return _result(call, lambda folder: stage.pretrain(call.recipe, data, folder, call.execution, resume=resume))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Evaluate(Evaluate, FromRecipe):
    data: Stage | None = None


@_command("evaluate", _Evaluate)
def evaluate(checkpoint: Stage, call: Call) -> Result:
    """Test a model: held-out loss, BLiMP, GLUE, SQuAD; ``.manifest.statistics`` has the figures.

    ``checkpoint``: a result or folder of ``pretrain``, one of its checkpoints, or a Hugging Face directory. ``data``:
    the input of the task: instances with a held-out part (mlm), a folder of tasks (glue) or of questions (squad).

    >>> import corpusforge as cf
    >>> sample = cf.run("quickstart", until="build-instances", progress=False)
    >>> instances, tokens = sample["build-instances"], {"batch_tokens": 512, "micro_batch_tokens": 512}
    >>> model = cf.pretrain(instances, preset="bert-tiny", steps=2, warmup_steps=1, progress=False, **tokens)
    >>> scores = cf.evaluate(model, data=instances, tasks=["mlm"], progress=False).manifest.statistics
    >>> scores["mlm_loss"] > scores["mlm_unigram_loss"]  # two steps teach little
    True
    """
    from corpusforge.stages.evaluate import evaluate as run_stage

    data = call.extra["data"] and folder_of(call.extra["data"])
    model = folder_of(checkpoint)
    if call.output or isinstance(checkpoint, Result):
        return _result(call, lambda folder: run_stage(call.recipe, model, data, folder, call.execution))
    return Result(run_stage(call.recipe, model, data, None, call.execution))  # beside the checkpoint


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Run(OnWorkers):
    inputs: Any = ()
    filters: Sequence[Any] = ()
    until: str | None = None


@_command("run", _Run, is_recipe=True)
def run(recipe_name: Path, call: Call) -> RunResult:
    """Run all stages of a recipe: a bundled name, or a TOML file. Finished stages are skipped, a killed run resumes.

    ``inputs``: read this instead of the recipe's input: what `clean` reads. ``filters``: as of `clean`. ``until``: stop
    after this stage. ``settings``: of the recipe by dotted key, as ``{"instances.length": 128}``.

    >>> import corpusforge as cf
    >>> sample = cf.run("quickstart", until="dedupe", progress=False)
    >>> list(sample.stages), sample["dedupe"].tables
    (['clean', 'dedupe'], ('documents', 'repeats'))
    """
    from corpusforge.stages.run import run as run_stages

    inputs = call.extra["inputs"]
    paths = paths_of(inputs)
    with _files(inputs, call) if paths is None else nullcontext(paths) as named, _folder(call) as folder:
        made = recipe.override(call.recipe, {"input.paths": named or list(call.recipe.input.paths)})
        how = {"until": call.extra["until"], "filters": call.extra["filters"]}
        outcomes, report_path = run_stages(made, folder, call.execution, **how)
        stages = {stage: Result(outcome) for stage, outcome in outcomes}
        return RunResult(folder, stages, report_path, temporary=not call.output)


def inspect(path: Stage, *, document: str = "", rows: int = 5, skip: int = 0) -> None:
    """Print any manifest, shard, vocabulary, checkpoint, log, evaluation or recipe; or a ``document`` with its marks.

    ``document``: an id, or the beginning of one. ``rows``, ``skip``: of a table.

    >>> import corpusforge as cf
    >>> pages = ["The first sentence is here. The second one follows it. The third ends the page."]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> cf.inspect(clean)
    clean: ...
    """
    from corpusforge import terminal
    from corpusforge.report.inspect import inspect as show

    terminal.show(*show(folder_of(path), document=document or None, rows=rows, skip=skip))


def report(result: Stage | RunResult, *, output: Path | None = None, against: Stage | Sequence[Stage] = ()) -> str:
    """Write the HTML report of a run or of a stage, one page that needs no network, and return its path.

    ``output``: a file; in the folder of the result by default. ``against``: another folder cleaned from the same input,
    or other trainings, to compare with.

    >>> import corpusforge as cf
    >>> pages = ["The first sentence is here. The second one follows it. The third ends the page."]
    >>> clean = cf.clean(iter(pages), language="", badwords="off", sentences="builtin", progress=False)
    >>> cf.report(clean) == f"{clean.folder}/report.html"
    True
    """
    from corpusforge.report import comparison, run_report, trainings

    folder = os.fspath(result).rstrip("/")
    several = [against] if isinstance(against, Result | str | os.PathLike) else against
    others = [os.fspath(other).rstrip("/") for other in several]
    page = os.fspath(output) if output else f"{folder}/{'comparison' if others else 'report'}.html"
    if others and trainings.are_trainings([folder, *others]):
        return trainings.write_trainings([folder, *others], page)
    if len(others) > 1:
        raise errors.KeywordInvalid("against", "cleaned folders are compared two at a time", "name one other folder")
    if others:
        return comparison.write_comparison(folder, others[0], page)
    return run_report.write_report(folder, page)
