"""`dragoman delegate` and `why`: a goal for the best agent, and the Actions that followed."""

import json
from pathlib import Path
from typing import Annotated, Any

from dragoman.core.timestamps import parse_duration, parse_rfc3339, to_rfc3339
from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.commands.intent import IntentArgument, intent_state, print_action_tree
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    call_and_collect_warnings,
    call_operation,
    raise_usage_error,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen

_NOT_DISPATCHED = ("DelegationRejected", "NeedsFollowUp")


def parse_parameter(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE; the value is JSON, or else a text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{text!a} is not of the form KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def delegate(
    context: CommandContext,
    goal: Annotated[str, argument("GOAL", "What is to be done.")],
    *,
    intent: Annotated[str, option("--id", "ID", "What to call the intent.")] = "",
    param: Annotated[
        list[Any] | None,
        option(
            "--param",
            "KEY=VALUE",
            "A parameter of the goal, as JSON or text; repeatable.",
            parser=parse_parameter,
        ),
    ] = None,
    skill: Annotated[
        list[str] | None, option("--skill", "WORDS", "A required skill; repeatable.")
    ] = None,
    constraint: Annotated[
        list[str] | None, option("--constraint", "WORD", "A constraint; repeatable.")
    ] = None,
    deadline: Annotated[
        int | None,
        option(
            "--deadline",
            "RFC3339",
            "When a request counts as failed, whichever agent has it.",
            parser=parse_rfc3339,
        ),
    ] = None,
    within: Annotated[
        int | None,
        option(
            "--within",
            "TIME",
            "How long each request may take: 90s, 10m, 2h.",
            parser=parse_duration,
        ),
    ] = None,
    plan: Annotated[str, option("--plan", "ID", "A plan it is part of.")] = "",
    follows: Annotated[str, option("--follows", "INTENT", "The intent it follows up.")] = "",
) -> CommandResult:
    """Give a goal to the agent that is most likely to reach it.

    Agents are scored by their skills, which the goal has to name, by their results so far, by
    trust and cost; the rules of [ccos.policy] can exclude any of them. `dragoman agent rank` shows
    the scores beforehand, `dragoman why` the Actions afterwards. It ends with 1 when no agent was
    given it.

    \b
    Examples:
      dragoman delegate "Translate the manual into French" --within 30m
      dragoman delegate "Sum up report 7" --id i-7 --param pages=3 --skill "sum up"
    """
    if deadline is not None and within is not None:
        raise_usage_error("--deadline and --within exclude each other: give one of them")
    arguments: dict[str, Any] = {
        "goal": goal,
        "intent_id": intent or None,
        "params": dict(param or []),
        "skills": list(skill or ()),
        "constraints": list(constraint or ()),
        "plan_id": plan,
        "follows": follows,
    }
    if deadline is not None:
        arguments["deadline"] = to_rfc3339(deadline)
    if within is not None:
        arguments["within_ms"] = within
    with context.open_for_writing() as directory:
        reply = call_and_collect_warnings(
            directory, "ccos.delegate", arguments, context.actor(directory, context.acting_agent())
        )

    is_dispatched = reply["state"] not in _NOT_DISPATCHED

    def show(screen: Screen) -> None:
        screen.line((reply["intent_id"], "bold"), f" is {intent_state(reply)}")
        if "request" in reply:
            request = reply["request"]
            screen.line(f"{request['request_id']} is for {request['agent_id']}{_due_text(request)}")
        for reason in reply.get("reasons", ()):
            screen.line(f"  {reason}")
        if "remark" in reply:
            screen.line(("note: ", "yellow"), reply["remark"])

    if is_dispatched:
        return CommandResult(reply, show)
    detail = "; ".join(reply.get("reasons", ())) or "no agent was given it"
    return CommandResult({**reply, "code": "not_dispatched", "detail": detail}, show, is_ok=False)


def _due_text(request: dict[str, Any]) -> str:
    return f", due by {request['deadline']}" if "deadline" in request else ""


# --- why --------------------------------------------------------------------------------------


def why(
    context: CommandContext,
    intent: IntentArgument,
    export: Annotated[
        Path | None,
        option(
            "--export",
            "FILE",
            "Write its chain into a file that `verify --chain` can check anywhere.",
        ),
    ] = None,
) -> CommandResult:
    """Show the Actions of an intent as a tree.

    Which agents were asked, why, and with which results.

    Each line was caused by the line above it in the tree. With --json the Actions have all that the
    ledger knows of them, but of long outputs only the size: `intent actions` has those whole.

    \b
    Examples:
      dragoman why i-7
      dragoman why i-7 --export i-7.chain
    """
    with context.open_for_reading() as directory:
        tree = call_operation(
            directory, "ccos.why", {"intent_id": intent}, context.actor(directory, "")
        ).reply
        if export is not None:
            return _export_chain(directory, tree["intent_id"], export)
    return CommandResult(tree, lambda screen: print_action_tree(tree, screen))


def _export_chain(directory: DataDirectory, intent: str, target: Path) -> CommandResult:
    from dragoman.core.ids import intent_stream
    from dragoman.surfaces.cli.commands.verify import write_chain_file

    lines = write_chain_file(directory, intent_stream(intent), target)
    return CommandResult(
        {"intent_id": intent, "file": str(target), "lines": lines},
        lambda screen: screen.line(
            (str(target), "bold"), f" holds the chain: `dragoman verify --chain {target}`"
        ),
    )


COMMANDS = (
    CliCommand("delegate", delegate),
    CliCommand("why", why, takes_as=False),
)
