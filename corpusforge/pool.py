"""Run work units on this machine: in this process, or in a pool of processes, the largest units first.

Worker processes come from a fork server, because a plain fork would copy the threads of a library (grpc, pyarrow) in
whatever state they are. A worker watches a sentinel, whose other end only its parent has open, and leaves when the
parent is gone. So a killed parent leaves no orphans, an interrupt ends the workers at once, and a killed worker is one
clear error. Nothing here imports Beam: every worker loads this module, and Beam takes more than a second.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from corpusforge import arrays, errors, shards
from corpusforge.units import UnitResult, UnitWork

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 2.0


def run_units(
    work: UnitWork,
    units: Sequence[Any],
    sizes: Sequence[int],
    workers: int,
    folder: str,
    advance: Callable[[int], None],
) -> list[UnitResult]:
    """Run all units, with one worker in this process; returns their results in the order of the units.

    ``folder``: where the work writes; unfinished files that dead processes left there are removed before, and those of
    this run after an error. ``advance`` gets the bytes done. Raises what a unit raised, or `errors.WorkerLost`.
    """
    shards.sweep(folder)
    results: dict[int, UnitResult] = {}
    try:
        with signals_unwind():
            if workers > 1:
                results.update(run_pool(work, units, sizes, workers, advance))
            else:
                for index, (unit, size) in enumerate(zip(units, sizes, strict=True)):
                    results[index] = run_unit(work, unit, size, advance)
    except BaseException:  # an interrupt too leaves no unfinished files
        shards.sweep(folder)
        raise
    return [results[index] for index in range(len(units))]


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """Inside, SIGTERM unwinds as Ctrl-C does, so that workers are ended and unfinished files removed.

    They reach the caller as KeyboardInterrupt and SystemExit: the mark keeps Beam from turning them into a RuntimeError
    (`beam.sdk.as_itself`).
    """

    def leave(number: int, _: object) -> None:
        leaving = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        leaving._tagged_with_step = True  # type: ignore[union-attr]
        raise leaving

    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number, handler in usual.items() if in_main and signal.getsignal(number) is handler]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, usual[number])


class Meter:
    """Reports the progress of one unit, so that the bytes reported add up to its size."""

    def __init__(self, size: int, advance: Callable[[int], None]) -> None:
        self._left, self._advance = size, advance

    def __call__(self, amount: int) -> None:
        """``amount`` more bytes of the unit are done."""
        amount = min(amount, self._left)
        if amount > 0:
            self._left -= amount
            self._advance(amount)

    def finish(self) -> None:
        """The unit is done: report the bytes that it did not report itself."""
        self(self._left)


def run_unit(work: UnitWork, unit: Any, size: int, advance: Callable[[int], None]) -> UnitResult:
    """Run one unit in this process."""
    meter = Meter(size, advance)
    result = work(unit, meter)
    meter.finish()
    return result


def largest_first(sizes: Sequence[int]) -> list[int]:
    """Indices by decreasing size, equal sizes in their order, so that the last units to finish are small.

    >>> largest_first([1, 3, 2, 3])
    [1, 3, 2, 0]
    """
    return sorted(range(len(sizes)), key=lambda i: -sizes[i])


def run_pool(
    work: UnitWork, units: Sequence[Any], sizes: Sequence[int], workers: int, advance: Callable[[int], None]
) -> Iterator[tuple[int, UnitResult]]:
    """Run all units in ``workers`` processes; yields (index, result) as they finish.

    Raises what a unit raised, or `errors.WorkerLost` where a worker process was killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["corpusforge.pool", "pyarrow.parquet", type(work).__module__])
    done = context.Value("q", 0)
    executor = ProcessPoolExecutor(workers, context, _start_worker, (work, done, arrays.pandas_is_spared))
    reported, finished = 0, False
    try:
        for index, result in _results(executor, work, units, sizes, workers):
            reported = _report(done, reported, advance)
            if result is not None:
                yield index, result
        _report(done, reported, advance)
        finished = True
    except BrokenProcessPool:
        raise errors.WorkerLost(
            "a worker process",
            "was killed from outside, most often for lack of memory",
            "free memory or use fewer --workers, and run the same command again: finished shards are kept",
        ) from None
    finally:
        if finished:
            executor.shutdown()
        else:
            _end(executor)


def _results(
    executor: ProcessPoolExecutor, work: UnitWork, units: Sequence[Any], sizes: Sequence[int], workers: int
) -> Iterator[tuple[int, UnitResult | None]]:
    """(index, result) as units finish, and (-1, None) at every tick in between."""
    hidden = contextlib.nullcontext() if type(work).__module__ == "__main__" else _HiddenMain()
    order = iter(largest_first(sizes))
    pending: dict[Future[UnitResult], int] = {}
    while True:
        while len(pending) < workers + 1 and (index := next(order, None)) is not None:
            with hidden:  # processes are started here
                future = executor.submit(_run_in_worker, units[index], sizes[index])
            pending[future] = index
        if not pending:
            return
        finished, _ = wait(pending, _POLL_SECONDS, FIRST_COMPLETED)
        for future in finished:
            yield pending.pop(future), future.result()
        if not finished:
            yield -1, None


class _HiddenMain:
    """Keeps `multiprocessing` from running the program's file again in every worker.

    Units and work come from importable modules, so workers do not need it. It may have no file (standard input, a
    notebook), and without ``if __name__ == "__main__"`` it would do its work again.
    """

    def __enter__(self) -> None:
        self._main = vars(sys.modules["__main__"])
        self._hidden: dict[str, Any] = {k: self._main[k] for k in ("__file__", "__spec__") if k in self._main}
        self._main.pop("__file__", None)
        self._main["__spec__"] = None

    def __exit__(self, *_: object) -> None:
        self._main.update(self._hidden)


def _report(done: Any, reported: int, advance: Callable[[int], None]) -> int:
    # Read without its lock: a worker that was killed while it held the lock must not block its parent.
    now = int(done.get_obj().value)
    if now > reported:
        advance(now - reported)
    return now


def _end(executor: ProcessPoolExecutor) -> None:
    """Stop the workers: first by SIGTERM, so that unfinished files are removed, then by SIGKILL."""
    processes = list((executor._processes or {}).values())  # public from Python 3.14 on (terminate_workers)
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
    executor.shutdown(cancel_futures=True)


_WORK: UnitWork
_DONE: Any
_BUSY = False


def _start_worker(work: UnitWork, done: Any, spares_pandas: bool) -> None:
    """Prepare a worker process. ``spares_pandas``: whether its parent does, see `arrays.spare_pandas`."""
    global _WORK, _DONE
    _WORK, _DONE = work, done
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    import pyarrow

    pyarrow.set_cpu_count(1)  # as many workers as cores already
    if spares_pandas:
        arrays.spare_pandas()


def _leave(*_: object) -> None:
    """Leave a unit by an exception, so that its unfinished files are removed; between units leave at once."""
    if _BUSY:
        sys.exit(143)
    os._exit(143)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _run_in_worker(unit: Any, size: int) -> UnitResult:
    global _BUSY
    _BUSY = True
    try:
        return run_unit(_WORK, unit, size, _count)
    except SystemExit as leave:  # the executor would report it as the unit's error and continue
        os._exit(leave.code if isinstance(leave.code, int) else 1)
    finally:
        _BUSY = False


def _count(amount: int) -> None:
    with _DONE.get_lock():
        _DONE.value += amount
