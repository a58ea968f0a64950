"""A TaskResult about a task without an intent reports that task, once for each attempt."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import ccos
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-PLAIN-TASK")

ADA, BOB = Actor("agent", "ada"), Actor("agent", "bob")


class ClaimedTaskHub:
    """Hub in which ada holds a task that was not delegated."""

    def __init__(self, *, review: bool = False, max_output_bytes: int = 65_536) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _, __: True, now=self.lab.clock.now)
        settings = ccos.Choices(max_output_bytes=max_output_bytes)
        self.router = Router(self.lab.hub, (ccos.dialect(settings),), facts)
        self.lab.do(HUMAN, CreateTask("t", id="t1", ready=True, review_required=review))
        self.claim()

    def claim(self, actor: Actor = ADA) -> None:
        """Start a new attempt."""
        self.lab.clock.advance(3_600_000)
        self.lab.do(actor, ClaimTask("t1", actor.name))

    def send(self, *, success: bool = True, **fields: Any) -> Accepted | Rejected:
        """Send a result as ada."""
        output = {"output": "fini"} if success and "output" not in fields else {}
        value = {"intent_id": "t1", "agent_id": "ada", "success": success, **output, **fields}
        answer = self.router.send(value, speaker=ADA)
        assert isinstance(answer, Accepted | Rejected), answer
        return answer

    def accept(self, **fields: Any) -> dict[str, Any]:
        """Send a result that must be accepted, and return the reply."""
        answer = self.send(**fields)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def reject(self, **fields: Any) -> tuple[str, str]:
        """Send a result that must be refused without changing the task; return code and detail."""
        before = self.lab.task("t1")
        answer = self.send(**fields)
        assert isinstance(answer, Rejected), answer
        assert self.lab.task("t1") == before
        return answer.refusal.code, answer.refusal.detail


@pytest.mark.parametrize(("review", "status"), [(False, "done"), (True, "review")])
def test_equal_result_gets_the_same_reply_and_another_one_is_an_anomaly(
    review: bool, status: str
) -> None:
    hub = ClaimedTaskHub(review=review)
    first = hub.accept()
    assert first == {"intent_id": "t1", "agent_id": "ada", "status": status}
    assert hub.accept() == first | {"repeated": True}
    for other in ({"output": "presque fini"}, {"success": False, "error": "it broke"}):
        assert hub.reject(**other) == (
            "anomaly",
            "attempt 1 of t1 has another result already (done): that one counts",
        )


def test_equal_failure_is_repeated_until_the_next_claim() -> None:
    hub = ClaimedTaskHub()
    assert hub.accept(success=False, error="it broke")["status"] == "ready"
    assert hub.accept(success=False, error="it broke")["repeated"]
    assert hub.reject()[1] == (
        "attempt 1 of t1 has another result already (failed): that one counts"
    )
    hub.claim(BOB)
    assert hub.reject(success=False, error="it broke")[0] == "anomaly"


def test_result_of_an_earlier_attempt_does_not_end_the_current_one() -> None:
    hub = ClaimedTaskHub()
    hub.accept(success=False, error="it broke", attempt=1)
    hub.claim()
    assert hub.reject(success=False, error="it broke", attempt=1) == (
        "anomaly",
        "t1 is in attempt 2, not in 1",
    )
    assert hub.accept(attempt=2)["status"] == "done"


def test_omitted_output_is_compared_by_its_digest() -> None:
    hub = ClaimedTaskHub(max_output_bytes=4)
    first = hub.accept(output="x" * 100)
    report = hub.lab.task("t1").reported
    assert report is not None
    assert (report.details["left_out"], "output" in report.details) == (102, False)
    assert hub.accept(output="x" * 100) == first | {"repeated": True}
    assert hub.reject(output="y" * 100)[0] == "anomaly"


def test_result_for_a_task_that_a_person_finished_gets_lease_lost() -> None:
    hub = ClaimedTaskHub()
    hub.lab.do(HUMAN, MoveTask("t1", "ready"))
    hub.lab.do(HUMAN, ClaimTask("t1", "ada"))
    hub.lab.do(HUMAN, MoveTask("t1", "review"))
    hub.lab.do(HUMAN, MoveTask("t1", "done"))
    code, detail = hub.reject()
    assert (code, "nobody holds t1 now, it is done" in detail) == ("lease_lost", True)


def test_result_about_an_unknown_task_is_an_anomaly() -> None:
    hub = ClaimedTaskHub()
    answer = hub.router.send({"intent_id": "t9", "agent_id": "ada", "success": True}, speaker=ADA)
    assert isinstance(answer, Rejected)
    assert isinstance(answer.refusal, Refusal)
    assert answer.refusal.code == "anomaly"
