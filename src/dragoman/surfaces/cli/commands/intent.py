"""`dragoman intent`: goals that were delegated, and the Actions of their chains."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from dragoman.core.intent.governance import GOVERNANCE_RULES
from dragoman.core.intent.request_workflow import NO_FEEDBACK_REASONS
from dragoman.core.timestamps import format_duration, parse_rfc3339, to_rfc3339
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    Reply,
    call_and_collect_warnings,
    query_operation,
)
from dragoman.surfaces.cli.render import (
    Column,
    Screen,
    StyledText,
    pluralize,
    to_ascii_json,
    truncate,
)

IntentArgument = Annotated[str, argument("INTENT", "The intent's id.")]


AgentFilterOption = Annotated[
    str, option("--agent", "NAME", "Only what was assigned to this agent.")
]

PlanFilterOption = Annotated[str, option("--plan", "ID", "Only of this plan.")]


def show(context: CommandContext, intent: IntentArgument) -> CommandResult:
    """Show how an intent stands.

    Its request, its result, and who was tried.

    \b
    Example:
      dragoman intent show i-7
    """
    intent_reply = query_operation(context, "ccos.intent", intent_id=intent)
    return CommandResult(intent_reply, lambda screen: print_intent(intent_reply, screen))


def list_intents(
    context: CommandContext,
    *,
    agent: AgentFilterOption = "",
    plan: PlanFilterOption = "",
    follows: Annotated[str, option("--follows", "INTENT", "Only follow-ups of this intent.")] = "",
    is_open: Annotated[bool, option("--open", "", "Only open intents.")] = False,
    after: Annotated[
        int, option("--after", "N", "`next` of the page before.", min=0, show_default=True)
    ] = 0,
    limit: LimitOption = 50,
) -> CommandResult:
    """List intents, the oldest first.

    Where several options are given, all of them must hold.

    \b
    Example:
      dragoman intent list --open
    """
    arguments = {
        "agent_id": agent,
        "plan_id": plan,
        "follows": follows,
        "open": is_open,
        "after": after,
        "limit": limit,
    }
    reply = query_operation(context, "ccos.intents", **arguments)

    def print_page(screen: Screen) -> None:
        print_intents(reply["intents"], screen)
        if "next" in reply:
            screen.line(f"There are more: add --after {reply['next']}")

    return CommandResult(reply, print_page)


def actions(
    context: CommandContext,
    intent: Annotated[str, option("--intent", "ID", "Only of this intent.")] = "",
    *,
    plan: PlanFilterOption = "",
    agent: Annotated[str, option("--agent", "NAME", "Only about this agent.")] = "",
    kind: Annotated[str, option("--type", "TYPE", "Only of this type, e.g. TaskCompleted.")] = "",
    parent: Annotated[
        str, option("--parent", "ACTION", "Only Actions that this one has caused.")
    ] = "",
    since: Annotated[
        int | None, option("--since", "RFC3339", "From this moment on.", parser=parse_rfc3339)
    ] = None,
    until: Annotated[
        int | None, option("--until", "RFC3339", "Before this moment.", parser=parse_rfc3339)
    ] = None,
    cursor: Annotated[str, option("--after", "CURSOR", "`cursor` of the page before.")] = "",
    limit: LimitOption = 100,
) -> CommandResult:
    """List Actions of the causal chain, by any of their fields.

    \b
    Examples:
      dragoman intent actions --agent ada --type TaskCompleted
      dragoman intent actions --parent "i-7#4"
    """
    arguments: dict[str, Any] = {
        "intent_id": intent,
        "plan_id": plan,
        "agent_id": agent,
        "type": kind,
        "parent_id": parent,
        "since": "" if since is None else to_rfc3339(since),
        "until": "" if until is None else to_rfc3339(until),
        "cursor": cursor,
        "limit": limit,
    }
    reply = query_operation(context, "ccos.actions", **arguments)

    def print_page(screen: Screen) -> None:
        for action in reply["actions"]:
            print_action(action, screen)
        if not reply["actions"]:
            screen.line("there are no such Actions")
        if reply["more"]:
            screen.line(f"There are more: add --after {reply['cursor']}")

    return CommandResult(reply, print_page)


def cancel(
    context: CommandContext,
    intent: IntentArgument,
    reason: Annotated[str, option("--reason", "TEXT", "Why.")] = "",
) -> CommandResult:
    """Cancel an intent; it does not count as a failure of its agent.

    Its open request ends.

    \b
    Example:
      dragoman intent cancel i-7 --reason "no longer needed"
    """
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        arguments = {"intent_id": intent, "reason": reason}
        reply = call_and_collect_warnings(directory, "ccos.cancel", arguments, actor)
    return CommandResult(reply, lambda screen: screen.line((intent, "bold"), " is cancelled"))


# --- printing ---------------------------------------------------------------------------------

_STATE_STYLES = {
    "TaskCompleted": "bold",
    "Satisfied": "green",
    "NeedsFollowUp": "red",
    "cancelled": "dim",
    "DelegationRejected": "red",
    "Anomaly": "yellow",
}

_BRANCH, _LAST_BRANCH, _TRUNK, _INDENT = "├─ ", "└─ ", "│  ", "   "

_MAX_DEPTH = 24
"""Deeper branches are drawn at this depth, to keep lines short."""

_INTENT_COLUMNS = (
    Column("INTENT", "bold"),
    Column("STATE", styles=_STATE_STYLES),
    Column("AGENT"),
    Column("CREATED"),
    Column("GOAL"),
)

_MAX_GOAL = 60


def print_intents(rows: Sequence[Reply], screen: Screen) -> None:
    """Print one line for each intent."""
    if not rows:
        screen.line("there are no such intents: begin with `dragoman delegate GOAL`")
        return
    cells = [
        (
            row["intent_id"],
            intent_state(row),
            row["request"]["agent_id"] if "request" in row else ", ".join(row["tried"]),
            row["created_at"],
            truncate(row["goal"], _MAX_GOAL),
        )
        for row in rows
    ]
    screen.table(_INTENT_COLUMNS, cells)


def intent_state(row: Reply) -> str:
    """State of an intent in one word; cancelled is no state of CCOS, but what people expect."""
    return "cancelled" if row.get("cancelled") else row["state"]


def print_intent(intent: Reply, screen: Screen) -> None:
    """Print one intent with its request and result."""
    screen.line((intent["intent_id"], "bold"), f" is {intent_state(intent)}: ", intent["goal"])
    origin = f"requested by {intent['by']} at {intent['created_at']}{_origin_text(intent, intent)}"
    screen.line(f"task {intent['task_id']}, {origin}")
    if "request" in intent:
        request = intent["request"]
        due = f", due by {request['deadline']}" if "deadline" in request else ""
        screen.line(f"{request['request_id']} is open with {request['agent_id']}{due}")
    if "result" in intent:
        result = intent["result"]
        screen.line(_result_text(result))
        if "output" in result:
            screen.block(to_ascii_json({"output": result["output"]}), _INDENT)
        if "left_out" in result:
            screen.line(f"{_INDENT}{_dropped_output_text(result)} (digest {result['digest']})")
        if "extra_fields" in result:
            screen.block(to_ascii_json({"extra_fields": result["extra_fields"]}), _INDENT)
    for reason in intent.get("reasons", ()):
        screen.line(("because: ", "yellow"), reason)
    if "followed_by" in intent:
        screen.line(truncate(f"followed up by {', '.join(intent['followed_by'])}"))
    if intent["anomalies"]:
        screen.line(("anomalies: ", "yellow"), f"{intent['anomalies']}; see `dragoman why`")


def _result_text(result: Reply) -> str:
    if result["success"]:
        return f"{result['agent_id']} succeeded"
    if result.get("synthetic") in NO_FEEDBACK_REASONS:
        return _withdrawn_text(result, result)
    return f"{result['agent_id']} failed: {result.get('error', '')}"


def print_action(action: Reply, screen: Screen) -> None:
    """Print one Action on a line of its own."""
    screen.line(*_action_line(f"{action['action_id']}  ", action))


def print_action_tree(tree: Reply, screen: Screen) -> None:
    """Print the Actions of an intent as a tree of causes."""
    screen.line((tree["intent_id"], "bold"), f" is {intent_state(tree)}")
    for margin, action in _walk_tree(tree["actions"]):
        screen.line(*_action_line(margin, action))
    if tree.get("more"):
        name = tree["intent_id"]
        screen.line(f"of {tree['count']} Actions; all: `dragoman intent actions --intent {name}`")


def _walk_tree(root: Reply) -> Iterator[tuple[str, Reply]]:
    """Walk the tree with the margin of each line; without recursion, as chains may be long."""
    pending: list[tuple[str, str, Reply]] = [("", "", root)]
    while pending:
        margin, branch, action = pending.pop()
        yield margin + branch, action
        indented = margin + {_BRANCH: _TRUNK, _LAST_BRANCH: _INDENT, "": ""}[branch]
        indented = indented[: len(_INDENT) * _MAX_DEPTH]
        children: Sequence[Reply] = action.get("children", ())
        for index in range(len(children) - 1, -1, -1):
            is_last = index == len(children) - 1
            pending.append((indented, _LAST_BRANCH if is_last else _BRANCH, children[index]))


def _action_line(margin: str, action: Reply) -> list[StyledText]:
    kind = action["type"]
    text = truncate(_ACTION_TEXT[kind](action, action.get("details", {})))
    return [
        (margin, "dim"),
        (kind, _STATE_STYLES.get(kind, "")),
        f"  {text}" if text else "",
        (f"  {action['at']}", "dim"),
    ]


def _new_text(action: Reply, details: Reply) -> str:
    return f'{details["by"]} requests{_origin_text(action, details)}: "{details["goal"]}"'


def _origin_text(action: Reply, details: Reply) -> str:
    """Plan that the intent is a part of, and intent that it follows up."""
    plan = f", as a part of plan {action['plan_id']}" if "plan_id" in action else ""
    return plan + (f", to follow up {details['follows']}" if "follows" in details else "")


def _proposed_text(action: Reply, details: Reply) -> str:
    parts = ", ".join(f"{name} {value:+.3f}" for name, value in details["parts"].items() if value)
    others = [one["agent"] for one in details.get("candidates", ())][1:]
    among = f"; before {', '.join(others)}" if others else ""
    if not (parts or details["threshold"]):
        return f"{action['agent_id']}, not by a score{among}"
    threshold = "; ".join(filter(None, (parts, f"needs {details['threshold']:g}")))
    return f"{action['agent_id']} with {details['score']:g} ({threshold}){among}"


def _completed_text(action: Reply, details: Reply) -> str:
    if details.get("synthetic") in NO_FEEDBACK_REASONS:
        return _withdrawn_text(action, details)
    outcome = "success" if action["success"] else "failure"
    by_hub = f" ({details['synthetic']})" if "synthetic" in details else ""
    took = format_duration(action["duration_ms"])
    error = f": {action['error']}" if "error" in action else ""
    left_out = f"; {_dropped_output_text(details)}" if details.get("left_out") else ""
    names = ", ".join(details.get("extra_fields", ()))
    extra_fields = f"; passed on: {names}" if names else ""
    return f"{action['agent_id']}: {outcome}{by_hub} after {took}{error}{left_out}{extra_fields}"


def _withdrawn_text(ended: Reply, details: Reply) -> str:
    """Text for a request that ended without any result of its agent."""
    error = f": {ended['error']}" if details["synthetic"] != "cancelled" else ""
    return f"{ended['request_id']} was taken back from {ended['agent_id']}{error}"


def _dropped_output_text(result: Reply) -> str:
    return f"its output of {result['left_out']:,} bytes was not kept: [ccos] max_output_bytes"


def _updated_text(action: Reply, details: Reply) -> str:
    progress = details.get("progress")
    share = "" if progress is None else f"{progress:g} %"
    details_text = " ".join(filter(None, (share, details.get("message", ""))))
    return f"{action['agent_id']}: {details_text or _chunk_text(details)}"


def _chunk_text(details: Reply) -> str:
    number = f" {details['sequence']}" if details.get("sequence") else ""
    return f"piece{number} of the output"


def _superseded_text(action: Reply, details: Reply) -> str:
    owner = details.get("owner")
    if not owner:
        return f"{action['request_id']}: it is void"
    if owner == action["agent_id"]:
        return f"{action['request_id']}: {owner} is asked anew"
    return f"{action['request_id']}: the task is {owner}'s now"


def _approved_text(action: Reply, details: Reply) -> str:
    rules = (
        "every rule"
        if set(GOVERNANCE_RULES) <= set(details["checks"])
        else ", ".join(details["checks"])
    )
    return f"{action['agent_id']} passes {rules}"


def _dispatched_text(action: Reply, details: Reply) -> str:
    due = f", due by {details['deadline']}" if details.get("deadline") else ""
    return f"{action['request_id']} to {action['agent_id']}{due}"


_ACTION_TEXT: Mapping[str, Callable[[Reply, Reply], str]] = {
    "New": _new_text,
    "DelegationProposed": _proposed_text,
    "DelegationApproved": _approved_text,
    "DelegationRejected": lambda _, details: "; ".join(details["reasons"]),
    "TaskDispatched": _dispatched_text,
    "TaskUpdated": _updated_text,
    "TaskCompleted": _completed_text,
    "FeedbackApplied": lambda action, details: (
        f"{action['agent_id']} has {pluralize(details['successes'], 'success', 'successes')} and "
        f"{pluralize(details['failures'], 'failure')} now"
    ),
    "Satisfied": lambda _, __: "",
    "NeedsFollowUp": lambda _, details: details["reason"],
    "RequestSuperseded": _superseded_text,
    "FollowedUp": lambda _, details: f"by {details['by']}",
    "Anomaly": lambda action, details: f"{action['actor']}: {details['reason']}",
}
"""Type of Action -> its text."""


COMMANDS = (
    CliCommand("show", show, takes_as=False),
    CliCommand("list", list_intents, takes_as=False),
    CliCommand("actions", actions, takes_as=False),
    CliCommand("cancel", cancel),
)
