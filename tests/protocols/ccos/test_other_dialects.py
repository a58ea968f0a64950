"""Messages of other dialects about the task of an intent reach its delegator."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, EndAttempt
from dragoman.core.task_state import UpdateTask
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import agentmail, aof, ccos
from tests.engine.lab import HUMAN, Lab
from tests.protocols.agentmail.hub import Row, failed, letter, offering
from tests.protocols.aof.hub import report
from tests.requirements import proves

pytestmark = proves("CCOS-TOLD")

ADA = Actor("agent", "ada")
TASK = "TASK-2026-02-09-001"


class IntentHub:
    """Hub in which ada has the only request and holds its task."""

    def __init__(self, max_output_bytes: int = 65_536) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _, __: True, now=self.lab.clock.now)
        settings = ccos.Choices(max_output_bytes=max_output_bytes)
        dialects = (aof.dialect(), agentmail.dialect(), ccos.dialect(settings))
        self.router = Router(self.lab.hub, dialects, facts)
        self.call("ccos.register", agent_id="ada", skills=["translate"])
        self.call("ccos.delegate", goal="translate it", intent_id="i-1")
        self.lab.do(ADA, ClaimTask("i-1", "ada", "s-1"))

    def call(self, operation: str, **arguments: Any) -> Any:
        answer = self.router.call(operation, arguments, HUMAN)
        assert isinstance(answer, Accepted), answer
        return answer.reply

    def send(self, row: Row) -> None:
        """Send a message as ada."""
        answer = self.router.send(row, speaker=ADA)
        assert isinstance(answer, Accepted), answer

    def report(self, outcome: str, **fields: Any) -> None:
        """Send a completion report of AOF/1 and end the session."""
        self.send(report(outcome, **fields) | {"taskId": TASK, "fromAgent": "ada"})
        self.lab.do(ADA, EndAttempt("i-1"))

    def intent(self) -> dict[str, Any]:
        return self.call("ccos.intent", intent_id="i-1")

    def result(self) -> dict[str, Any]:
        """Return the result that the delegator sees."""
        return self.intent()["result"]


def test_error_of_a_failed_letter_has_type_reason_and_recommendation() -> None:
    hub = IntentHub()
    hub.send(failed("TESTS_FAIL", bead="i-1", to=["olga"]))
    assert hub.result()["error"] == "TESTS_FAIL: it broke; mend it"


def test_error_of_a_blocked_report_has_blockers_before_notes() -> None:
    hub = IntentHub()
    hub.report("blocked", blockers=["no access to staging"], notes="tried twice")
    assert hub.result()["error"] == "no access to staging; tried twice"


def test_error_of_a_blocked_update_has_blockers() -> None:
    hub = IntentHub()
    hub.lab.do(ADA, UpdateTask("i-1", "blocked", blockers=("no access to staging",)))
    assert hub.result()["error"] == "the task is blocked: no access to staging"


def test_completion_report_is_the_output() -> None:
    hub = IntentHub()
    hub.report("done", notes="All of it")
    assert hub.result()["output"] == {
        "summaryRef": "outputs/summary.md",
        "handoffRef": "outputs/handoff.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 3, "passed": 2, "failed": 1},
        "notes": "All of it",
    }


def test_offering_letter_is_the_output() -> None:
    hub = IntentHub()
    hub.send(offering(bead="i-1", to=["olga"]))
    output = hub.result()["output"]
    assert (output["commit"], output["files"]) == ("0a1b2c3", ["src/a.py", "src/b.py"])
    assert output["notes"] == "It works."


@proves("CCOS-PAYLOADS")
def test_zero_kept_bytes_stores_no_output_of_a_report() -> None:
    hub = IntentHub(max_output_bytes=0)
    hub.send(offering(bead="i-1", to=["olga"]))
    assert "output" not in hub.result()
    assert hub.result()["left_out"] > 100


@pytest.mark.parametrize(
    ("command", "progress", "message"),
    [
        (UpdateTask("i-1", progress="40 %", notes="half-way"), 40.0, "40 %; half-way"),
        (UpdateTask("i-1", progress="step 2", blockers=("slow",)), None, "step 2; slow"),
        (UpdateTask("i-1", progress="140%"), None, "140%"),
    ],
)
def test_status_update_is_an_update_of_the_intent(
    command: UpdateTask, progress: float | None, message: str
) -> None:
    hub = IntentHub()
    hub.lab.do(ADA, command)
    history = hub.call("ccos.intent", intent_id="i-1")["history"]
    (update,) = [one for one in history if one["state"] == "TaskUpdated"]
    assert (update["details"].get("progress"), update["details"]["message"]) == (progress, message)
    assert update["agent_id"] == "ada"


def test_progress_letter_is_an_update_of_the_intent() -> None:
    hub = IntentHub()
    row = letter("PROGRESS", "Step: parsing", "Status: half", bead="i-1", to=["olga"])
    hub.send(row)
    assert hub.intent()["updates"] == 1


def test_notes_of_others_and_late_ones_are_no_updates() -> None:
    hub = IntentHub()
    hub.lab.do(HUMAN, UpdateTask("i-1", notes="how is it?"))
    hub.lab.clock.advance(2 * 3_600_000)
    hub.lab.do(HUMAN, UpdateTask("i-1", notes="well?"))
    assert hub.intent()["updates"] == 0
