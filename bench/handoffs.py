"""Handoffs with a package of 4 KB and an artifact: whole lives, artifacts, and pages of many."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import uvloop
from msgspec.structs import replace

from bench.callers import Call, drive, open_hub
from bench.raw import RawFront, RawStreams, Written
from dragoman.core.actor import Actor
from dragoman.core.handoff.state import ProposeHandoff
from dragoman.core.task_state import CreateTask
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ExpectedArtifact, StoredArtifact
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.files.artifacts import FileArtifactStore
from dragoman.protocols import acp
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from dragoman.system.safe_fs import SafeDisk

SENDER = Actor("agent", "demigod")
RECIPIENT = Actor("agent", "crank")

_BYTES = 4_096
_ARTIFACT = b"what was found out so far\n" * 40
_LARGE = 16 << 20
_AT_ONCE = 200
_ROOT = "teamspaces/default/artifacts"
_PERSON = Actor("human", "owner")


def raw_lives(folder: Path, callers: int, seconds: float) -> float:
    """Lives per second of the hand-written loop that writes the same entries, step by step."""
    steps, streams = _steps_of_a_life(folder)

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        raw = RawStreams(folder / "raw.db")
        front = RawFront(raw.write)
        numbers = count(step=streams)

        async def life() -> None:
            first = next(numbers)
            for step in steps:
                await front.write([replace(one, stream=first + one.stream) for one in step])

        yield life
        front.close()
        raw.close()

    return uvloop.run(drive(lives(), callers, seconds))


def lives(folder: Path, callers: int, seconds: float, *, own_artifact: bool = False) -> float:
    """Handoffs per second from the offer to the closed record, with all checks of the gate.

    All of them hand over the same file, or each one of its own, which then has to be kept too.
    """
    with _open_setup(folder) as setup:

        @asynccontextmanager
        async def calls() -> AsyncGenerator[Call]:
            numbers = count()

            async def life() -> None:
                await setup.live(next(numbers), own_artifact=own_artifact)

            yield life

        return uvloop.run(drive(calls(), callers, seconds))


def hashed(folder: Path, seconds: float) -> float:
    """Large files per second that `hashlib` digests, whatever they are."""
    path = folder / "large"
    path.write_bytes(bytes(_LARGE))

    def digest() -> None:
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")

    return _per_second(digest, seconds)


def kept(folder: Path, seconds: float) -> float:
    """The same files per second as artifacts that come for the first time: hashed and copied.

    Each has another content, which the disk has to take before the answer; writing it beforehand
    is not counted.
    """
    root = folder / _ROOT
    root.mkdir(parents=True)
    artifacts, numbers, spent, taken = FileArtifactStore(folder, SafeDisk, new_id), count(1), 0.0, 0
    content = bytearray(_LARGE)
    while spent < seconds:
        content[:8] = next(numbers).to_bytes(8, "big")
        (root / "large").write_bytes(content)
        begun = perf_counter()
        first = artifacts.store_file("default", "large", ExpectedArtifact())
        spent += perf_counter() - begun
        assert isinstance(first, StoredArtifact), first
        taken += 1
        (folder / "artifacts" / "sha256" / first.sha256[:2] / first.sha256).unlink()
    return taken / spent


def verified(folder: Path, seconds: float) -> float:
    """The same when it is kept already: found beneath a root, and compared with its copy."""
    (folder / _ROOT).mkdir(parents=True)
    (folder / _ROOT / "large").write_bytes(bytes(_LARGE))
    artifacts = FileArtifactStore(folder, SafeDisk, new_id)
    first = artifacts.store_file("default", "large", ExpectedArtifact())
    assert isinstance(first, StoredArtifact), first
    expected = ExpectedArtifact(first.sha256, _LARGE)

    def verify() -> None:
        assert artifacts.store_file("default", "large", expected) == first

    return _per_second(verify, seconds)


class ManyHandoffs:
    """A hub with many handoffs."""

    def __init__(self, hub: Hub) -> None:
        self._router = _router(hub, acp.dialect())

    def pages_per_second(self, seconds: float) -> float:
        """Reads a second of the newest page of a recipient's handoffs."""

        def look() -> None:
            query = {"action": "query", "to_agent": RECIPIENT.name, "limit": 20}
            answer = self._router.call("acp_handoff", query, RECIPIENT)
            assert isinstance(answer, Accepted), answer
            assert len(answer.reply["handoffs"]) == 20, answer

        return _per_second(look, seconds)


