"""What each type of letter asks of its task, whoever sends it and however the task stands."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, MoveTask, ReleaseTask
from dragoman.core.deadlines import Backoff
from dragoman.core.events import Status
from dragoman.engine.plan import Taken, Turned
from dragoman.protocols import agentmail
from tests.engine.lab import ALICE, BOB, HUMAN, findings
from tests.protocols.agentmail.office import (
    BEAD,
    MINUTE,
    OLGA,
    Office,
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
WORDS: dict[str, Row] = {
    "BEAD_ACCEPTED": ACCEPTED,
    "PROGRESS": PROGRESS,
    "HELP_REQUEST": help_request(),
    "OFFERING_READY": offering(to=["olga"]),
    "DONE": offering("DONE", to=["olga"]),
    "FAILED": failed("TESTS_FAIL", to=["olga"]),
    "CHECKPOINT": checkpoint(to=["olga"]),
}
"""What a worker says."""

AFTER: dict[str, Status] = {
    "BEAD_ACCEPTED": "in-progress",
    "PROGRESS": "in-progress",
    "HELP_REQUEST": "in-progress",
    "OFFERING_READY": "review",
    "DONE": "review",
    "FAILED": "ready",
    "CHECKPOINT": "ready",
}
"""Where the word of its holder leaves the task."""

each_word = pytest.mark.parametrize("type", WORDS)


def taken(office: Office, actor: Actor = ALICE) -> None:
    """The bead is in somebody's hands."""
    assert office.effect(actor, ACCEPTED) == "applied"


@proves("MAIL-ADOPT", "MAIL-MEANING")
@each_word
def test_the_first_word_of_a_worker_makes_the_task_and_gives_it_to_its_sender(type: str) -> None:
    office = Office()
    assert office.effect(ALICE, WORDS[type]) == "applied"
    task = office.task()
    assert (task.id, task.origin, task.status) == (BEAD, "agentmail", AFTER[type])
    assert task.aliases == (f"bead:{BEAD}",)
    assert (task.attempts, task.agents) == (1, ("alice",))
    assert task.title == ("Parse the thing" if type == "BEAD_ACCEPTED" else BEAD)
    steps = [event for stream, event in office.lab.lines() if stream == f"task:{BEAD}"]
    assert steps[:2] == ["task.created", "task.claimed"], "each step is on record"
    assert findings(office.store) == []


@proves("MAIL-ADOPT")
@pytest.mark.parametrize("type", ["HELP_RESPONSE", "SPAWN_ACK", "lunch?"])
def test_answers_and_plain_letters_make_no_task(type: str) -> None:
    office = Office()
    assert office.effect(ALICE, letter(type, to=["bob"])) == "none"
    assert not office.has_task()


@proves("MAIL-ADOPT")
@each_word
def test_where_nothing_is_adopted_an_unknown_bead_stays_unknown(type: str) -> None:
    office = Office(agentmail.Choices(adopt=False))
    sent = office.send(ALICE, WORDS[type])
    assert sent["effect"]["code"] == "task_not_found"
    assert office.mail(sent["id"]).kind == type, "the letter is delivered all the same"
    assert not office.has_task()


@proves("MAIL-ADOPT")
@each_word
def test_and_a_known_one_is_found_by_its_name(type: str) -> None:
    office = Office(agentmail.Choices(adopt=False))
    office.do(HUMAN, CreateTask("known", BEAD, ready=True))
    office.do(ALICE, ClaimTask(BEAD, "alice"))
    assert office.effect(ALICE, WORDS[type]) == "applied"
    assert office.task().status == AFTER[type]


@proves("MAIL-ADOPT")
def test_review_attempts_and_rest_are_as_the_settings_have_them() -> None:
    office = Office(agentmail.Choices(review_required=False, max_attempts=1))
    assert office.effect(ALICE, WORDS["DONE"]) == "applied"
    assert office.task().status == "done"
    assert office.effect(ALICE, failed("ERROR", bead="ol-2", to=["olga"])) == "applied"
    assert office.task("ol-2").status == "deadletter"


@proves("MAIL-MEANING")
@each_word
def test_a_known_bead_obeys_its_holder(type: str) -> None:
    office = Office()
    taken(office)
    assert office.effect(ALICE, WORDS[type]) == "applied"
    task = office.task()
    assert (task.status, task.attempts) == (AFTER[type], 1)


