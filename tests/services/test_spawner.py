"""The spawner: every request for a worker is answered once, with a session or with the reason."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.bootstrap.places import open_place
from dragoman.config import AgentSettings, Settings
from dragoman.config.sections import StoreSettings
from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    EditTask,
    ExpireLease,
    MoveTask,
    RegisterAgent,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
    UpdateTask,
)
from dragoman.core.errors import Refused
from dragoman.core.events import Status
from dragoman.core.states.letter import Mail
from dragoman.engine.plan import Taken
from dragoman.services.spawner import Spawner, Terms, Verdict, asked_at
from tests.engine.lab import ALICE, HUMAN, findings
from tests.protocols.agentmail.hub import BEAD, OLGA, SPAWNER, MailHub, letter
from tests.requirements import proves

pytestmark = proves("MAIL-SPAWN")

ADA = Settings(agents={"ada": AgentSettings(command=("ada",), capabilities=("backend",))})
ADAS = Actor("agent", "ada")
REQUEST = letter("SPAWN_REQUEST", "Resume: false", "Orchestrator: olga")


class Bureau(MailHub):
    """An office that answers requests for workers."""

    def __init__(self, settings: Settings = ADA) -> None:
        super().__init__(settings=settings)
        # It is run by hand, to see how much there was to do.
        (self.spawner,) = (duty for duty in self.duties if duty.name == "spawner")
        self.duties = tuple(duty for duty in self.duties if duty is not self.spawner)

    def request(self, **fields: Any) -> str:
        """Olga asks for a worker."""
        return self.send(OLGA, {**REQUEST, **fields})["id"]

    def run(self) -> int:
        """The duty once, now."""
        return self.spawner.run_once(self.lab.clock.now())

    def answers(self) -> list[tuple[str, str, str]]:
        """The status, the session and the last line of every answer to olga."""
        return [
            (row["parsed"]["status"], row["parsed"].get("session", ""), last_line(row))
            for row in self.rows(OLGA, type="SPAWN_ACK")
        ]


def last_line(row: dict[str, Any]) -> str:
    return row["body_md"].rstrip().rpartition("\n")[2]


def test_a_worker_that_came_is_named_by_its_session_once() -> None:
    bureau = Bureau()
    asked = bureau.request()
    assert bureau.run() == 0
    bureau.do(HUMAN, ClaimTask(BEAD, "ada", "hub-1.77"))
    assert bureau.run() == 1
    assert bureau.run() == 0
    assert bureau.answers() == [("spawned", "hub-1.77", "Session: hub-1.77")]
    mail = bureau.mail(asked)
    answer = bureau.mail(mail.answer)
    assert (answer.sender, answer.to, answer.thread) == ("spawner", ("olga",), BEAD)
    assert answer.reply_to == asked
    assert (mail.acked_by, mail.read_by, mail.is_open) == (("spawner",), ("spawner",), False)
    assert asked not in bureau.inbox(OLGA, box="waiting")
    bureau.pass_(600)
    assert "mail.escalated" not in bureau.types()
    assert findings(bureau.store) == []


def test_one_without_a_session_is_named_by_its_name() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.send(ALICE, letter("BEAD_ACCEPTED"))
    bureau.run()
    assert bureau.answers()[0][:2] == ("spawned", "alice")


def test_one_that_has_come_and_gone_counts() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(ALICE, ClaimTask(BEAD, "alice", "s-1"))
    bureau.do(ALICE, ReportOutcome(BEAD, "done", apply=True))
    bureau.run()
    assert bureau.answers()[0][:2] == ("spawned", "s-1")


def test_what_the_hub_claims_counts_from_when_its_agent_has_begun() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-1.1"))
    bureau.do(HUMAN, UpdateTask(BEAD, notes="soon?"))
    assert bureau.run() == 0, "so far there is only a claim"
    bureau.do(ADAS, RenewLease(BEAD))
    assert bureau.run() == 1
    assert bureau.answers() == [("spawned", "hub-1.1", "Session: hub-1.1")]


def test_one_that_was_started_and_has_reported_has_begun() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-1.1"))
    bureau.do(ADAS, ReportOutcome(BEAD, "failed", "no", apply=True))
    bureau.run()
    assert bureau.answers()[0][:2] == ("spawned", "hub-1.1")


def test_one_that_could_not_be_started_is_no_worker() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-1.1"))
    why = "not started: ada: No such file or directory"
    bureau.do(ADAS, ReleaseTask(BEAD, why, unstarted=True))
    assert bureau.run() == 1
    assert bureau.answers() == [("failed", "", f"{why}; {BEAD} is ready")]


def test_one_that_was_to_begin_and_did_not_is_told_in_time() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.pass_(1)
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-1.1", ttl_ms=3_600_000))
    bureau.pass_(3.9)
    assert bureau.run() == 0
    bureau.pass_(0.1)
    assert bureau.run() == 1
    late = f"hub-1.1 was to work on {BEAD}, and has not begun within 5m"
    assert bureau.answers() == [("failed", "", late)]


def test_one_that_was_never_heard_of_is_followed_by_the_next() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-1.1", ttl_ms=1_000))
    bureau.lab.clock.advance(1_000)
    bureau.do(SYSTEM, ExpireLease(BEAD))
    assert bureau.run() == 0
    bureau.pass_(1)
    bureau.do(ALICE, ClaimTask(BEAD, "alice", "s-2"))
    bureau.run()
    assert bureau.answers()[0][:2] == ("spawned", "s-2")


def test_one_of_before_does_not() -> None:
    bureau = Bureau()
    bureau.send(ALICE, letter("BEAD_ACCEPTED"))
    told = ("failed", "", f"alice works on {BEAD}: it is left to it")
    for many in (1, 2):
        bureau.request()
        bureau.run()
        assert bureau.answers() == [told] * many


def test_a_request_that_was_refused_is_told_so_though_somebody_takes_the_task() -> None:
    bureau = Bureau()
    bureau.do(HUMAN, CreateTask("t", BEAD, ready=True))
    body = [f"Issue: {BEAD}", "Resume: true", f"Checkpoint: {'a' * 4_001}", "Orchestrator: olga"]
    asked = bureau.send(OLGA, {"subject": "SPAWN_REQUEST", "body_md": "\n".join(body)})
    assert asked["effect"]["code"] == "invalid_field"
    bureau.do(ALICE, ClaimTask(BEAD, "alice"))
    bureau.run()
    assert bureau.answers() == [("failed", "", asked["effect"]["detail"])]


def test_nor_does_an_attempt_that_failed_long_ago() -> None:
    bureau = Bureau()
    bureau.send(ALICE, letter("BEAD_ACCEPTED"))
    bureau.pass_(60)
    bureau.request()
    assert bureau.run() == 0


def test_nobody_took_it_in_time() -> None:
    bureau = Bureau()
    bureau.request()
    bureau.pass_(4.99)
    assert bureau.run() == 0
    bureau.pass_(0.01)
    assert bureau.run() == 1
    assert bureau.answers() == [
        ("failed", "", f"nobody took {BEAD} within 5m; it is ready"),
    ]
    bureau.do(ALICE, ClaimTask(BEAD, "alice"))
    assert bureau.run() == 0, "a second word would only confuse"


@pytest.mark.parametrize("status", ["blocked", "deadletter", "cancelled"])
def test_a_task_that_cannot_be_taken(status: Status) -> None:
    bureau = Bureau()
    bureau.request()
    bureau.do(HUMAN, MoveTask(BEAD, status))
    bureau.run()
    assert bureau.answers() == [("failed", "", f"{BEAD} is {status}: nobody can take it")]


def test_a_task_that_nobody_here_could_take_is_refused_at_once() -> None:
    bureau = Bureau(Settings())
    bureau.request()
    bureau.run()
    assert bureau.answers() == [("failed", "", "no agent is known here that takes any work")]
    reserved = Bureau()
    reserved.do(HUMAN, CreateTask("t", BEAD, assignee="frontend", ready=True))
    reserved.request()
    reserved.run()
    assert last_line(reserved.rows(OLGA)[0]) == (
        "no agent is known here that takes work for frontend"
    )


def test_but_what_an_agent_of_another_hub_may_take_is_waited_for() -> None:
    shared = Settings(store=StoreSettings("postgresql://hub@host/hub"))
    bureau = Bureau(shared)
    bureau.register("ada")
    bureau.do(HUMAN, CreateTask("t", BEAD, assignee="backend", ready=True))
    bureau.request()
    assert bureau.run() == 0
    bureau.do(SYSTEM, ClaimTask(BEAD, "ada", "hub-2.1", queues=("backend",)))
    bureau.do(ADAS, RenewLease(BEAD))
    bureau.run()
    assert bureau.answers() == [("spawned", "hub-2.1", "Session: hub-2.1")]
    alone = Bureau(shared)
    alone.request()
    alone.run()
    assert alone.answers() == [("failed", "", "no agent is known here that takes any work")]


@pytest.mark.parametrize(
    ("settings", "observer", "reserved_for", "is_told"),
    [
        (Settings(), "zoe", "zoe", True),
        (ADA, "ada", "", True),
        (ADA, "ada", "ada", True),
        (ADA, "ada", "backend", True),
        (ADA, "backend", "backend", False),
        (ADA, "zoe", "ada", False),
    ],
)
def test_work_of_one_who_may_only_read_is_refused_at_once(
    settings: Settings, observer: str, reserved_for: str, *, is_told: bool
) -> None:
    bureau = Bureau(settings)
    bureau.do(HUMAN, RegisterAgent(observer, "observer"))
    bureau.request()
    bureau.do(HUMAN, EditTask(BEAD, assignee=reserved_for))
    assert bureau.run() == is_told
    why = f"{observer} is registered as observer, which may only read"
    assert bureau.answers() == [("failed", "", why)] * is_told


@pytest.mark.parametrize(
    ("settings", "registered", "reserved_for"),
    [
        (ADA, "", ""),
        (ADA, "", "ada"),
        (ADA, "", "backend"),
        (Settings(), "zoe", ""),
        (Settings(), "zoe", "zoe"),
    ],
)
def test_one_that_somebody_could_take_is_waited_for(
    settings: Settings, registered: str, reserved_for: str
) -> None:
    bureau = Bureau(settings)
    if registered:
        bureau.register(registered)
    bureau.request()
    bureau.do(HUMAN, EditTask(BEAD, assignee=reserved_for))
    assert bureau.run() == 0


def test_an_agent_that_has_the_spawners_name_answers_itself() -> None:
    bureau = Bureau(Settings())
    bureau.register("spawner")
    asked = bureau.request()
    assert bureau.run() == 0
    ack = letter("SPAWN_ACK", "Status: spawned", "Session: tmux-4")
    assert bureau.effect(SPAWNER, ack) == "applied"
    assert not bureau.mail(asked).is_open
    assert bureau.answers()[0][:2] == ("spawned", "tmux-4")


def test_only_what_is_asked_of_it_is_answered() -> None:
    bureau = Bureau(Settings())
    bureau.send(OLGA, letter("HELP_REQUEST", to=["spawner"]))
    bureau.register("somebody-else")
    bureau.request(to=["somebody-else"])
    assert bureau.run() == 0


def test_what_is_asked_of_nobody_who_is_known_is_answered_too() -> None:
    bureau = Bureau()
    asked = bureau.request(to=["dispatcher"])
    bureau.do(HUMAN, ClaimTask(BEAD, "ada", "hub-1.77"))
    assert bureau.run() == 1
    assert bureau.answers() == [("spawned", "hub-1.77", "Session: hub-1.77")]
    mail = bureau.mail(asked)
    assert (mail.to, mail.copied, mail.is_open, mail.waits_for) == (
        ("dispatcher",),
        ("spawner",),
        False,
        (),
    )


def test_a_request_that_names_no_bead_is_told_so() -> None:
    bureau = Bureau()
    asked = bureau.send(OLGA, letter("SPAWN_REQUEST", bead=""))
    assert asked["effect"]["code"] == "invalid_field"
    assert bureau.run() == 1
    assert bureau.answers() == [
        ("failed", "", "the request names no bead: write Issue: ID in it"),
    ]
    assert not bureau.mail(asked["id"]).is_open


def test_a_request_of_somebody_who_may_not_ask_is_told_so_each_time() -> None:
    bureau = Bureau()
    bureau.do(HUMAN, CreateTask("t", BEAD, ready=True))
    why = "agent:alice may not ask for workers; that is for orchestrators"
    for many in (1, 2):
        asked = bureau.send(ALICE, REQUEST)
        assert (asked["effect"]["code"], asked["effect"]["detail"]) == ("not_authorized", why)
        assert bureau.run() == 1
        told = [(row["parsed"]["status"], last_line(row)) for row in bureau.rows(ALICE)]
        assert told == [("failed", why)] * many
        assert not bureau.mail(asked["id"]).is_open
    assert bureau.run() == 0
    assert findings(bureau.store) == []


def test_one_that_wants_no_ack_is_answered_all_the_same() -> None:
    bureau = Bureau(Settings())
    bureau.request(ack_required=False)
    assert bureau.run() == 1


def test_a_bead_that_is_no_task() -> None:
    bureau = Bureau()
    mail = bureau.mail(bureau.request())
    given = list[Verdict]()
    terms = Terms("spawner", "SPAWN_REQUEST", 1)

    def answer(_: Mail, verdict: Verdict) -> None:
        given.append(verdict)

    number = bureau.store.tables.numbers[f"mail:{mail.id}"]
    row = bureau.store.tables.rows[number]
    state = row.state.replace(b'"bead":"ol-527.1"', b'"bead":"ol-999.1"')
    bureau.store.tables.rows[number] = replace(row, state=state)
    Spawner(bureau.lab.hub, terms, answer).run_once(bureau.lab.clock.now())
    assert given == [Verdict(reason="no task has the name ol-999.1: see `dragoman task list`")]


def test_an_answer_that_cannot_be_posted_is_told() -> None:
    bureau = Bureau(Settings())
    asked = bureau.request()
    bureau.lab.hub.do(
        Actor("system", "spawner", "spawner"), CreateTask("other", "O"), key=f"spawn.{asked}"
    )
    with pytest.raises(Refused, match="used before"):
        bureau.run()


def test_it_is_one_of_the_duties_of_a_place(tmp_path: Path) -> None:
    place = open_place(tmp_path / "data", "", None, create=True)
    try:
        place.interpreter.call("mail.send", REQUEST, OLGA)
        duty = next(one for one in place.duties if one.name == "spawner")
        assert duty.run_once(place.hub.clock.now()) == 1
        told = place.interpreter.call("mail.inbox", {}, OLGA)
        assert isinstance(told, Taken)
        assert told.reply["messages"][0]["type"] == "SPAWN_ACK"
    finally:
        place.hub.close()


def test_an_answer_of_a_stranger_is_none() -> None:
    bureau = Bureau()
    asked = bureau.request()
    forged = letter("SPAWN_ACK", "Status: spawned", "Session: fake")
    for actor in (Actor("agent", "mallory"), Actor("orchestrator", "otis")):
        assert bureau.effect(actor, forged) == "not_authorized"
    assert bureau.mail(asked).is_open
    assert bureau.effect(SPAWNER, forged) == "applied"


def test_it_is_known_since_when_a_worker_is_asked_for_and_not_yet_there() -> None:
    bureau, terms = Bureau(), Terms("spawner", "SPAWN_REQUEST", 60_000)
    bureau.lab.do(HUMAN, CreateTask("other", "other", ready=True))
    bureau.request()
    bureau.request(thread_id="", subject="[no-such-bead] SPAWN_REQUEST")
    store, first = bureau.lab.store, bureau.lab.clock.now()
    task, other = bureau.lab.task(BEAD), bureau.lab.task("other")
    assert (asked_at(store, terms, task), asked_at(store, terms, other)) == (first, 0)
    bureau.lab.clock.advance(1_000)
    bureau.request()
    assert asked_at(store, terms, task) == first + 1_000
    bureau.lab.do(ADAS, ClaimTask(BEAD, "ada"))
    bureau.run()
    assert asked_at(store, terms, task) == 0
