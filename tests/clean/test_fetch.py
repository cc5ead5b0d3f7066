"""Fetching: from a folder or through an opener, checked before anything is written."""

from __future__ import annotations

import hashlib
import io
import zipfile
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
    asked: list[str] = []

    def opener(url: str) -> bytes:
        asked.append(url)
        return b"word\n"

    monkeypatch.setattr(fetching, "LISTS", {n: (hashlib.sha256(b"word\n").hexdigest(),) for n in ("de", "en")})
    assert fetch("badwords", opener=opener)[1] == 2
    assert "/5faf2ba42d7b1c0977169ec3611df25a3c08eb13/de" in asked[0]
    assert "/25e679f03d96baa721cde20db9944649e8d0a844/en" in asked[1]
    assert (cache / "badwords/en").read_bytes() == b"word\n"


def test_wrong_content_writes_nothing(cache: Path) -> None:
    with pytest.raises(errors.InputUnreadable, match="not what is expected"):
        fetch("badwords", opener=lambda url: b"something else")
    with pytest.raises(errors.InputUnreadable, match="not the archive expected"):
        fetch("punkt", opener=lambda url: b"no zip")
    assert not cache.exists()


def test_offline_is_one_line(cache: Path) -> None:
    def offline(url: str) -> bytes:
        raise URLError("no route to host")

    with pytest.raises(errors.ResourceMissing, match=r"cannot be fetched \(no route to host\); .* --from DIR"):
        fetch("badwords", opener=offline)
    with pytest.raises(errors.InputMissing, match="cannot be read"):
        fetch("badwords", "/nowhere")


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
