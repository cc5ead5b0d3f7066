"""Every stage as a function: the same folder as its command writes, and a result that opens it."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corpusforge as cf
from corpusforge import errors
from corpusforge.report.gather import FOLDERS

Run = Callable[..., subprocess.CompletedProcess[str]]
Folders = Callable[[str], Path]

CLEAN = {"language": "", "sentences": "builtin", "badwords": "off", "rules": ["gopher"], "pii": "mask", "seed": 3}
INSTANCES = {"format": "segment-pair", "length": 64, "settings": {"instances.mask_share": 0.7}, "recipe": "quickstart"}
TINY = {"preset": "bert-tiny", "steps": 3, "batch_tokens": 512, "micro_batch_tokens": 512, "learning_rate": 1e-3}
CALLS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "clean": (["clean"], CLEAN),
    "dedupe": (["clean"], {"method": ["lines", "exact-spans"], "sentences": "builtin", "memory_budget": 500}),
    "train-vocab": (["dedupe"], {"size": 512, "unused": 64, "min_count": 2}),
    "build-instances": (["dedupe", "train-vocab"], INSTANCES),
    "pretrain": (["build-instances"], {**TINY, "warmup_steps": 1}),
    "evaluate": (["pretrain", "build-instances"], {"tasks": ["mlm"], "seed": 5}),
}
"""The stages that are read, and keywords that are not the defaults."""

SECOND = {"build-instances": "vocab", "evaluate": "data"}
"""Keywords of the second folder that a stage reads."""


def _flags(keywords: dict[str, Any]) -> list[str]:
    flags = []
    for name, value in keywords.items():
        for key, inner in value.items() if name == "settings" else ():
            flags += ["--set", f"{key}={inner}"]
        if name != "settings":
            shown = ",".join(value) if isinstance(value, list) else str(value)
            flags += [f"--{ {'tasks': 'task'}.get(name, name).replace('_', '-') }", shown]
    return flags


def _manifest(folder: Path) -> dict[str, Any]:
    """What a stage recorded, but for measured times."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return {key: manifest[key] for key in ("digest", "content", "rows", "bytes", "tallies", "recipe", "upstream")}


@pytest.fixture
def folders(finished_run: Path, sample_data: Path) -> Folders:
    """The folder of a finished stage; that of clean is its input."""
    return lambda name: sample_data / "raw" if name == "raw" else finished_run / FOLDERS[name]


@pytest.mark.parametrize("stage", CALLS)
def test_function_and_command_write_the_same(stage: str, corpusforge: Run, folders: Folders, tmp_path: Path) -> None:
    reads, keywords = CALLS[stage]
    first, *second = [folders("raw")] if stage == "clean" else [folders(name) for name in reads]
    more = dict.fromkeys([SECOND[stage]], second[0]) if second else {}
    words = [f"--{name}={path}" for name, path in more.items()]
    done = corpusforge(stage, str(first), "--output", str(tmp_path / "a"), "--quiet", *words, *_flags(keywords))
    assert done.returncode == 0, done.stderr
    function = getattr(cf, stage.replace("-", "_"))
    result = function(first, output=tmp_path / "b", progress=False, **more, **keywords)
    assert _manifest(tmp_path / "a") == _manifest(tmp_path / "b")
    assert result.folder == str(tmp_path / "b") and not result.skipped
    assert function(first, output=tmp_path / "a", progress=False, **more, **keywords).skipped


def test_a_whole_line_without_naming_a_folder(folders: Folders) -> None:
    """Results are passed on; folders are temporary and live as long as their results."""
    quick: dict[str, Any] = {"recipe": "quickstart", "progress": False}
    clean = cf.clean(folders("raw"), **quick)
    documents = cf.dedupe(clean, method=["lines", "exact-spans"], sentences="builtin", **quick)
    folder = clean.folder
    assert Path(folder).is_dir()
    del clean
    gc.collect()
    assert not Path(folder).exists()
    vocab = cf.train_vocab(documents, **quick)
    instances = cf.build_instances(documents, vocab=vocab, **quick)
    model = cf.pretrain(instances, **{**quick, **TINY, "warmup_steps": 1})
    scores = cf.evaluate(model, data=instances, tasks=["mlm"], progress=False)
    assert scores.statistics["mlm_loss"] > 0 and "mlm_loss" in repr(scores)
    assert [result.skipped for result in (documents, vocab, instances, model, scores)] == [False] * 5
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    assert AutoModelForMaskedLM.from_pretrained(f"{model.folder}/model").config.vocab_size == 2048
    assert AutoTokenizer.from_pretrained(vocab.folder).vocab_size == 2048