@proves("MAIL-REFUSED-EFFECT")
def test_a_word_that_finds_everything_done_says_that_it_changed_nothing() -> None:
    office = Office()
    office.send(ALICE, WORDS["DONE"])
    before = office.task()
    again = {**WORDS["DONE"], "id": "a-second-one"}
    effect = office.send(ALICE, again)["effect"]
    assert (effect["applied"], effect["code"]) == (False, "nothing_changed")
    assert f"{before.id} is review already" in effect["detail"]
    assert office.task() == before
    assert office.send(ALICE, again)["effect"] == effect


@proves("MAIL-REFUSED-EFFECT")
def test_a_sender_is_told_what_was_not_understood() -> None:
    office = Office()
    said = office.send(ALICE, letter("PROGRESS", "Step: 1", "Context usage: lots"))
    assert [(one["name"], one["field"], one["line"]) for one in said["problems"]] == [
        ("bad_percentage", "context_usage", 3)
    ]
    assert "problems" not in office.send(ALICE, letter("PROGRESS", "Step: 1"))
    assert "problems" not in office.send(ALICE, {"to": ["bob"], "subject": "?", "body_md": "hm"})


@proves("MAIL-MEANING", "MAIL-REFUSED-EFFECT")
@each_word
def test_the_word_of_a_stranger_is_delivered_and_changes_nothing(type: str) -> None:
    office = Office()
    taken(office)
    before = office.task()
    sent = office.send(BOB, WORDS[type])
    refused = "already_claimed" if type == "BEAD_ACCEPTED" else "unauthorized_agent"
    assert sent["effect"]["applied"] is False
    assert sent["effect"]["code"] == refused
    assert sent["effect"]["detail"]
    assert office.task() == before
    assert office.mail(sent["id"]).sender == "bob"
    assert office.lab.refused(BOB) == [refused]
    assert findings(office.store) == []


