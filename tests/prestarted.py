"""Run command lines in processes forked from one that has imported everything.

Starting Python and importing NumPy, Arrow, Beam and torch takes one to five seconds of processor time a command. Here
one server process imports them once; every command is a fork of it, with its own arguments, environment, directory and
output, that runs a module as ``python -m corpusforge`` does. What a caller sees is the same: exit code, both outputs,
signals. The exception are variables that libraries read while they are imported: a command whose caller has changed
one of these gets a new interpreter (`Commands`).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import multiprocessing.process
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

LIBRARIES = (
    "pyarrow.parquet",
    "pyarrow.compute",
    "pyarrow.dataset",
    "fsspec",
    "psutil",
    "rich.progress",
    "torch.distributed.fsdp",
    "torch.distributed.run",
)
"""Imported by the server in addition to all of corpusforge, as some modules import them late."""

READ_AT_IMPORT = (
    "PYTHON",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "CUDA_",
    "HF_",
    "TORCH",
    "NLTK_",
    "ARROW_",
    "LD_",
    "LC_",
    "LANG",
)
"""Prefixes of environment variables that take effect only when Python starts or a library is imported."""

_NUMBER = struct.Struct("i")
_LONGEST_REQUEST = 1 << 17


def fixed_variables(environment: dict[str, str]) -> dict[str, str]:
    """The variables of an environment that have no effect once a process runs."""
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}


class Running:
    """A process that the server has forked, used like a `subprocess.Popen`."""

    def __init__(self, words: list[str], status: int, output: IO[str], errors: IO[str]) -> None:
        self._words, self._status, self._output, self._errors = words, status, output, errors
        self.pid = _read_number(status)

    def send_signal(self, number: int) -> None:
        """Send the process a signal; does nothing if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def is_running(self, seconds: float = 0) -> bool:
        """Whether it still runs after ``seconds``; returns as soon as it ends."""
        return not select.select([self._status], [], [], seconds)[0]

    def wait(self, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Exit code and outputs.

        Raises `subprocess.TimeoutExpired` after ``timeout`` seconds and kills the process and its workers.
        """
        is_ended = False
        try:
            is_ended = not self.is_running(timeout)
            if not is_ended:
                raise subprocess.TimeoutExpired(self._words, timeout)
            code = os.waitstatus_to_exitcode(_read_number(self._status))
        finally:
            if not is_ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            os.close(self._status)
        with self._output, self._errors:
            self._output.seek(0)
            self._errors.seek(0)
            return subprocess.CompletedProcess(self._words, code, self._output.read(), self._errors.read())


class Commands:
    """Runs ``corpusforge WORDS``; the server starts with the first command and ends with `close`."""

    def __init__(self) -> None:
        self._control: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._fixed: dict[str, str] = {}

    def __call__(self, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run one command with the environment and directory of the caller, without input; its output is text.

        Raises `subprocess.TimeoutExpired` after ``timeout`` seconds and kills the command and its workers.
        """
        if self._control is not None and fixed_variables(dict(os.environ)) != self._fixed:
            return run_fresh(*words, timeout=timeout)
        return self.start("corpusforge", *words).wait(timeout)

    def start(self, module: str, *words: str, environment: Mapping[str, str] | None = None) -> Running:
        """Start ``python -m MODULE WORDS``, with the caller's environment unless another one is given."""
        if self._control is None:
            self._start_server()
        assert self._control is not None
        variables = dict(os.environ if environment is None else environment)
        request = {"module": module, "words": words, "folder": str(Path.cwd()), "environment": variables}
        packed = json.dumps(request).encode()
        assert len(packed) < _LONGEST_REQUEST
        output, errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - `Running` closes them
        status, server_end = os.pipe()
        try:
            socket.send_fds(self._control, [packed], [output.fileno(), errors.fileno(), server_end])
        finally:
            os.close(server_end)
        return Running([module, *words], status, output, errors)

    def _start_server(self) -> None:
        self._control, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._fixed = fixed_variables(dict(os.environ))
        with server_end:
            self._server = subprocess.Popen(
                [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {_START}", str(server_end.fileno())],
                pass_fds=[server_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """End the server."""
        if self._control is not None and self._server is not None:
            self._control.close()
            self._server.wait()

    def __enter__(self) -> Commands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_fresh(*words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run one command in a new interpreter."""
    command = [sys.executable, "-m", "corpusforge", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def _read_number(pipe: int) -> int:
    packed = os.read(pipe, _NUMBER.size)
    if len(packed) < _NUMBER.size:
        raise RuntimeError("the process that starts commands has ended; see its errors above")
    return int(_NUMBER.unpack(packed)[0])


# The server.

_START = "from tests.prestarted import main; main(int(sys.argv[1]))"


def main(control: int) -> None:
    """Serve until the other end closes. Returns in the forked processes only, after their command."""
    _import_all()
    gc.freeze()  # so that a collection in a fork does not copy shared pages
    request = _serve(socket.socket(fileno=control))
    if request is not None:
        code = _execute(request["module"], request["words"])
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)  # tearing the interpreter down would copy every shared page


def _execute(module: str, words: list[str]) -> int:
    """Run a module as ``python -m`` does; returns its exit code."""
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        if leave.code is None or isinstance(leave.code, int):
            return (leave.code or 0) & 255
        print(leave.code, file=sys.stderr)
        return 1
    except BaseException:  # as Python does for any error: print it and end; it must not reach the server's code
        traceback.print_exc()
        return 1
    return 0


def _import_all() -> None:
    import corpusforge

    names = [module.name for module in pkgutil.walk_packages(corpusforge.__path__, "corpusforge.")]
    for name in (*LIBRARIES, *names):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork a process per request; returns the request in the fork, None in the server when the other end closes."""
    wakeup, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
            _report_ended(running)
        if control in ready:
            message, files, _, _ = socket.recv_fds(control, _LONGEST_REQUEST, 3)
            if not message:
                return None
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for inherited in (control.detach(), wakeup, wake, *running.values()):
                    os.close(inherited)
                request: dict[str, Any] = json.loads(message)
                _become(request, files)
                return request
            os.write(files[2], _NUMBER.pack(pid))
            running[pid] = files[2]
            os.close(files[0])
            os.close(files[1])


def _report_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        pipe = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # the caller no longer waits
            os.write(pipe, _NUMBER.pack(status))
        os.close(pipe)


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Adopt output, directory and environment of a request."""
    os.setpgid(0, 0)
    for source, target in zip(files, (1, 2, None), strict=True):
        if target is not None:
            os.dup2(source, target)
        os.close(source)
    os.chdir(request["folder"])
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # type: ignore[attr-defined]
    os.environ.clear()
    os.environ.update(request["environment"])