def test_an_error_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: Folders) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(errors.CorpusForgeError):
        cf.clean(folders("raw"), language="", badwords="off", rules=["no-such-pack"])
    with pytest.raises(errors.FilterFailed):
        cf.clean(iter(["x"]), language="", badwords="off", rules=[], filters=[lambda text: None], progress=False)
    assert not list(tmp_path.iterdir())


def test_a_result_opens_in_every_form(folders: Folders) -> None:
    result = cf.load(folders("clean"))
    assert isinstance(result, cf.Result) and result.tables == ("documents", "rejects")
    table = result.table()
    assert table.num_rows == result.manifest.rows["documents"] > 0
    assert pa.Table.from_batches(list(result.batches("documents"))) == table
    assert result.to_pandas().shape == (table.num_rows, table.num_columns)
    rows = result.to_datasets("rejects", streaming=True)
    assert next(iter(rows))["reason"] in result.counts
    assert result.to_datasets().num_rows == table.num_rows
    with pytest.raises(errors.InputMissing, match="its tables: documents, rejects"):
        result.table("document")


def test_a_result_opens_in_polars(folders: Folders) -> None:
    pytest.importorskip("polars")
    result = cf.load(folders("clean"))
    assert isinstance(result, cf.Result)
    assert result.to_polars().height == result.manifest.rows["documents"]


def test_counts_and_examples_of_what_was_dropped(folders: Folders) -> None:
    result = cf.load(folders("clean"))
    assert isinstance(result, cf.Result)
    reason = max(result.counts, key=lambda name: 0 if name == "kept" else result.counts[name]["rows"])
    rows = result.dropped(reason, n=3)
    assert 0 < len(rows) <= 3 and {row["reason"] for row in rows} == {reason}
    assert len(result.dropped(n=2)) == 2
    with pytest.raises(errors.InputMissing, match=r"did you mean|reasons:"):
        result.dropped(reason + "x")


def test_a_result_warns_as_the_command_does() -> None:
    result = cf.clean(iter(["No end mark"] * 30), language="", badwords="off", sentences="builtin", progress=False)
    assert result.warnings and result.warnings[0] in result._repr_html_()


def test_a_result_is_shown_with_its_funnel(folders: Folders) -> None:
    for stage in ("clean", "dedupe", "build-instances", "pretrain"):
        result = cf.load(folders(stage))
        html = result._repr_html_()
        assert stage in html and "<table" in html and "<script" not in html
    assert "c4-tfds-3.1" in cf.load(folders("clean"))._repr_html_()
    assert "heldout" in cf.load(folders("build-instances"))._repr_html_()


def test_a_funnel_has_the_steps_in_their_order(folders: Folders) -> None:
    clean, documents, model = (cf.load(folders(stage)) for stage in ("clean", "dedupe", "pretrain"))
    assert isinstance(clean, cf.Result) and isinstance(documents, cf.Result) and isinstance(model, cf.Result)
    assert [step["step"] for step in clean.funnel] == ["documents read", "c4-tfds-3.1", "language", "badwords"]
    assert [step["step"] for step in documents.funnel] == ["before deduplication", "deduplicated"]
    assert clean.funnel[-1]["documents"] == documents.funnel[0]["documents"] == clean.counts["kept"]["rows"]
    assert model.funnel == []


def test_a_training_has_its_log_and_its_model(folders: Folders) -> None:
    model, clean = cf.load(folders("pretrain")), cf.load(folders("clean"))
    assert isinstance(clean, cf.Result) and isinstance(model, cf.Result)
    assert model.log[0]["loss"] > 0 and clean.log == []
    assert Path(model.model, "config.json").is_file()
    with pytest.raises(errors.InputMissing, match="has no model"):
        _ = clean.model