@proves("MAIL-MEANING", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("type", [type for type in WORDS if type != "BEAD_ACCEPTED"])
def test_one_whose_lease_was_lost_is_told_so(type: str) -> None:
    office = Office()
    taken(office)
    office.pass_(21)
    assert office.task().status == "ready"
    assert office.effect(ALICE, WORDS[type]) == "lease_lost"
    assert office.effect(BOB, WORDS[type]) == "unassigned_task"
    office.pass_(30)
    taken(office, BOB)
    assert office.effect(ALICE, WORDS[type]) == "lease_lost"


@proves("MAIL-MEANING")
def test_an_accepted_bead_is_claimed_for_twenty_minutes() -> None:
    office = Office()
    taken(office)
    lease = office.lab.lease(BEAD)
    assert lease is not None
    assert (lease.holder, lease.ttl_ms, lease.fence) == ("alice", 20 * MINUTE, 1)
    taken(office)
    again = office.lab.lease(BEAD)
    assert again is not None
    assert (again.fence, again.beats) == (1, lease.beats + 1), "said twice, claimed once"


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
def test_any_letter_of_the_holder_about_its_task_is_one_sign_of_life(row: Row) -> None:
    office = Office()
    taken(office)
    office.pass_(19)
    office.send(ALICE, row)
    lease = office.lab.lease(BEAD)
    assert lease is not None
    assert (lease.expires_at, lease.beats) == (office.lab.clock.now() + 20 * MINUTE, 2)
    office.pass_(19)
    assert office.task().status == "in-progress"
    office.send(BOB, letter("lunch?", to=["alice"]))
    office.pass_(1)
    assert office.task().status == "ready", "nobody else's letter is one"


@proves("MAIL-MEANING")
def test_progress_is_in_the_work_log() -> None:
    office = Office()
    taken(office)
    before = office.store.head()
    office.send(ALICE, PROGRESS)
    logged = [line for line in office.events(before) if line["type"] == "task.updated"]
    assert logged[0]["payload"]["progress"] == "Step 4 - parsing: half"
    assert logged[0]["payload"]["notes"] == "context 40%; files: a.py, b.py"


@proves("MAIL-MEANING")
@pytest.mark.parametrize("type", ["OFFERING_READY", "DONE"])
def test_finished_work_is_reported_with_what_was_checked(type: str) -> None:
    office = Office()
    taken(office)
    office.send(ALICE, offering(type, to=["olga"]))
    report = office.task().reported
    assert report is not None
    assert (report.outcome, report.notes) == ("done", "It works.")
    assert report.details == {
        "commit": "0a1b2c3",
        "files": ["src/a.py", "src/b.py"],
        "tests_pass": True,
        "lint_pass": True,
        "build_pass": True,
    }
    assert office.lab.lease(BEAD) is None


@proves("MAIL-MEANING")
@pytest.mark.parametrize(("tests", "outcome"), [("FAIL", "needs_review"), ("maybe", "done")])
def test_a_failed_check_wants_a_review_and_an_unreadable_one_has_not_failed(
    tests: str, outcome: str
) -> None:
    office = Office(agentmail.Choices(review_required=False))
    office.send(ALICE, offering(tests=tests, to=["olga"]))
    task = office.task()
    assert task.reported is not None
    assert task.reported.outcome == outcome
    assert task.status == ("review" if outcome == "needs_review" else "done")


@proves("MAIL-MEANING")
@pytest.mark.parametrize("box", ["[ ]", "[x]"])
def test_a_failed_check_counts_behind_a_box_to_tick_too(box: str) -> None:
    office = Office(agentmail.Choices(review_required=False))
    row = offering(tests="FAIL", to=["olga"])
    office.send(ALICE, {**row, "body_md": row["body_md"].replace("- Tests", f"- {box} Tests")})
    assert office.task().status == "review"


@proves("MAIL-MEANING")
@pytest.mark.parametrize("type", ["TESTS_FAIL", "BUILD_FAIL", "ERROR", ""])
def test_failed_work_is_tried_again_after_a_rest_until_the_limit(type: str) -> None:
    office = Office(agentmail.Choices(max_attempts=3, backoff=Backoff(5 * MINUTE, 60 * MINUTE)))
    for attempt in (1, 2):
        taken(office)
        assert office.effect(ALICE, failed(type, to=["olga"])) == "applied"
        task = office.task()
        assert (task.status, task.attempts, task.failures) == ("ready", attempt, attempt)
        assert task.not_before > office.lab.clock.now()
        assert office.effect(BOB, letter("PROGRESS", "Step: x", to=["olga"])) == "unassigned_task"
        office.pass_(60)
    taken(office)
    office.send(ALICE, failed(type, to=["olga"]))
    task = office.task()
    assert task.status == "deadletter"
    assert task.reported is not None
    assert task.reported.blockers == ("it broke",)
    assert task.reported.details.get("failure_type", "") == type
    assert task.reported.details["internal_attempts"] == 2


@proves("MAIL-MEANING")
def test_what_cannot_be_done_is_blocked() -> None:
    office = Office()
    taken(office)
    office.send(ALICE, failed("SPEC_IMPOSSIBLE", to=["olga"]))
    task = office.task()
    assert task.status == "blocked"
    assert task.reported is not None
    assert (task.reported.outcome, task.reported.blockers) == ("blocked", ("it broke",))


@proves("MAIL-CHECKPOINT")
@pytest.mark.parametrize("row", [checkpoint(to=["olga"]), failed("CONTEXT_HIGH", "0a1b2c3")])
def test_a_successor_gets_the_commit_and_the_next_steps(row: Row) -> None:
    office = Office()
    taken(office)
    before = office.store.head()
    assert office.effect(ALICE, row) == "applied"
    task = office.task()
    assert (task.status, task.failures, task.not_before, task.reported) == ("ready", 0, 0, None)
    left = task.checkpoint
    assert left is not None
    assert (left.by, left.reason, left.commit) == ("alice", "CONTEXT_HIGH", "0a1b2c3")
    wanted = "mend it" if row["subject"] == "FAILED" else "Write the other half."
    assert left.next_steps == wanted
    assert "task.checkpointed" in office.types(before)
    assert "task.completed" not in office.types(before), "it is no outcome"
    taken(office, BOB)
    assert office.task().checkpoint == left
    office.send(BOB, offering(to=["olga"]))
    assert office.task().checkpoint is None, "the work went on past it"


@proves("MAIL-SPAWN")
@pytest.mark.parametrize("status", ["unknown", "backlog", "ready", "blocked", "deadletter"])
def test_a_worker_is_asked_for_by_putting_the_task_into_the_queue(status: Any) -> None:
    office = Office()
    if status != "unknown":
        office.do(HUMAN, CreateTask("known", BEAD, ready=status == "deadletter"))
        office.do(HUMAN, MoveTask(BEAD, status))
    assert office.effect(OLGA, letter("SPAWN_REQUEST", "Resume: false")) == "applied"
    task = office.task()
    assert (task.status, task.checkpoint, task.attempts) == ("ready", None, 0)


@proves("MAIL-SPAWN", "MAIL-CHECKPOINT")
def test_resuming_keeps_what_the_predecessor_has_left() -> None:
    office = Office()
    taken(office)
    office.send(ALICE, checkpoint(to=["olga"]))
    left = office.task().checkpoint
    resume = letter("SPAWN_REQUEST", "Resume: true", "Checkpoint: 0a1b2c3", "Orchestrator: olga")
    assert office.effect(OLGA, resume) == "applied"
    assert office.task().checkpoint == left
    other = letter("SPAWN_REQUEST", "Resume: true", "Checkpoint: ffff", "Orchestrator: olga")
    assert office.effect(OLGA, other) == "applied"
    moved = office.task().checkpoint
    assert moved is not None
    assert (moved.reason, moved.commit) == ("RESUME", "ffff")
    assert moved.next_steps == "Write the other half."


@proves("MAIL-SPAWN", "MAIL-CHECKPOINT")
@pytest.mark.parametrize(
    ("resume", "is_kept"),
    [("Resume: false", False), ("Resume: true", True), ("Orchestrator: olga", True)],
)
def test_a_worker_that_is_not_to_resume_begins_anew(resume: str, is_kept: bool) -> None:
    office = Office()
    taken(office)
    office.send(ALICE, checkpoint(to=["olga"]))
    assert office.effect(OLGA, letter("SPAWN_REQUEST", resume)) == "applied"
    assert (office.task().checkpoint is not None) == is_kept
    assert office.task().status == "ready"
    assert findings(office.store) == []


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
def test_only_those_who_run_the_show_ask_for_workers() -> None:
    office = Office()
    office.register("spawner")
    for to in ([], ["bob"]):
        sent = office.send(ALICE, letter("SPAWN_REQUEST", "Resume: false", to=to))
        assert sent["effect"]["code"] == "not_authorized"
        assert not office.has_task()
        mail = office.mail(sent["id"])
        assert not mail.ack_wanted, "so that nobody has to answer it"
        assert not mail.is_open


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("resume", ["false", "true"])
def test_nobody_is_driven_away_for_a_new_worker(resume: str) -> None:
    office = Office()
    taken(office)
    row = letter("SPAWN_REQUEST", f"Resume: {resume}", "Checkpoint: ffff")
    effect = office.send(OLGA, row)["effect"]
    assert (effect["code"], effect["detail"]) == (
        "already_claimed",
        f"alice works on {BEAD}: it is left to it",
    )
    task = office.task()
    assert (task.status, task.assignee, task.checkpoint) == ("in-progress", "alice", None)


@proves("MAIL-MEANING")
@pytest.mark.parametrize("actor", [ALICE, BOB])
def test_a_letter_in_the_thread_of_its_task_is_a_sign_of_life_of_the_holder(actor: Actor) -> None:
    office = Office()
    taken(office)
    first = office.send(
        BOB, {"subject": "Well?", "body_md": "?", "to": ["alice"], "thread_id": BEAD}
    )
    for row in ({"thread_id": BEAD}, {"reply_to": first["id"]}):
        before = office.lab.lease(BEAD)
        office.send(actor, {"subject": "Soon", "body_md": "Wait.", "to": ["olga"], **row})
        after = office.lab.lease(BEAD)
        assert before is not None
        assert after is not None
        assert after.beats - before.beats == (actor is ALICE)
    assert office.send(ALICE, {"subject": "Lunch", "body_md": "?", "to": ["olga"]})["effect"] == {
        "applied": False
    }


@proves("MAIL-SUMMARY", "MAIL-REFUSED-EFFECT")
def test_a_letter_that_was_refused_is_not_the_last_state_of_its_thread() -> None:
    office = Office()
    forged = letter("DONE", "Status: DONE", to=["olga"])
    taken(office)
    said = letter("PROGRESS", "Step: one", "Status: half", to=["olga"])
    assert office.effect(ALICE, said) == "applied"
    for _ in range(2):
        assert office.effect(BOB, forged) != "applied"
    office.send(BOB, {"subject": "Hm", "body_md": "?", "to": ["olga"], "thread_id": BEAD})
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["last_type"], summary["last_status"]) == ("PROGRESS", "half")
    assert summary["counts"]["DONE"] == 2
    assert office.effect(ALICE, letter("DONE", "Status: DONE", to=["olga"])) == "applied"
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["last_type"], summary["last_status"]) == ("DONE", "DONE")


