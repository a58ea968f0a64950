"""How the command line shows intents and the registry to people: a tree, a ranking, a list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.core.deciding.ending import TAKEN_BACK
from dragoman.core.moments import duration
from dragoman.core.rules.governance import RULES
from dragoman.surfaces.cli.screen import Column, Part, Screen, as_json
from dragoman.surfaces.cli.words.phrases import counted, cut

Row = Mapping[str, Any]

_STYLES = {
    "TaskCompleted": "bold",
    "Satisfied": "green",
    "NeedsFollowUp": "red",
    "cancelled": "dim",
    "DelegationRejected": "red",
    "Anomaly": "yellow",
}
_BRANCH, _LAST, _RUNS, _OVER = "├─ ", "└─ ", "│  ", "   "
_MOST_DEEP = 24
"""Deeper branches are drawn at this depth, to keep lines short."""

_RANKED = (
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
_PARTS = ("skill", "constraint", "success", "newcomer", "turn", "cost")
_INTENTS = (
    Column("INTENT", "bold"),
    Column("STATE", styles=_STYLES),
    Column("AGENT"),
    Column("CREATED"),
    Column("GOAL"),
)
_GOAL = 60


def print_ranking(ranked: Row, screen: Screen) -> None:
    """Print every candidate with the parts of its score, and why one is chosen."""
    if ranked["candidates"]:
        screen.table(_RANKED, [_candidate(one) for one in ranked["candidates"]])
    if "next" in ranked:
        left = ranked["of"] - ranked["next"]
        screen.line(f"and {left} more: add --after {ranked['next']}")
    screen.line(ranked["why"] if ranked["chosen"] else f"nobody: {ranked['why']}")


def _candidate(one: Row) -> tuple[str, ...]:
    results = f"{one['successes']}/{one['results']}" if one["results"] else "new"
    verdict = "; ".join(one["reasons"]) or "may have it"
    parts = (f"{one['parts'][part]:.3f}" for part in _PARTS)
    verdict = f"{verdict}; {one['remark']}" if "remark" in one else verdict
    score, needs = f"{one['score']:.3f}", f"{one['threshold']:.3f}"
    return one["agent_id"], one["trust"], score, needs, *parts, results, verdict


def print_intents(rows: Sequence[Row], screen: Screen) -> None:
    """Print one line for each intent."""
    if not rows:
        screen.line("there are no such intents: begin with `dragoman delegate GOAL`")
        return
    cells = [
        (
            row["intent_id"],
            how_it_stands(row),
            row["request"]["agent_id"] if "request" in row else ", ".join(row["tried"]),
            row["created_at"],
            cut(row["goal"], _GOAL),
        )
        for row in rows
    ]
    screen.table(_INTENTS, cells)


def how_it_stands(row: Row) -> str:
    """State of an intent in one word; cancelled is no state of CCOS, but what people expect."""
    return "cancelled" if row.get("cancelled") else row["state"]


def print_intent(found: Row, screen: Screen) -> None:
    """Print one intent with its request and result."""
    screen.line((found["intent_id"], "bold"), f" is {how_it_stands(found)}: ", found["goal"])
    wanted = f"requested by {found['by']} at {found['created_at']}{_belongs(found, found)}"
    screen.line(f"task {found['task_id']}, {wanted}")
    if "request" in found:
        request = found["request"]
        due = f", due by {request['deadline']}" if "deadline" in request else ""
        screen.line(f"{request['request_id']} is open with {request['agent_id']}{due}")
    if "result" in found:
        result = found["result"]
        screen.line(_how_it_ended(result))
        if "output" in result:
            screen.block(as_json({"output": result["output"]}), _OVER)
        if "left_out" in result:
            screen.line(f"{_OVER}{_not_kept(result)} (digest {result['digest']})")
        if "passed_on" in result:
            screen.block(as_json({"passed_on": result["passed_on"]}), _OVER)
    for reason in found.get("reasons", ()):
        screen.line(("because: ", "yellow"), reason)
    if "followed_by" in found:
        screen.line(cut(f"followed up by {', '.join(found['followed_by'])}"))
    if found["anomalies"]:
        screen.line(("anomalies: ", "yellow"), f"{found['anomalies']}; see `dragoman why`")


def _how_it_ended(result: Row) -> str:
    if result["success"]:
        return f"{result['agent_id']} succeeded"
    if result.get("synthetic") in TAKEN_BACK:
        return _taken_back(result, result)
    return f"{result['agent_id']} failed: {result.get('error', '')}"


def print_action(action: Row, screen: Screen) -> None:
    """Print one Action on a line of its own."""
    screen.line(*_line(f"{action['action_id']}  ", action))


def print_story(told: Row, screen: Screen) -> None:
    """Print the Actions of an intent as a tree of causes."""
    screen.line((told["intent_id"], "bold"), f" is {how_it_stands(told)}")
    for margin, action in _walk(told["actions"]):
        screen.line(*_line(margin, action))
    if told.get("more"):
        name = told["intent_id"]
        screen.line(f"of {told['count']} Actions; all: `dragoman intent actions --intent {name}`")


def _walk(root: Row) -> Iterator[tuple[str, Row]]:
    """Walk the tree with the margin of each line; without recursion, as chains may be long."""
    waiting: list[tuple[str, str, Row]] = [("", "", root)]
    while waiting:
        before, branch, action = waiting.pop()
        yield before + branch, action
        below = before + {_BRANCH: _RUNS, _LAST: _OVER, "": ""}[branch]
        below = below[: len(_OVER) * _MOST_DEEP]
        children: Sequence[Row] = action.get("children", ())
        for index in range(len(children) - 1, -1, -1):
            is_last = index == len(children) - 1
            waiting.append((below, _LAST if is_last else _BRANCH, children[index]))


def _line(margin: str, action: Row) -> list[Part]:
    kind = action["type"]
    said = cut(_SAID[kind](action, action.get("details", {})))
    return [
        (margin, "dim"),
        (kind, _STYLES.get(kind, "")),
        f"  {said}" if said else "",
        (f"  {action['at']}", "dim"),
    ]


def _new(action: Row, details: Row) -> str:
    return f'{details["by"]} requests{_belongs(action, details)}: "{details["goal"]}"'


def _belongs(action: Row, details: Row) -> str:
    """Plan that the intent is a part of, and intent that it follows up."""
    plan = f", as a part of plan {action['plan_id']}" if "plan_id" in action else ""
    return plan + (f", to follow up {details['follows']}" if "follows" in details else "")


def _proposed(action: Row, details: Row) -> str:
    parts = ", ".join(f"{name} {value:+.3f}" for name, value in details["parts"].items() if value)
    others = [one["agent"] for one in details.get("candidates", ())][1:]
    among = f"; before {', '.join(others)}" if others else ""
    if not (parts or details["threshold"]):
        return f"{action['agent_id']}, not by a score{among}"
    why = "; ".join(filter(None, (parts, f"needs {details['threshold']:g}")))
    return f"{action['agent_id']} with {details['score']:g} ({why}){among}"


def _completed(action: Row, details: Row) -> str:
    if details.get("synthetic") in TAKEN_BACK:
        return _taken_back(action, details)
    how = "success" if action["success"] else "failure"
    by_hub = f" ({details['synthetic']})" if "synthetic" in details else ""
    took = duration(action["duration_ms"])
    why = f": {action['error']}" if "error" in action else ""
    left_out = f"; {_not_kept(details)}" if details.get("left_out") else ""
    names = ", ".join(details.get("passed_on", ()))
    beside = f"; passed on: {names}" if names else ""
    return f"{action['agent_id']}: {how}{by_hub} after {took}{why}{left_out}{beside}"


def _taken_back(ended: Row, details: Row) -> str:
    """Text for a request that ended without any result of its agent."""
    why = f": {ended['error']}" if details["synthetic"] != "cancelled" else ""
    return f"{ended['request_id']} was taken back from {ended['agent_id']}{why}"


def _not_kept(result: Row) -> str:
    return f"its output of {result['left_out']:,} bytes was not kept: [ccos] payload_bytes"


def _updated(action: Row, details: Row) -> str:
    progress = details.get("progress")
    share = "" if progress is None else f"{progress:g} %"
    said = " ".join(filter(None, (share, details.get("message", ""))))
    return f"{action['agent_id']}: {said or _piece(details)}"


def _piece(details: Row) -> str:
    number = f" {details['sequence']}" if details.get("sequence") else ""
    return f"piece{number} of the output"


def _superseded(action: Row, details: Row) -> str:
    owner = details.get("owner")
    if not owner:
        return f"{action['request_id']}: it is void"
    if owner == action["agent_id"]:
        return f"{action['request_id']}: {owner} is asked anew"
    return f"{action['request_id']}: the task is {owner}'s now"


def _approved(action: Row, details: Row) -> str:
    rules = "every rule" if set(RULES) <= set(details["checks"]) else ", ".join(details["checks"])
    return f"{action['agent_id']} passes {rules}"


def _dispatched(action: Row, details: Row) -> str:
    due = f", due by {details['deadline']}" if details.get("deadline") else ""
    return f"{action['request_id']} to {action['agent_id']}{due}"


_SAID: Mapping[str, Callable[[Row, Row], str]] = {
    "New": _new,
    "DelegationProposed": _proposed,
    "DelegationApproved": _approved,
    "DelegationRejected": lambda _, details: "; ".join(details["reasons"]),
    "TaskDispatched": _dispatched,
    "TaskUpdated": _updated,
    "TaskCompleted": _completed,
    "FeedbackApplied": lambda action, details: (
        f"{action['agent_id']} has {counted(details['successes'], 'success', 'successes')} and "
        f"{counted(details['failures'], 'failure')} now"
    ),
    "Satisfied": lambda _, __: "",
    "NeedsFollowUp": lambda _, details: details["reason"],
    "RequestSuperseded": _superseded,
    "FollowedUp": lambda _, details: f"by {details['by']}",
    "Anomaly": lambda action, details: f"{action['actor']}: {details['reason']}",
}
"""Type of Action -> its text."""
