"""The five audit forms of a task, each read by itself and compared with the others.

AOF: event lines and files. ACP: the log of handoffs. SAOP: the transitions of a trace. CCOS: the
Actions of an intent. Agent Mail: the thread. `check_forms` compares them with each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.ids import intent_stream
from dragoman.core.task_state import INTENT_ALIAS_KIND, Task
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import stream_entries
from dragoman.engine.queries.story import Story, StoryItem, read_story
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.traces import trace_page
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.files.layout import TASKS, run_folder_path
from dragoman.files.task_file import parse_task_file
from dragoman.protocols.ccos.render import Action, iter_actions

READER = Actor("human", "hera")

Move = tuple[str, str]
"""Status before and after."""


@dataclass
class Forms:
    """All audit forms of one hub: its store, its folder of files and its router."""

    store: Store
    data: Path
    router: Router

    def tasks(self) -> Iterator[Task]:
        """All tasks."""
        for row in self.store.rows(0, 1_000):
            found = find_task(self.store, row.name[5:]) if row.name.startswith("task:") else None
            if found is not None and not isinstance(found, Refusal):
                yield found.task

    def lines(self, path: str) -> list[dict[str, Any]]:
        """Lines of the files that match a pattern, in the order of their names."""
        files = sorted(self.data.glob(path))
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


# --- AOF: events ------------------------------------------------------------------------------


@dataclass
class AofStory:
    """A task as its event lines tell it."""

    status: str = ""
    owner: str = ""
    reserved: str = ""
    attempt: int = 0
    outcome: str = ""
    """Outcome that the agent of the last attempt has reported."""
    chain: list[str] = field(default_factory=list[str])
    parent: str = ""
    moves: list[Move] = field(default_factory=list[Move])
    positions: list[int] = field(default_factory=list[int])
    """Position in the ledger of each move."""


def read_aof_lines(lines: Sequence[Mapping[str, Any]]) -> AofStory:
    """Follow the lines of one task."""
    story = AofStory()
    for line in lines:
        payload = line["payload"]
        _FOLDS.get(line["type"], _ignore)(story, payload)
        if line["type"] == "task.transitioned":
            story.positions.append(line["eventId"] // 10)
    return story


def _ignore(_: AofStory, __: Mapping[str, Any]) -> None:
    """A line that changes none of it."""


def _created(story: AofStory, payload: Mapping[str, Any]) -> None:
    story.status = payload["status"]
    story.owner = story.reserved = payload.get("reservedFor", "")
    story.parent = payload.get("parentTaskId", "")


def _moved(story: AofStory, payload: Mapping[str, Any]) -> None:
    from_, to = payload["from"], payload["to"]
    assert from_ == story.status, (story, payload)
    story.moves.append((from_, to))
    story.status = to
    if to == "in-progress":
        story.owner, story.attempt, story.outcome = payload["agent"], payload["attempt"], ""
    elif "rewoundTo" in payload:
        story.owner, story.reserved = payload["assignee"], payload["reservedFor"]
    elif to == "ready":
        story.owner = story.reserved


def _edited(story: AofStory, payload: Mapping[str, Any]) -> None:
    if payload.get("reservedFor") is not None:
        story.owner = story.reserved = payload["reservedFor"]


def _completed(story: AofStory, payload: Mapping[str, Any]) -> None:
    assert payload["attempt"] == story.attempt, (story, payload)
    story.outcome = payload["outcome"]


def _handed_over(story: AofStory, payload: Mapping[str, Any]) -> None:
    story.chain = payload["chain"]


def _delegated(story: AofStory, payload: Mapping[str, Any]) -> None:
    story.parent = payload["parentTaskId"]


def _linked(story: AofStory, payload: Mapping[str, Any]) -> None:
    if payload["kind"] == "parent":
        story.parent = payload["target"]


_FOLDS = {
    "task.created": _created,
    "task.transitioned": _moved,
    "task.edited": _edited,
    "task.completed": _completed,
    "task.handoff_changed": _handed_over,
    "delegation.requested": _delegated,
    "task.linked": _linked,
}


# --- AOF: files -------------------------------------------------------------------------------


@dataclass
class AofFiles:
    """A task as its files show it."""

    status: str
    owner: str
    parent: str
    attempt: int
    outcome: str
    holder: str


def read_aof_files(data: Path, id: str) -> AofFiles:
    """Read the task's file, which lies in the folder of its status, and its run."""
    (file,) = (data / TASKS).glob(f"*/{id}.md")
    status, shown = file.parent.name, parse_task_file(file.read_bytes())
    assert shown.status == status, (id, status, shown)
    run = _read_json(data / run_folder_path(id) / "run.json")
    result = _read_json(data / run_folder_path(id) / "run_result.json")
    return AofFiles(
        status,
        shown.assignee,
        str(shown.hub_parts.get("parentId", "")),
        bool(run) + len([*(data / run_folder_path(id)).glob("attempts/*/run.json")]),
        result.get("outcome", ""),
        str(shown.hub_parts.get("lease.agent", "")),
    )


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes()) if path.exists() else {}