@proves("MAIL-SUMMARY", "MAIL-THREAD")
def test_the_thread_of_a_bead_has_all_letters_about_it_wherever_they_were_put() -> None:
    office = Office()
    taken(office)
    first = [row["id"] for row in office.ask("mail.thread", {"thread_id": BEAD}, OLGA)["messages"]]
    plain = {"subject": f"[{BEAD}] hello", "body_md": "x", "to": ["olga"]}
    question = letter("HELP_REQUEST", "Question: Why?", to=["olga"])
    sent = [
        office.send(ALICE, {**PROGRESS, "thread_id": "elsewhere"}),
        office.send(ALICE, {**plain, "thread_id": "elsewhere"}),
        office.send(ALICE, PROGRESS),
        office.send(ALICE, {**question, "thread_id": "afar"}),
        office.send(OLGA, {"subject": "HELP_RESPONSE", "body_md": "Because.", "thread_id": "afar"}),
    ]
    office.send(
        ALICE, {"subject": "no bead", "body_md": "", "to": "olga", "thread_id": "elsewhere"}
    )
    threads = [row["thread_id"] for row in sent]
    assert threads == ["elsewhere", "elsewhere", BEAD, "afar", "afar"]
    assert [row["bead_id"] for row in sent] == [BEAD] * 5
    assert all("detail" not in row["effect"] for row in sent)
    ids = [*first, *(row["id"] for row in sent)]

    found, after, page = list[str](), 0, dict[str, Any]()
    for _ in ids:  # a page at a time, in order
        page = office.ask("mail.thread", {"thread_id": BEAD, "after": after, "limit": 1}, OLGA)
        found, after = [*found, *(row["id"] for row in page["messages"])], page["cursor"]
    assert found == ids
    assert not page["more"]
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["messages"], summary["last_type"]) == (len(ids), "HELP_RESPONSE")
    assert office.inbox(OLGA, bead_id=BEAD)
    apart = office.ask("mail.thread", {"thread_id": "elsewhere"}, OLGA)["messages"]
    assert len(apart) == 3


