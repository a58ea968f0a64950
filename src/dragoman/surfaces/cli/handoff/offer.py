"""`dragoman handoff initiate`: an offer, from a file or from options."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, cast

import typer

from dragoman.core.errors import Refusal
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.handoff.asking import answered
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.reading import read_source
from dragoman.surfaces.cli.verb import Verb

Priority = Literal["low", "normal", "high", "critical"]
WorkStatus = Literal["not_started", "in_progress", "blocked", "review"]


def initiate(
    call: Call,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            show_default=False,
            help="The input of `acp_handoff`, as JSON; options override it.",
        ),
    ] = "",
    *,
    to: Annotated[str, text_option("to", "NAME", "The recipient.")] = "",
    task: Annotated[str, text_option("task", "ID", "The task; an unknown one is made.")] = "",
    title: Annotated[str, text_option("title", "TEXT", "Its title; else the task's.")] = "",
    objective: Annotated[
        str, text_option("objective", "TEXT", "Its objective; else its title.")
    ] = "",
    criterion: Annotated[
        list[str] | None, text_option("criterion", "TEXT", "A criterion of success; repeatable.")
    ] = None,
    summary: Annotated[str, text_option("summary", "TEXT", "A summary of the present state.")] = "",
    next_step: Annotated[str, text_option("next-step", "TEXT", "What to do first.")] = "",
    state: Annotated[
        WorkStatus | None,
        typer.Option("--state", help="How far the work is; else not_started."),
    ] = None,
    priority: Annotated[
        Priority | None, typer.Option("--priority", help="Its priority; else normal.")
    ] = None,
    artifact: Annotated[
        list[str] | None,
        text_option("artifact", "PATH", "An artifact, beneath an artifact root; repeatable."),
    ] = None,
    deadline: Annotated[str, text_option("deadline", "RFC3339", "By when it is to be done.")] = "",
    approval: Annotated[
        bool, typer.Option("--needs-approval", help="A person has to approve it first.")
    ] = False,
    supersedes: Annotated[
        str, text_option("supersedes", "ID", "The handoff that this one supersedes.")
    ] = "",
    reason: Annotated[str, text_option("reason", "TEXT", "Why it is handed over.")] = "",
    teamspace: Annotated[str, text_option("teamspace", "NAME", "Its teamspace.")] = "",
    thread: Annotated[str, text_option("thread", "ID", "The thread that it belongs to.")] = "",
    id: Annotated[
        str, text_option("id", "ID", "An id of your own; else the hub gives it one.")
    ] = "",
) -> Answer:
    """Offer work that you own to another agent.

    A package has at least a summary, a next step and one criterion. It does not change any more
    once it is offered, and its hash identifies it. The work stays yours until the recipient
    activates.

    \b
    Examples:
      dragoman handoff initiate package.json --as ada
      dragoman handoff initiate --as ada --to bob --task fix-login \\
        --criterion "all tests pass" --summary "half done" --next-step "write the tests"
    """
    parts: dict[str, dict[str, Any]] = {
        "task": {
            "task_id": task,
            "title": title,
            "objective": objective,
            "success_criteria": criterion,
            "priority": priority,
            "deadline": deadline,
        },
        "context": {"summary": summary},
        "work_state": {"status": state, "next_step": next_step},
        "policy": {"requires_human_approval": approval},
    }
    outside = {
        "to_agent": to,
        "artifacts": artifacts_at(artifact),
        "supersedes": supersedes,
        "reason": reason,
        "teamspace_id": teamspace,
        "thread_id": thread,
        "handoff_id": id,
    }
    if not source and not (to and task):
        wrong_usage("name the recipient and the task: --to NAME and --task ID, or name a file")
    said = from_file(source, "initiate") if source else _unsaid()
    for name, part in parts.items():
        _write_over(said, name, _given(part))
    if deadline:
        said.pop("deadline", None)
    with call.writing() as place:
        if not source:
            name = title or objective or _title_of(place, task)
            said["task"] = {"title": name, "objective": name, **said["task"]}
        return answered(call, place, "initiate", said | _given(outside))


def _unsaid() -> dict[str, Any]:
    """Default parts of a package without a file."""
    return {
        "task": {"success_criteria": [], "priority": "normal"},
        "context": {},
        "work_state": {"status": "not_started"},
    }


def _write_over(said: dict[str, Any], name: str, given: Mapping[str, Any]) -> None:
    """Let the options of a part override the file, key by key."""
    part = said.get(name, {})
    # A part that is no object is left as it is: the hub reports what is wrong with it.
    if given and isinstance(part, dict):
        said[name] = {**_NEEDED.get(name, {}), **part, **given}


_NEEDED: Final[Mapping[str, Mapping[str, str]]] = {"policy": {"classification": "internal"}}
"""Required fields of a part that no option sets."""


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def artifacts_at(paths: Iterable[str] | None) -> list[dict[str, Any]]:
    """Artifacts for these paths."""
    return [
        {"artifact_id": path.rpartition("/")[2], "ref": {"type": "file", "path": path}}
        for path in paths or ()
    ]


def _title_of(place: Place, task: str) -> str:
    """Title of the task if it exists; else its name."""
    from dragoman.engine.reads.ask import find_task

    found = find_task(place.hub.store, task)
    return task if isinstance(found, Refusal) else found.task.title


def from_file(source: str, action: str) -> dict[str, Any]:
    """Read the arguments of an action from a file or standard input."""
    from dragoman.text.strict_json import MOST_BYTES

    data = read_source(source, MOST_BYTES)
    said = object_in(data, source, "it has to hold the input of acp_handoff")
    if said.pop("action", action) != action:
        wrong_usage(f"{source} asks for another action: use `dragoman call acp_handoff`")
    return said


def object_in(data: bytes, source: str, meant: str) -> dict[str, Any]:
    """Parse a JSON object; ends the call if it is none."""
    from dragoman.text.strict_json import MOST_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(data, MOST_BYTES)
    except StrictJsonError as error:
        where = f" at {error.path}" if error.path else ""
        wrong_usage(f"{source} is not JSON that can be trusted{where}: {error.reason}")
    if not isinstance(value, dict):
        wrong_usage(f"{source} is no JSON object: {meant}")
    return cast(dict[str, Any], value)


VERBS = (Verb("initiate", initiate),)