# --- the comparison ---------------------------------------------------------------------------


def check_forms(forms: Forms) -> None:
    """Compare all forms of every task."""
    events, audit = forms.lines("events/*.jsonl"), forms.lines("teamspaces/*/handoffs/*.jsonl")
    numbers = [line["eventId"] for line in events]
    assert numbers == sorted(set(numbers)), "each line once, in the order of the ledger"
    for task in forms.tasks():
        about = [line for line in events if line.get("taskId") == task.aof_id]
        story = read_aof_lines(about)
        _check_aof(forms, task, story)
        _check_acp(task, story, about, [one for one in audit if one["task_id"] == task.id])
        _check_saop(forms.store, task, story)
        _check_ccos(forms.store, task, story, about)
        _check_mail(forms, task, story, about)
        _check_story(forms, task, events)


def _check_aof(forms: Forms, task: Task, story: AofStory) -> None:
    """Events and files say the same, and what the hub decides by."""
    files = read_aof_files(forms.data, task.aof_id)
    outcome = _RESULTS.get(story.outcome, story.outcome)
    shared = (story.status, story.owner, story.attempt, outcome, story.parent)
    said = (files.status, files.owner, files.attempt, files.outcome, files.parent)
    assert shared == said, (task.id, shared, said)
    assert (files.holder != "") == (files.status == "in-progress"), files
    assert files.holder in ("", files.owner), "a holder is always the owner"
    decided = (task.status, task.assignee, task.attempts, list(task.chain))
    assert decided == (story.status, story.owner, story.attempt, story.chain), (task.id, story)


_RESULTS = {"failed": "blocked"}
"""An outcome that AOF/1 does not have -> the one in run_result.json."""


def _check_acp(
    task: Task,
    story: AofStory,
    events: Sequence[Mapping[str, Any]],
    audit: Sequence[Mapping[str, Any]],
) -> None:
    """The log of handoffs has the moves that the events have, the chain and its owner.

    It says nothing about a task outside of its handoffs: neither its status, nor who owns it.
    """
    numbers = [line["event_id"] for line in audit]
    assert numbers == sorted(set(numbers)), "each line once, in the order of the ledger"
    moves = [line for line in audit if line["event"] == "handoff_transition"]
    states, chain, owner = dict[str, str](), list[str](), ""
    for line in audit:
        chain, owner = line.get("handoff_chain", chain), line.get("owner", owner)
    for line in moves:
        assert line["from_status"] == states.get(line["handoff_id"], "draft"), line
        states[line["handoff_id"]] = line["to_status"]
    own = [
        (line["payload"]["handoff"], line["payload"]["from"], line["payload"]["to"])
        for line in events
        if line["type"] == "handoff.transitioned"
    ]
    offered = [line for line in moves if line["from_status"] != "draft"]
    said = [(line["handoff_id"], line["from_status"], line["to_status"]) for line in offered]
    assert said == own, task.id
    active = {id: state for id, state in states.items() if state in _ACTIVE}
    assert len(active) <= 1, active
    assert (set(active) or {""}) == {task.handoff.id if task.handoff else ""}
    if audit:
        assert chain == story.chain, (task.id, chain, story)
    if active:
        assert owner == story.owner, (task.id, owner, story)
    if "activated" in active.values():
        assert story.status in ("in-progress", "ready", "blocked", "deadletter"), story


_ACTIVE = ("proposed", "validating", "accepted", "activated")


def _check_saop(store: Store, task: Task, story: AofStory) -> None:
    """The trace has every move, at its place. It names sessions, and so neither owner nor chain; of
    outcomes it has the status that they lead to."""
    events, after = list[Any](), 0
    while (page := trace_page(store, task=task.id, after=after)).events:
        events += page.events
        after = page.next
    moves = [
        one
        for one in events
        if one.type == "TASK_TRANSITION" and not one.event["payload"].get("requested")
    ]
    stated = [
        (one.event["payload"]["from_state"], one.event["payload"]["to_state"]) for one in moves
    ]
    assert stated == story.moves, (task.id, stated, story)
    assert [one.position for one in moves] == story.positions
    assert sum(to == "in-progress" for _, to in stated) == story.attempt


