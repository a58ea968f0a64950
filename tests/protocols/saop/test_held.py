"""What a chunk holds back outlives the hub: nothing is lost, told twice or told by half."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.plan import Taken, Turned
from dragoman.engine.rests import Batch
from dragoman.protocols import saop
from dragoman.system.chunk_tails import ChunkTails
from tests.protocols.saop.desk import DEVELOPER, SECRET, Desk, event, invoked, pulse, thought
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
        patch.setattr(Batch, "settle", told)
        with pytest.raises(Killed):
            say()


def after_it(desk: Desk, mind: Mind) -> Desk:
    """The next hub, on the same store and the same disk."""
    return Desk(saop.Choices(tails=ChunkTails(mind.folder, bytes(32), mind.now)), desk)


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
            desk = after_it(desk, mind)
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
    desk = after_it(mind.desk, mind)
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


def together(desk: Desk, chunks: list[dict[str, Any]]) -> list[Any]:
    """The answers to chunks that are said at once, none after the answer to another."""

    async def all_of_them() -> list[Any]:
        answers = (
            desk.interpreter.call_soon("saop.event", event(number, chunk), DEVELOPER)
            for number, chunk in enumerate(chunks)
        )
        return await asyncio.gather(*answers, return_exceptions=True)

    try:
        return asyncio.run(all_of_them())
    finally:
        desk.hub.engine.close()


def commits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each transaction from now on begins behind."""
    begun, transact = list[int](), desk.store.transact

    def counted(work: Any) -> Any:
        begun.append(desk.store.head())
        return transact(work)

    monkeypatch.setattr(desk.store, "transact", counted)
    return begun


@pytest.mark.parametrize("size", [1, 3, 7, 30])
def test_chunks_that_are_said_at_once_go_on_with_one_another_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    mind = Mind(tmp_path)
    begun, synced = commits(mind.desk, monkeypatch), list[int]()
    whole = f"it is {SECRET} and more of it, and an end"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    monkeypatch.setattr("os.fdatasync", synced.append)
    answers = together(
        mind.desk, [thought(one, final=n == len(pieces) - 1) for n, one in enumerate(pieces)]
    )
    assert all(isinstance(one, Taken) for one in answers)
    assert said(mind.desk).startswith("it is [REDACTED:github_token:")
    assert said(mind.desk).endswith("] and more of it, and an end")
    assert (len(begun), len(synced)) == (1, 1)
    assert list(mind.folder.iterdir()) == []


def test_a_chunk_behind_one_that_is_refused_or_on_record_goes_on_with_what_is_there(
    tmp_path: Path,
) -> None:
    mind = Mind(tmp_path)
    mind.desk.event(0, thought(PIECES[0]))
    chunks = [PIECES[0], PIECES[1], PIECES[2]]
    messages = [thought(one) for one in chunks]
    messages[1:1] = [thought("what another part thinks") | {"agent_id": "reviewer"}]
    repeated, refused, *others = together(mind.desk, messages)
    assert repeated.repeated
    assert isinstance(refused, Turned)
    assert all(isinstance(one, Taken) and not one.repeated for one in others)
    assert said(mind.desk).startswith("it is [REDACTED:github_token:")
    assert said(mind.desk).endswith("] and more of it, and an ")


def test_where_it_cannot_be_kept_only_those_are_refused_that_hold_something_back(
    tmp_path: Path,
) -> None:
    mind = Mind(tmp_path)
    mind.folder.write_text("a file where a folder should be")
    unkept, kept = together(mind.desk, [thought("half a thou"), invoked("c-1")])
    assert isinstance(unkept, StoreUnavailable)
    assert isinstance(kept, Taken)


def test_under_a_key_a_chunk_is_the_same_whatever_it_goes_on_with(tmp_path: Path) -> None:
    desk = Mind(tmp_path).desk
    desk.event(0, thought("half a thou"))
    again = partial(desk.interpreter.call, "saop.event", event(1, thought("ght and ha")))
    first = again(DEVELOPER, key="k")
    assert isinstance(first, Taken)
    assert again(DEVELOPER, key="k").reply == first.reply
    other = desk.interpreter.call("saop.event", event(2, thought("lf")), DEVELOPER, key="k")
    assert isinstance(other, Turned)
    assert other.code == "key_reused"
