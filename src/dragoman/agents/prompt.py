"""What an agent is told: the task in its own words, what is expected, and how to report."""

from collections.abc import Iterator

from dragoman.core.task import Task

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

`outcome` is done, blocked (then list `blockers`), needs_review or partial. Then exit.
"""


def prompt(task: Task, agent: str) -> str:
    """The text for one agent; nothing in it depends on when it is written."""
    return "\n".join((*_parts(task), _HOW_TO_REPORT.format(task=task.aof_id, agent=agent)))


def _parts(task: Task) -> Iterator[str]:
    yield f"# {task.title}\n"
    yield f"Task {task.aof_id}, attempt {task.attempts}.\n"
    if task.body:
        yield f"{task.body.rstrip()}\n"
    asked = task.delegation
    if asked is None:
        return
    for head, items in (
        ("Acceptance criteria", asked.acceptance_criteria),
        ("Expected outputs", asked.expected_outputs),
        ("Context", asked.context_refs),
        ("Constraints", asked.constraints),
    ):
        if items:
            yield "\n".join((f"## {head}\n", *(f"- {item}" for item in items), ""))
