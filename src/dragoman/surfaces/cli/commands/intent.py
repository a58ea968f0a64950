"""`dragoman delegate`, `why`, `intent` and `agent rank`: goals for agents."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from dragoman.core.errors import Refusal
from dragoman.core.limits import MAX_PAGE
from dragoman.core.timestamps import parse_duration, parse_rfc3339, to_rfc3339
from dragoman.engine.sentences import fill, format_pairs, truncate
from dragoman.surfaces.cli.command import CliCommand, argument
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    call_operation,
)
from dragoman.surfaces.cli.generated import Field, OperationCommand, Typed, make_commands
from dragoman.surfaces.cli.render import Screen, StyledText

# --- typed values -----------------------------------------------------------------------------

Reply = Mapping[str, Any]


def parse_parameter(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE; the value is JSON, or else a text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{text!a} is not of the form KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def parse_price(text: str) -> float:
    """Parse a number that is not negative."""
    try:
        price = float(text)
    except ValueError:
        raise ValueError(f"{text!a} is not a number") from None
    if not 0 <= price < float("inf"):
        raise ValueError(f"{text!a} is not a price: use 0 or more")
    return price


def _parse_moment(text: str) -> str:
    return to_rfc3339(parse_rfc3339(text))


# --- why --------------------------------------------------------------------------------------


def why(
    context: CommandContext,
    intent: Annotated[str, argument("INTENT", "The intent's id.")],
) -> CommandResult:
    """Show the Actions of an intent as a tree.

    Which agents were asked, why, and with which results.

    Each line was caused by the line above it in the tree. With --json the Actions have all that the
    ledger knows of them, but of long outputs only the size.

    \b
    Examples:
      dragoman why i-7
    """
    with context.open_for_reading() as directory:
        tree = call_operation(
            directory, "ccos.why", {"intent_id": intent}, context.actor(directory, "")
        ).reply
    return CommandResult(tree, lambda screen: print_action_tree(screen, tree))


_SYNTHETIC = "synthetic=cancelled,blocked,given up,unsent"

_WITHDRAWN = f"details.{_SYNTHETIC}"
"""Condition of a request that ended without an outcome of its agent."""

ACTION_TEXT: Final[Mapping[str, str]] = {
    "New": (
        "{details.by} requests|, as a part of plan {plan_id}|, to follow up {details.follows}"
        '|: "{details.goal}"'
    ),
    "DelegationProposed": (
        "{agent_id}|{?details.score} with {details.score} ({details.parts:pairs})"
        "|{!details.score}, not by a score|{?details.threshold}, needs {details.threshold}"
        "|, of {details.candidates:count}"
    ),
    "DelegationApproved": "{agent_id} passes {details.checks}",
    "DelegationRejected": "{details.reasons:list}",
    "TaskDispatched": "{request_id} to {agent_id}|, due by {details.deadline}",
    "TaskUpdated": (
        "{agent_id}:| {details.progress} %| {details.message}"
        "|{!details.progress}{!details.message} piece| {details.sequence}"
        "|{!details.progress}{!details.message} of the output"
    ),
    "TaskCompleted": (
        f"{{?{_WITHDRAWN}}}{{request_id}} was taken back from {{agent_id}}"
        f"|{{!{_WITHDRAWN}}}{{agent_id}}: |{{?success}}success|{{!success}}{{!{_WITHDRAWN}}}failure"
        f"|{{!{_WITHDRAWN}}} ({{details.synthetic}})"
        f"|{{!{_WITHDRAWN}}} after {{duration_ms:duration}}|: {{error}}"
        "|{?details.left_out}; its output of {details.left_out} bytes was not kept"
        "|; passed on: {details.extra_fields:keys}"
    ),
    "FeedbackApplied": (
        "{agent_id} has {details.successes} successes and {details.failures} failures now"
    ),
    "Satisfied": "",
    "NeedsFollowUp": "{details.reason}",
    "RequestSuperseded": "{request_id} is void|: {details.owner} is asked now",
    "Anomaly": "{actor}: {details.reason}",
}
"""Type of Action -> its sentence; others show their details."""

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

_STATE = "{?cancelled}cancelled|{!cancelled}{state}"


def print_action_tree(screen: Screen, tree: Reply) -> None:
    """Print the Actions of an intent as a tree of causes."""
    screen.line((tree["intent_id"], "bold"), f" is {fill(_STATE, tree)}")
    for margin, action in _walk_tree(tree["actions"]):
        screen.line(*_action_line(margin, action))
    if tree.get("more"):
        screen.line(f"of {tree['count']} Actions; the rest: `dragoman call ccos.intent`")


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
    known = ACTION_TEXT.get(kind)
    text = format_pairs(action.get("details", {})) if known is None else fill(known, action)
    return [
        (margin, "dim"),
        (kind, _STATE_STYLES.get(kind, "")),
        f"  {truncate(text)}" if text else "",
        (f"  {action['at']}", "dim"),
    ]


# --- tables -----------------------------------------------------------------------------------

_RESULT = (
    f"{{?result.{_SYNTHETIC}}}{{result.request_id}} was taken back from {{result.agent_id}}"
    f"|{{?result.{_SYNTHETIC}}}: {{result.error}}|{{?result.success}}{{result.agent_id}} succeeded"
    f"|{{!result.{_SYNTHETIC}}}{{result.agent_id}} failed: {{result.error}}"
)

_INTENT = Field("intent_id", "", "INTENT", "The intent's id.", required=True)

_AFTER = Field("after", "--after", "N", "`next` of the page before.", range=(0, None))


def _limit(default: int) -> Field:
    return Field("limit", "--limit", "N", "How many at most.", range=(1, MAX_PAGE), default=default)


def _add_parameters(_: CommandContext, arguments: dict[str, Any], typed: Typed) -> None:
    arguments["params"] = dict(typed["param"] or ())


def _check_dispatched(reply: Reply) -> Refusal | None:
    if reply["state"] not in ("DelegationRejected", "NeedsFollowUp"):
        return None
    return Refusal("not_dispatched", "; ".join(reply.get("reasons", ())) or "no agent was given it")


DELEGATE = OperationCommand(
    "delegate",
    "ccos.delegate",
    """Give a goal to the agent that is most likely to reach it.

    Agents are scored by their skills, which the goal has to name, by their results so far, by
    trust and cost; the rules of [ccos.policy] can exclude any of them. `dragoman agent rank` shows
    the scores beforehand, `dragoman why` the Actions afterwards. It ends with 1 when no agent was
    given it.""",
    'dragoman delegate "Translate the manual into French" --within 30m',
    fields=(
        Field("goal", "", "GOAL", "What is to be done.", required=True),
        Field("intent_id", "--id", "ID", "What to call the intent."),
        Field(
            "",
            "--param",
            "KEY=VALUE",
            "A parameter of the goal, as JSON or text; repeatable.",
            parse=parse_parameter,
            many=True,
        ),
        Field("skills", "--skill", "WORDS", "A required skill; repeatable.", many=True),
        Field("constraints", "--constraint", "WORD", "A constraint; repeatable.", many=True),
        Field(
            "deadline",
            "--deadline",
            "RFC3339",
            "When a request counts as failed, whichever agent has it.",
            parse=_parse_moment,
        ),
        Field(
            "within_ms",
            "--within",
            "TIME",
            "How long each request may take: 90s, 10m, 2h.",
            parse=parse_duration,
        ),
        Field("plan_id", "--plan", "ID", "A plan it is part of."),
        Field("follows", "--follows", "INTENT", "The intent it follows up."),
    ),
    complete=_add_parameters,
    headline=(
        "{intent_id} is |" + _STATE,
        "{request.request_id} is for {request.agent_id}|, due by {request.deadline}",
        "  {reasons:list}",
        "note: {remark}",
    ),
    refuse=_check_dispatched,
)

INTENT_TABLES = (
    OperationCommand(
        "show",
        "ccos.intent",
        """Show how an intent stands.

    Its request, its result, and who was tried.""",
        "dragoman intent show i-7",
        fields=(_INTENT,),
        writes=False,
        headline=(
            "{intent_id} is |" + _STATE + "|: {goal}",
            (
                "task {task_id}, requested by {by} at {created_at}|, as a part of plan {plan_id}"
                "|, to follow up {follows}"
            ),
            "{request.request_id} is open with {request.agent_id}|, due by {request.deadline}",
            _RESULT,
            "output: {result.output}",
            "its output of {result.left_out} bytes was not kept (digest {result.digest})",
            "extra fields: {result.extra_fields}",
            "because: {reasons:list}",
            "{?anomalies}anomalies: {anomalies}; see `dragoman why`",
        ),
    ),
    OperationCommand(
        "list",
        "ccos.intents",
        """List intents, the oldest first.

    Where several options are given, all of them must hold.""",
        "dragoman intent list --open",
        fields=(
            Field("agent_id", "--agent", "NAME", "Only what was assigned to this agent."),
            Field("plan_id", "--plan", "ID", "Only of this plan."),
            Field("follows", "--follows", "INTENT", "Only follow-ups of this intent."),
            Field("open", "--open", "", "Only open intents."),
            _AFTER,
            _limit(50),
        ),
        writes=False,
        columns={
            "INTENT": "{intent_id}",
            "STATE": _STATE,
            "AGENT": "{request.agent_id}|{!request}{tried}",
            "DUE BY": "{request.deadline}",
            "GOAL": "{goal:60}",
        },
        styles=_STATE_STYLES,
    ),
    OperationCommand(
        "cancel",
        "ccos.cancel",
        """Cancel an intent; it does not count as a failure of its agent.

    Its open request ends.""",
        'dragoman intent cancel i-7 --reason "no longer needed"',
        fields=(_INTENT, Field("reason", "--reason", "TEXT", "Why.")),
        headline=("{intent_id} is cancelled",),
    ),
)

RANK = OperationCommand(
    "rank",
    "ccos.rank",
    """Rank the candidates for a goal, and show why.

    Every candidate is shown with the parts of its score.

    Nothing is delegated by this. Deadlines are not taken into account; `delegate` with --within or
    --deadline may choose another agent, by the rule of latency. RESULTS counts all results, and
    SUCCESS goes by the last 32.""",
    'dragoman agent rank "Translate the manual into French"',
    fields=(
        Field("goal", "", "GOAL", "What is to be done.", required=True),
        Field(
            "constraints",
            "--constraint",
            "WORD",
            "A constraint on candidates; repeatable.",
            many=True,
        ),
        Field("skills", "--skill", "WORDS", "A required skill; repeatable.", many=True),
        _AFTER,
        _limit(20),
    ),
    writes=False,
    headline=("{?chosen}{chosen} would get it|{!chosen}nobody: {why}",),
    columns={
        "AGENT": "{agent_id}",
        "TRUST": "{trust}",
        "SCORE": "{score}",
        "NEEDS": "{threshold}",
        **{
            part.upper(): f"{{parts.{part}}}"
            for part in ("skill", "constraint", "success", "newcomer", "turn", "cost")
        },
        "RESULTS": "{?results}{successes}/{results}|{!results}new",
        "VERDICT": "{reasons:list}|{!reasons}may have it|; {remark}",
    },
    styles={"may have it": "green"},
)


COMMANDS = (
    *make_commands((DELEGATE,)),
    CliCommand("why", why, takes_as=False),
    *make_commands((*INTENT_TABLES, RANK)),
)
