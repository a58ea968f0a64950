"""Helper process: answers requests, and answers None once it has ended."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.system.process import HelperProcess, serve_requests
from tests.requirements import proves


def serve_echo() -> None:
    """Serve requests in the other process."""
    serve_requests(
        lambda request: str(os.getpid()).encode() if request == b"who" else request[::-1]
    )


@contextmanager
def started_helper() -> Generator[HelperProcess]:
    helper = HelperProcess(serve_echo)
    try:
        yield helper
    finally:
        helper.kill()
        helper.close()


@proves("VERIFY-HASHES")
def test_requests_are_answered() -> None:
    with started_helper() as helper:
        for question in (b"", b"one", b"a long one" * 1_000_000):
            assert helper.request(question) == question[::-1]
        assert helper.request(b"who") != str(os.getpid()).encode()


@proves("VERIFY-HASHES")
def test_killed_helper_answers_none() -> None:
    with started_helper() as helper:
        os.kill(int(helper.request(b"who") or b""), signal.SIGKILL)
        assert [helper.request(b"one"), helper.request(b"two")] == [None, None]


@proves("VERIFY-HASHES")
def test_interrupt_does_not_end_helper() -> None:
    with started_helper() as helper:
        os.kill(int(helper.request(b"who") or b""), signal.SIGINT)
        assert helper.request(b"one") == b"eno"


@proves("VERIFY-HASHES")
def test_helper_imports_nothing_from_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "socket.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with started_helper() as helper:
        assert helper.request(b"one") == b"eno"
