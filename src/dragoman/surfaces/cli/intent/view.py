"""How the command line shows intents and the registry to people: a tree, a ranking, a list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.core.deciding.ending import NO_FEEDBACK_REASONS
from dragoman.core.moments import format_duration
from dragoman.core.rules.governance import GOVERNANCE_RULES
from dragoman.surfaces.cli.screen import Column, Screen, StyledText, to_ascii_json
from dragoman.surfaces.cli.words.phrases import pluralize, truncate

Reply = Mapping[str, Any]

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

_RANKING_COLUMNS = (
    Column("AGENT", "bold"),
    Column("TRUST"),
    Column("SCORE"),
    Column("NEEDS"),
    Column("SKILL"),
    Column("CONSTRAINT"),
    Column("SUCCESS"),
    Column("NEWCOMER"),
    Column("TURN"),
    Column("COST"),
    Column("RESULTS"),
    Column("VERDICT", styles={"may have it": "green"}),
)
_SCORE_PARTS = ("skill", "constraint", "success", "newcomer", "turn", "cost")
_INTENT_COLUMNS = (
    Column("INTENT", "bold"),
    Column("STATE", styles=_STATE_STYLES),
    Column("AGENT"),
    Column("CREATED"),
    Column("GOAL"),
)
_MAX_GOAL = 60


def print_ranking(ranking: Reply, screen: Screen) -> None:
    """Print every candidate with the parts of its score, and why one is chosen."""
    if ranking["candidates"]:
        screen.table(_RANKING_COLUMNS, [_ranking_row(one) for one in ranking["candidates"]])
    if "next" in ranking:
        remaining = ranking["of"] - ranking["next"]
        screen.line(f"and {remaining} more: add --after {ranking['next']}")
    screen.line(ranking["why"] if ranking["chosen"] else f"nobody: {ranking['why']}")


def _ranking_row(candidate: Reply) -> tuple[str, ...]:
    results = f"{candidate['successes']}/{candidate['results']}" if candidate["results"] else "new"
    verdict = "; ".join(candidate["reasons"]) or "may have it"
    parts = (f"{candidate['parts'][part]:.3f}" for part in _SCORE_PARTS)
    verdict = f"{verdict}; {candidate['remark']}" if "remark" in candidate else verdict
    score, needs = f"{candidate['score']:.3f}", f"{candidate['threshold']:.3f}"
    return candidate["agent_id"], candidate["trust"], score, needs, *parts, results, verdict


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
        if "passed_on" in result:
            screen.block(to_ascii_json({"passed_on": result["passed_on"]}), _INDENT)
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
    names = ", ".join(details.get("passed_on", ()))
    passed_on = f"; passed on: {names}" if names else ""
    return f"{action['agent_id']}: {outcome}{by_hub} after {took}{error}{left_out}{passed_on}"


def _withdrawn_text(ended: Reply, details: Reply) -> str:
    """Text for a request that ended without any result of its agent."""
    error = f": {ended['error']}" if details["synthetic"] != "cancelled" else ""
    return f"{ended['request_id']} was taken back from {ended['agent_id']}{error}"


def _dropped_output_text(result: Reply) -> str:
    return f"its output of {result['left_out']:,} bytes was not kept: [ccos] payload_bytes"


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