def test_a_temporary_folder_is_not_named() -> None:
    result = cf.clean(iter(["A text."]), language="", badwords="off", rules=[], progress=False)
    assert result.folder not in repr(result) + result._repr_html_()


def test_what_was_dropped_cannot_inject_html(tmp_path: Path) -> None:
    def drop(text: str) -> str:
        return "<b onmouseover=alert(1)>"

    result = cf.clean(
        iter(["A text."]), filters=[cf.Filter(drop, kind="text")], language="", badwords="off", rules=[], progress=False
    )
    assert "filter:drop:<b onmouseover=alert(1)>" in result.counts
    assert "<b onmouse" not in result._repr_html_()


def test_a_run_opens_by_stage(finished_run: Path, tmp_path: Path) -> None:
    run = cf.load(finished_run)
    assert isinstance(run, cf.RunResult)
    assert list(run.stages) == ["clean", "dedupe", "train-vocab", "build-instances", "pretrain", "evaluate"]
    assert Path(run.model, "config.json").is_file() and run.report and "clean" in run._repr_html_()
    with pytest.raises(errors.InputMissing, match="no stage 'cleen'"):
        run["cleen"]
    again = cf.run("quickstart", output=tmp_path, until="dedupe", progress=False)
    assert list(again.stages) == ["clean", "dedupe"]
    assert again["clean"].manifest.content == run["clean"].manifest.content
    with pytest.raises(errors.ManifestInvalid):
        cf.load(tmp_path / "nothing")


