"""Through Beam's portable protocol: a job service, a worker pool, separate worker processes; digests as locally."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import corpusforge as cf
import corpusforge.beam as transforms
from corpusforge import errors, sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.dedupe import methods
from corpusforge.instances import build
from corpusforge.progress import Silent
from corpusforge.sections import Clean, Dedupe, Instances
from corpusforge.shards import Manifest
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.counts import count_units, count_words, read_blocks, select_counts
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import documents, write_units
from tests.beam.raw_pages import OFFLINE, OWN_REASONS, own_filters, rows_of, write_pages
from tests.beam.stage_folders import content
from tests.beam.test_transforms import clean_to
from tests.clean.test_work import run as clean
from tests.counting_work import CountingWork, units
from tests.instances.test_build_graph import SECTIONS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def _serve(command: list[str], port_file: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # workers are started as "python"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent.parent)])}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, *command], stdout=sink, stderr=sink, env=environment, start_new_session=True
        )
    deadline = time.monotonic() + 60
    while not port_file.exists() or not port_file.read_text():
        if time.monotonic() > deadline or process.poll() is not None:
            raise RuntimeError(log.read_text())
        time.sleep(0.05)
    return process, int(port_file.read_text())


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BeamEngine]:
    folder = tmp_path_factory.mktemp("services")
    jobs = ["-m", "apache_beam.runners.portability.local_job_service_main", "--port_file", str(folder / "jobs.port")]
    started = [_serve(jobs, folder / "jobs.port", folder / "jobs.log")]
    pool = [str(HERE / "worker_pool_on_localhost.py"), str(folder / "pool.port")]
    started.append(_serve(pool, folder / "pool.port", folder / "pool.log"))
    ports = [port for _, port in started]
    yield BeamEngine(
        runner="PortableRunner",
        options=(
            f"--job_endpoint=localhost:{ports[0]}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{ports[1]}",
        ),
    )
    for process, _ in started:
        os.killpg(process.pid, signal.SIGTERM)
    for process, _ in started:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def test_units_run_elsewhere_and_errors_come_back(portable: BeamEngine, tmp_path: Path) -> None:
    all_units = units()
    sizes = [u.bytes for u in all_units]

    def run(work: CountingWork, engine: BeamEngine) -> object:
        return engine.map(work, all_units, sizes, label="count", folder=work.output, progress=Silent())

    with pytest.raises(errors.InputUnreadable) as raised:
        run(CountingWork(str(tmp_path / "there"), fail_at=3, how="known"), portable)
    assert str(raised.value) == "unit 3: it is broken; mend it; or leave it out"
    with pytest.raises(errors.CorpusForgeError, match=r"--runner PortableRunner: the pipeline failed .*not ours"):
        run(CountingWork(str(tmp_path / "there"), fail_at=3, how="unknown"), portable)
    there = run(CountingWork(str(tmp_path / "there")), portable)
    here = run(CountingWork(str(tmp_path / "here")), BeamEngine(1))
    assert [(r.unit, r.tallies, r.statistics) for r in there] == [(r.unit, r.tallies, r.statistics) for r in here]  # type: ignore[attr-defined]
    assert content(tmp_path / "there", "numbers") == content(tmp_path / "here", "numbers")


def test_the_line_gives_the_digests_of_the_local_run(portable: BeamEngine, tmp_path: Path) -> None:
    shards = write_units(tmp_path / "in", documents(60), [10, 25])
    write_pages(tmp_path / "pages")
    write_pages(tmp_path / "copies", urls=40)
    section = Instances(format="segment-pair", length=32, heldout=0.2, masking="duplicated", copies=2)
    seen = []
    for name, engine in (("here", BeamEngine(1)), ("there", portable)):
        out = tmp_path / name
        clean(tmp_path / "pages", out / "clean", engine)
        clean(tmp_path / "copies", out / "newest", engine, newest_memory=1 << 30)
        every = Dedupe(method=("lines", "exact-spans", "near-spans", "documents"), sentences="builtin")
        methods.run(engine, every, shards, str(out / "dedupe"), Silent())
        words = count_units(engine, UNCASED, shards, str(out / "vocab"), Silent())
        counts, statistics = select_counts(read_blocks(words), min_count=1, max_words=10**6)
        learned = learn(counts, sections.Vocab(size=512, unused=16)).vocab
        build.run(engine, section, 7, learned, shards, str(out / "instances"), Silent())
        contents = [content(out / name, table) for name in ("clean", "newest") for table in ("documents", "rejects")]
        contents += [content(out / "dedupe", table) for table in ("documents", "repeats")]
        contents += [content(out / "instances", table) for table in ("train", "heldout")]
        seen.append((contents, statistics, learned.digest))
    assert seen[0] == seen[1]
    assert min(rows for _, rows in seen[0][0]) > 0


def test_filters_of_ones_own_travel(portable: BeamEngine, tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages", 60)

    def build(folder: Path, pipeline: Any) -> None:
        documents, unread = pipeline | beam.Create(rows_of(pages)) | transforms.RowsToDocuments()
        clean_to(folder, documents, unread, transforms.CleanDocuments(Clean(**OFFLINE), filters=own_filters()))

    seen = []
    for name, engine in (("here", BeamEngine(1)), ("there", portable)):
        out, how = tmp_path / name, {"runner": engine.runner, "beam_options": engine.options, "progress": False}
        result = cf.clean(pages, output=out / "stage", filters=own_filters(), **how, **OFFLINE)
        assert set(result.counts) > OWN_REASONS
        engine.run(functools.partial(build, out / "rows"))
        own = Manifest.load(str(out / "rows"))
        seen.append((result.manifest.digest, result.manifest.content, result.counts, own.content, own.rows))
    assert seen[0] == seen[1]
    assert min(seen[0][-1].values()) > 0


def test_instances_of_every_kind_have_the_digests_of_the_local_run(portable: BeamEngine, tmp_path: Path) -> None:
    rows = documents(60)
    given = write_units(tmp_path / "in", rows, [10, 25])
    learned = learn(count_words(rows.column("text")), sections.Vocab(size=512, unused=16)).vocab
    for section in SECTIONS:
        seen = []
        for name, engine in (("here", BeamEngine(1)), ("there", portable)):
            out = tmp_path / section.format / name
            build.run(engine, section, 7, learned, given, str(out), Silent())
            seen.append([content(out, table) for table in ("train", "heldout")])
        assert seen[0] == seen[1]
        assert min(rows for _, rows in seen[0]) > 0
