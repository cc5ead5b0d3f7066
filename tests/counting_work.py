"""Work for tests of pool and engines that workers can import: it writes real shards and fails on request."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from corpusforge import errors
from corpusforge.units import Advance, ShardUnit, UnitOutput, UnitResult

NUMBERS = pa.schema([pa.field("number", pa.int64(), nullable=False)])


@dataclass(frozen=True)
class CountingWork:
    """Writes the numbers from 0 to the ``rows`` of its unit in batches of ten, two batches per shard."""

    output: str
    fail_at: int = -1
    how: str = ""
    seconds: float = 0.0

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        with UnitOutput(self.output, unit.number, {"numbers": (NUMBERS, "arrow")}, 160) as output:
            if output.done:
                return output.result(resumed=True)
            for first in range(output.position, unit.rows, 10):
                self._perhaps_fail(unit.number, first)
                time.sleep(self.seconds)
                last = min(unit.rows, first + 10)
                batch = pa.record_batch([pa.array(range(first, last), pa.int64())], schema=NUMBERS)
                output.write(
                    {"numbers": batch},
                    position=last,
                    size=8 * (last - first),
                    tallies={"line:odd": {"rows": (last - first) // 2, "bytes": 0}},
                    statistics={"numbers": last - first},
                )
                advance(8 * (last - first))
            return output.finish()

    def _perhaps_fail(self, unit: int, first: int) -> None:
        if unit != self.fail_at or first < 20:
            return
        if self.how == "known":
            raise errors.InputUnreadable(f"unit {unit}", "it is broken", "mend it; or leave it out")
        if self.how == "unknown":
            raise ZeroDivisionError("not ours")
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


class ImportingWork:
    """Makes an Arrow array of a list; its statistics say whether that imported pandas."""

    def __call__(self, unit: ShardUnit, advance: Advance) -> UnitResult:
        pa.array(["word"])
        return UnitResult(unit.number, {}, {"pandas": "pandas" in sys.modules})


def units(count: int = 7) -> list[ShardUnit]:
    """Units of different sizes, one of them empty."""
    return [ShardUnit(n, f"unit-{n}", rows := 25 * n % 90, 8 * rows) for n in range(count)]


if __name__ == "__main__":  # a program that tests interrupt
    import sys

    from corpusforge.pool import run_units

    folder = sys.argv[1]
    work = CountingWork(folder, seconds=float(sys.argv[2]))
    Path(folder).mkdir(exist_ok=True)
    all_units = units()
    run_units(work, all_units, [u.bytes for u in all_units], 2, folder, lambda _: None)
