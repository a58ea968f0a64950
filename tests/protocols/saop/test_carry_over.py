"""Carry-over of thought chunks survives a crash: no text is lost, repeated or cut."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.batch_reads import StreamCache
from dragoman.engine.request import Accepted, Rejected
from dragoman.protocols import saop
from dragoman.system.redaction_carry_over_file import CarryOverFile
from tests.protocols.saop.hub import DEVELOPER, SECRET, SaopHub, event, invoked, pulse, thought
from tests.requirements import proves
from tests.services.test_stale_stream_closer import ThoughtStreams
from tests.text.test_redact import PEM

pytestmark = proves("SAOP-MASKED", "SAOP-ENDED")

PIECES = ["it is " + SECRET[:20], SECRET[20:] + " and more of i", "t, and an end"]


class HubKilled(BaseException):
    """Crash of the hub."""


def kill_after_commit(monkeypatch: pytest.MonkeyPatch, send: Callable[[], Any]) -> None:
    """Commit a message, then kill the hub before it replies."""

    def killed(*_: object) -> None:
        raise HubKilled

    with monkeypatch.context() as patch:
        patch.setattr(StreamCache, "trim", killed)
        with pytest.raises(HubKilled):
            send()


def restart(hub: SaopHub, streams: ThoughtStreams) -> SaopHub:
    """Start another hub on the same store and disk."""
    return SaopHub(saop.Choices(tails=CarryOverFile(streams.folder, bytes(32), streams.now)), hub)


def recorded_thought(hub: SaopHub) -> str:
    """Return the thought as it is recorded."""
    events = [one["payload"] for one in hub.events(session_id="s-1")]
    return "".join(one["chunk"] for one in events if "chunk" in one)


@pytest.mark.parametrize("killed_with", range(3))
def test_crash_after_a_commit_loses_and_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_with: int
) -> None:
    streams = ThoughtStreams(tmp_path)
    hub = streams.hub
    for number, piece in enumerate(PIECES):
        chunk = thought(piece, final=number == len(PIECES) - 1)
        if number == killed_with:
            kill_after_commit(monkeypatch, partial(hub.event, number, chunk))
            hub = restart(hub, streams)
        hub.event(number, chunk)
    whole = recorded_thought(hub)
    assert whole.startswith("it is [REDACTED:github_token:")
    assert whole.endswith("] and more of it, and an end")
    streams.pass_deadline()
    assert streams.run() == 0, "it has ended"
    assert list(streams.folder.iterdir()) == []


def test_final_chunk_before_a_crash_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("half a thou"))
    kill_after_commit(monkeypatch, lambda: streams.hub.event(2, thought("ght", final=True)))
    streams.pass_deadline()
    assert streams.run() == 0
    assert [one["is_final"] for one in streams.thoughts()] == [False, True]
    assert recorded_thought(streams.hub) == "half a thought"


def test_failed_commit_leaves_the_carry_over_unchanged(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought(PIECES[0]))
    streams.hub.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        streams.hub.event(2, thought(PIECES[1]))
    streams.hub.event(3, thought(PIECES[1]))
    streams.hub.event(4, thought(PIECES[2], final=True))
    whole = recorded_thought(streams.hub)
    assert whole.startswith("it is [REDACTED:github_token:")
    assert whole.endswith("] and more of it, and an end")


def test_chunk_is_not_recorded_when_its_carry_over_cannot_be_written(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.folder.write_text("a file where a folder should be")
    with pytest.raises(StoreUnavailable):
        streams.hub.event(1, thought(PIECES[0]))
    assert streams.thoughts() == []
    streams.folder.unlink()
    for number, piece in enumerate(PIECES, 1):
        streams.hub.event(number, thought(piece))
    assert SECRET[20:] not in recorded_thought(streams.hub)


def test_private_key_in_a_terminal_stays_masked_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = ThoughtStreams(tmp_path)
    begin, *lines = PEM.splitlines()
    kill_after_commit(monkeypatch, lambda: streams.hub.event(1, pulse(begin)))
    hub = restart(streams.hub, streams)
    for number, line in enumerate(lines, 2):
        hub.event(number, pulse(line))
    assert b"q7Xz" not in b"".join(entry.line for entry in hub.store.entries(0, 100))


def test_service_completes_the_recorded_thought_only(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("one two"))
    streams.hub.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        streams.hub.event(2, thought(" three"))
    streams.pass_deadline()
    assert streams.run() == 1
    assert recorded_thought(streams.hub) == "one two"


def send_concurrently(hub: SaopHub, chunks: list[dict[str, Any]]) -> list[Any]:
    """Send chunks concurrently and return the replies."""

    async def send_all() -> list[Any]:
        answers = (
            hub.router.call_async("saop.event", event(number, chunk), DEVELOPER)
            for number, chunk in enumerate(chunks)
        )
        return await asyncio.gather(*answers, return_exceptions=True)

    try:
        return asyncio.run(send_all())
    finally:
        hub.hub.engine.close()


def record_transactions(hub: SaopHub, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the ledger head at the beginning of each transaction from now on."""
    heads, transact = list[int](), hub.store.transact

    def counted_transact(work: Any) -> Any:
        heads.append(hub.store.head())
        return transact(work)

    monkeypatch.setattr(hub.store, "transact", counted_transact)
    return heads