@proves("MAIL-REPEAT")
def test_an_answer_that_names_no_bead_is_the_same_when_it_comes_again() -> None:
    office = Office()
    taken(office)
    office.send(ALICE, letter("HELP_REQUEST", "Question: Why?", to=["olga"], thread_id="afar"))
    row = {"id": "a-1", "subject": "HELP_RESPONSE", "body_md": "Because.", "thread_id": "afar"}
    first = office.send(OLGA, row)
    assert (first["bead_id"], office.send(OLGA, row)["id"]) == (BEAD, first["id"])


@proves("MAIL-SPAWN", "MAIL-REFUSED-EFFECT")
def test_work_that_has_ended_gets_no_worker() -> None:
    office = Office()
    office.do(HUMAN, CreateTask("known", BEAD))
    office.do(HUMAN, MoveTask(BEAD, "cancelled"))
    assert office.effect(OLGA, letter("SPAWN_REQUEST")) == "invalid_transition"


@proves("MAIL-REFUSED-EFFECT")
@each_word
def test_a_letter_that_names_no_bead_is_delivered_and_the_sender_told(type: str) -> None:
    office = Office()
    row = {**WORDS[type], "body_md": "Nothing.", "to": ["olga"]}
    sent = office.send(ALICE, row)
    assert sent["effect"]["code"] == "invalid_field"
    assert "write Bead: ID" in sent["effect"]["detail"]
    assert sent["thread_id"] == sent["id"]
    assert office.inbox(OLGA) == [sent["id"]]


@proves("MAIL-REFUSED-EFFECT")
@pytest.mark.parametrize("bead", ["a/../b", "ü-1", "x" * 129, "-x"])
def test_a_bead_whose_name_cannot_be_one_keeps_no_letter_back(bead: str) -> None:
    for adopt in (True, False):
        office = Office(agentmail.Choices(adopt=adopt))
        sent = office.send(ALICE, letter("PROGRESS", "Step: x", bead=bead, to=["olga"]))
        assert sent["effect"]["code"] == "invalid_id"
        assert (sent["bead_id"], sent["thread_id"]) == ("", sent["id"])
        answer = office.send(ALICE, letter("HELP_RESPONSE", "yes", bead=bead, to=["olga"]))
        assert answer["effect"]["applied"] is False


@proves("MAIL-IDENTITY")
def test_a_letter_is_from_its_caller() -> None:
    office = Office()
    assert office.code("mail.send", {**PROGRESS, "from": "bob"}, ALICE) == "identity_mismatch"
    assert office.lab.refused(ALICE) == ["identity_mismatch"]
    assert office.effect(ALICE, {**PROGRESS, "from": "alice"}) == "applied"
    answer = office.door.send({**PROGRESS, "from": "alice"}, via="inbox")
    assert isinstance(answer, Taken)
    assert answer.actor == "alice"
    nobody = office.door.send({**PROGRESS, "from": "a b"}, via="inbox")
    assert isinstance(nobody, Turned)
    assert nobody.code == "unauthenticated"


