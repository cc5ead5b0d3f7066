"""Fetching: from a folder or through an opener, checked before anything is written."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError

import pytest

from corpusforge import errors
from corpusforge.clean import fetch as fetching
from corpusforge.clean.fetch import LISTS, PUNKT, fetch


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "corpusforge"


def test_lists_from_a_folder(shared_data: Path, cache: Path) -> None:
    folder, count = fetch("badwords", str(shared_data / "badwords/LDNOOBW"))
    assert (Path(folder), count) == (cache / "badwords", 28)
    assert {p.name for p in (cache / "badwords").iterdir()} == set(LISTS)


def test_lists_over_https_are_pinned(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    requested: list[str] = []

    def opener(url: str) -> bytes:
        requested.append(url)
        return b"word\n"

    monkeypatch.setattr(fetching, "LISTS", {n: (hashlib.sha256(b"word\n").hexdigest(),) for n in ("de", "en")})
    assert fetch("badwords", opener=opener)[1] == 2
    assert "/5faf2ba42d7b1c0977169ec3611df25a3c08eb13/de" in requested[0]
    assert "/25e679f03d96baa721cde20db9944649e8d0a844/en" in requested[1]
    assert (cache / "badwords/en").read_bytes() == b"word\n"


def test_wrong_content_writes_nothing(cache: Path) -> None:
    with pytest.raises(errors.InputUnreadable, match="not what is expected"):
        fetch("badwords", opener=lambda url: b"something else")
    with pytest.raises(errors.InputUnreadable, match="not the archive expected"):
        fetch("punkt", opener=lambda url: b"no zip")
    assert not cache.exists()


def test_offline_is_a_one_line_error(cache: Path) -> None:
    def offline(url: str) -> bytes:
        raise URLError("no route to host")

    with pytest.raises(errors.ResourceMissing, match=r"cannot be fetched \(no route to host\); .* --from DIR"):
        fetch("badwords", opener=offline)
    with pytest.raises(errors.InputMissing, match="cannot be read"):
        fetch("badwords", "/nowhere")


class Server:
    """A web server, or a proxy, on this machine: answers by path or whole URL, and records requests."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        requested: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requested.append(self.path)
                content = answers.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                missing = 10 if self.path.endswith("cut-short") else 0
                self.send_header("Content-Length", str(len(content) + missing))
                self.end_headers()
                self.wfile.write(content)

            def do_CONNECT(self) -> None:
                requested.append(self.path)
                self.send_error(403)

            def log_message(self, *_: object) -> None:
                pass

        self.requested = requested
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, bytes]], Server]]:
    """Starts servers; no proxy but those of the test."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    servers: list[Server] = []

    def start(answers: dict[str, bytes]) -> Server:
        servers.append(Server(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def _lists(monkeypatch: pytest.MonkeyPatch, home: str, **contents: bytes) -> None:
    known = {name: (hashlib.sha256(content).hexdigest(),) for name, content in contents.items()}
    monkeypatch.setattr(fetching, "LISTS", known)
    monkeypatch.setattr(fetching, "_LISTS_HOME", home)


OTHERS = fetching._OTHERS


def test_from_a_web_server(monkeypatch: pytest.MonkeyPatch, cache: Path, serve: Callable[..., Server]) -> None:
    server = serve({f"/{OTHERS}/de": b"eins\n", f"/{OTHERS}/fr": b"un\n"})
    _lists(monkeypatch, server.url, de=b"eins\n", fr=b"un\n")
    assert fetch("badwords") == (str(cache / "badwords"), 2)
    assert {p.name: p.read_bytes() for p in (cache / "badwords").iterdir()} == {"de": b"eins\n", "fr": b"un\n"}


def test_through_a_proxy(monkeypatch: pytest.MonkeyPatch, cache: Path, serve: Callable[..., Server]) -> None:
    proxy = serve({f"http://lists.invalid/{OTHERS}/de": b"eins\n"})
    monkeypatch.setenv("http_proxy", proxy.url)
    _lists(monkeypatch, "http://lists.invalid", de=b"eins\n")
    assert fetch("badwords")[1] == 1
    assert proxy.requested == [f"http://lists.invalid/{OTHERS}/de"]


def test_a_proxy_that_refuses_is_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, cache: Path, serve: Callable[..., Server]
) -> None:
    proxy = serve({})
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    with pytest.raises(errors.ResourceMissing, match=r"cannot be fetched \(Tunnel connection failed: 403") as caught:
        fetch("punkt")
    assert "\n" not in str(caught.value) and proxy.requested[0].endswith(":443") and not cache.exists()


def test_broken_answers_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, cache: Path, serve: Callable[..., Server]
) -> None:
    server = serve({f"/{OTHERS}/de": b"eins\n", f"/{OTHERS}/fr": b"changed\n", f"/{OTHERS}/cut-short": b"x"})
    _lists(monkeypatch, server.url, de=b"eins\n", fr=b"un\n")
    with pytest.raises(errors.InputUnreadable, match="content is not what is expected"):
        fetch("badwords")
    _lists(monkeypatch, server.url, de=b"eins\n", nl=b"een\n")
    with pytest.raises(errors.ResourceMissing, match=r"nl: cannot be fetched \(HTTP Error 404: Not Found\)"):
        fetch("badwords")
    _lists(monkeypatch, server.url, **{"cut-short": b"xx"})
    with pytest.raises(errors.ResourceMissing, match=r"cannot be fetched \(the connection ended at 1 of 11 bytes\)"):
        fetch("badwords")
    monkeypatch.setattr(fetching, "MOST_BYTES", 3)
    _lists(monkeypatch, server.url, de=b"eins\n")
    with pytest.raises(errors.ResourceMissing, match="the answer has more than"):
        fetch("badwords")
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(errors.ResourceMissing, match=r"cannot be fetched \(.*refused") as caught:
        fetch("badwords")
    assert "\n" not in str(caught.value) and not cache.exists()


def test_what_was_fetched_before_stays_when_a_fetch_fails(
    monkeypatch: pytest.MonkeyPatch, cache: Path, serve: Callable[..., Server]
) -> None:
    server = serve({f"/{OTHERS}/de": b"eins\n"})
    _lists(monkeypatch, server.url, de=b"eins\n")
    fetch("badwords")
    with pytest.raises(errors.InputUnreadable):
        fetch("badwords", opener=lambda url: b"else")
    assert [p.name for p in (cache / "badwords").iterdir()] == ["de"]
    assert (cache / "badwords/de").read_bytes() == b"eins\n"


def test_a_cache_that_cannot_be_written_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    _lists(monkeypatch, "", de=b"eins\n")
    with pytest.raises(errors.OutputTaken, match=r"cannot be written .* XDG_CACHE_HOME"):
        fetch("badwords", opener=lambda url: b"eins\n")


def test_an_archive_bomb_is_refused(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PUNKT:
            archive.writestr(f"punkt_tab/english/{name}", b"0" * 100_000)
    monkeypatch.setattr(fetching, "MOST_BYTES", 10_000)
    with pytest.raises(errors.InputUnreadable, match="is too large"):
        fetch("punkt", opener=lambda url: packed.getvalue())
    assert not cache.exists()


def test_punkt_from_a_folder_and_from_its_archive(shared_data: Path, cache: Path) -> None:
    assert fetch("punkt", str(shared_data / "nltk_data")) == (str(cache / "nltk_data"), 4)
    english = cache / "nltk_data/tokenizers/punkt_tab/english"
    assert {p.name for p in english.iterdir()} == set(PUNKT)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in english.iterdir():
            # The order of lines is free: NLTK writes sets.
            archive.writestr(f"punkt_tab/english/{path.name}", b"\n".join(path.read_bytes().splitlines()[::-1]))
    assert fetch("punkt", opener=lambda url: packed.getvalue())[1] == 4
