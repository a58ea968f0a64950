"""The spawner: every request for a worker is answered once, with a session or with a reason."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.bootstrap.data_directory import open_directory
from dragoman.config import AgentSettings, Settings
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.base import Status
from dragoman.core.errors import Refused
from dragoman.core.mail import Mail
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.request import Accepted
from dragoman.services.spawner import Spawner, SpawnPolicy, SpawnResult
from tests.engine.lab import ALICE, HUMAN, findings
from tests.protocols.agentmail.hub import BEAD, OLGA, SPAWNER, MailHub, letter
from tests.requirements import proves

pytestmark = proves("MAIL-SPAWN")

ADA = Settings(agents={"ada": AgentSettings(command=("ada",), capabilities=("backend",))})
ADA_ACTOR = Actor("agent", "ada")
REQUEST = letter("SPAWN_REQUEST", "Resume: false", "Orchestrator: olga")


class SpawnerLab(MailHub):
    """A mail lab whose spawner is run by the test."""

    def __init__(self, settings: Settings = ADA) -> None:
        super().__init__(settings=settings)
        # It is run by hand, to count its work.
        (self.spawner,) = (service for service in self.services if service.name == "spawner")
        self.services = tuple(service for service in self.services if service is not self.spawner)

    def request(self, **fields: Any) -> str:
        """Send a request for a worker as olga."""
        return self.send(OLGA, {**REQUEST, **fields})["id"]

    def run(self) -> int:
        """Run the service once, now."""
        return self.spawner.run_once(self.lab.clock.now())

    def answers(self) -> list[tuple[str, str, str]]:
        """Status, session and last line of every answer to olga."""
        return [
            (row["parsed"]["status"], row["parsed"].get("session", ""), last_line(row))
            for row in self.rows(OLGA, type="SPAWN_ACK")
        ]


def last_line(row: dict[str, Any]) -> str:
    return row["body_md"].rstrip().rpartition("\n")[2]


def test_claim_answers_a_request_once_with_its_session() -> None:
    spawner_lab = SpawnerLab()
    request = spawner_lab.request()
    assert spawner_lab.run() == 0
    spawner_lab.do(HUMAN, ClaimTask(BEAD, "ada", "hub-1.77"))
    assert spawner_lab.run() == 1
    assert spawner_lab.run() == 0
    assert spawner_lab.answers() == [("spawned", "hub-1.77", "Session: hub-1.77")]
    mail = spawner_lab.mail(request)
    answer = spawner_lab.mail(mail.answer)
    assert (answer.sender, answer.to, answer.thread) == ("spawner", ("olga",), BEAD)
    assert answer.reply_to == request
    assert (mail.acked_by, mail.read_by, mail.awaits_answer) == (("spawner",), ("spawner",), False)
    assert request not in spawner_lab.inbox(OLGA, box="waiting")
    spawner_lab.pass_(600)
    assert "mail.escalated" not in spawner_lab.types()
    assert findings(spawner_lab.store) == []


def test_worker_without_a_session_is_named_by_its_agent() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.send(ALICE, letter("BEAD_ACCEPTED"))
    spawner_lab.run()
    assert spawner_lab.answers()[0][:2] == ("spawned", "alice")


def test_worker_that_already_finished_counts() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.do(ALICE, ClaimTask(BEAD, "alice", "s-1"))
    spawner_lab.do(ALICE, ReportOutcome(BEAD, "done", apply=True))
    spawner_lab.run()
    assert spawner_lab.answers()[0][:2] == ("spawned", "s-1")


def test_started_agent_that_reported_counts_as_started() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.do(HUB_ACTOR, ClaimTask(BEAD, "ada", "hub-1.1"))
    spawner_lab.do(ADA_ACTOR, ReportOutcome(BEAD, "failed", "no", apply=True))
    spawner_lab.run()
    assert spawner_lab.answers()[0][:2] == ("spawned", "hub-1.1")


def test_agent_that_could_not_be_started_is_no_worker() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.do(HUB_ACTOR, ClaimTask(BEAD, "ada", "hub-1.1"))
    reason = "not started: ada: No such file or directory"
    spawner_lab.do(ADA_ACTOR, ReleaseTask(BEAD, reason, failed_to_start=True))
    assert spawner_lab.run() == 0
    spawner_lab.pass_(5)
    assert spawner_lab.run() == 1
    assert spawner_lab.answers()[0][:2] == ("failed", "")


def test_holder_from_before_the_request_is_no_worker() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.send(ALICE, letter("BEAD_ACCEPTED"))
    expected = ("failed", "", f"{BEAD} is held by alice")
    for count in (1, 2):
        spawner_lab.request()
        spawner_lab.run()
        assert spawner_lab.answers() == [expected] * count


def test_refused_request_is_answered_failed_although_the_task_is_claimed() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.do(HUMAN, CreateTask("t", BEAD, ready=True))
    body = [f"Issue: {BEAD}", "Resume: true", f"Checkpoint: {'a' * 4_001}", "Orchestrator: olga"]
    request = spawner_lab.send(OLGA, {"subject": "SPAWN_REQUEST", "body_md": "\n".join(body)})
    assert request["effect"]["code"] == "invalid_field"
    spawner_lab.do(ALICE, ClaimTask(BEAD, "alice"))
    spawner_lab.run()
    assert spawner_lab.answers() == [("failed", "", request["effect"]["detail"])]


def test_attempt_that_failed_before_the_request_is_no_worker() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.send(ALICE, letter("BEAD_ACCEPTED"))
    spawner_lab.pass_(60)
    spawner_lab.request()
    assert spawner_lab.run() == 0


def test_unclaimed_task_fails_the_request_after_the_timeout() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.pass_(4.99)
    assert spawner_lab.run() == 0
    spawner_lab.pass_(0.01)
    assert spawner_lab.run() == 1
    assert spawner_lab.answers() == [
        ("failed", "", f"no agent claimed {BEAD} within 5m; it is ready"),
    ]
    spawner_lab.do(ALICE, ClaimTask(BEAD, "alice"))
    assert spawner_lab.run() == 0, "a second word would only confuse"


@pytest.mark.parametrize("status", ["blocked", "deadletter", "cancelled"])
def test_unclaimable_task_fails_the_request(status: Status) -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.request()
    spawner_lab.do(HUMAN, MoveTask(BEAD, status))
    spawner_lab.run()
    assert spawner_lab.answers() == [("failed", "", f"{BEAD} is {status} and cannot be claimed")]


def test_agent_with_the_name_of_the_spawner_answers_itself() -> None:
    spawner_lab = SpawnerLab(Settings())
    spawner_lab.register("spawner")
    request = spawner_lab.request()
    assert spawner_lab.run() == 0
    ack = letter("SPAWN_ACK", "Status: spawned", "Session: tmux-4")
    assert spawner_lab.effect(SPAWNER, ack) == "applied"
    assert not spawner_lab.mail(request).awaits_answer
    assert spawner_lab.answers()[0][:2] == ("spawned", "tmux-4")


def test_only_requests_to_the_spawner_are_answered() -> None:
    spawner_lab = SpawnerLab(Settings())
    spawner_lab.send(OLGA, letter("HELP_REQUEST", to=["spawner"]))
    spawner_lab.register("somebody-else")
    spawner_lab.request(to=["somebody-else"])
    assert spawner_lab.run() == 0


def test_request_to_an_unknown_name_is_answered() -> None:
    spawner_lab = SpawnerLab()
    request = spawner_lab.request(to=["dispatcher"])
    spawner_lab.do(HUMAN, ClaimTask(BEAD, "ada", "hub-1.77"))
    assert spawner_lab.run() == 1
    assert spawner_lab.answers() == [("spawned", "hub-1.77", "Session: hub-1.77")]
    mail = spawner_lab.mail(request)
    assert (mail.to, mail.auto_copied, mail.awaits_answer, mail.awaited_acks) == (
        ("dispatcher",),
        ("spawner",),
        False,
        (),
    )


def test_request_without_a_bead_is_answered_failed() -> None:
    spawner_lab = SpawnerLab()
    request = spawner_lab.send(OLGA, letter("SPAWN_REQUEST", bead=""))
    assert request["effect"]["code"] == "invalid_field"
    assert spawner_lab.run() == 1
    assert spawner_lab.answers() == [
        ("failed", "", "the request names no bead: write Issue: ID in it"),
    ]
    assert not spawner_lab.mail(request["id"]).awaits_answer


def test_unauthorized_request_is_answered_failed_each_time() -> None:
    spawner_lab = SpawnerLab()
    spawner_lab.do(HUMAN, CreateTask("t", BEAD, ready=True))
    reason = "agent:alice may not ask for workers; that is for orchestrators"
    for count in (1, 2):
        request = spawner_lab.send(ALICE, REQUEST)
        assert (request["effect"]["code"], request["effect"]["detail"]) == (
            "not_authorized",
            reason,
        )
        assert spawner_lab.run() == 1
        answers = [(row["parsed"]["status"], last_line(row)) for row in spawner_lab.rows(ALICE)]
        assert answers == [("failed", reason)] * count
        assert not spawner_lab.mail(request["id"]).awaits_answer
    assert spawner_lab.run() == 0
    assert findings(spawner_lab.store) == []


def test_request_without_ack_required_is_answered() -> None:
    spawner_lab = SpawnerLab(Settings())
    spawner_lab.request(ack_required=False)
    spawner_lab.pass_(5)
    assert spawner_lab.run() == 1


def test_bead_without_a_task_fails_the_request() -> None:
    spawner_lab = SpawnerLab()
    mail = spawner_lab.mail(spawner_lab.request())
    verdicts = list[SpawnResult]()
    terms = SpawnPolicy("spawner", "SPAWN_REQUEST", 1)

    def answer(_: Mail, verdict: SpawnResult) -> None:
        verdicts.append(verdict)

    number = spawner_lab.store.tables.numbers[f"mail:{mail.id}"]
    row = spawner_lab.store.tables.rows[number]
    state = row.state.replace(b'"bead":"ol-527.1"', b'"bead":"ol-999.1"')
    spawner_lab.store.tables.rows[number] = replace(row, state=state)
    Spawner(spawner_lab.lab.hub, terms, answer).run_once(spawner_lab.lab.clock.now())
    assert verdicts == [
        SpawnResult(reason="no task has the name ol-999.1: see `dragoman task list`")
    ]


def test_refused_answer_is_raised() -> None:
    spawner_lab = SpawnerLab(Settings())
    request = spawner_lab.request()
    spawner_lab.lab.hub.submit(
        Actor("system", "spawner", "spawner"), CreateTask("other", "O"), key=f"spawn.{request}"
    )
    spawner_lab.pass_(5)
    with pytest.raises(Refused, match="used before"):
        spawner_lab.run()


def test_spawner_is_a_service_of_a_data_directory(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "data", "", None, create=True)
    try:
        directory.router.call("mail.send", REQUEST, OLGA)
        service = next(service for service in directory.services if service.name == "spawner")
        assert service.run_once(directory.hub.clock.now() + 300_000) == 1
        inbox = directory.router.call("mail.inbox", {}, OLGA)
        assert isinstance(inbox, Accepted)
        assert inbox.reply["messages"][0]["type"] == "SPAWN_ACK"
    finally:
        directory.hub.close()


def test_ack_of_another_sender_is_not_authorized() -> None:
    spawner_lab = SpawnerLab()
    request = spawner_lab.request()
    forged = letter("SPAWN_ACK", "Status: spawned", "Session: fake")
    for actor in (Actor("agent", "mallory"), Actor("orchestrator", "otis")):
        assert spawner_lab.effect(actor, forged) == "not_authorized"
    assert spawner_lab.mail(request).awaits_answer
    assert spawner_lab.effect(SPAWNER, forged) == "applied"
