"""Waves and reservations as operations: what they are given and what they answer."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, MoveTask
from dragoman.core.errors import Refusal
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.engine.reads.ask import find_task
from dragoman.protocols.agentmail import dialect
from dragoman.services.waves import Waves
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

ORCHESTRATOR = Actor("orchestrator", "olga")


class Desk:
    """Somebody who calls operations of a hub in memory."""

    def __init__(self) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _task, _ref: False, now=self.lab.clock.now)
        self._door = Interpreter(self.lab.hub, [dialect()], facts)

    def call(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> Any:
        """The reply of an operation that must be accepted."""
        answer = self.answer(name, actor, **arguments)
        assert isinstance(answer, Taken), answer
        return answer.reply

    def code(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> str:
        """The code of one that must be refused."""
        answer = self.answer(name, actor, **arguments)
        assert isinstance(answer, Turned), answer
        return answer.code

    def answer(self, name: str, actor: Actor = ORCHESTRATOR, **arguments: Any) -> Answer:
        """Whatever is answered."""
        return self._door.call(name, arguments, actor)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def letter(subject: str, body: str) -> dict[str, Any]:
    """A letter to the orchestrator."""
    return {"to": ["olga"], "subject": subject, "body_md": body}


@proves("WAVE-START", "WAVE-STATUS")
def test_a_wave_is_started_with_ids_and_objects_and_gets_an_id(desk: Desk) -> None:
    beads = ["ol-1", {"id": "ol-2", "title": "Two", "files": ["src/"]}]
    started = desk.call("wave.start", beads=beads, parallel=2)
    told = desk.call("wave.status", BOB, wave_id=started["wave_id"])
    assert [(bead["id"], bead["title"], bead["status"]) for bead in told["beads"]] == [
        ("ol-1", "ol-1", "ready"),
        ("ol-2", "Two", "ready"),
    ]
    assert (told["complete"], told["counts"]) == (False, {"ready": 2})
    (listed,) = desk.call("wave.list")["waves"]
    assert (listed["wave_id"], listed["size"]) == (started["wave_id"], 2)


@proves("WAVE-RETRY-WORDS")
def test_a_type_of_failure_that_there_is_not_is_refused_and_the_known_ones_are_named(
    desk: Desk,
) -> None:
    asked: dict[str, Any] = {"beads": ["a"], "parallel": 1, "wave_id": "W"}
    for retries in ({"FOO": 1}, {"TESTS_FAIL": 1, "TEST_FAIL": 1}):
        answer = desk.answer("wave.start", **asked, retries=retries)
        assert isinstance(answer, Turned), answer
        assert answer.code == "invalid_field"
        assert answer.detail == (
            f"retries: {list(retries)[-1]!a} is not a type of failure; known: TESTS_FAIL, "
            "BUILD_FAIL, SPEC_IMPOSSIBLE, CONTEXT_HIGH, ERROR, MANUAL, TIMEOUT"
        )
    desk.call("wave.start", **asked, retries={"CONTEXT_HIGH": 1, "MANUAL": 0})


@proves("WAVE-RETRIES", "WAVE-COMPLETE")
def test_letters_take_a_wave_to_its_end(desk: Desk) -> None:
    desk.call("wave.start", beads=["a", "b"], parallel=1, wave_id="W", retries={"TESTS_FAIL": 0})
    desk.call("mail.send", ALICE, **letter("[a] BEAD_ACCEPTED", "Accepted bead: a"))
    failed = "Bead: a\nStatus: FAILED\n\n## Failure\nType: TESTS_FAIL\nReason: red\n"
    desk.call("mail.send", ALICE, **letter("[a] FAILED", failed))
    duty = Waves(desk.lab.hub)
    assert duty.run_once(desk.lab.clock.now()) == 1
    assert [bead["status"] for bead in desk.call("wave.status", wave_id="W")["beads"]] == [
        "blocked",
        "ready",
    ]
    desk.call("mail.send", ALICE, **letter("[b] BEAD_ACCEPTED", "Accepted bead: b"))
    done = "Bead: b\nStatus: DONE\n\n## Changes\n- Commit: 12ab\n- Files: x\n"
    desk.call("mail.send", ALICE, **letter("[b] DONE", done))
    assert duty.run_once(desk.lab.clock.now()) == 1
    assert desk.call("wave.status", wave_id="W")["complete"] is True
    subjects = [row["subject"] for row in desk.call("mail.inbox")["messages"]]
    assert subjects[-1] == "Wave W is complete: 1 blocked, 1 review"


@proves("WAVE-START")
def test_what_is_wrong_with_a_wave_is_told_by_its_code(desk: Desk) -> None:
    assert desk.code("wave.start", beads=["a"]) == "invalid_field"
    assert desk.code("wave.start", beads=[1], parallel=1) == "invalid_field"
    assert desk.code("wave.start", beads=[], parallel=1) == "invalid_field"
    assert desk.code("wave.start", ALICE, beads=["a"], parallel=1) == "not_authorized"
    assert desk.code("wave.status", wave_id="W") == "wave_not_found"


@proves("RESERVE-TAKE", "RESERVE-END")
def test_files_are_reserved_listed_renewed_and_released(desk: Desk) -> None:
    taken = desk.call("reserve.take", ALICE, patterns=["./src/"], ttl_ms=60_000, reason="why")
    assert taken["patterns"] == ("src/**",)
    assert taken["until"] == "2026-02-09T14:31:00.000Z"
    assert desk.code("reserve.take", BOB, patterns=["src/x"]) == "reserved"
    (one,) = desk.call("reserve.list", BOB, patterns=["src/x"])["reservations"]
    assert one == {
        "id": taken["id"],
        "patterns": ("src/**",),
        "holder": "alice",
        "mode": "exclusive",
        "until": "2026-02-09T14:31:00.000Z",
        "reason": "why",
    }
    assert desk.call("reserve.list", patterns=["docs/"]) == {"reservations": []}
    assert desk.code("reserve.list", patterns=["../x"]) == "invalid_field"
    renewed = desk.call("reserve.renew", ALICE, names=[taken["id"]], ttl_ms=120_000)
    assert renewed == {"until": "2026-02-09T14:32:00.000Z"}
    assert desk.code("reserve.release", BOB, names=[taken["id"]]) == "not_authorized"
    assert desk.call("reserve.release", HUMAN, names=[taken["id"]])["released"] == (taken["id"],)
    assert desk.call("reserve.list") == {"reservations": []}
    both = tuple(desk.call("reserve.take", ALICE, patterns=[name])["id"] for name in ("a", "b"))
    assert desk.call("reserve.release", ALICE) == {"released": both}, "not a word, but which"
    third = desk.call("reserve.take", ALICE, patterns=["c"])["id"]
    assert desk.call("reserve.release", ALICE, names=["c"]) == {"released": (third,)}


@proves("WAVE-START")
def test_the_same_wave_again_is_the_same_wave(desk: Desk) -> None:
    desk.lab.do(HUMAN, CreateTask("t", "UU", aliases=("bead:ol-2",)))
    beads = ["ol-1", {"id": "ol-2", "files": ["./src/a.py"]}]
    asked: dict[str, Any] = {"beads": beads, "parallel": 1, "wave_id": "w1"}
    first = desk.call("wave.start", **asked)
    head = desk.lab.store.head()
    by_another_name: dict[str, Any] = {"beads": ["ol-1", {"id": "UU", "files": ["src/a.py"]}]}
    for same in (asked, asked | by_another_name):
        again = desk.answer("wave.start", **same)
        assert isinstance(again, Taken)
        assert (again.reply, again.repeated) == (first, True)
    assert desk.lab.store.head() == head, "nothing is added"
    others: tuple[dict[str, Any], ...] = (
        {"beads": ["ol-1"]},
        {"beads": ["ol-2", "ol-1"]},
        {"beads": ["ol-1", "ol-3"]},
        {"parallel": 2},
        {"retries": {"ERROR": 1}},
        {"orchestrator": "otto"},
    )
    for other in others:
        assert desk.code("wave.start", **asked | other) == "already_exists"
    assert isinstance(find_task(desk.lab.store, "ol-3"), Refusal)
    assert desk.code("wave.start", HUMAN, **asked) == "already_exists"


@proves("WAVE-ONE")
def test_a_bead_runs_in_one_wave_at_a_time(desk: Desk) -> None:
    desk.call("wave.start", beads=["a", "b"], parallel=2, wave_id="W")
    refusal = desk.code("wave.start", beads=["c", "b"], parallel=1, wave_id="V")
    assert refusal == "reserved"
    assert isinstance(find_task(desk.lab.store, "c"), Refusal), "nothing of it has happened"
    # What has ended in the one may be in the next: it counts as it stands.
    desk.lab.do(HUMAN, MoveTask("b", "blocked", "not now"))
    assert desk.call("wave.start", beads=["c", "b"], parallel=1, wave_id="V") == {"wave_id": "V"}
    # And so may whatever was in a wave that is complete.
    for name in ("a", "c"):
        desk.lab.do(HUMAN, MoveTask(name, "cancelled"))
    Waves(desk.lab.hub).run_once(desk.lab.clock.now())
    desk.lab.do(HUMAN, MoveTask("b", "ready"))
    assert desk.call("wave.start", beads=["b"], parallel=1, wave_id="U") == {"wave_id": "U"}
