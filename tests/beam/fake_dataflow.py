"""Fakes of the services of Google that submitting a job needs, on this machine: storage and the jobs API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUCKET = "corpusforge-test"


@dataclass
class FakeDataflow:
    """``options``: flags for a pipeline; ``jobs``: what was submitted; `staged`: what is in the bucket."""

    storage: str
    jobs_port: int
    jobs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def options(self) -> list[str]:
        """Flags that send a pipeline here."""
        return [
            "--project=corpusforge-test",
            "--region=europe-west1",
            f"--temp_location=gs://{BUCKET}/temp",
            f"--staging_location=gs://{BUCKET}/staging",
            f"--dataflow_endpoint=http://localhost:{self.jobs_port}",
            "--no_auth",
            "--sdk_container_image=registry.example/corpusforge:0.1.0",
            "--sdk_location=container",
        ]

    def staged(self, name: str) -> bytes:
        """The file of a ``gs://`` name."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        client = storage.Client("corpusforge-test", AnonymousCredentials())
        bucket, _, path = name.removeprefix("gs://").partition("/")
        return client.bucket(bucket).blob(path).download_as_bytes()  # type: ignore[no-any-return]


def _answer(fake: FakeDataflow, method: str, path: str, body: bytes) -> dict[str, Any]:
    if method == "POST" and path.endswith("/jobs"):
        job = {**json.loads(body), "id": f"job-{len(fake.jobs)}", "currentState": "JOB_STATE_PENDING"}
        fake.jobs.append(job)
        return job
    if path.endswith("/messages"):
        return {"jobMessages": []}
    if path.endswith("/metrics"):
        return {"metrics": []}
    number = int(path.rsplit("-", 1)[1])
    return {**fake.jobs[number], "currentState": "JOB_STATE_DONE"}


@contextmanager
def fake_dataflow() -> Iterator[FakeDataflow]:
    """Both services on free ports of localhost."""
    from gcp_storage_emulator.server import create_server

    storage = create_server("localhost", 0, in_memory=True, default_bucket=BUCKET)
    storage.start()
    fake = FakeDataflow("", 0)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = json.dumps(_answer(fake, self.command, self.path.partition("?")[0], body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    jobs = ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=jobs.serve_forever, daemon=True).start()
    fake.jobs_port = jobs.server_address[1]
    fake.storage = f"http://localhost:{storage._api._httpd.server_address[1]}"
    try:
        yield fake
    finally:
        jobs.shutdown()
        storage.stop()
