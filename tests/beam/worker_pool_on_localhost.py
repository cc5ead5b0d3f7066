"""Beam's external worker pool (a process a worker) bound to this machine only; writes its port to the file named.

Beam's own `worker_pool_main` listens on all interfaces.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer


def main(port_file: str) -> None:
    """Serve until killed."""
    server = grpc.server(ThreadPoolExecutor(4))
    port = server.add_insecure_port("127.0.0.1:0")
    servicer = BeamFnExternalWorkerPoolServicer(use_process=True)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(servicer, server)
    server.start()
    Path(port_file).write_text(str(port))
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
