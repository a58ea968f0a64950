"""Queries for tasks: by any name, at any position, and in pages."""

from typing import Any

import pytest

from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.task_state import AliasTask, CreateTask, MoveTask, NoteTask, Task
from dragoman.engine.ports import StreamRow, TaskQuery
from dragoman.engine.queries import entries
from dragoman.engine.queries.agents import names_in_role
from dragoman.engine.queries.entries import all_entries, decode_event, stream_entries
from dragoman.engine.queries.tasks import (
    TaskFilter,
    TaskView,
    find_task,
    find_task_stream,
    list_tasks,
    page_of_past_tasks,
    page_of_tasks,
    task_as_of,
    tasks_as_of,
)
from dragoman.ledger.stream_state import decode_state
from tests.engine.lab import ALICE, BOB, HUMAN, Lab, OpenStore
from tests.ledger.released import Play, play
from tests.requirements import proves


class SnapshottingStore(OpenStore):
    """Store that keeps a snapshot of all tasks after each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: dict[int, dict[str, Task]] = {0: {}}

    def transact(self, work: Any) -> Any:
        """Commit, and take a snapshot."""
        result = super().transact(work)
        states = {
            row.name.partition(":")[2]: decode_state(row.name, row.state)
            for row in self.rows(0, 1_000)
            if row.state
        }
        tasks = {name: state for name, state in states.items() if isinstance(state, Task)}
        self.snapshots[self.head()] = tasks
        return result


@pytest.fixture(scope="module")
def history_store() -> SnapshottingStore:
    """Store with the ledger of the script, and a snapshot after each request."""
    history_store = SnapshottingStore()
    play(history_store)
    return history_store


@proves("CLI-FIND")
def test_words_are_looked_for_in_all_texts_of_a_task(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("Fix the Login", "T-1", body="a Token expires", ready=True))
    lab.do(HUMAN, CreateTask("Other", "T-2", aliases=("bead:ol-1",)))
    lab.do(ALICE, ClaimTask("T-1", "alice"))
    lab.do(ALICE, ReportOutcome("T-1", "done", "all green", apply=True))

    def found(*words: str) -> list[str]:
        page = page_of_tasks(lab.store, TaskFilter(words=words), lab.clock.now())
        return [view.task.id for view in page.tasks]

    assert found("login", "TOKEN", "green", "alice") == ["T-1"]
    assert found("ol-1") == ["T-2"]
    assert found("login", "other") == []
    assert found() == ["T-2", "T-1"]
    lab.do(HUMAN, CreateTask("Mine", "T-3", ready=True, assignee="alice"))
    unassigned = TaskFilter(is_unassigned=True)
    views = page_of_tasks(lab.store, unassigned, lab.clock.now()).tasks
    assert [view.task.id for view in views] == ["T-2"]


@proves("ENGINE-AS-OF")
def test_task_as_of_returns_each_task_at_every_position(history_store: SnapshottingStore) -> None:
    names = history_store.snapshots[history_store.head()]
    assert len(history_store.snapshots) > 25
    for position, tasks in history_store.snapshots.items():
        for name in names:
            found = task_as_of(history_store, name, position)
            if name in tasks:
                assert found == tasks[name]
            else:
                assert isinstance(found, Refusal)
                assert found.code == "task_not_found"
                assert f"did not exist at position {position}" in found.detail


@proves("ENGINE-AS-OF")
def test_past_tasks_come_in_pages_the_newest_first() -> None:
    lab = Lab()
    names = [lab.do(HUMAN, CreateTask(title)).task for title in "abc"]
    head = lab.store.head()
    lab.do(HUMAN, CreateTask("later"))
    page = page_of_past_tasks(lab.store, TaskFilter(limit=2), head, 0)
    assert [view.task.id for view in page.tasks] == [names[2], names[1]]
    rest = page_of_past_tasks(lab.store, TaskFilter(before=page.next, limit=2), head, 0)
    assert ([view.task.id for view in rest.tasks], rest.next) == ([names[0]], None)


@proves("ENGINE-AS-OF")
def test_tasks_as_of_returns_all_tasks_at_every_position(history_store: SnapshottingStore) -> None:
    for position, tasks in history_store.snapshots.items():
        found = tasks_as_of(history_store, position)
        assert {task.id: task for task in found} == tasks
        assert [task.created_at for task in found] == sorted(task.created_at for task in found)


@proves("ENGINE-AS-OF")
def test_position_inside_a_request_shows_only_earlier_entries(
    history_store: SnapshottingStore,
) -> None:
    statuses = {
        position: found.status
        for position in range(1, history_store.head() + 1)
        if isinstance(found := task_as_of(history_store, "x-9", position), Task)
    }
    born = min(statuses)
    assert [statuses[born + n] for n in range(5)] == [
        "ready",
        "in-progress",
        "in-progress",
        "review",
        "done",
    ]


@proves("ENGINE-AS-OF")
def test_position_beyond_the_head_shows_the_current_state(history_store: SnapshottingStore) -> None:
    head = history_store.head()
    assert tasks_as_of(history_store, head + 1_000) == tasks_as_of(history_store, head)
    assert (
        task_as_of(history_store, "build", head + 1_000) == history_store.snapshots[head]["build"]
    )
    assert tasks_as_of(history_store, 0) == []


@proves("ENGINE-AS-OF", "NAME-ALIAS")
def test_current_names_resolve_in_past_states(history_store: SnapshottingStore) -> None:
    """A name leads to the task that has it now, also at positions before it was bound."""
    early = task_as_of(history_store, "intent:goal-9", 1)
    assert isinstance(early, Task)
    assert early.aliases == ()
    missing = task_as_of(history_store, "no-such-task", 5)
    assert isinstance(missing, Refusal)
    assert missing.code == "task_not_found"


@proves("NAME-ALIAS")
def test_task_is_found_by_each_of_its_names(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", aliases=("bead:ol-1",)))
    lab.do(HUMAN, AliasTask("T", "workq:7"))
    names = ("T", "TASK-2026-02-09-001", "aof:TASK-2026-02-09-001", "bead:ol-1", "ol-1", "workq:7")
    assert {find_task_stream(lab.store, name) for name in names} == {"task:T"}


@proves("NAME-ALIAS", "NAME-GRAMMAR", "REFUSAL-CODES")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nobody", "task_not_found"),
        ("bead:nobody", "task_not_found"),
        ("workq:T", "task_not_found"),
        ("n", "ambiguous_name"),
        ("x:n", ""),
        ("y:n", ""),
        ("", "invalid_id"),
        ("../T", "invalid_id"),
        ("T\n", "invalid_id"),
        ("T\x00", "invalid_id"),
        ("\ud800", "invalid_id"),
        ("Ｔ", "invalid_id"),
        ("X:n", "invalid_id"),
        ("x:", "invalid_id"),
        ("T" * 200, "invalid_id"),
    ],
    ids=ascii,
)
def test_unresolvable_name_is_refused_with_its_reason(lab: Lab, name: str, code: str) -> None:
    lab.do(HUMAN, CreateTask("t", "T", aliases=("x:n",)), CreateTask("u", "U", aliases=("y:n",)))
    found = find_task(lab.store, name)
    assert (found.code if isinstance(found, Refusal) else "") == code
    outcome = lab.ask(HUMAN, NoteTask(name, "x"))
    assert (outcome.code if isinstance(outcome, Refusal) else "") == code, "and so does a command"
    if code == "ambiguous_name":
        assert isinstance(found, Refusal)
        expected = (
            "n names several tasks: T, U; use the id of one, or put the kind of the name before it"
        )
        assert found.detail == f"{expected}, as in bead:n"


@proves("NAME-ALIAS")
def test_same_name_of_two_kinds_for_one_task_is_not_ambiguous(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("t", "T", aliases=("x:n", "y:n")))
    assert find_task_stream(lab.store, "n") == "task:T"


@proves("REFUSAL-RECORDED")
def test_stream_of_an_actor_is_not_a_task(lab: Lab) -> None:
    lab.code(BOB, NoteTask("nowhere", "x"))
    found = find_task(lab.store, "agent:bob")
    assert isinstance(found, Refusal)
    assert list_tasks(lab.store, TaskQuery()) == []


@proves("CLI-PAGED")
def test_task_list_is_paged_newest_first_and_filtered(lab: Lab) -> None:
    for number in range(5):
        lab.do(HUMAN, CreateTask("t", f"T{number}", ready=number % 2 == 0))
    lab.do(ALICE, ClaimTask("T0", "alice"))

    def page(**query: Any) -> list[str]:
        return [view.task.id for view in list_tasks(lab.store, TaskQuery(**query))]

    assert page() == ["T4", "T3", "T2", "T1", "T0"]
    assert page(status="ready") == ["T4", "T2"]
    assert page(owner="alice") == ["T0"]
    assert page(status="ready", owner="alice") == []
    first = list_tasks(lab.store, TaskQuery(limit=2))
    assert [view.task.id for view in first] == ["T4", "T3"]
    assert page(limit=2, before=first[-1].number) == ["T2", "T1"]
    held = list_tasks(lab.store, TaskQuery(status="in-progress"))
    assert isinstance(held[0], TaskView)
    assert held[0].lease is not None
    assert held[0].lease.holder == "alice"


@proves("ENGINE-AS-OF")
@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_page_size_does_not_change_entries_and_history(
    history_store: SnapshottingStore, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "ENTRY_PAGE", size)
    head = history_store.head()
    assert [entry.position for entry in all_entries(history_store)] == list(range(1, head + 1))
    assert [entry.position for entry in all_entries(history_store, 5, until=9)] == [6, 7, 8, 9]
    build_history = list(stream_entries(history_store, "task:build"))
    assert [entry.version for entry in build_history] == list(range(1, len(build_history) + 1))
    until = build_history[2].position
    assert [
        entry.version for entry in stream_entries(history_store, "task:build", until=until)
    ] == [
        1,
        2,
        3,
    ]
    assert list(stream_entries(history_store, "task:nobody")) == []
    assert type(decode_event(build_history[0])).__name__ == "TaskCreated"


@proves("ENGINE-AS-OF")
def test_reading_past_states_changes_nothing() -> None:
    store = OpenStore()
    hub = Play(store)
    hub.ask(HUMAN, CreateTask("t", "T"))
    hub.ask(HUMAN, MoveTask("T", "cancelled"))
    before = store.picture()
    assert len(tasks_as_of(store, 1)) == 1
    task_as_of(store, "T", 1)
    assert store.picture() == before


class NoAgentScanStore(OpenStore):
    """Store that refuses to list all agents."""

    def streams_of_kind(self, kind: str, after: str, limit: int) -> list[StreamRow]:
        raise AssertionError(f"all streams of the kind {kind} were asked for")


@proves("MAIL-ADDRESS", "STORE-LISTS")
def test_names_in_role_reads_no_list_of_all_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "ENTRY_PAGE", 2)
    lab = Lab(NoAgentScanStore())
    for name in ("zoe", "ann", "olga"):
        lab.do(HUMAN, RegisterAgent(name, "orchestrator"))
    lab.do(HUMAN, RegisterAgent("bob", "agent"))
    assert names_in_role(lab.store, "orchestrator") == ("ann", "olga", "zoe")
    lab.do(HUMAN, RegisterAgent("zoe", "agent"))
    assert names_in_role(lab.store, "orchestrator") == ("ann", "olga")
    assert names_in_role(lab.store, "agent") == ("bob", "zoe")
