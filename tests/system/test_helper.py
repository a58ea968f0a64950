"""A process beside this one: it answers what it is asked, and is not missed when it has gone."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.system.helper import Helper, serve
from tests.requirements import proves


def echo() -> None:
    """Run in the other process."""
    serve(lambda asked: str(os.getpid()).encode() if asked == b"who" else asked[::-1])


@contextmanager
def helping() -> Generator[Helper]:
    helper = Helper(echo)
    try:
        yield helper
    finally:
        helper.end()
        helper.close()


@proves("VERIFY-HASHES")
def test_every_question_has_its_answer() -> None:
    with helping() as helper:
        for question in (b"", b"one", b"a long one" * 1_000_000):
            assert helper.ask(question) == question[::-1]
        assert helper.ask(b"who") != str(os.getpid()).encode()


@proves("VERIFY-HASHES")
def test_one_that_has_gone_answers_nothing() -> None:
    with helping() as helper:
        os.kill(int(helper.ask(b"who") or b""), signal.SIGKILL)
        assert [helper.ask(b"one"), helper.ask(b"two")] == [None, None]


@proves("VERIFY-HASHES")
def test_an_interrupt_is_for_the_one_who_asks() -> None:
    with helping() as helper:
        os.kill(int(helper.ask(b"who") or b""), signal.SIGINT)
        assert helper.ask(b"one") == b"eno"


@proves("VERIFY-HASHES")
def test_no_module_is_taken_from_the_folder_in_which_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "socket.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with helping() as helper:
        assert helper.ask(b"one") == b"eno"
