"""The graphs as Dataflow would receive them: built, staged and submitted to fakes on this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corpusforge import errors, sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.progress import Silent
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.wordpiece import learn
from tests.beam.fake_dataflow import BUCKET, FakeDataflow, fake_dataflow
from tests.beam.stage_folders import ROWS
from tests.counting_work import CountingWork, units

pytestmark = pytest.mark.slow

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
IMAGE = "registry.example/corpusforge:0.1.0"


def has_gcp() -> bool:
    return all(importlib.util.find_spec(name) for name in ("gcp_storage_emulator", "apitools"))


@pytest.fixture
def dataflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDataflow]:
    if not has_gcp():
        pytest.skip(
            "needs apache-beam[gcp] and gcp-storage-emulator: pip install 'apache-beam[gcp]' gcp-storage-emulator"
        )
    with fake_dataflow() as fake:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", fake.storage)
        yield fake


def submitted(fake: FakeDataflow) -> Any:
    """The graph of the only job."""
    from apache_beam.portability.api import beam_runner_api_pb2

    (job,) = fake.jobs
    options = job["environment"]["sdkPipelineOptions"]["options"]
    assert options["sdk_location"] == "container"
    staged = fake.staged(options["pipelineUrl"])
    assert len(staged) < 200_000  # Dataflow takes 10 MB
    graph = beam_runner_api_pb2.Pipeline.FromString(staged)
    images = {beam_runner_api_pb2.DockerPayload.FromString(e.payload).container_image
              for e in graph.components.environments.values() if e.urn == "beam:env:docker:v1"}  # fmt: skip
    assert images == {IMAGE}
    return graph


def steps(graph: Any) -> set[str]:
    return {transform.unique_name for transform in graph.components.transforms.values()}


def coders(graph: Any) -> bytes:
    return b" ".join(coder.spec.payload for coder in graph.components.coders.values())


def main_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pipelines_{name}", PIPELINES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flags(fake: FakeDataflow, name: str) -> list[str]:
    return ["--output", f"gs://{BUCKET}/{name}", "--runner", "DataflowRunner", *fake.options]


def test_clean_is_submitted(dataflow: FakeDataflow) -> None:
    own = ["--input", f"gs://{BUCKET}/crawl/*.warc.gz", "--detector", "fast", "--sentences", "builtin"]
    main_of("clean").main([*own, "--badwords", "off", *flags(dataflow, "clean")])
    graph = submitted(dataflow)
    names = steps(graph)
    for name in ("ReadDocuments/Plan", "ReadDocuments/Spread", "ReadDocuments/Read", "CleanDocuments/Clean"):
        assert name in names
    assert {"WriteDocuments/Write", "WriteRejects/Write", "WriteManifest/Write"} <= names
    assert not any("ByHash" in name for name in names)
    assert b"RecordBatchCoder" in coders(graph)


def test_dedupe_is_submitted(dataflow: FakeDataflow) -> None:
    main_of("dedupe").main(["--input", f"gs://{BUCKET}/clean", *flags(dataflow, "dedupe")])
    names = steps(submitted(dataflow))
    for name in ("Hash", "ByHash", "FindDuplicates", "ByBatch", "Ask", "Join", "Cut"):
        assert f"DedupeSpans/{name}" in names


def test_words_and_instances_are_submitted(dataflow: FakeDataflow, tmp_path: Path) -> None:
    main_of("vocab").main(["--counts-only", "--input", f"gs://{BUCKET}/dedupe", *flags(dataflow, "vocab")])
    assert {"CountWords/Count", "CountWords/Merge"} <= steps(submitted(dataflow))
    for name, data in (
        learn(count_words(ROWS.column("text")), sections.Vocab(size=512, unused=16)).vocab.save_files().items()
    ):
        (tmp_path / name).write_bytes(data)
    dataflow.jobs.clear()
    own = ["--input", f"gs://{BUCKET}/dedupe", "--vocab", str(tmp_path), "--format", "segment-pair"]
    main_of("instances").main([*own, *flags(dataflow, "instances")])
    names = steps(submitted(dataflow))
    for name in ("Encode", "Smallest", "TakeNegatives", "Build"):
        assert f"BuildInstances/{name}" in names


def test_a_stage_puts_no_list_of_units_into_the_graph(dataflow: FakeDataflow, tmp_path: Path) -> None:
    all_units = units(2000)
    work = CountingWork(str(tmp_path))
    engine = BeamEngine(runner="DataflowRunner", options=tuple(dataflow.options))
    sizes = [u.bytes for u in all_units]
    engine.map(work, all_units, sizes, label="count", folder=str(tmp_path), progress=Silent())
    graph = submitted(dataflow)
    assert b"unit-1234" not in graph.SerializeToString()
    assert {"Listed", "ReadList", "Spread", "count"} <= {name.split("/")[0] for name in steps(graph)}


def test_missing_options_are_named(dataflow: FakeDataflow) -> None:
    with pytest.raises(errors.RunnerRefused, match=r"temp_location.*; give its options after --"):
        BeamEngine(runner="DataflowRunner", options=("--project=corpusforge-test",)).run(lambda pipeline: None)


def test_without_the_extra_the_runner_is_refused() -> None:
    if has_gcp():
        pytest.skip("the extra is installed")
    with pytest.raises(errors.RunnerRefused, match=r"corpusforge\[gcp\]"):
        BeamEngine(runner="DataflowRunner", options=("--project=x",)).run(lambda pipeline: None)
