"""Operations of waves and file reservations."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Accepted, Rejected, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols.agentmail import dialect
from dragoman.services.timers import WaveService
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

ORCHESTRATOR = Actor("orchestrator", "olga")


class WaveHub:
    """Hub in memory with the Agent Mail operations."""

    def __init__(self) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.clock.now)
        self._router = Router(self.lab.hub, [dialect()], facts)

    def call(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> Any:
        """Call an operation that must be accepted, and return its reply."""
        answer = self.answer(name, actor, **arguments)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def code(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> str:
        """Call an operation that must be refused, and return the code."""
        answer = self.answer(name, actor, **arguments)
        assert isinstance(answer, Rejected), answer
        return answer.code

    def answer(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> Reply:
        """Call an operation, accepted or refused."""
        return self._router.call(name, arguments, actor)


@pytest.fixture
def hub() -> WaveHub:
    return WaveHub()


def letter(subject: str, body: str) -> dict[str, Any]:
    """Build a letter to the orchestrator."""
    return {"to": ["olga"], "subject": subject, "body_md": body}


@proves("WAVE-START", "WAVE-STATUS")
def test_wave_starts_with_ids_and_objects_and_gets_an_id(hub: WaveHub) -> None:
    beads = ["ol-1", {"id": "ol-2", "title": "Two", "files": ["src/"]}]
    started = hub.call("wave.start", beads=beads, parallel=2)
    status = hub.call("wave.status", BOB, wave_id=started["wave_id"])
    assert [(bead["id"], bead["title"], bead["status"]) for bead in status["beads"]] == [
        ("ol-1", "ol-1", "ready"),
        ("ol-2", "Two", "ready"),
    ]
    assert (status["complete"], status["counts"]) == (False, {"ready": 2})
    (listed,) = hub.call("wave.list")["waves"]
    assert (listed["wave_id"], listed["size"]) == (started["wave_id"], 2)


@proves("WAVE-RETRY-WORDS")
def test_unknown_failure_type_is_refused_with_the_known_ones(hub: WaveHub) -> None:
    arguments: dict[str, Any] = {"beads": ["a"], "parallel": 1, "wave_id": "W"}
    for retries in ({"FOO": 1}, {"TESTS_FAIL": 1, "TEST_FAIL": 1}):
        answer = hub.answer("wave.start", **arguments, retries=retries)
        assert isinstance(answer, Rejected), answer
        assert answer.code == "invalid_field"
        assert answer.detail == (
            f"retries: {list(retries)[-1]!a} is not a type of failure; known: TESTS_FAIL, "
            "BUILD_FAIL, SPEC_IMPOSSIBLE, CONTEXT_HIGH, ERROR, MANUAL, TIMEOUT"
        )
    hub.call("wave.start", **arguments, retries={"CONTEXT_HIGH": 1, "MANUAL": 0})


@proves("WAVE-RETRIES", "WAVE-COMPLETE")
def test_letters_complete_a_wave(hub: WaveHub) -> None:
    hub.call("wave.start", beads=["a", "b"], parallel=1, wave_id="W", retries={"TESTS_FAIL": 0})
    hub.call("mail.send", ALICE, **letter("[a] BEAD_ACCEPTED", "Accepted bead: a"))
    failed = "Bead: a\nStatus: FAILED\n\n## Failure\nType: TESTS_FAIL\nReason: red\n"
    hub.call("mail.send", ALICE, **letter("[a] FAILED", failed))
    service = WaveService(hub.lab.hub)
    assert service.run_once(hub.lab.clock.now()) == 1
    assert [bead["status"] for bead in hub.call("wave.status", wave_id="W")["beads"]] == [
        "blocked",
        "ready",
    ]
    hub.call("mail.send", ALICE, **letter("[b] BEAD_ACCEPTED", "Accepted bead: b"))
    done = "Bead: b\nStatus: DONE\n\n## Changes\n- Commit: 12ab\n- Files: x\n"
    hub.call("mail.send", ALICE, **letter("[b] DONE", done))
    assert service.run_once(hub.lab.clock.now()) == 1
    assert hub.call("wave.status", wave_id="W")["complete"] is True
    subjects = [row["subject"] for row in hub.call("mail.inbox")["messages"]]
    assert subjects[-1] == "Wave W is complete: 1 blocked, 1 review"


@proves("WAVE-START")
def test_invalid_waves_are_refused(hub: WaveHub) -> None:
    assert hub.code("wave.start", beads=["a"]) == "invalid_field"
    assert hub.code("wave.start", beads=[1], parallel=1) == "invalid_field"
    assert hub.code("wave.start", beads=[], parallel=1) == "invalid_field"
    assert hub.code("wave.start", ALICE, beads=["a"], parallel=1) == "not_authorized"
    assert hub.code("wave.status", wave_id="W") == "wave_not_found"


@proves("RESERVE-TAKE", "RESERVE-END")
def test_files_are_reserved_listed_extended_and_released(hub: WaveHub) -> None:
    reservation = hub.call("reserve.take", ALICE, patterns=["./src/"], ttl_ms=60_000, reason="why")
    assert reservation["patterns"] == ("src/**",)
    assert reservation["until"] == "2026-02-09T14:31:00.000Z"
    assert hub.code("reserve.take", BOB, patterns=["src/x"]) == "files_reserved"
    (one,) = hub.call("reserve.list", BOB, patterns=["src/x"])["reservations"]
    assert one == {
        "id": reservation["id"],
        "patterns": ("src/**",),
        "holder": "alice",
        "until": "2026-02-09T14:31:00.000Z",
        "reason": "why",
    }
    assert hub.call("reserve.list", patterns=["docs/"]) == {"reservations": []}
    assert hub.code("reserve.list", patterns=["../x"]) == "invalid_field"
    longer = hub.call("reserve.take", ALICE, patterns=["src/"], ttl_ms=120_000)
    assert (longer["id"], longer["until"]) == (reservation["id"], "2026-02-09T14:32:00.000Z")
    assert hub.code("reserve.release", BOB, names=[reservation["id"]]) == "not_authorized"
    assert hub.call("reserve.release", HUMAN, names=[reservation["id"]])["released"] == (
        reservation["id"],
    )
    assert hub.call("reserve.list") == {"reservations": []}
    both = tuple(hub.call("reserve.take", ALICE, patterns=[name])["id"] for name in ("a", "b"))
    assert hub.call("reserve.release", ALICE) == {"released": both}, "not a word, but which"
    third = hub.call("reserve.take", ALICE, patterns=["c"])["id"]
    assert hub.call("reserve.release", ALICE, names=["c"]) == {"released": (third,)}


@proves("WAVE-START")
def test_repeated_wave_is_recognized(hub: WaveHub) -> None:
    hub.lab.do(HUMAN, CreateTask("t", "UU", aliases=("bead:ol-2",)))
    beads = ["ol-1", {"id": "ol-2", "files": ["./src/a.py"]}]
    arguments: dict[str, Any] = {"beads": beads, "parallel": 1, "wave_id": "w1"}
    first = hub.call("wave.start", **arguments)
    head = hub.lab.store.head()
    by_another_name: dict[str, Any] = {"beads": ["ol-1", {"id": "UU", "files": ["src/a.py"]}]}
    for same in (arguments, arguments | by_another_name):
        again = hub.answer("wave.start", **same)
        assert isinstance(again, Accepted)
        assert (again.reply, again.repeated) == (first, True)
    assert hub.lab.store.head() == head, "nothing is added"
    others: tuple[dict[str, Any], ...] = (
        {"beads": ["ol-1"]},
        {"beads": ["ol-2", "ol-1"]},
        {"beads": ["ol-1", "ol-3"]},
        {"parallel": 2},
        {"retries": {"ERROR": 1}},
        {"orchestrator": "otto"},
    )
    for other in others:
        assert hub.code("wave.start", **arguments | other) == "already_exists"
    assert isinstance(find_task(hub.lab.store, "ol-3"), Refusal)
    assert hub.code("wave.start", HUMAN, **arguments) == "already_exists"


@proves("WAVE-ONE")
def test_bead_runs_in_one_wave_at_a_time(hub: WaveHub) -> None:
    hub.call("wave.start", beads=["a", "b"], parallel=2, wave_id="W")
    refusal = hub.code("wave.start", beads=["c", "b"], parallel=1, wave_id="V")
    assert refusal == "reserved_for_other"
    assert isinstance(find_task(hub.lab.store, "c"), Refusal), "nothing of it has happened"
    # A bead that has ended in one wave may run in the next, and counts there with its status.
    hub.lab.do(HUMAN, MoveTask("b", "blocked", "not now"))
    assert hub.call("wave.start", beads=["c", "b"], parallel=1, wave_id="V") == {"wave_id": "V"}
    # So may any bead of a completed wave.
    for name in ("a", "c"):
        hub.lab.do(HUMAN, MoveTask(name, "cancelled"))
    WaveService(hub.lab.hub).run_once(hub.lab.clock.now())
    hub.lab.do(HUMAN, MoveTask("b", "ready"))
    assert hub.call("wave.start", beads=["b"], parallel=1, wave_id="U") == {"wave_id": "U"}
