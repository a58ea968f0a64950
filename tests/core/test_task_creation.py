"""Creation of tasks: create, adopt, name and note, with their limits."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.read import Decision, Receipt
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    LinkTask,
    NoteTask,
    Task,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskNoted,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    events_of,
    task,
)
from tests.requirements import proves

DAY = 86_400_000
TODAY = "2026-02-09"


def create(world: World, command: Command, actor: Actor = HUMAN, now: int = NOW) -> Task:
    """Task that a command creates."""
    return world.tasks[world.do(actor, command, now).receipt.task]


@proves("NAME-AOF-ID", "TASK-LIFECYCLE")
def test_created_task_has_all_fields_of_the_command() -> None:
    world = World(task("P"), task("B"), task("E", "done"), task("S"))
    decision = world.do(
        ALICE,
        CreateTask(
            "a title",
            "mine",
            body="a body",
            ready=True,
            assignee="bob@host.example",
            parent="P",
            review_required=False,
            may_skip_review=True,
            priority="critical",
            blocked_by=("B", "E", "B"),
            discovered_from="S",
            aliases=("bead:ol-1", "workq:7", "bead:ol-1"),
            origin="a mail",
            max_attempts=3,
        ),
    )
    created = TaskCreated(
        id="mine",
        aof_id=f"TASK-{TODAY}-002",  # 001 belongs to the four tasks that were there before
        title="a title",
        status="ready",
        body="a body",
        priority="critical",
        review_required=False,
        max_attempts=3,
        reserved_for="bob@host.example",
        origin="a mail",
        aliases=("bead:ol-1", "workq:7"),
        parent="P",
        blocked_by=("B", "E"),
        open_blockers=("B",),
        discovered_from="S",
    )
    assert decision.receipt == Receipt("mine", "ready", attempt=0, fence=0, expires_at=0)
    assert decision.aof_number == (TODAY, 2)
    assert decision.events == (
        ("task:mine", created),
        ("task:B", TaskBacklinked("blocked-by", "mine")),
        ("task:E", TaskBacklinked("blocked-by", "mine")),
        ("task:P", TaskBacklinked("parent", "mine")),
        ("task:S", TaskBacklinked("discovered-from", "mine")),
    )
    made = world.tasks["mine"]
    assert (made.created_at, made.updated_at, made.moved_at) == (NOW, NOW, NOW)
    assert (made.assignee, made.attempts, made.fence) == ("bob@host.example", 0, 0)


@proves("NAME-AOF-ID", "TASK-LIFECYCLE")
def test_task_without_id_gets_next_aof_id_of_the_day_in_backlog() -> None:
    world = World()
    first, second = create(world, CreateTask("one")), create(world, CreateTask("two"))
    assert (first.id, second.id) == (f"TASK-{TODAY}-001", f"TASK-{TODAY}-002")
    assert (first.aof_id, second.aof_id) == (first.id, second.id)
    assert first.status == "backlog"
    assert (first.priority, first.review_required, first.max_attempts) == ("normal", True, 5)


@proves("NAME-AOF-ID")
def test_explicit_aof_id_is_kept_and_skipped_by_numbering() -> None:
    world = World()
    own = world.do(HUMAN, CreateTask("own", f"TASK-{TODAY}-002"))
    assert own.aof_number is None
    assert world.tasks[f"TASK-{TODAY}-002"].aof_id == f"TASK-{TODAY}-002"
    assert [create(world, CreateTask("next")).aof_id for _ in range(3)] == [
        f"TASK-{TODAY}-001",
        f"TASK-{TODAY}-003",  # a number that is already used is skipped
        f"TASK-{TODAY}-004",
    ]


@proves("NAME-AOF-ID")
def test_aof_numbering_restarts_each_day() -> None:
    world = World()
    midnight = NOW - NOW % DAY + DAY
    assert create(world, CreateTask("late"), now=midnight - 1).id == f"TASK-{TODAY}-001"
    assert create(world, CreateTask("early"), now=midnight).id == "TASK-2026-02-10-001"
    assert create(world, CreateTask("later"), now=midnight + 1).id == "TASK-2026-02-10-002"


@proves("NAME-AOF-ID")
def test_fifteen_hundred_tasks_of_one_day_have_distinct_ids() -> None:
    world = World()
    ids: list[str] = []
    for number in range(1, 1_501):
        decision = world.do(HUMAN, CreateTask("one of many"))
        ids.append(decision.receipt.task)
        assert decision.aof_number == (TODAY, number)
    assert len(set(ids)) == 1_500
    assert ids[998] == f"TASK-{TODAY}-999"
    assert ids[999] == f"TASK-{TODAY}-00001000", "after 999 the tail has eight characters"
    assert {len(name) for name in ids[:999]} == {19}
    assert {len(name) for name in ids[999:]} == {24}


@proves("NAME-ALIAS")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTask("x", "T"), "already_exists"),
        (CreateTask("x", "ol-1"), "already_exists"),
        (CreateTask("x", "TASK-2026-02-09-001"), "already_exists"),
        (CreateTask("x", aliases=("bead:ol-1",)), "already_exists"),
        (CreateTask("x", aliases=("aof:TASK-2026-02-09-001",)), "already_exists"),
        (CreateTask("x", aliases=("workq:ol-1",)), ""),
        (CreateTask("x", aliases=("bead:T",)), ""),
        (CreateTask("x", "t"), ""),
        (AliasTask("U", "bead:ol-1"), "already_exists"),
        (AliasTask("U", "aof:TASK-2026-02-09-001"), "already_exists"),
        (AliasTask("U", "workq:ol-1"), ""),
    ],
    ids=repr,
)
def test_taken_name_is_refused(command: Command, code: str) -> None:
    world = World(replace(task("T"), aliases=("bead:ol-1",)), replace(task("U"), aof_id="other"))
    assert world.code(HUMAN, command) == code


@proves("NAME-ALIAS", "NAME-AOF-ID")
def test_own_aof_id_is_not_added_as_alias() -> None:
    world = World()
    made = create(world, CreateTask("x", "mine", aliases=(f"aof:TASK-{TODAY}-001", "bead:b")))
    assert (made.aof_id, made.aliases) == (f"TASK-{TODAY}-001", ("bead:b",))
    assert world.do(HUMAN, AliasTask("mine", f"aof:TASK-{TODAY}-001")).events == ()


@proves("NAME-ALIAS")
def test_alias_is_added_once() -> None:
    world = World(task())
    added = world.do(HUMAN, AliasTask("T", "bead:ol-527.1"))
    assert added.events == (("task:T", TaskAliased("bead:ol-527.1")),)
    assert world.tasks["T"].aliases == ("bead:ol-527.1",)
    repeated = world.do(HUMAN, AliasTask("bead:ol-527.1", "bead:ol-527.1"))
    assert (repeated.events, repeated.receipt.task) == ((), "T")


@proves("NAME-ALIAS", "LIMIT-TEXT")
@pytest.mark.parametrize(("has", "code"), [(998, ""), (999, ""), (1_000, "invalid_field")])
def test_task_has_at_most_one_thousand_aliases(has: int, code: str) -> None:
    aliases = tuple(f"bead:b{n}" for n in range(has))
    world = World(replace(task(), aliases=aliases))
    assert world.code(HUMAN, AliasTask("T", "bead:new")) == code
    assert world.code(HUMAN, AliasTask("T", "bead:b7")) == "", "one that it has is a no-op"


@proves("NAME-GRAMMAR", "NAME-ALIAS")
@pytest.mark.parametrize(
    "command",
    [
        CreateTask("x", "../up"),
        CreateTask("x", "a\n"),
        CreateTask("x", assignee="a b"),
        CreateTask("x", aliases=("bead:ok", "no-kind")),
        CreateTask("x", aliases=("bead:ok", "bead:../up")),
        CreateTask("x", parent="a/b"),
        CreateTask("x", blocked_by=("T", "")),
        CreateTask("x", discovered_from="a\x00b"),
        AliasTask("T", "bead:"),
        AliasTask("T", ":x"),
        AdoptTask("bead", "a/b"),
        AdoptTask("BEAD", "ab"),
        AdoptTask("", "ab"),
    ],
    ids=repr,
)
def test_malformed_name_is_refused(command: Command) -> None:
    assert World(task()).code(HUMAN, command) == "invalid_id"


@proves("TASK-LINKS")
@pytest.mark.parametrize(
    "command",
    [
        CreateTask("x", blocked_by=("T", "nowhere")),
        CreateTask("x", discovered_from="nowhere"),
        AliasTask("nowhere", "bead:x"),
        NoteTask("nowhere", "x"),
    ],
    ids=repr,
)
def test_unknown_link_target_is_refused(command: Command) -> None:
    assert World(task()).code(HUMAN, command) == "task_not_found"


@proves("TASK-LINKS", "REFUSAL-CODES")
@pytest.mark.parametrize(
    ("command", "code", "path"),
    [
        (CreateTask("x", parent="nowhere"), "parent_not_found", "parent"),
        (LinkTask("T", "parent", "nowhere"), "parent_not_found", "parent"),
        (CreateTask("x", blocked_by=("T", "nowhere")), "task_not_found", "blocked_by"),
        (LinkTask("T", "blocked-by", "nowhere"), "task_not_found", "blocked_by"),
        (CreateTask("x", discovered_from="a b"), "invalid_id", "discovered_from"),
    ],
    ids=repr,
)
def test_refusal_has_path_of_field_with_unknown_task(
    command: Command, code: str, path: str
) -> None:
    answer = World(task()).decide(HUMAN, command)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.path) == (code, path)


@proves("LIMIT-TEXT")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTask(""), "invalid_field"),
        (CreateTask(" \t\u3000"), "invalid_field"),
        (CreateTask("x"), ""),
        (CreateTask("x" * 499), ""),
        (CreateTask("x" * 500), ""),
        (CreateTask("x" * 501), "invalid_field"),
        (CreateTask("é" * 500), ""),
        (CreateTask("\U0001f409" * 500), ""),
        (CreateTask("half a pair \ud83d"), "invalid_field"),
        (CreateTask("\x1b[31mred\x07\u202etxet"), ""),
        (CreateTask("x", body="x" * 200_000), ""),
        (CreateTask("x", body="x" * 200_001), "invalid_field"),
        (CreateTask("x", body="\udfff"), "invalid_field"),
        (CreateTask("x", origin="x" * 500), ""),
        (CreateTask("x", origin="x" * 501), "invalid_field"),
        (CreateTask("x", max_attempts=0), "invalid_field"),
        (CreateTask("x", max_attempts=1), ""),
        (CreateTask("x", max_attempts=1_000), ""),
        (CreateTask("x", max_attempts=1_001), "invalid_field"),
        (CreateTask("x", aliases=tuple(f"b:{n}" for n in range(1_000))), ""),
        (CreateTask("x", aliases=tuple(f"b:{n}" for n in range(1_001))), "invalid_field"),
        (CreateTask("x", blocked_by=("T",) * 1_000), ""),
        (CreateTask("x", blocked_by=("T",) * 1_001), "invalid_field"),
        (NoteTask("T", ""), "invalid_field"),
        (NoteTask("T", "x" * 65_536), ""),
        (NoteTask("T", "x" * 65_537), "invalid_field"),
        (NoteTask("T", "\ud800"), "invalid_field"),
        (AdoptTask("bead", "b", "x" * 500), ""),
        (AdoptTask("bead", "b", "x" * 501), "invalid_field"),
    ],
    ids=range(29),
)
def test_texts_and_lists_are_bounded(command: Command, code: str) -> None:
    assert World(task()).code(HUMAN, command) == code


@proves("TASK-LOG")
def test_note_text_is_recorded_verbatim() -> None:
    world = World(task())
    noted = world.do(ALICE, NoteTask("T", "tests \x1b[32mpass\n"), NOW + 1)
    assert noted.events == (("task:T", TaskNoted("tests \x1b[32mpass\n", "agent:alice")),)
    world.do(HUMAN, NoteTask("T", "good"), NOW + 2)
    assert (world.tasks["T"].notes, world.tasks["T"].updated_at) == (2, NOW + 2)
    assert world.tasks["T"].moved_at == NOW


@proves("TASK-LOG-WHOSE")
def test_note_names_author_unless_author_is_assignee() -> None:
    world = World(task(assignee="alice"))

    def note_author(actor: Actor) -> str:
        ((_, noted),) = world.do(actor, NoteTask("T", "ship it"), NOW + 1).events
        assert isinstance(noted, TaskNoted)
        return noted.by

    actors = (ALICE, BOB, HUMAN)
    assert [note_author(author) for author in actors] == ["", "agent:bob", HUMAN.label]
    world.do(ALICE, ClaimTask("T", "alice"), NOW)
    assert [note_author(author) for author in actors] == ["", "agent:bob", HUMAN.label]


@proves("ROLE-TABLE")
@pytest.mark.parametrize(
    "command",
    [CreateTask("x"), AdoptTask("bead", "b"), AliasTask("T", "bead:b"), NoteTask("T", "x")],
    ids=lambda command: type(command).__name__,
)
@pytest.mark.parametrize(
    ("actor", "code"),
    [
        (HUMAN, ""),
        (ORCHESTRATOR, ""),
        (COORDINATOR, ""),
        (HUB, ""),
        (ALICE, ""),
        (OBSERVER, "not_authorized"),
        (FILE, "not_authorized"),
    ],
)
def test_write_permission_depends_on_role(actor: Actor, code: str, command: Command) -> None:
    assert World(task()).code(actor, command) == code


@proves("TASK-ADOPT")
def test_adoption_creates_unknown_task() -> None:
    world = World()
    decision = world.do(ALICE, AdoptTask("bead", "ol-527.1", review_required=False, max_attempts=2))
    assert events_of(decision) == [
        TaskCreated(
            id="ol-527.1",
            aof_id=f"TASK-{TODAY}-001",
            title="ol-527.1",
            status="ready",
            review_required=False,
            max_attempts=2,
            origin="bead",
            aliases=("bead:ol-527.1",),
        )
    ]
    assert world.tasks["ol-527.1"].status == "ready"


@proves("TASK-ADOPT")
def test_second_adoption_changes_nothing() -> None:
    world = World()
    world.do(ALICE, AdoptTask("bead", "b", "told by alice", "mail 1"))
    tasks_before = dict(world.tasks)
    assert (tasks_before["b"].review_required, tasks_before["b"].max_attempts) == (True, 5)
    repeated = world.do(HUMAN, AdoptTask("bead", "b", "told by hera", "mail 2"))
    assert (repeated.events, repeated.receipt.task) == ((), "b")
    assert world.tasks == tasks_before
    assert (tasks_before["b"].title, tasks_before["b"].origin) == ("told by alice", "mail 1")


@proves("TASK-ADOPT")
def test_adoption_finds_existing_task_by_id_or_alias() -> None:
    world = World(task("ol-1"), replace(task("T"), aliases=("bead:ol-2",)))
    assert world.do(ALICE, AdoptTask("bead", "ol-1")).receipt.task == "ol-1"
    assert world.do(ALICE, AdoptTask("bead", "ol-2")).receipt.task == "T"


@proves("TASK-ADOPT")
def test_adoption_refuses_ambiguous_name() -> None:
    twins = (replace(task("A"), aliases=("x:n",)), replace(task("BB"), aliases=("y:n",)))
    world = World(*twins)
    assert world.code(ALICE, AdoptTask("bead", "n")) == "ambiguous_name"
    assert world.do(ALICE, AdoptTask("y", "n")).receipt.task == "BB"


@proves("CORE-PURE")
def test_decision_alone_changes_no_state() -> None:
    world = World()
    answer = world.decide(HUMAN, CreateTask("x"))
    assert isinstance(answer, Decision)
    assert (world.tasks, world.leases, world.numbers) == ({}, {}, {})