def test_inspect_prints_and_report_writes(folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = cf.load(folders("clean"))
    assert isinstance(result, cf.Result)
    cf.inspect(result)
    assert "documents" in capsys.readouterr().out
    page = cf.report(result, output=tmp_path / "page.html")
    assert page == str(tmp_path / "page.html") and "<html" in Path(page).read_text()


def test_a_dry_run_writes_nothing(folders: Folders) -> None:
    result = cf.clean(folders("raw"), recipe="quickstart", dry_run=True, sample=50, progress=False)
    assert result.folder == "" and result.tables == () and result.counts["kept"]["rows"] > 0
    assert result.dropped(n=1)[0]["reason"] in result.counts and "dry run" in result._repr_html_()
    with pytest.raises(errors.InputMissing, match="has no tables"):
        result.table()
    with pytest.raises(TypeError, match="dry_run=True"):
        cf.clean(folders("raw"), sample=3)
    plan = cf.pretrain(folders("build-instances"), dry_run=True, progress=False, **TINY).plan
    assert plan and plan["parameters"] > 0
    assert "as published" in cf.pretrain(folders("build-instances"), dry_run=True, **TINY)._repr_html_()


FILTERS = {"language": "", "badwords": "off", "rules": [], "progress": False, "unit_megabytes": 1}


@pytest.mark.slow
def test_filters_run_in_workers_and_count_in_the_digest(tmp_path: Path) -> None:
    """Lambdas with closures, in two worker processes; another closure is another run."""
    noise = np.random.default_rng(0)
    texts = [f"text number {n} {noise.bytes(500).hex()}" for n in range(4000)]  # does not compress: several work units

    def cleaned(least: int, output: Path, workers: int) -> cf.Result:
        keep = cf.Filter(lambda text: int(text.split()[2]) >= least, name="late")
        return cf.clean(iter(texts), output=output, filters=[keep], workers=workers, **FILTERS)

    first = cleaned(1000, tmp_path / "a", 2)
    assert first.counts["filter:late"]["rows"] == 1000 and first.manifest.rows["documents"] == 3000
    assert len(first.manifest.shards["documents"]) > 1
    alone = cleaned(1000, tmp_path / "b", 1)
    assert alone.manifest.content == first.manifest.content and alone.manifest.digest == first.manifest.digest
    assert cleaned(1000, tmp_path / "a", 2).skipped
    with pytest.raises(errors.OutputTaken, match="step late changed"):
        cleaned(1001, tmp_path / "a", 2)


def test_a_failing_filter_stops_the_workers_and_names_the_document(tmp_path: Path) -> None:
    texts = ["good"] * 3000 + [""] + ["good"] * 10
    rows = [{"text": text or "0", "url": f"http://x/{n}"} for n, text in enumerate(texts)]

    def divide(text: str) -> bool:
        return 1 / len(text.strip("0")) > 0

    with pytest.raises(errors.FilterFailed, match=r"filter divide: raised ZeroDivisionError.*http://x/3000"):
        cf.clean(rows, output=tmp_path / "a", filters=[divide], workers=2, **FILTERS)
    result = cf.clean(rows, output=tmp_path / "a", filters=[divide], workers=2, filter_errors="drop", **FILTERS)
    assert result.counts["filter:divide:error"]["rows"] == 1
    assert result.dropped("filter:divide:error")[0]["url"] == "http://x/3000"


@pytest.mark.slow
def test_a_function_of_a_script_without_a_guard_runs_in_workers(tmp_path: Path) -> None:
    """A script with no ``if __name__ == "__main__"``, as people write them: its functions travel by value."""
    (tmp_path / "script.py").write_text(
        "import corpusforge as cf\n"
        "LEAST = 2\n"
        "def keep(text):\n    return len(text.split()) > LEAST\n"
        "result = cf.clean(iter(['one two', 'one two three'] * 3000), filters=[keep], workers=2, language='',\n"
        "                  badwords='off', rules=[], progress=False)\n"
        "print(result.counts['filter:keep']['rows'])\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.stdout.strip(), done.returncode) == ("3000", 0), done.stderr


def test_a_table_without_rows_has_its_columns() -> None:
    keep = cf.clean(iter(["A text."]), **FILTERS)
    drop = cf.clean(iter(["A text."]), filters=[lambda text: False], **FILTERS)
    assert "reason" in keep.to_pandas("rejects").columns and keep.table("rejects").num_rows == 0
    assert drop.to_pandas()["text"].tolist() == [] and "text" in drop.to_datasets().column_names


def test_a_stage_that_is_none_is_one_line() -> None:
    for wrong in (["a"], {"text": "a"}, ""):
        given: Any = wrong
        with pytest.raises(errors.InputUnreadable, match="is no finished stage; pass a result or its folder"):
            cf.dedupe(given, progress=False)


def test_several_filters_and_a_single_one() -> None:
    texts = ["a", "bb", "ccc"]
    two = cf.clean(iter(texts), filters=[lambda text: text != "a", lambda text: text != "bb"], **FILTERS)
    assert two.counts["filter:lambda"]["rows"] == two.counts["filter:lambda-2"]["rows"] == 1
    single: Any = lambda text: text != "a"  # noqa: E731
    assert cf.clean(iter(texts), filters=single, **FILTERS).counts["filter:lambda"]["rows"] == 1
    wrong: Any = "gopher"
    with pytest.raises(errors.FilterFailed, match="'gopher' is not a function"):
        cf.clean(iter(texts), filters=wrong, **FILTERS)
    assert cf.clean(iter(texts), **FILTERS).warnings == []


def test_a_run_reads_data_and_takes_filters() -> None:
    pages = [f"This is page {n} of many. It has a second sentence. And it has a third one too." for n in range(9)]
    run = cf.run(
        "quickstart",
        inputs=iter(pages),
        filters=[lambda text: "page 3" not in text],
        until="clean",
        settings={"clean.language": "", "clean.badwords": "off"},
        progress=False,
    )
    assert run["clean"].counts["filter:lambda"]["rows"] == 1 and run["clean"].table().num_rows == 8


def test_the_command_line_runs_a_function_that_it_names(corpusforge: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def short(text):\n    return len(text) < 9\n")
    (tmp_path / "in.jsonl").write_text('{"text": "short"}\n{"text": "a longer text"}\n')
    words = [str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), "--language", "", "--badwords", "off"]
    done = corpusforge("clean", *words, "--rules", f"{tmp_path}/mine.py:short")
    assert done.returncode == 0, done.stderr
    result = cf.load(tmp_path / "out")
    assert isinstance(result, cf.Result)
    assert result.counts["filter:short"]["rows"] == 1 and result.table()["text"].to_pylist() == ["short"]
    assert "mine.py" not in (tmp_path / "out" / "manifest.json").read_text()
