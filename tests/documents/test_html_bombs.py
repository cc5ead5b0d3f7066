"""Files that unpack to hundreds of megabytes stop at the limit, with a reason and in flat memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.bombs import AFTER, BOMBS, UNPACKED

ROOT = Path(__file__).resolve().parents[2]

MOST = 256
"""Megabytes the process may grow by over all of them: 16 MiB a step of zstd or a batch of Parquet, a few copies."""


@pytest.mark.slow
def test_bombs_stop_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "first.warc").write_bytes(AFTER)
    for name, (make, _, _) in BOMBS.items():
        (tmp_path / name).write_bytes(make())
        assert (tmp_path / name).stat().st_size < 8 << 20
    command = [sys.executable, "-m", "tests.documents.bombs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    for name, (_, documents, reasons) in BOMBS.items():
        count, why, grown, _ = found[name]
        assert (name, int(count), why) == (name, documents, ",".join(sorted(set(reasons))) or "-")
        assert int(grown) < MOST < UNPACKED, (name, grown)
