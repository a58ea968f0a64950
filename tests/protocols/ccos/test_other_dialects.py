"""What an agent says about the task of an intent in any dialect reaches whoever delegated it."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, EndAttempt, UpdateTask
from dragoman.engine.facts import StoreFacts
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Taken
from dragoman.protocols import agentmail, aof, ccos
from tests.engine.lab import HUMAN, Lab
from tests.protocols.agentmail.office import Row, failed, letter, offering
from tests.protocols.aof.scene import report
from tests.requirements import proves

pytestmark = proves("CCOS-TOLD")

ADA = Actor("agent", "ada")
TASK = "TASK-2026-02-09-001"


class Office:
    """A lab in which ada has the one request, and the task of it."""

    def __init__(self, kept_bytes: int = 65_536) -> None:
        self.lab = Lab()
        facts = StoreFacts(self.lab.store, lambda _, __: True, now=self.lab.clock.now)
        chosen = ccos.Choices(kept_bytes=kept_bytes)
        dialects = (aof.dialect(), agentmail.dialect(), ccos.dialect(chosen))
        self.door = Interpreter(self.lab.hub, dialects, facts)
        self.call("ccos.register", agent_id="ada", skills=["translate"])
        self.call("ccos.delegate", goal="translate it", intent_id="i-1")
        self.lab.do(ADA, ClaimTask("i-1", "ada", "s-1"))

    def call(self, operation: str, **arguments: Any) -> Any:
        answer = self.door.call(operation, arguments, HUMAN)
        assert isinstance(answer, Taken), answer
        return answer.reply

    def send(self, row: Row) -> None:
        """What ada says."""
        answer = self.door.send(row, speaker=ADA)
        assert isinstance(answer, Taken), answer

    def report(self, outcome: str, **said: Any) -> None:
        """A completion report of AOF/1, and the end of the session."""
        self.send(report(outcome, **said) | {"taskId": TASK, "fromAgent": "ada"})
        self.lab.do(ADA, EndAttempt("i-1"))

    def intent(self) -> dict[str, Any]:
        return self.call("ccos.intent", intent_id="i-1")

    def result(self) -> dict[str, Any]:
        """What whoever delegated it is told."""
        return self.intent()["result"]


def test_a_failure_by_mail_has_its_kind_its_reason_and_what_is_recommended() -> None:
    office = Office()
    office.send(failed("TESTS_FAIL", bead="i-1", to=["olga"]))
    assert office.result()["error"] == "TESTS_FAIL: it broke; mend it"


def test_what_is_in_the_way_is_told_before_the_notes() -> None:
    office = Office()
    office.report("blocked", blockers=["no access to staging"], notes="tried twice")
    assert office.result()["error"] == "no access to staging; tried twice"


def test_so_it_is_when_only_the_status_is_told() -> None:
    office = Office()
    office.lab.do(ADA, UpdateTask("i-1", "blocked", blockers=("no access to staging",)))
    assert office.result()["error"] == "the task is blocked: no access to staging"


def test_a_completion_report_is_the_output() -> None:
    office = Office()
    office.report("done", notes="All of it")
    assert office.result()["output"] == {
        "summaryRef": "outputs/summary.md",
        "handoffRef": "outputs/handoff.md",
        "deliverables": ["src/api/users.ts"],
        "tests": {"total": 3, "passed": 2, "failed": 1},
        "notes": "All of it",
    }


def test_so_is_an_offering() -> None:
    office = Office()
    office.send(offering(bead="i-1", to=["olga"]))
    output = office.result()["output"]
    assert (output["commit"], output["files"]) == ("0a1b2c3", ["src/a.py", "src/b.py"])
    assert output["notes"] == "It works."


@proves("CCOS-PAYLOADS")
def test_by_policy_no_output_is_kept_of_a_report_either() -> None:
    office = Office(kept_bytes=0)
    office.send(offering(bead="i-1", to=["olga"]))
    assert "output" not in office.result()
    assert office.result()["left_out"] > 100


@pytest.mark.parametrize(
    ("said", "progress", "message"),
    [
        (UpdateTask("i-1", progress="40 %", notes="half-way"), 40.0, "40 %; half-way"),
        (UpdateTask("i-1", progress="step 2", blockers=("slow",)), None, "step 2; slow"),
        (UpdateTask("i-1", progress="140%"), None, "140%"),
    ],
)
def test_how_it_goes_is_an_update(said: UpdateTask, progress: float | None, message: str) -> None:
    office = Office()
    office.lab.do(ADA, said)
    (update,) = office.call("ccos.actions", intent_id="i-1", type="TaskUpdated")["actions"]
    assert (update["details"].get("progress"), update["details"]["message"]) == (progress, message)
    assert update["agent_id"] == "ada"


def test_so_is_progress_by_mail() -> None:
    office = Office()
    row = letter("PROGRESS", "Step: parsing", "Status: half", bead="i-1", to=["olga"])
    office.send(row)
    assert office.intent()["updates"] == 1


def test_what_others_say_about_it_or_comes_too_late_is_none() -> None:
    office = Office()
    office.lab.do(HUMAN, UpdateTask("i-1", notes="how is it?"))
    office.lab.clock.advance(2 * 3_600_000)
    office.lab.do(HUMAN, UpdateTask("i-1", notes="well?"))
    assert office.intent()["updates"] == 0