@proves("MAIL-IDENTITY", "MAIL-ROWS")
def test_a_sender_under_another_name_is_looked_at_too() -> None:
    office = Office()
    assert office.code("mail.send", {**PROGRESS, "sender_name": "bob"}, ALICE) == (
        "identity_mismatch"
    )
    both = {**PROGRESS, "from": "alice", "sender_name": "bob"}
    assert office.code("mail.send", both, ALICE) == "identity_mismatch"
    assert office.effect(ALICE, {**PROGRESS, "sender_name": "alice"}) == "applied"
    answer = office.door.send({**PROGRESS, "sender_name": "alice"}, via="inbox")
    assert isinstance(answer, Taken)
    assert answer.actor == "alice"


@proves("MAIL-ROWS")
def test_a_text_under_another_name_is_the_letters_text() -> None:
    office = Office()
    words = {name: value for name, value in PROGRESS.items() if name != "body_md"}
    theirs = {**words, "body": PROGRESS["body_md"], "topic": "x"}
    sent = office.send(ALICE, theirs)
    assert (sent["bead_id"], sent["effect"]) == (BEAD, {"applied": True})
    shown = office.ask("mail.show", {"id": sent["id"]}, OLGA)
    assert (shown["body_md"], shown["passed_on"]) == (PROGRESS["body_md"], {"topic": "x"})
    both = office.send(ALICE, {**PROGRESS, "body": "Bead: other"})
    assert both["bead_id"] == BEAD, "ours comes first"


@proves("MAIL-MEANING", "MAIL-ADOPT")
@each_word
def test_mail_about_a_task_of_aof_moves_that_task(type: str) -> None:
    office = Office()
    name = office.lab.do(HUMAN, CreateTask("of AOF", ready=True)).task
    row = {**WORDS[type], "body_md": WORDS[type]["body_md"].replace(BEAD, name)}
    assert office.effect(ALICE, {**ACCEPTED, "body_md": f"Accepted bead: {name}"}) == "applied"
    assert office.effect(ALICE, row) == "applied"
    task = office.task(name)
    assert (task.id, task.status, task.title) == (name, AFTER[type], "of AOF")
    assert not office.has_task(BEAD)


@proves("MAIL-MEANING")
def test_a_plain_word_before_a_colon_is_a_bead_where_a_task_is_named_so() -> None:
    office = Office()
    row = {"subject": "parser: PROGRESS", "body_md": "Step: one", "to": ["olga"]}
    assert office.effect(ALICE, row) == "invalid_field"
    office.do(HUMAN, CreateTask("known", "parser", ready=True))
    office.do(ALICE, ClaimTask("parser", "alice"))
    assert office.effect(ALICE, row) == "applied"


@proves("MAIL-MEANING")
def test_a_letter_in_the_thread_of_a_task_that_is_done_is_delivered() -> None:
    office = Office()
    office.send(ALICE, offering(to=["olga"]))
    office.do(HUMAN, MoveTask(BEAD, "done"))
    reply = letter("thanks", "Well done.", bead="", thread_id=BEAD, to=["alice"])
    sent = office.send(OLGA, reply)
    assert sent["thread_id"] == BEAD
    late = office.send(ALICE, PROGRESS)
    assert (late["thread_id"], late["effect"]) == (BEAD, {"applied": True})
    assert office.task().status == "done", "its owner may still have a word in the log"
    thread = office.ask("mail.thread", {"thread_id": BEAD}, OLGA)["messages"]
    assert [row["id"] for row in thread][1:] == [sent["id"], late["id"]]


@proves("MAIL-MEANING")
def test_an_empty_word_of_somebody_else_changes_nothing_either() -> None:
    office = Office()
    taken(office)
    assert office.effect(BOB, letter("PROGRESS", to=["olga"])) == "unauthorized_agent"
    before = office.task().notes
    assert office.effect(ALICE, letter("PROGRESS", to=["olga"])) == "applied"
    assert office.task().notes == before + 1, "it is a line in the log, if only its subject"


@proves("MAIL-MEANING", "MAIL-TYPE")
def test_a_reply_does_not_do_again_what_it_replies_to() -> None:
    office = Office()
    taken(office)
    sent = office.send(ALICE, offering(to=["olga"]))["id"]
    reply = {"subject": f"Re: [{BEAD}] OFFERING_READY", "body_md": "Thank you."}
    for row in ({**reply, "reply_to": sent}, {**reply, "to": ["alice"]}):
        answer = office.send(OLGA, row)
        assert answer["effect"]["applied"] is False
        assert office.mail(answer["id"]).waits_for == (), "nobody acks a thank you"
    taken(office)
    other = {"subject": f"Re: [{BEAD}] FAILED", "body_md": "I cannot.", "reply_to": sent}
    assert office.effect(ALICE, other) == "applied", "another type than that one's is meant"


