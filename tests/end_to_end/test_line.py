"""The whole line on the sample: what comes out, that it loads, and that doing it again changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import A_FEW_STEPS

Run = Callable[..., subprocess.CompletedProcess[str]]
STAGES = ("clean", "dedupe", "vocab", "instances")


def _manifests(folder: Path, names: tuple[str, ...] = STAGES) -> dict[str, dict[str, object]]:
    return {name: json.loads((folder / name / "manifest.json").read_text()) for name in names}


def _digests(folder: Path) -> dict[str, object]:
    """Shard digests and contents of all corpus stages."""
    return {name: (m["digest"], m["content"], m["shards"], m["tallies"]) for name, m in _manifests(folder).items()}


def _until_instances(corpusforge: Run, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return corpusforge(
        "run", "quickstart", "--output", str(folder), "--until", "build-instances", "--quiet", *more
    )  # fmt: skip


@pytest.mark.slow
def test_every_stage_leaves_what_it_promises(finished_run: Path) -> None:
    for name in (*STAGES, "pretrain", "evaluate"):
        assert (finished_run / name / "manifest.json").is_file(), name
    assert (finished_run / "report.html").stat().st_size > 10_000
    assert (finished_run / "pretrain/model/model.safetensors").is_file()
    found = json.loads((finished_run / "evaluate/evaluation.json").read_text())
    assert {"mlm", "blimp"} <= set(found["tasks"])


@pytest.mark.slow
def test_nothing_is_lost_without_a_reason(finished_run: Path) -> None:
    manifest = _manifests(finished_run)["clean"]
    rows, statistics, tallies = manifest["rows"], manifest["statistics"], manifest["tallies"]
    pages = sum(v["rows"] for k, v in tallies.items() if k.startswith(("page:", "record:")))  # type: ignore[attr-defined]
    assert statistics["records_in"] == rows["documents"] + pages  # type: ignore[index]
    assert any(k.startswith("record:") for k in tallies)  # type: ignore[attr-defined]
    assert any(k.startswith("line:") for k in tallies)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_checkpoint_loads_in_transformers(finished_run: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = str(finished_run / "pretrain/model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, info = transformers.AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert len(tokenizer) == model.config.vocab_size
    ids = tokenizer("The bread rises.")["input_ids"]
    assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    filled = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer)("The [MASK] is old.")
    assert len(filled) == 5


@pytest.mark.slow
def test_instances_open_in_datasets(finished_run: Path) -> None:
    datasets = pytest.importorskip("datasets")
    manifest = _manifests(finished_run)["instances"]
    train = datasets.load_from_disk(str(finished_run / "instances/train"))
    assert train.num_rows == manifest["rows"]["train"]  # type: ignore[index]


@pytest.mark.slow
def test_a_second_run_skips_everything(corpusforge: Run, finished_run: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in finished_run.rglob("*.arrow")}
    done = corpusforge("run", "quickstart", "--output", str(finished_run), *A_FEW_STEPS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("up to date, skipped") == 6
    assert before == {p: p.stat().st_mtime_ns for p in finished_run.rglob("*.arrow")}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "5"])
def test_digests_do_not_depend_on_workers(corpusforge: Run, finished_run: Path, tmp_path: Path, workers: str) -> None:
    done = _until_instances(corpusforge, tmp_path, "--workers", workers)
    assert done.returncode == 0, done.stderr
    assert _digests(tmp_path) == _digests(finished_run)


@pytest.mark.slow
def test_contents_do_not_depend_on_files_per_unit(corpusforge: Run, tmp_path: Path, sample_data: Path) -> None:
    """One file a unit, or all in one: other shards, the same rows."""
    found = []
    for number, size in enumerate(("1", "512")):
        folder = tmp_path / str(number)
        inputs = [
            w for n in ("crawl.warc.gz", "articles.jsonl", "notes") for w in ("--input", str(sample_data / "raw" / n))
        ]
        done = _until_instances(corpusforge, folder, *inputs, "--set", f"input.unit_megabytes={size}")
        assert done.returncode == 0, done.stderr
        found.append({name: m["content"] for name, m in _manifests(folder).items()})
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [1.5, 3.0, 5.0])
def test_killed_at_any_moment_then_run_again(
    corpusforge: Run, finished_run: Path, tmp_path: Path, delay: float
) -> None:
    """SIGKILL to the whole process group, then the same command: the digests of an undisturbed run."""
    command = [sys.executable, "-m", "corpusforge", "run", "quickstart", "--output", str(tmp_path), "--quiet"]
    command += ["--until", "build-instances"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = _until_instances(corpusforge, tmp_path)
    assert done.returncode == 0, done.stderr
    assert _digests(tmp_path) == _digests(finished_run)
    assert not list(tmp_path.rglob(".unfinished-*"))


@pytest.mark.slow
def test_the_sample_gives_the_contents_it_always_gave(finished_run: Path) -> None:
    """Frozen digests of what every stage says. After a change on purpose: `python tests/golden/freeze.py RUN_DIR`."""
    golden = json.loads((Path(__file__).parents[1] / "golden/quickstart.json").read_text())
    assert {name: m["content"] for name, m in _manifests(finished_run).items()} == golden


@pytest.mark.slow
def test_a_corpus_of_two_documents_runs_to_its_report(corpusforge: Run, tmp_path: Path) -> None:
    """Nothing is held out of so few: the task mlm is left out, and says so."""
    text = " ".join(f"The number {n} is a number like any other, and this sentence is about it." for n in range(40))
    lines = [json.dumps({"text": f"{title}. {text}"}) for title in ("One", "Two")]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    settings = ["--set", "pretrain.steps=2", "--set", "vocab.size=256", "--set", "vocab.unused=8"]
    settings += ["--set", "instances.heldout=0.000001", "--set", "clean.language=", "--set", "clean.badwords=off"]
    run = ["run", "quickstart", "--input", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "run")]
    done = corpusforge(*run, *settings, "--set", "evaluate.tasks=mlm")
    assert done.returncode == 0, done.stderr
    assert "mlm is left out" in done.stderr
    assert (tmp_path / "run/report.html").is_file()