def _check_ccos(
    store: Store, task: Task, story: AofStory, events: Sequence[Mapping[str, Any]]
) -> None:
    """The Actions of the intent, if the task has one: its open request is with the owner, its
    success is a report that counts, and its end is one of the task."""
    alias = next((one for one in task.aliases if one.startswith(f"{INTENT_ALIAS_KIND}:")), "")
    if not alias:
        return
    intent = alias.partition(":")[2]
    actions = [*iter_actions(intent, stream_entries(store, intent_stream(intent)))]
    own = [line["type"] for line in events if line["type"].startswith("intent.")]
    own = [name for name in own if name != "intent.anomaly"]
    assert [_AOF_NAMES[one.type] for one in actions if one.type != "Anomaly"] == own
    opened = dict[str, Action]()
    for action in actions:
        if action.type == "TaskDispatched":
            opened[str(action.request_id)] = action
        elif action.type in ("TaskCompleted", "RequestSuperseded"):
            opened.pop(str(action.request_id), None)
    assert len(opened) <= 1, opened
    for request in opened.values():
        assert request.agent_id == story.owner, (task.id, request, story)
        assert story.status in ("ready", "in-progress", "review"), (request, story)
    steps = [one for one in actions if one.type not in ("Anomaly", "TaskUpdated")]
    last, types = steps[-1], [one.type for one in steps]
    assert (last.type == "Satisfied") == (story.status == "done"), (task.id, types, story)
    if story.status in _GIVEN_UP:
        assert last.type in ("NeedsFollowUp", "DelegationRejected"), (task.id, types, story)
    elif last.type == "NeedsFollowUp":
        waits = story.status in ("backlog", "review") or not story.owner or task.open_blockers
        assert waits or "rewound" in str(last.details), (task.id, last, story)
    results = [one for one in steps if one.type == "TaskCompleted"]
    if (
        story.outcome
        and _is_of_last_attempt(events)
        and "synthetic" not in str(results[-1].details)
    ):
        is_failure = story.outcome in ("failed", "blocked")
        assert results[-1].success is not is_failure, (task.id, results[-1], story)


def _is_of_last_attempt(events: Sequence[Mapping[str, Any]]) -> bool:
    """True if the last result of the intent came after the last claim."""
    names = [
        "claim" if one["payload"].get("reason") == "claimed" else one["type"] for one in events
    ]
    last = next((one for one in reversed(names) if one in ("claim", "intent.completed")), "")
    return last == "intent.completed"


_GIVEN_UP = ("blocked", "deadletter", "cancelled")
"""Statuses of a task whose intent needs a follow-up."""


_AOF_NAMES = {
    "New": "intent.created",
    "DelegationProposed": "intent.proposed",
    "DelegationApproved": "intent.approved",
    "DelegationRejected": "intent.rejected",
    "TaskDispatched": "intent.dispatched",
    "TaskUpdated": "intent.updated",
    "TaskCompleted": "intent.completed",
    "FeedbackApplied": "intent.feedback_applied",
    "Satisfied": "intent.satisfied",
    "NeedsFollowUp": "intent.needs_follow_up",
    "RequestSuperseded": "intent.superseded",
}
"""Type of an Action -> type of the line of AOF."""


def _check_mail(
    forms: Forms, task: Task, story: AofStory, events: Sequence[Mapping[str, Any]]
) -> None:
    """The thread has the letters that the events have, in their order, and the task's status.

    Letters say what their senders have said: owner, attempt and outcome are those of the events.
    """
    thread = task.mail_name
    reply = forms.router.call("mail.thread", {"thread_id": thread}, READER)
    if not isinstance(reply, Accepted):
        return
    letters = reply.reply["messages"]
    posted = [line["payload"] for line in events if line["type"] == "mail.posted"]
    in_thread = [one["mail"] for one in posted if one["thread"] == thread]
    known = [one["id"] for one in letters]
    assert [id for id in known if id in in_thread] == in_thread, (task.id, known, in_thread)
    summary = forms.router.call("mail.summary", {"thread_id": thread}, READER)
    assert isinstance(summary, Accepted)
    assert summary.reply["task_status"] == story.status, (task.id, summary.reply, story)


def _check_story(forms: Forms, task: Task, events: Sequence[Mapping[str, Any]]) -> None:
    """The story has each thing once, in the order of the ledger, and what it has, and has a line,
    carries the task's id there.

    A line is written at once and for ever: that of a letter which names a task before there is one
    cannot have its id. What was refused is told with whoever asked, not in the story.
    """
    found = read_story(forms.store, task.id, forms.router.dialects, limit=10_000)
    assert isinstance(found, Story)
    positions = [item.position for item in found.items]
    assert positions == sorted(set(positions)), task.id
    lines = {line["eventId"] // 10: line for line in events}
    early = _early_letters(found.items, task)
    for item in found.items:
        line = lines.get(item.position)
        if line is not None and item.stream not in early:
            assert line.get("taskId") == task.aof_id, (task.id, item, line)
    for position, line in lines.items():
        is_refusal = line["type"].startswith(_REFUSALS)
        if line.get("taskId") == task.aof_id and position not in positions:
            assert is_refusal, (task.id, line)


_REFUSALS = ("protocol.", "delegation.rejected", "intent.anomaly")


def _early_letters(items: Sequence[StoryItem], task: Task) -> set[str]:
    """Streams of letters that were posted before the task had their name for it."""
    is_own = task.mail_name == task.id
    aliased = [one for one in items if one.title.endswith(f"also called bead:{task.mail_name}")]
    created = next(one for one in items if one.type == "task.created")
    named = created if is_own or not aliased else aliased[0]
    posted = {item.stream: item for item in items if item.type == "mail.posted"}
    return {
        stream
        for stream, item in posted.items()
        if item.position < named.position and item.cause != named.cause
    }
