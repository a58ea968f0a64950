"""`dragoman handoff initiate`: an offer, from a file or from options."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, cast

import typer

from dragoman.core.errors import Refusal
from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.handoff.asking import run_action_in
from dragoman.surfaces.cli.options import text_option
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.reading import read_source
from dragoman.surfaces.cli.verb import CliCommand

HandoffPriority = Literal["low", "normal", "high", "critical"]
WorkStatus = Literal["not_started", "in_progress", "blocked", "review"]


def initiate(
    context: CommandContext,
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
        HandoffPriority | None, typer.Option("--priority", help="Its priority; else normal.")
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
) -> CommandResult:
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
    top_level = {
        "to_agent": to,
        "artifacts": file_artifacts(artifact),
        "supersedes": supersedes,
        "reason": reason,
        "teamspace_id": teamspace,
        "thread_id": thread,
        "handoff_id": id,
    }
    if not source and not (to and task):
        raise_usage_error(
            "name the recipient and the task: --to NAME and --task ID, or name a file"
        )
    arguments = read_arguments(source, "initiate") if source else _default_parts()
    for name, part in parts.items():
        _override_part(arguments, name, _non_empty(part))
    if deadline:
        arguments.pop("deadline", None)
    with context.open_for_writing() as directory:
        if not source:
            name = title or objective or _existing_title(directory, task)
            arguments["task"] = {"title": name, "objective": name, **arguments["task"]}
        return run_action_in(context, directory, "initiate", arguments | _non_empty(top_level))


def _default_parts() -> dict[str, Any]:
    """Default parts of a package without a file."""
    return {
        "task": {"success_criteria": [], "priority": "normal"},
        "context": {},
        "work_state": {"status": "not_started"},
    }


def _override_part(arguments: dict[str, Any], name: str, options: Mapping[str, Any]) -> None:
    """Let the options of a part override the file, key by key."""
    part = arguments.get(name, {})
    # A part that is no object is left as it is: the hub reports what is wrong with it.
    if options and isinstance(part, dict):
        arguments[name] = {**_REQUIRED_FIELDS.get(name, {}), **part, **options}


_REQUIRED_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "policy": {"classification": "internal"}
}
"""Required fields of a part that no option sets."""


def _non_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def file_artifacts(paths: Iterable[str] | None) -> list[dict[str, Any]]:
    """Artifacts for these paths."""
    return [
        {"artifact_id": path.rpartition("/")[2], "ref": {"type": "file", "path": path}}
        for path in paths or ()
    ]


def _existing_title(directory: DataDirectory, task: str) -> str:
    """Title of the task if it exists; else its name."""
    from dragoman.engine.reads.ask import find_task

    found = find_task(directory.hub.store, task)
    return task if isinstance(found, Refusal) else found.task.title


def read_arguments(source: str, action: str) -> dict[str, Any]:
    """Read the arguments of an action from a file or standard input."""
    from dragoman.text.strict_json import MAX_BYTES

    data = read_source(source, MAX_BYTES)
    arguments = parse_object(data, source, "it has to hold the input of acp_handoff")
    if arguments.pop("action", action) != action:
        raise_usage_error(f"{source} asks for another action: use `dragoman call acp_handoff`")
    return arguments


def parse_object(data: bytes, source: str, expectation: str) -> dict[str, Any]:
    """Parse a JSON object; ends the call if it is none."""
    from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(data, MAX_BYTES)
    except StrictJsonError as error:
        where = f" at {error.path}" if error.path else ""
        raise_usage_error(f"{source} is not JSON that can be trusted{where}: {error.reason}")
    if not isinstance(value, dict):
        raise_usage_error(f"{source} is no JSON object: {expectation}")
    return cast(dict[str, Any], value)


OFFER_COMMANDS = (CliCommand("initiate", initiate),)
