"""A TaskResult about a task that is no intent's reports that task, once for each attempt."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, MoveTask
from dragoman.core.errors import Refusal
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Taken, Turned
from dragoman.protocols import ccos
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-PLAIN-TASK")

ADA, BOB = Actor("agent", "ada"), Actor("agent", "bob")


class Desk:
    """A lab in which ada works on a task that nobody has delegated."""

    def __init__(self, *, review: bool = False, kept_bytes: int = 65_536) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _, __: True, now=self.lab.clock.now)
        chosen = ccos.Choices(kept_bytes=kept_bytes)
        self.door = Interpreter(self.lab.hub, (ccos.dialect(chosen),), facts)
        self.lab.do(HUMAN, CreateTask("t", id="t1", ready=True, review_required=review))
        self.claim()

    def claim(self, actor: Actor = ADA) -> None:
        """Somebody begins."""
        self.lab.clock.advance(3_600_000)
        self.lab.do(actor, ClaimTask("t1", actor.name))

    def send(self, *, success: bool = True, **said: Any) -> Taken | Turned:
        """What ada brings."""
        what = {"output": "fini"} if success and "output" not in said else {}
        value = {"intent_id": "t1", "agent_id": "ada", "success": success, **what, **said}
        answer = self.door.send(value, speaker=ADA)
        assert isinstance(answer, Taken | Turned), answer
        return answer

    def taken(self, **said: Any) -> dict[str, Any]:
        """The answer to what counts, or is a repeat."""
        answer = self.send(**said)
        assert isinstance(answer, Taken), answer
        return answer.reply

    def refused(self, **said: Any) -> tuple[str, str]:
        """The answer to what does not count; the task is as before."""
        before = self.lab.task("t1")
        answer = self.send(**said)
        assert isinstance(answer, Turned), answer
        assert self.lab.task("t1") == before
        return answer.refusal.code, answer.refusal.detail


@pytest.mark.parametrize(("review", "status"), [(False, "done"), (True, "review")])
def test_an_equal_repeat_is_answered_like_the_first_and_another_result_is_an_anomaly(
    review: bool, status: str
) -> None:
    desk = Desk(review=review)
    first = desk.taken()
    assert first == {"intent_id": "t1", "agent_id": "ada", "status": status}
    assert desk.taken() == first | {"repeated": True}
    for other in ({"output": "presque fini"}, {"success": False, "error": "it broke"}):
        assert desk.refused(**other) == (
            "anomaly",
            "attempt 1 of t1 has another result already (done): that one counts",
        )


def test_so_it_is_with_a_failure_while_nobody_has_begun_anew() -> None:
    desk = Desk()
    assert desk.taken(success=False, error="it broke")["status"] == "ready"
    assert desk.taken(success=False, error="it broke")["repeated"]
    assert desk.refused()[1] == (
        "attempt 1 of t1 has another result already (failed): that one counts"
    )
    desk.claim(BOB)
    assert desk.refused(success=False, error="it broke")[0] == "anomaly"


def test_what_is_said_of_an_earlier_attempt_does_not_end_the_one_that_is_under_way() -> None:
    desk = Desk()
    desk.taken(success=False, error="it broke", attempt=1)
    desk.claim()
    assert desk.refused(success=False, error="it broke", attempt=1) == (
        "anomaly",
        "t1 is in attempt 2, not in 1",
    )
    assert desk.taken(attempt=2)["status"] == "done"


def test_an_output_that_is_not_kept_is_known_by_its_digest() -> None:
    desk = Desk(kept_bytes=4)
    first = desk.taken(output="x" * 100)
    report = desk.lab.task("t1").reported
    assert report is not None
    assert (report.details["left_out"], "output" in report.details) == (102, False)
    assert desk.taken(output="x" * 100) == first | {"repeated": True}
    assert desk.refused(output="y" * 100)[0] == "anomaly"


def test_what_a_person_has_finished_has_no_result_of_its_agent() -> None:
    desk = Desk()
    desk.lab.do(HUMAN, MoveTask("t1", "ready"))
    desk.lab.do(HUMAN, ClaimTask("t1", "ada"))
    desk.lab.do(HUMAN, MoveTask("t1", "review"))
    desk.lab.do(HUMAN, MoveTask("t1", "done"))
    code, detail = desk.refused()
    assert (code, "nobody holds t1 now, it is done" in detail) == ("lease_lost", True)


def test_what_is_about_nothing_is_an_anomaly() -> None:
    desk = Desk()
    answer = desk.door.send({"intent_id": "t9", "agent_id": "ada", "success": True}, speaker=ADA)
    assert isinstance(answer, Turned)
    assert isinstance(answer.refusal, Refusal)
    assert answer.refusal.code == "anomaly"