@contextmanager
def open_handoffs(folder: Path, handoffs: int) -> Generator[ManyHandoffs]:
    """A data directory with so many handoffs to one recipient."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        for start in range(0, handoffs, _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, handoffs))
            hub.submit(_PERSON, *(CreateTask(f"Task {n}", id=f"t-{n}", ready=True) for n in some))
            hub.submit(SENDER, *(_offer(n) for n in some))
        yield ManyHandoffs(hub)


def _offer(number: int) -> ProposeHandoff:
    given = offer(number, 0)
    package = {name: given[name] for name in ("task", "context", "work_state")}
    return ProposeHandoff(f"t-{number}", RECIPIENT.name, package, id=f"h-{number}")


def offer(number: int, size: int = _BYTES, artifact: str = "shared.txt") -> dict[str, Any]:
    """The arguments of an initiate; so many bytes, as different as their numbers."""
    package = _offered(number, artifact, "")
    more = "." * max(0, size - len(msgspec.json.encode(package)))
    return _offered(number, artifact, more)


def _offered(number: int, artifact: str, more: str) -> dict[str, Any]:
    return {
        "action": "initiate",
        "handoff_id": f"h-{number}",
        "to_agent": RECIPIENT.name,
        "task": {
            "task_id": f"t-{number}",
            "title": f"Task {number:012d}",
            "objective": "The token is refreshed before it is read.",
            "success_criteria": ["The login test passes ten times in a row."],
            "priority": "normal",
        },
        "context": {"summary": f"The token is read before it is refreshed. {more}"},
        "work_state": {"status": "in_progress", "next_step": "Write the test that fails."},
        "artifacts": [{"artifact_id": "log", "ref": {"type": "file", "path": artifact}}],
    }


class _Setup:
    """A hub that speaks ACP, with a place for artifacts."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.hub = hub
        self._root = folder / _ROOT
        self._root.mkdir(parents=True)
        (self._root / "shared.txt").write_bytes(_ARTIFACT)
        self._sha256 = hashlib.sha256(_ARTIFACT).hexdigest()
        artifacts = FileArtifactStore(folder, SafeDisk, new_id)
        self._router = _router(hub, acp.dialect(acp.Choices(artifacts=artifacts)))

    async def live(self, number: int, *, own_artifact: bool) -> None:
        """A whole handoff."""
        name = "shared.txt"
        if own_artifact:
            name = f"{number}.txt"
            (self._root / name).write_bytes(_ARTIFACT + b"%d" % number)
        given = offer(number, artifact=name)
        if not own_artifact:
            given["artifacts"][0]["ref"]["sha256"] = self._sha256
        await self._call(SENDER, given)
        for actor, action in (
            (RECIPIENT, "accept"),
            (RECIPIENT, "activate"),
            (RECIPIENT, "complete"),
            (SENDER, "close"),
        ):
            await self._call(actor, {"action": action, "handoff_id": f"h-{number}"})

    async def _call(self, actor: Actor, given: dict[str, Any]) -> None:
        answer = await self._router.call_async("acp_handoff", given, actor)
        assert isinstance(answer, Accepted), answer
        assert answer.reply["success"], answer


@contextmanager
def _open_setup(folder: Path) -> Generator[_Setup]:
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        yield _Setup(hub, folder)


def _steps_of_a_life(folder: Path) -> tuple[list[list[Written]], int]:
    """Additions of each request of one handoff to the ledger, and the number of their streams."""
    with _open_setup(folder) as setup:
        uvloop.run(setup.live(0, own_artifact=False))
        store, names = setup.hub.store, list[str]()
        steps: dict[str, list[Written]] = {}
        for entry in store.entries(0, 1_000):
            if entry.stream not in names:
                names.append(entry.stream)
            row, line = store.stream(entry.stream), msgspec.json.decode(entry.line)
            assert row is not None, entry
            written = Written(names.index(entry.stream), line, row.state)
            steps.setdefault(line["cause"], []).append(written)
    return list(steps.values()), len(names)


def _router(hub: Hub, dialect: Any) -> Router:
    facts = StoreFacts(hub.store, lambda _task, _ref: False, now=hub.clock.now)
    return Router(hub, (dialect,), facts)


def _per_second(call: Callable[[], None], seconds: float) -> float:
    start, done = perf_counter(), 0
    while (passed := perf_counter() - start) < seconds or not done:
        call()
        done += 1
    return done / passed
