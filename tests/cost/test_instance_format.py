"""What a new format of instances costs: one file, and one row of the table in sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cost.changed_copy import copy_package, prepare, rows_of, run

pytestmark = pytest.mark.slow

FILE = '''"""Format of single sentences: each is an instance of its own."""

from corpusforge.instances.blocks import parts_of
from corpusforge.instances.check import check_cover
from corpusforge.instances.formats import Format, single


def plan(source, negatives, settings, copy):
    starts, ends, document = parts_of(source, settings.length - 2)
    return single(document, starts, ends - starts)


def check(source, plan, negatives, settings):
    check_cover(source, plan)


FORMATS = {"one-sentence": Format(plan, check)}
'''
LINE = '    "sop": Named('
ROW = '    "one-sentence": Named("one_sentence", "single sentences"),\n'


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"corpusforge/instances/one_sentence.py": FILE}
    return copy_package(
        tmp_path_factory.mktemp("copy"), files, {"corpusforge/sections/instances.py": [(LINE, ROW + LINE)]}
    )


def test_a_new_format_is_built_by_the_command_line(copy: Path, tmp_path: Path) -> None:
    build = prepare(copy, tmp_path)
    for masking in ("static", "dynamic"):
        name = str(tmp_path / masking)
        run(copy, *build, "--output", name, "--format", "one-sentence", "--masking", masking, "--length", "64")
    static, dynamic = (rows_of(tmp_path / name, "train") for name in ("static", "dynamic"))
    assert len(static) == len(dynamic) > 100
    for row, other in zip(static, dynamic, strict=True):
        ids = list(row["input_ids"])
        for position, label in zip(row["masked_positions"], row["masked_labels"], strict=True):
            ids[position] = label
        assert ids == other["input_ids"]  # the same sentence under both
        assert len(ids) <= 64
        assert row["pair_label"] is None
    assert any(row["index"] > 0 for row in static)  # documents have several sentences


def test_a_new_format_is_in_the_help(copy: Path) -> None:
    shown = " ".join(run(copy, "build-instances", "--help").split())
    assert "one-sentence: single sentences" in shown
    assert "|one-sentence|" in shown