@proves("MAIL-REFUSED-EFFECT", "IDENTITY-ATTEMPT-END")
@pytest.mark.parametrize(
    "row", [ACCEPTED, PROGRESS, help_request(), offering(), failed("ERROR"), checkpoint()]
)
def test_the_letter_of_an_attempt_that_is_over_is_delivered_and_moves_nothing(row: Row) -> None:
    office = Office()
    office.register("olga", "orchestrator")
    taken(office)
    task = office.task()
    attempt = Actor("agent", "alice", "http", task.id, task.fence)
    office.do(ALICE, ReleaseTask(task.id))
    before = office.task()
    sent = office.send(attempt, {**row, "to": ["olga"]})
    assert office.inbox(OLGA)[-1:] == [sent["id"]]
    assert sent["effect"]["code"] == "lease_lost"
    assert office.task() == before


@proves("MAIL-ECHO")
def test_a_reply_that_only_repeats_a_type_is_plain_everywhere_and_its_sender_is_told() -> None:
    office = Office()
    taken(office)
    sent = office.send(ALICE, offering(to=["olga"]))["id"]
    thanks = {"subject": f"Re: [{BEAD}] OFFERING_READY", "body_md": "Status: fine", "id": "thx"}
    reply = office.send(OLGA, {**thanks, "reply_to": sent})
    assert (reply["type"], "problems" in reply) == ("UNKNOWN", False)
    assert reply["effect"]["detail"].endswith(
        "to say OFFERING_READY anew, write the subject without Re: or Fwd:"
    )
    assert office.inbox(ALICE, type="OFFERING_READY") == []
    assert office.inbox(ALICE, only="completions") == []
    assert office.inbox(ALICE, type="UNKNOWN") == ["thx"]
    assert office.ask("mail.show", {"id": "thx"}, ALICE)["type"] == "UNKNOWN"
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["counts"], summary["last_type"]) == (
        {"BEAD_ACCEPTED": 1, "OFFERING_READY": 1, "UNKNOWN": 1},
        "OFFERING_READY",
    )


@proves("MAIL-ECHO", "MAIL-REPEAT")
def test_a_reply_to_a_plain_reply_is_plain_and_stays_so_when_it_comes_again() -> None:
    office = Office()
    taken(office)
    sent = office.send(ALICE, offering(to=["olga"]))["id"]
    subject = f"Re: [{BEAD}] OFFERING_READY"
    thanks = office.send(OLGA, {"subject": subject, "body_md": "Thanks.", "reply_to": sent})["id"]
    welcome = {"subject": subject, "body_md": "Any time.", "id": "w", "to": ["olga"]}
    office.send(ALICE, letter("PROGRESS", "Step: meanwhile", to=["olga"]))
    named = office.send(ALICE, {**welcome, "id": "named", "reply_to": thanks})
    last = office.send(ALICE, welcome)
    assert (named["type"], last["type"]) == ("UNKNOWN", "UNKNOWN")
    office.send(ALICE, letter("PROGRESS", "Step: more", to=["olga"]))
    later = office.door.call("mail.send", dict(welcome), ALICE, key="another")
    assert isinstance(later, Taken)
    assert (later.reply["id"], later.reply["type"]) == ("w", "UNKNOWN")


@proves("MAIL-ADOPT")
@pytest.mark.parametrize("actor", [HUMAN, OLGA], ids=lambda actor: actor.role)
def test_only_an_agent_gets_the_task_that_its_word_makes(actor: Actor) -> None:
    office = Office()
    assert office.effect(actor, PROGRESS) == "applied"
    assert (office.task().status, office.task().assignee) == ("ready", "")


@proves("MAIL-POST", "MAIL-MEANING")
@pytest.mark.parametrize("named", [f"bead:{BEAD}", "aof"])
def test_all_letters_about_a_task_share_a_thread_whatever_they_call_it(named: str) -> None:
    office = Office()
    taken(office)
    name = office.task().aof_id if named == "aof" else named
    sent = office.send(ALICE, letter("PROGRESS", "Step: x", bead=name, to=["olga"]))
    assert (sent["thread_id"], sent["bead_id"]) == (BEAD, BEAD)
    assert sent["effect"] == {"applied": True}
    assert len(office.rows(OLGA, bead_id=BEAD)) == 2
    assert office.task().aliases == (f"bead:{BEAD}",)


