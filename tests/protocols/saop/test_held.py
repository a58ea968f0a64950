"""What a chunk holds back outlives the hub: nothing is lost, told twice or told by half."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.interpreter import Interpreter
from dragoman.protocols import saop
from dragoman.system.chunk_tails import ChunkTails
from tests.protocols.saop.desk import SECRET, Desk, pulse, thought
from tests.requirements import proves
from tests.services.test_thoughts import Mind
from tests.text.test_redact import PEM

pytestmark = proves("SAOP-MASKED", "SAOP-ENDED")

PIECES = ["it is " + SECRET[:20], SECRET[20:] + " and more of i", "t, and an end"]


class Killed(BaseException):
    """The hub is no more."""


def dies_with_its_answer(monkeypatch: pytest.MonkeyPatch, say: Callable[[], Any]) -> None:
    """What is said is committed, and then the hub is killed."""

    def told(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Interpreter, "_told", told)
        with pytest.raises(Killed):
            say()


def after_it(desk: Desk, folder: Path) -> Desk:
    """The next hub, on the same store and the same disk."""
    return Desk(saop.Choices(tails=ChunkTails(folder, bytes(32))), desk)


def said(desk: Desk) -> str:
    """The thought as it is on record."""
    told = [one["payload"] for one in desk.events(session_id="s-1")]
    return "".join(one["chunk"] for one in told if "chunk" in one)


@pytest.mark.parametrize("killed_with", range(3))
def test_a_hub_that_dies_with_a_commit_loses_and_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_with: int
) -> None:
    mind = Mind(tmp_path)
    desk = mind.desk
    for number, piece in enumerate(PIECES):
        chunk = thought(piece, final=number == len(PIECES) - 1)
        if number == killed_with:
            dies_with_its_answer(monkeypatch, partial(desk.event, number, chunk))
            desk = after_it(desk, mind.folder)
        desk.event(number, chunk)
    whole = said(desk)
    assert whole.startswith("it is [REDACTED:github_token:")
    assert whole.endswith("] and more of it, and an end")
    mind.wait()
    assert mind.run() == 0, "it has ended"
    assert list(mind.folder.iterdir()) == []


def test_an_end_that_nobody_was_told_of_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mind = Mind(tmp_path)
    mind.desk.event(1, thought("half a thou"))
    dies_with_its_answer(monkeypatch, lambda: mind.desk.event(2, thought("ght", final=True)))
    mind.wait()
    assert mind.run() == 0
    assert [one["is_final"] for one in mind.told()] == [False, True]
    assert said(mind.desk) == "half a thought"


def test_what_is_not_on_record_has_changed_nothing(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.desk.event(1, thought(PIECES[0]))
    mind.desk.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        mind.desk.event(2, thought(PIECES[1]))
    mind.desk.event(3, thought(PIECES[1]))
    mind.desk.event(4, thought(PIECES[2], final=True))
    whole = said(mind.desk)
    assert whole.startswith("it is [REDACTED:github_token:")
    assert whole.endswith("] and more of it, and an end")


def test_a_chunk_whose_end_cannot_be_kept_is_not_on_record(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.folder.write_text("a file where a folder should be")
    with pytest.raises(StoreUnavailable):
        mind.desk.event(1, thought(PIECES[0]))
    assert mind.told() == []
    mind.folder.unlink()
    for number, piece in enumerate(PIECES, 1):
        mind.desk.event(number, thought(piece))
    assert SECRET[20:] not in said(mind.desk)


def test_a_key_in_a_terminal_goes_on_after_a_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mind = Mind(tmp_path)
    begin, *lines = PEM.splitlines()
    dies_with_its_answer(monkeypatch, lambda: mind.desk.event(1, pulse(begin)))
    desk = after_it(mind.desk, mind.folder)
    for number, line in enumerate(lines, 2):
        desk.event(number, pulse(line))
    assert b"q7Xz" not in b"".join(entry.line for entry in desk.store.entries(0, 100))


def test_the_duty_tells_what_the_record_says(tmp_path: Path) -> None:
    mind = Mind(tmp_path)
    mind.desk.event(1, thought("one two"))
    mind.desk.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        mind.desk.event(2, thought(" three"))
    mind.wait()
    assert mind.run() == 1
    assert said(mind.desk) == "one two"
