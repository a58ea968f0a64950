"""Effects of letters on their task, by type of letter, sender and status of the task."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask
from dragoman.core.backoff import Backoff
from dragoman.core.base import Status
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.request import Accepted, Rejected
from dragoman.protocols import agentmail
from tests.engine.lab import ALICE, BOB, HUMAN, findings
from tests.protocols.agentmail.hub import (
    BEAD,
    MINUTE,
    OLGA,
    MailHub,
    Row,
    checkpoint,
    failed,
    help_request,
    letter,
    offering,
)
from tests.requirements import proves

ACCEPTED = letter("BEAD_ACCEPTED", "Title: Parse the thing", to=["olga"])
PROGRESS = letter(
    "PROGRESS",
    "Step: Step 4 - parsing",
    "Status: half",
    "Context usage: 40%",
    "Files touched: a.py, b.py",
    to=["olga"],
)
LETTERS: dict[str, Row] = {
    "BEAD_ACCEPTED": ACCEPTED,
    "PROGRESS": PROGRESS,
    "HELP_REQUEST": help_request(),
    "OFFERING_READY": offering(to=["olga"]),
    "DONE": offering("DONE", to=["olga"]),
    "FAILED": failed("TESTS_FAIL", to=["olga"]),
    "CHECKPOINT": checkpoint(to=["olga"]),
}
"""Type -> letter of a worker."""

STATUS_AFTER: dict[str, Status] = {
    "BEAD_ACCEPTED": "in-progress",
    "PROGRESS": "in-progress",
    "HELP_REQUEST": "in-progress",
    "OFFERING_READY": "review",
    "DONE": "review",
    "FAILED": "ready",
    "CHECKPOINT": "ready",
}
"""Type -> status of the task after such a letter from its holder."""

each_type = pytest.mark.parametrize("type", LETTERS)


def claim_bead(hub: MailHub, actor: Actor = ALICE) -> None:
    """Claim the bead by a BEAD_ACCEPTED letter."""
    assert hub.effect(actor, ACCEPTED) == "applied"


@proves("MAIL-ADOPT", "MAIL-MEANING")
@each_type
def test_first_letter_about_a_bead_creates_and_claims_its_task(type: str) -> None:
    hub = MailHub()
    assert hub.effect(ALICE, LETTERS[type]) == "applied"
    task = hub.task()
    assert (task.id, task.origin, task.status) == (BEAD, "agentmail", STATUS_AFTER[type])
    assert task.aliases == (f"bead:{BEAD}",)
    assert (task.attempts, task.agents) == (1, ("alice",))
    assert task.title == ("Parse the thing" if type == "BEAD_ACCEPTED" else BEAD)
    steps = [event for stream, event in hub.lab.lines() if stream == f"task:{BEAD}"]
    assert steps[:2] == ["task.created", "task.claimed"], "each step is on record"
    assert findings(hub.store) == []


@proves("MAIL-ADOPT")
@pytest.mark.parametrize("type", ["HELP_RESPONSE", "SPAWN_ACK", "lunch?"])
def test_answers_and_plain_letters_create_no_task(type: str) -> None:
    hub = MailHub()
    assert hub.effect(ALICE, letter(type, to=["bob"])) == "none"
    assert not hub.has_task()


@proves("MAIL-ADOPT")
@each_type
def test_unknown_bead_is_not_created_without_adopting(type: str) -> None:
    hub = MailHub(agentmail.Choices(adopt=False))
    sent = hub.send(ALICE, LETTERS[type])
    assert sent["effect"]["code"] == "task_not_found"
    assert hub.mail(sent["id"]).kind == type, "the letter is delivered all the same"
    assert not hub.has_task()


@proves("MAIL-ADOPT")
@each_type
def test_known_bead_is_found_without_adopting(type: str) -> None:
    hub = MailHub(agentmail.Choices(adopt=False))
    hub.do(HUMAN, CreateTask("known", BEAD, ready=True))
    hub.do(ALICE, ClaimTask(BEAD, "alice"))
    assert hub.effect(ALICE, LETTERS[type]) == "applied"
    assert hub.task().status == STATUS_AFTER[type]


@proves("MAIL-ADOPT")
def test_settings_apply_to_created_tasks() -> None:
    hub = MailHub(agentmail.Choices(review_required=False, max_attempts=1))
    assert hub.effect(ALICE, LETTERS["DONE"]) == "applied"
    assert hub.task().status == "done"
    assert hub.effect(ALICE, failed("ERROR", bead="ol-2", to=["olga"])) == "applied"
    assert hub.task("ol-2").status == "deadletter"


@proves("MAIL-MEANING")
@each_type
def test_holder_moves_a_known_bead(type: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    assert hub.effect(ALICE, LETTERS[type]) == "applied"
    task = hub.task()
    assert (task.status, task.attempts) == (STATUS_AFTER[type], 1)


@proves("MAIL-REFUSED-EFFECT")
def test_repeated_effect_reports_nothing_changed() -> None:
    hub = MailHub()
    hub.send(ALICE, LETTERS["DONE"])
    before = hub.task()
    again = {**LETTERS["DONE"], "id": "a-second-one"}
    effect = hub.send(ALICE, again)["effect"]
    assert (effect["applied"], effect["code"]) == (False, "nothing_changed")
    assert f"{before.id} is already review" in effect["detail"]
    assert hub.task() == before
    assert hub.send(ALICE, again)["effect"] == effect


@proves("MAIL-REFUSED-EFFECT")
def test_unreadable_fields_are_reported_to_the_sender() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, letter("PROGRESS", "Step: 1", "Context usage: lots"))
    assert [(one["name"], one["field"], one["line"]) for one in sent["problems"]] == [
        ("bad_percentage", "context_usage", 3)
    ]
    assert "problems" not in hub.send(ALICE, letter("PROGRESS", "Step: 1"))
    assert "problems" not in hub.send(ALICE, {"to": ["bob"], "subject": "?", "body_md": "hm"})


@proves("MAIL-MEANING", "MAIL-REFUSED-EFFECT")
@each_type
def test_letter_of_a_non_holder_is_delivered_without_effect(type: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    before = hub.task()
    sent = hub.send(BOB, LETTERS[type])
    code = "already_claimed" if type == "BEAD_ACCEPTED" else "unauthorized_agent"
    assert sent["effect"]["applied"] is False
    assert sent["effect"]["code"] == code
    assert sent["effect"]["detail"]
    assert hub.task() == before
    assert hub.mail(sent["id"]).sender == "bob"
    assert hub.lab.refused(BOB) == [code]
    assert findings(hub.store) == []


@proves("MAIL-MEANING", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("type", [type for type in LETTERS if type != "BEAD_ACCEPTED"])
def test_expired_holder_gets_lease_lost(type: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.pass_(21)
    assert hub.task().status == "ready"
    assert hub.effect(ALICE, LETTERS[type]) == "lease_lost"
    assert hub.effect(BOB, LETTERS[type]) == "unassigned_task"
    hub.pass_(30)
    claim_bead(hub, BOB)
    assert hub.effect(ALICE, LETTERS[type]) == "lease_lost"


@proves("MAIL-MEANING")
def test_accepted_bead_is_claimed_for_twenty_minutes() -> None:
    hub = MailHub()
    claim_bead(hub)
    lease = hub.lab.lease(BEAD)
    assert lease is not None
    assert (lease.holder, lease.ttl_ms, lease.fence) == ("alice", 20 * MINUTE, 1)
    claim_bead(hub)
    again = hub.lab.lease(BEAD)
    assert again is not None
    assert (again.fence, again.heartbeats) == (1, lease.heartbeats + 1), "said twice, claimed once"


@proves("MAIL-MEANING", "LEASE-HEARTBEAT")
@pytest.mark.parametrize(
    "row",
    [
        PROGRESS,
        letter("PROGRESS", to=["olga"]),
        help_request(),
        ACCEPTED,
        letter("lunch?", to=["bob"]),
        letter("HELP_RESPONSE", "Go left.", to=["bob"]),
    ],
    ids=lambda row: row["subject"],
)
def test_any_letter_of_the_holder_about_its_task_is_one_heartbeat(row: Row) -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.pass_(19)
    hub.send(ALICE, row)
    lease = hub.lab.lease(BEAD)
    assert lease is not None
    assert (lease.expires_at, lease.heartbeats) == (hub.lab.clock.now() + 20 * MINUTE, 2)
    hub.pass_(19)
    assert hub.task().status == "in-progress"
    hub.send(BOB, letter("lunch?", to=["alice"]))
    hub.pass_(1)
    assert hub.task().status == "ready", "nobody else's letter is one"


@proves("MAIL-MEANING")
def test_progress_is_written_to_the_work_log() -> None:
    hub = MailHub()
    claim_bead(hub)
    before = hub.store.head()
    hub.send(ALICE, PROGRESS)
    logged = [line for line in hub.events(before) if line["type"] == "task.updated"]
    assert logged[0]["payload"]["progress"] == "Step 4 - parsing: half"
    assert logged[0]["payload"]["notes"] == "context 40%; files: a.py, b.py"


@proves("MAIL-MEANING")
@pytest.mark.parametrize("type", ["OFFERING_READY", "DONE"])
def test_completion_report_has_its_checks(type: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.send(ALICE, offering(type, to=["olga"]))
    report = hub.task().reported
    assert report is not None
    assert (report.outcome, report.notes) == ("done", "It works.")
    assert report.details == {
        "commit": "0a1b2c3",
        "files": ["src/a.py", "src/b.py"],
        "tests_pass": True,
        "lint_pass": True,
        "build_pass": True,
    }
    assert hub.lab.lease(BEAD) is None


@proves("MAIL-MEANING")
@pytest.mark.parametrize(("tests", "outcome"), [("FAIL", "needs_review"), ("maybe", "done")])
def test_failed_check_needs_review_and_an_unreadable_one_does_not(tests: str, outcome: str) -> None:
    hub = MailHub(agentmail.Choices(review_required=False))
    hub.send(ALICE, offering(tests=tests, to=["olga"]))
    task = hub.task()
    assert task.reported is not None
    assert task.reported.outcome == outcome
    assert task.status == ("review" if outcome == "needs_review" else "done")


@proves("MAIL-MEANING")
@pytest.mark.parametrize("box", ["[ ]", "[x]"])
def test_failed_check_behind_a_checkbox_needs_review(box: str) -> None:
    hub = MailHub(agentmail.Choices(review_required=False))
    row = offering(tests="FAIL", to=["olga"])
    hub.send(ALICE, {**row, "body_md": row["body_md"].replace("- Tests", f"- {box} Tests")})
    assert hub.task().status == "review"


@proves("MAIL-MEANING")
@pytest.mark.parametrize("type", ["TESTS_FAIL", "BUILD_FAIL", "ERROR", ""])
def test_failed_work_is_retried_with_backoff_until_the_limit(type: str) -> None:
    hub = MailHub(agentmail.Choices(max_attempts=3, backoff=Backoff(5 * MINUTE, 60 * MINUTE)))
    for attempt in (1, 2):
        claim_bead(hub)
        assert hub.effect(ALICE, failed(type, to=["olga"])) == "applied"
        task = hub.task()
        assert (task.status, task.attempts, task.failures) == ("ready", attempt, attempt)
        assert task.not_before > hub.lab.clock.now()
        assert hub.effect(BOB, letter("PROGRESS", "Step: x", to=["olga"])) == "unassigned_task"
        hub.pass_(60)
    claim_bead(hub)
    hub.send(ALICE, failed(type, to=["olga"]))
    task = hub.task()
    assert task.status == "deadletter"
    assert task.reported is not None
    assert task.reported.blockers == ("it broke",)
    assert task.reported.details.get("failure_type", "") == type
    assert task.reported.details["internal_attempts"] == 2


@proves("MAIL-MEANING")
def test_impossible_work_is_blocked() -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.send(ALICE, failed("SPEC_IMPOSSIBLE", to=["olga"]))
    task = hub.task()
    assert task.status == "blocked"
    assert task.reported is not None
    assert (task.reported.outcome, task.reported.blockers) == ("blocked", ("it broke",))


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize("row", [checkpoint(to=["olga"]), failed("CONTEXT_HIGH", "0a1b2c3")])
def test_checkpoint_keeps_commit_and_next_steps_for_the_successor(row: Row) -> None:
    hub = MailHub()
    claim_bead(hub)
    before = hub.store.head()
    assert hub.effect(ALICE, row) == "applied"
    task = hub.task()
    assert (task.status, task.failures, task.not_before, task.reported) == ("ready", 0, 0, None)
    saved = task.checkpoint
    assert saved is not None
    assert (saved.by, saved.reason, saved.commit) == ("alice", "CONTEXT_HIGH", "0a1b2c3")
    expected = "mend it" if row["subject"] == "FAILED" else "Write the other half."
    assert saved.next_steps == expected
    assert "task.checkpointed" in hub.types(before)
    assert "task.completed" not in hub.types(before), "it is no outcome"
    claim_bead(hub, BOB)
    assert hub.task().checkpoint == saved
    hub.send(BOB, offering(to=["olga"]))
    assert hub.task().checkpoint is None, "the work went on past it"


@proves("MAIL-SPAWN")
@pytest.mark.parametrize("status", ["unknown", "backlog", "ready", "blocked", "deadletter"])
def test_spawn_request_makes_the_task_ready(status: Any) -> None:
    hub = MailHub()
    if status != "unknown":
        hub.do(HUMAN, CreateTask("known", BEAD, ready=status == "deadletter"))
        hub.do(HUMAN, MoveTask(BEAD, status))
    assert hub.effect(OLGA, letter("SPAWN_REQUEST", "Resume: false")) == "applied"
    task = hub.task()
    assert (task.status, task.checkpoint, task.attempts) == ("ready", None, 0)


@proves("MAIL-SPAWN", "MAIL-CHECKPOINT")
def test_resume_keeps_the_checkpoint() -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.send(ALICE, checkpoint(to=["olga"]))
    saved = hub.task().checkpoint
    resume = letter("SPAWN_REQUEST", "Resume: true", "Checkpoint: 0a1b2c3", "Orchestrator: olga")
    assert hub.effect(OLGA, resume) == "applied"
    assert hub.task().checkpoint == saved
    other = letter("SPAWN_REQUEST", "Resume: true", "Checkpoint: ffff", "Orchestrator: olga")
    assert hub.effect(OLGA, other) == "applied"
    moved = hub.task().checkpoint
    assert moved is not None
    assert (moved.reason, moved.commit) == ("RESUME", "ffff")
    assert moved.next_steps == "Write the other half."


@proves("MAIL-SPAWN", "MAIL-CHECKPOINT")
@pytest.mark.parametrize(
    ("resume", "is_kept"),
    [("Resume: false", False), ("Resume: true", True), ("Orchestrator: olga", True)],
)
def test_spawn_request_without_resume_drops_the_checkpoint(resume: str, is_kept: bool) -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.send(ALICE, checkpoint(to=["olga"]))
    assert hub.effect(OLGA, letter("SPAWN_REQUEST", resume)) == "applied"
    assert (hub.task().checkpoint is not None) == is_kept
    assert hub.task().status == "ready"
    assert findings(hub.store) == []


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
def test_agents_cannot_request_workers() -> None:
    hub = MailHub()
    hub.register("spawner")
    for to in ([], ["bob"]):
        sent = hub.send(ALICE, letter("SPAWN_REQUEST", "Resume: false", to=to))
        assert sent["effect"]["code"] == "not_authorized"
        assert not hub.has_task()
        mail = hub.mail(sent["id"])
        assert not mail.ack_wanted, "so that nobody has to answer it"
        assert not mail.awaits_answer


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("resume", ["false", "true"])
def test_spawn_request_does_not_displace_the_holder(resume: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    row = letter("SPAWN_REQUEST", f"Resume: {resume}", "Checkpoint: ffff")
    effect = hub.send(OLGA, row)["effect"]
    assert (effect["code"], effect["detail"]) == (
        "already_claimed",
        f"{BEAD} is held by alice",
    )
    task = hub.task()
    assert (task.status, task.assignee, task.checkpoint) == ("in-progress", "alice", None)


@proves("MAIL-MEANING")
@pytest.mark.parametrize("actor", [ALICE, BOB])
def test_letter_in_the_thread_of_the_task_is_a_heartbeat_of_its_holder(actor: Actor) -> None:
    hub = MailHub()
    claim_bead(hub)
    first = hub.send(BOB, {"subject": "Well?", "body_md": "?", "to": ["alice"], "thread_id": BEAD})
    for row in ({"thread_id": BEAD}, {"reply_to": first["id"]}):
        before = hub.lab.lease(BEAD)
        hub.send(actor, {"subject": "Soon", "body_md": "Wait.", "to": ["olga"], **row})
        after = hub.lab.lease(BEAD)
        assert before is not None
        assert after is not None
        assert after.heartbeats - before.heartbeats == (actor is ALICE)
    assert hub.send(ALICE, {"subject": "Lunch", "body_md": "?", "to": ["olga"]})["effect"] == {
        "applied": False
    }


@proves("MAIL-SUMMARY", "MAIL-REFUSED-EFFECT")
def test_refused_letter_is_not_the_last_state_of_its_thread() -> None:
    hub = MailHub()
    forged = letter("DONE", "Status: DONE", to=["olga"])
    claim_bead(hub)
    progress = letter("PROGRESS", "Step: one", "Status: half", to=["olga"])
    assert hub.effect(ALICE, progress) == "applied"
    for _ in range(2):
        assert hub.effect(BOB, forged) != "applied"
    hub.send(BOB, {"subject": "Hm", "body_md": "?", "to": ["olga"], "thread_id": BEAD})
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["last_type"], summary["last_status"]) == ("PROGRESS", "half")
    assert summary["counts"]["DONE"] == 2
    assert hub.effect(ALICE, letter("DONE", "Status: DONE", to=["olga"])) == "applied"
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["last_type"], summary["last_status"]) == ("DONE", "DONE")


@proves("MAIL-SUMMARY", "MAIL-THREAD")
def test_bead_thread_includes_its_letters_of_other_threads() -> None:
    hub = MailHub()
    claim_bead(hub)
    first = [row["id"] for row in hub.ask("mail.thread", {"thread_id": BEAD}, OLGA)["messages"]]
    plain = {"subject": f"[{BEAD}] hello", "body_md": "x", "to": ["olga"]}
    question = letter("HELP_REQUEST", "Question: Why?", to=["olga"])
    sent = [
        hub.send(ALICE, {**PROGRESS, "thread_id": "elsewhere"}),
        hub.send(ALICE, {**plain, "thread_id": "elsewhere"}),
        hub.send(ALICE, PROGRESS),
        hub.send(ALICE, {**question, "thread_id": "afar"}),
        hub.send(OLGA, {"subject": "HELP_RESPONSE", "body_md": "Because.", "thread_id": "afar"}),
    ]
    hub.send(ALICE, {"subject": "no bead", "body_md": "", "to": "olga", "thread_id": "elsewhere"})
    threads = [row["thread_id"] for row in sent]
    assert threads == ["elsewhere", "elsewhere", BEAD, "afar", "afar"]
    assert [row["bead_id"] for row in sent] == [BEAD] * 5
    assert all("detail" not in row["effect"] for row in sent)
    ids = [*first, *(row["id"] for row in sent)]

    found, after, page = list[str](), 0, dict[str, Any]()
    for _ in ids:  # page by page, in order
        page = hub.ask("mail.thread", {"thread_id": BEAD, "after": after, "limit": 1}, OLGA)
        found, after = [*found, *(row["id"] for row in page["messages"])], page["cursor"]
    assert found == ids
    assert not page["more"]
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["messages"], summary["last_type"]) == (len(ids), "HELP_RESPONSE")
    assert hub.inbox(OLGA, bead_id=BEAD)
    apart = hub.ask("mail.thread", {"thread_id": "elsewhere"}, OLGA)["messages"]
    assert len(apart) == 3


@proves("MAIL-REPEAT")
def test_repeated_answer_without_a_bead_is_recognized() -> None:
    hub = MailHub()
    claim_bead(hub)
    hub.send(ALICE, letter("HELP_REQUEST", "Question: Why?", to=["olga"], thread_id="afar"))
    row = {"id": "a-1", "subject": "HELP_RESPONSE", "body_md": "Because.", "thread_id": "afar"}
    first = hub.send(OLGA, row)
    assert (first["bead_id"], hub.send(OLGA, row)["id"]) == (BEAD, first["id"])


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
def test_spawn_request_for_ended_work_is_refused() -> None:
    hub = MailHub()
    hub.do(HUMAN, CreateTask("known", BEAD))
    hub.do(HUMAN, MoveTask(BEAD, "cancelled"))
    assert hub.effect(OLGA, letter("SPAWN_REQUEST")) == "invalid_transition"


@proves("MAIL-REFUSED-EFFECT")
@each_type
def test_letter_without_a_bead_is_delivered_with_a_refused_effect(type: str) -> None:
    hub = MailHub()
    row = {**LETTERS[type], "body_md": "Nothing.", "to": ["olga"]}
    sent = hub.send(ALICE, row)
    assert sent["effect"]["code"] == "invalid_field"
    assert "write Bead: ID" in sent["effect"]["detail"]
    assert sent["thread_id"] == sent["id"]
    assert hub.inbox(OLGA) == [sent["id"]]


@proves("MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("bead", ["a/../b", "ü-1", "x" * 129, "-x"])
def test_invalid_bead_id_does_not_prevent_delivery(bead: str) -> None:
    for adopt in (True, False):
        hub = MailHub(agentmail.Choices(adopt=adopt))
        sent = hub.send(ALICE, letter("PROGRESS", "Step: x", bead=bead, to=["olga"]))
        assert sent["effect"]["code"] == "invalid_id"
        assert (sent["bead_id"], sent["thread_id"]) == ("", sent["id"])
        answer = hub.send(ALICE, letter("HELP_RESPONSE", "yes", bead=bead, to=["olga"]))
        assert answer["effect"]["applied"] is False


@proves("MAIL-IDENTITY")
def test_from_must_be_the_caller() -> None:
    hub = MailHub()
    assert hub.code("mail.send", {**PROGRESS, "from": "bob"}, ALICE) == "identity_mismatch"
    assert hub.lab.refused(ALICE) == ["identity_mismatch"]
    assert hub.effect(ALICE, {**PROGRESS, "from": "alice"}) == "applied"
    answer = hub.router.send({**PROGRESS, "from": "alice"}, via="inbox")
    assert isinstance(answer, Accepted)
    assert answer.actor == "alice"
    invalid = hub.router.send({**PROGRESS, "from": "a b"}, via="inbox")
    assert isinstance(invalid, Rejected)
    assert invalid.code == "unauthenticated"


@proves("MAIL-IDENTITY", "MAIL-ROWS")
def test_sender_name_must_be_the_caller() -> None:
    hub = MailHub()
    assert hub.code("mail.send", {**PROGRESS, "sender_name": "bob"}, ALICE) == ("identity_mismatch")
    both = {**PROGRESS, "from": "alice", "sender_name": "bob"}
    assert hub.code("mail.send", both, ALICE) == "identity_mismatch"
    assert hub.effect(ALICE, {**PROGRESS, "sender_name": "alice"}) == "applied"
    answer = hub.router.send({**PROGRESS, "sender_name": "alice"}, via="inbox")
    assert isinstance(answer, Accepted)
    assert answer.actor == "alice"


@proves("MAIL-ROWS")
def test_body_field_is_read_as_body_md() -> None:
    hub = MailHub()
    fields = {name: value for name, value in PROGRESS.items() if name != "body_md"}
    theirs = {**fields, "body": PROGRESS["body_md"], "topic": "x"}
    sent = hub.send(ALICE, theirs)
    assert (sent["bead_id"], sent["effect"]) == (BEAD, {"applied": True})
    shown = hub.ask("mail.show", {"id": sent["id"]}, OLGA)
    assert (shown["body_md"], shown["extra_fields"]) == (PROGRESS["body_md"], {"topic": "x"})
    both = hub.send(ALICE, {**PROGRESS, "body": "Bead: other"})
    assert both["bead_id"] == BEAD, "ours comes first"


@proves("MAIL-MEANING", "MAIL-ADOPT")
@each_type
def test_mail_about_an_aof_task_moves_that_task(type: str) -> None:
    hub = MailHub()
    name = hub.lab.do(HUMAN, CreateTask("of AOF", ready=True)).task
    row = {**LETTERS[type], "body_md": LETTERS[type]["body_md"].replace(BEAD, name)}
    assert hub.effect(ALICE, {**ACCEPTED, "body_md": f"Accepted bead: {name}"}) == "applied"
    assert hub.effect(ALICE, row) == "applied"
    task = hub.task(name)
    assert (task.id, task.status, task.title) == (name, STATUS_AFTER[type], "of AOF")
    assert not hub.has_task(BEAD)


@proves("MAIL-MEANING")
def test_word_before_a_colon_is_a_bead_if_a_task_has_that_name() -> None:
    hub = MailHub()
    row = {"subject": "parser: PROGRESS", "body_md": "Step: one", "to": ["olga"]}
    assert hub.effect(ALICE, row) == "invalid_field"
    hub.do(HUMAN, CreateTask("known", "parser", ready=True))
    hub.do(ALICE, ClaimTask("parser", "alice"))
    assert hub.effect(ALICE, row) == "applied"


@proves("MAIL-MEANING")
def test_letter_in_the_thread_of_a_done_task_is_delivered() -> None:
    hub = MailHub()
    hub.send(ALICE, offering(to=["olga"]))
    hub.do(HUMAN, MoveTask(BEAD, "done"))
    reply = letter("thanks", "Well done.", bead="", thread_id=BEAD, to=["alice"])
    sent = hub.send(OLGA, reply)
    assert sent["thread_id"] == BEAD
    late = hub.send(ALICE, PROGRESS)
    assert (late["thread_id"], late["effect"]) == (BEAD, {"applied": True})
    assert hub.task().status == "done", "its owner may still have a word in the log"
    thread = hub.ask("mail.thread", {"thread_id": BEAD}, OLGA)["messages"]
    assert [row["id"] for row in thread][1:] == [sent["id"], late["id"]]


@proves("MAIL-MEANING")
def test_empty_progress_of_a_non_holder_has_no_effect() -> None:
    hub = MailHub()
    claim_bead(hub)
    assert hub.effect(BOB, letter("PROGRESS", to=["olga"])) == "unauthorized_agent"
    before = hub.task().notes
    assert hub.effect(ALICE, letter("PROGRESS", to=["olga"])) == "applied"
    assert hub.task().notes == before + 1, "it is a line in the log, if only its subject"


@proves("MAIL-MEANING", "MAIL-TYPE")
def test_reply_does_not_repeat_the_effect_of_its_letter() -> None:
    hub = MailHub()
    claim_bead(hub)
    sent = hub.send(ALICE, offering(to=["olga"]))["id"]
    reply = {"subject": f"Re: [{BEAD}] OFFERING_READY", "body_md": "Thank you."}
    for row in ({**reply, "reply_to": sent}, {**reply, "to": ["alice"]}):
        answer = hub.send(OLGA, row)
        assert answer["effect"]["applied"] is False
        assert hub.mail(answer["id"]).awaited_acks == (), "nobody acks a thank you"
    claim_bead(hub)
    other = {"subject": f"Re: [{BEAD}] FAILED", "body_md": "I cannot.", "reply_to": sent}
    assert hub.effect(ALICE, other) == "applied", "another type than that one's is meant"


@proves("MAIL-REFUSED-EFFECT", "IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize(
    "row", [ACCEPTED, PROGRESS, help_request(), offering(), failed("ERROR"), checkpoint()]
)
def test_letter_of_an_ended_attempt_is_delivered_without_effect(row: Row) -> None:
    hub = MailHub()
    hub.register("olga", "orchestrator")
    claim_bead(hub)
    task = hub.task()
    attempt = Actor("agent", "alice", "http", task.id, task.fence)
    hub.do(ALICE, ReleaseTask(task.id))
    before = hub.task()
    sent = hub.send(attempt, {**row, "to": ["olga"]})
    assert hub.inbox(OLGA)[-1:] == [sent["id"]]
    assert sent["effect"]["code"] == "lease_lost"
    assert hub.task() == before


@proves("MAIL-ECHO")
def test_reply_that_only_repeats_a_type_is_a_plain_letter() -> None:
    hub = MailHub()
    claim_bead(hub)
    sent = hub.send(ALICE, offering(to=["olga"]))["id"]
    thanks = {"subject": f"Re: [{BEAD}] OFFERING_READY", "body_md": "Status: fine", "id": "thx"}
    reply = hub.send(OLGA, {**thanks, "reply_to": sent})
    assert (reply["type"], "problems" in reply) == ("UNKNOWN", False)
    assert reply["effect"]["detail"].endswith(
        "to send a new OFFERING_READY, write the subject without Re: or Fwd:"
    )
    assert hub.inbox(ALICE, type="OFFERING_READY") == []
    assert hub.inbox(ALICE, only="completions") == []
    assert hub.inbox(ALICE, type="UNKNOWN") == ["thx"]
    assert hub.ask("mail.show", {"id": "thx"}, ALICE)["type"] == "UNKNOWN"
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["counts"], summary["last_type"]) == (
        {"BEAD_ACCEPTED": 1, "OFFERING_READY": 1, "UNKNOWN": 1},
        "OFFERING_READY",
    )


@proves("MAIL-ECHO", "MAIL-REPEAT")
def test_reply_to_a_plain_reply_is_plain_also_when_repeated() -> None:
    hub = MailHub()
    claim_bead(hub)
    sent = hub.send(ALICE, offering(to=["olga"]))["id"]
    subject = f"Re: [{BEAD}] OFFERING_READY"
    thanks = hub.send(OLGA, {"subject": subject, "body_md": "Thanks.", "reply_to": sent})["id"]
    welcome = {"subject": subject, "body_md": "Any time.", "id": "w", "to": ["olga"]}
    hub.send(ALICE, letter("PROGRESS", "Step: meanwhile", to=["olga"]))
    named = hub.send(ALICE, {**welcome, "id": "named", "reply_to": thanks})
    last = hub.send(ALICE, welcome)
    assert (named["type"], last["type"]) == ("UNKNOWN", "UNKNOWN")
    hub.send(ALICE, letter("PROGRESS", "Step: more", to=["olga"]))
    later = hub.router.call("mail.send", dict(welcome), ALICE, key="another")
    assert isinstance(later, Accepted)
    assert (later.reply["id"], later.reply["type"]) == ("w", "UNKNOWN")


@proves("MAIL-ADOPT")
@pytest.mark.parametrize("actor", [HUMAN, OLGA], ids=lambda actor: actor.role)
def test_created_task_is_assigned_to_agents_only(actor: Actor) -> None:
    hub = MailHub()
    assert hub.effect(actor, PROGRESS) == "applied"
    assert (hub.task().status, hub.task().assignee) == ("ready", "")


@proves("MAIL-POST", "MAIL-MEANING")
@pytest.mark.parametrize("named", [f"bead:{BEAD}", "aof"])
def test_letters_with_any_name_of_a_task_share_its_thread(named: str) -> None:
    hub = MailHub()
    claim_bead(hub)
    name = hub.task().aof_id if named == "aof" else named
    sent = hub.send(ALICE, letter("PROGRESS", "Step: x", bead=name, to=["olga"]))
    assert (sent["thread_id"], sent["bead_id"]) == (BEAD, BEAD)
    assert sent["effect"] == {"applied": True}
    assert len(hub.rows(OLGA, bead_id=BEAD)) == 2
    assert hub.task().aliases == (f"bead:{BEAD}",)


@proves("MAIL-POST", "MAIL-ADOPT")
def test_bead_with_prefix_is_the_same_bead() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, letter("PROGRESS", "Step: x", bead="bead:ol-1", to=["olga"]))
    assert (sent["thread_id"], sent["effect"]) == ("ol-1", {"applied": True})
    other = hub.send(ALICE, letter("PROGRESS", "Step: x", bead="intent:x-1", to=["olga"]))
    assert (other["thread_id"], other["effect"]["code"]) == ("x-1", "invalid_id")


@proves("MAIL-POST", "MAIL-TYPE")
def test_letter_keeps_the_type_and_bead_it_was_parsed_with() -> None:
    hub = MailHub()
    hub.do(HUMAN, CreateTask("t", "auth", ready=True))
    sent = hub.send(
        ALICE, {"subject": "auth: progress", "body_md": "Step: x\nStatus: y", "to": ["bob"]}
    )
    (row,) = hub.rows(BOB, type="PROGRESS")
    assert (row["id"], row["type"], row["bead_id"]) == (sent["id"], "PROGRESS", "auth")
    assert row["parsed"] == {"bead_id": "auth", "step": "x", "status": "y"}
    assert not row["problems"]
    assert "kind" not in row
    counts = hub.ask("mail.summary", {"thread_id": "auth"}, BOB)["counts"]
    assert counts == {"PROGRESS": 1}


@proves("MAIL-POST", "MAIL-TYPE")
def test_letters_of_the_hub_have_a_kind() -> None:
    hub = MailHub()
    hub.register("olga", "orchestrator")
    hub.send(ALICE, help_request())
    hub.pass_(30)
    (row,) = hub.rows(OLGA, type="LATE")
    assert (row["type"], row["kind"], row["problems"]) == ("UNKNOWN", "LATE", ())
    summary = hub.ask("mail.summary", {"thread_id": row["thread_id"]}, OLGA)
    assert (summary["counts"]["LATE"], "UNKNOWN" in summary["counts"]) == (1, False)
    assert summary["messages"] == sum(summary["counts"].values())
    assert hub.inbox(OLGA, type="UNKNOWN") == [row["id"]]


@proves("MAIL-CHECKPOINT")
def test_context_high_without_a_commit_counts_toward_the_attempt_limit() -> None:
    hub = MailHub(agentmail.Choices(max_attempts=2))
    for _ in range(2):
        claim_bead(hub)
        assert hub.effect(ALICE, failed("CONTEXT_HIGH", to=["olga"])) == "applied"
        hub.pass_(60)
    assert hub.task().status == "deadletter"


@proves("MAIL-ROWS", "MAIL-POST")
def test_rows_of_other_servers_are_accepted() -> None:
    hub = MailHub()
    row = {
        "id": 7,
        "subject": "hello",
        "body_md": "x",
        "to": ["bob"],
        "cc": None,
        "thread_id": None,
        "timestamp": None,
        "created_ts": "2026-01-31T10:00:00Z",
        "ack_required": 1,
    }
    sent = hub.send(ALICE, row)["id"]
    mail = hub.mail(sent)
    assert (sent, mail.ack_wanted, mail.cc, mail.thread) == ("7", True, (), "7")
    assert hub.rows(BOB)[0]["sent_at"] == "2026-01-31T10:00:00.000Z"
    assert hub.code("mail.send", {**row, "id": 8, "ack_required": 2}, ALICE) == "invalid_field"
    attached = [
        {"type": "file", "media_type": "image/webp", "bytes": 10, "path": "x.webp", "sha1": "aa"},
        {"type": "inline", "media_type": "image/webp", "data_uri": "data:image/webp;base64,AA=="},
        "out/report.md",
    ]
    sent = hub.send(ALICE, {**row, "id": 9, "attachments": attached})["id"]
    assert hub.mail(sent).attachments == (
        *("x.webp", "data:image/webp;base64,AA==", "out/report.md"),
    )
    nowhere = {**row, "id": 10, "attachments": [{"type": "file", "sha1": "aa"}]}
    assert hub.code("mail.send", nowhere, ALICE) == "invalid_field"
    inline = {"path": "", "data_uri": "data:,x"}
    sent = hub.send(ALICE, {**row, "id": 11, "attachments": [inline]})["id"]
    assert hub.mail(sent).attachments == ("data:,x",)
    empty = hub.call("mail.send", {**row, "id": 12, "attachments": ["a", {"path": ""}]}, ALICE)
    assert isinstance(empty, Rejected)
    assert empty.detail == "attachments[1] is empty; give it a text"


@proves("MAIL-ADDRESS")
def test_copied_recipients_do_not_count_toward_the_limit() -> None:
    hub = MailHub()
    hub.register("olga", "orchestrator")
    everyone = [f"a{number}" for number in range(1_000)]
    assert hub.send(ALICE, help_request(to=everyone))["effect"] == {"applied": True}
    assert hub.code("mail.send", help_request(to=[*everyone, "b"]), ALICE) == "invalid_field"