@pytest.mark.parametrize("size", [1, 3, 7, 30])
def test_concurrent_chunks_share_one_transaction_and_their_carry_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    streams = ThoughtStreams(tmp_path)
    heads, written = record_transactions(streams.hub, monkeypatch), list[object]()
    put = CarryOverFile.put

    def counted_put(tails: CarryOverFile, updates: Any) -> None:
        written.append(updates)
        put(tails, updates)

    whole = f"it is {SECRET} and more of it, and an end"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    monkeypatch.setattr(CarryOverFile, "put", counted_put)
    answers = send_concurrently(
        streams.hub, [thought(one, final=n == len(pieces) - 1) for n, one in enumerate(pieces)]
    )
    assert all(isinstance(one, Accepted) for one in answers)
    assert recorded_thought(streams.hub).startswith("it is [REDACTED:github_token:")
    assert recorded_thought(streams.hub).endswith("] and more of it, and an end")
    assert (len(heads), len(written)) == (1, 1)


def test_chunk_after_a_refused_or_repeated_one_continues_the_carry_over(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(0, thought(PIECES[0]))
    chunks = [PIECES[0], PIECES[1], PIECES[2]]
    messages = [thought(one) for one in chunks]
    messages[1:1] = [thought("what another part thinks") | {"agent_id": "reviewer"}]
    repeated, refused, *others = send_concurrently(streams.hub, messages)
    assert repeated.repeated
    assert isinstance(refused, Rejected)
    assert all(isinstance(one, Accepted) and not one.repeated for one in others)
    assert recorded_thought(streams.hub).startswith("it is [REDACTED:github_token:")
    assert recorded_thought(streams.hub).endswith("] and more of it, and an ")


def test_unwritable_carry_over_refuses_only_chunks_that_need_it(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.folder.write_text("a file where a folder should be")
    unkept, kept = send_concurrently(streams.hub, [thought("half a thou"), invoked("c-1")])
    assert isinstance(unkept, StoreUnavailable)
    assert isinstance(kept, Accepted)


def test_chunk_under_a_key_is_the_same_whatever_the_carry_over(tmp_path: Path) -> None:
    hub = ThoughtStreams(tmp_path).hub
    hub.event(0, thought("half a thou"))
    again = partial(hub.router.call, "saop.event", event(1, thought("ght and ha")))
    first = again(DEVELOPER, key="k")
    assert isinstance(first, Accepted)
    assert again(DEVELOPER, key="k").reply == first.reply
    other = hub.router.call("saop.event", event(2, thought("lf")), DEVELOPER, key="k")
    assert isinstance(other, Rejected)
    assert other.code == "key_reused"
