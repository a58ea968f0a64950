"""Prompts of started agents: the task in its own words, the expectations, and how to report."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dragoman.core.handoff.state import Handoff
from dragoman.core.intent.state import Intent
from dragoman.core.task_state import Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.briefing import Briefing
from dragoman.engine.schemas.briefing import briefing_sections, quote
from dragoman.text.safe_text import harmless_json, safe_text

_HOW_TO_REPORT = """\
## How to report

You work in a folder of your own. Put what you make into it, or where the task says, and a short
summary into the file `outputs/summary.md` of the folder that the variable DRAGOMAN_FOLDER names.
When you are done, print one line on your standard output that begins with `AOF/1 ` and goes on with
a JSON object on the same line, without a code block around it, like this one:

    AOF/1 {{"protocol":"aof","version":1,"type":"completion.report","taskId":"{task}",\
"fromAgent":"{agent}","toAgent":"dispatcher","sentAt":"2026-01-31T12:00:00Z","payload":\
{{"outcome":"done","summaryRef":"outputs/summary.md","tests":{{"total":0,"passed":0,"failed":0}},\
"notes":"what you did"}}}}

`outcome` is done, blocked (then list `blockers`), needs_review or partial. If you are a coding
agent, your last answer is what you print, so the line belongs there: the output of
commands that you run is not read. Then exit.
"""

_HOW_TO_REPORT_ELSEWHERE = """\
## How to report

With this text you received `url`, `token` and `ttlMs`. Send every message to the hub as JSON,
posted with the header `Authorization: Bearer TOKEN`; the token is valid for this attempt on this
task only.

- At least every `ttlMs` milliseconds: `{{}}` to `URL/v1/tasks/{task}/heartbeat`, or the
  lease expires and another agent gets the task.
- To report progress: `{{"progress":"half done"}}` to
  `URL/v1/tasks/{task}/update`.
- When you are done: `{{"outcome":"done","notes":"what you did"}}` to `URL/v1/tasks/{task}/report`.

`outcome` is done, blocked (then list `blockers`), needs_review, partial or failed. The report ends
your work on this task.
"""

_DELIVERED = """\
## What was delivered to you about it

In the dialect that you speak, as JSON, oldest first; what is not here any more is in your mailbox.
"""

_MESSAGE_START = re.compile("^(?=AOF/1 )", re.MULTILINE)
"""Start of a line that the hub would parse as a message."""


def build_prompt(
    task: Task,
    agent: str,
    intent: Intent | None = None,
    handoff: Handoff | None = None,
    briefing: Briefing | None = None,
    delivered: Sequence[object] = (),
) -> str:
    """Build the prompt for a program; it does not depend on the time of writing.

    `handoff` is the one by which the agent has the task, `delivered` the messages about it that the
    agent got in its own dialect.
    """
    instructions = _HOW_TO_REPORT.format(task=task.aof_id, agent=agent)
    return "\n".join((*_sections(task, agent, intent, handoff, briefing, delivered), instructions))


def build_remote_prompt(
    task: Task,
    agent: str,
    intent: Intent | None = None,
    handoff: Handoff | None = None,
    briefing: Briefing | None = None,
    delivered: Sequence[object] = (),
) -> str:
    """Build the prompt for an agent behind a URL; its token identifies it."""
    instructions = _HOW_TO_REPORT_ELSEWHERE.format(task=task.aof_id)
    return "\n".join((*_sections(task, agent, intent, handoff, briefing, delivered), instructions))


def _sections(
    task: Task,
    agent: str,
    intent: Intent | None,
    handoff: Handoff | None,
    briefing: Briefing | None,
    delivered: Sequence[object],
) -> Iterator[str]:
    """Sections of a prompt: text of others holds no terminal sequences and begins no section."""
    yield f"# {safe_text(task.title, one_line=True)}\n"
    yield f"Task {task.aof_id}, attempt {task.attempts}.\n"
    delegation = task.delegation
    if delegation is not None:
        yield f"{delegation.from_agent} delegated it, due by {to_rfc3339(delegation.due_by)}.\n"
    is_goal = intent is not None and task.body == intent.goal
    if task.body and not is_goal:
        # Indented, so that an agent that prints its prompt reports nothing by that.
        yield f"{_MESSAGE_START.sub('    ', safe_text(task.body)).rstrip()}\n"
    if intent is not None:
        yield from _delegation_section(intent, agent, task.title)
    if handoff is not None:
        yield from _handoff_section(handoff)
    if briefing is not None:
        yield from (f"## {head}\n\n{text}\n" for head, text in briefing_sections(briefing))
    if delivered:
        messages = (f"    {_format_value(one)}" for one in delivered)
        yield "\n".join((_DELIVERED, *messages, ""))
    if delegation is None:
        return
    for head, items in (
        ("Acceptance criteria", delegation.acceptance_criteria),
        ("Expected outputs", delegation.expected_outputs),
        ("Context", delegation.context_refs),
        ("Constraints", delegation.constraints),
    ):
        if items:
            shown = (f"- {safe_text(item, one_line=True)}" for item in items)
            yield "\n".join((f"## {head}\n", *shown, ""))


def _delegation_section(intent: Intent, agent: str, title: str) -> Iterator[str]:
    """Section about the delegation: the goal quoted, the rest as JSON."""
    yield f"## What {intent.by} has delegated as {intent.id}\n"
    if intent.goal != title:
        yield f"{quote(intent.goal)}\n"
    if intent.params:
        yield _format_list("Parameters", intent.params)
    if intent.constraints:
        lines = map(_format_value, intent.constraints)
        yield "\n".join(("Constraints, as JSON:\n", *(f"    {line}" for line in lines), ""))
    request = intent.request
    if request is not None and request.agent == agent and request.deadline is not None:
        yield f"It is due by {to_rfc3339(request.deadline)}: what comes later does not count.\n"


def _handoff_section(handoff: Handoff) -> Iterator[str]:
    """Section about the handoff: its package as JSON, and where its verified artifacts are."""
    yield f"## What {handoff.sender} has handed over as {handoff.id}\n"
    yield _format_list("Its package", handoff.work_summary())
    if handoff.artifacts:
        where = "artifacts/sha256/ of the hub's data directory"
        yield _format_list(f"Its artifacts by their SHA-256 in {where}", handoff.artifacts)


def _format_list(head: str, values: Mapping[str, object]) -> str:
    """List names and values under a heading, one on each line."""
    lines = (f"    {_format_value(name)}: {_format_value(value)}" for name, value in values.items())
    return "\n".join((f"{head}, as JSON:\n", *lines, ""))


def _format_value(value: object) -> str:
    """Format a value on one line, without control characters."""
    return harmless_json(msgspec.json.encode(value).decode())