@proves("MAIL-POST", "MAIL-ADOPT")
def test_a_bead_by_its_full_name_is_the_same_bead() -> None:
    office = Office()
    sent = office.send(ALICE, letter("PROGRESS", "Step: x", bead="bead:ol-1", to=["olga"]))
    assert (sent["thread_id"], sent["effect"]) == ("ol-1", {"applied": True})
    other = office.send(ALICE, letter("PROGRESS", "Step: x", bead="intent:x-1", to=["olga"]))
    assert (other["thread_id"], other["effect"]["code"]) == ("x-1", "invalid_id")


@proves("MAIL-POST", "MAIL-TYPE")
def test_a_letter_has_the_type_and_the_bead_that_it_was_taken_for_whoever_looks() -> None:
    office = Office()
    office.do(HUMAN, CreateTask("t", "auth", ready=True))
    sent = office.send(
        ALICE, {"subject": "auth: progress", "body_md": "Step: x\nStatus: y", "to": ["bob"]}
    )
    (row,) = office.rows(BOB, type="PROGRESS")
    assert (row["id"], row["type"], row["bead_id"]) == (sent["id"], "PROGRESS", "auth")
    assert row["parsed"] == {"bead_id": "auth", "step": "x", "status": "y"}
    assert not row["problems"]
    assert "kind" not in row
    counts = office.ask("mail.summary", {"thread_id": "auth"}, BOB)["counts"]
    assert counts == {"PROGRESS": 1}


@proves("MAIL-POST", "MAIL-TYPE")
def test_letters_of_the_hub_itself_say_what_they_are() -> None:
    office = Office()
    office.register("olga", "orchestrator")
    office.send(ALICE, help_request())
    office.pass_(30)
    (row,) = office.rows(OLGA, type="LATE")
    assert (row["type"], row["kind"], row["problems"]) == ("UNKNOWN", "LATE", ())
    summary = office.ask("mail.summary", {"thread_id": row["thread_id"]}, OLGA)
    assert (summary["counts"]["LATE"], "UNKNOWN" in summary["counts"]) == (1, False)
    assert summary["messages"] == sum(summary["counts"].values())
    assert office.inbox(OLGA, type="UNKNOWN") == [row["id"]]


@proves("MAIL-CHECKPOINT")
def test_a_worker_that_gives_up_with_nothing_again_and_again_reaches_the_limit() -> None:
    office = Office(agentmail.Choices(max_attempts=2))
    for _ in range(2):
        taken(office)
        assert office.effect(ALICE, failed("CONTEXT_HIGH", to=["olga"])) == "applied"
        office.pass_(60)
    assert office.task().status == "deadletter"


@proves("MAIL-ROWS", "MAIL-POST")
def test_rows_of_other_servers_are_sent_as_they_are() -> None:
    office = Office()
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
    sent = office.send(ALICE, row)["id"]
    mail = office.mail(sent)
    assert (sent, mail.ack_wanted, mail.cc, mail.thread) == ("7", True, (), "7")
    assert office.rows(BOB)[0]["sent_at"] == "2026-01-31T10:00:00.000Z"
    assert office.code("mail.send", {**row, "id": 8, "ack_required": 2}, ALICE) == "invalid_field"
    attached = [
        {"type": "file", "media_type": "image/webp", "bytes": 10, "path": "x.webp", "sha1": "aa"},
        {"type": "inline", "media_type": "image/webp", "data_uri": "data:image/webp;base64,AA=="},
        "out/report.md",
    ]
    sent = office.send(ALICE, {**row, "id": 9, "attachments": attached})["id"]
    assert office.mail(sent).attachments == (
        *("x.webp", "data:image/webp;base64,AA==", "out/report.md"),
    )
    nowhere = {**row, "id": 10, "attachments": [{"type": "file", "sha1": "aa"}]}
    assert office.code("mail.send", nowhere, ALICE) == "invalid_field"
    inline = {"path": "", "data_uri": "data:,x"}
    sent = office.send(ALICE, {**row, "id": 11, "attachments": [inline]})["id"]
    assert office.mail(sent).attachments == ("data:,x",)
    empty = office.call("mail.send", {**row, "id": 12, "attachments": ["a", {"path": ""}]}, ALICE)
    assert isinstance(empty, Turned)
    assert empty.detail == "attachments[1] is empty; give it a text"


@proves("MAIL-ADDRESS")
def test_those_who_hear_of_it_besides_take_up_no_place() -> None:
    office = Office()
    office.register("olga", "orchestrator")
    everyone = [f"a{number}" for number in range(1_000)]
    assert office.send(ALICE, help_request(to=everyone))["effect"] == {"applied": True}
    assert office.code("mail.send", help_request(to=[*everyone, "b"]), ALICE) == "invalid_field"
