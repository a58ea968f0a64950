"""Ledger entries for people: each event as a sentence, pages of entries, and entries as they come.

The sentences are data. An event without one is shown by its name and its fields, so that entries of
a newer release can be read too.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Gap, Store, find_gap
from dragoman.engine.schemas.tasks import encode, entry_resource
from dragoman.engine.subscribe import follow
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import Screen, StyledText, fill, format_pairs, truncate

# --- sentences --------------------------------------------------------------------------------

TRANSITION_REQUEST: Final = "TASK_TRANSITION"
"""Type of the trace events that request a transition."""

_WITHDRAWN = "synthetic=cancelled,blocked,given up,unsent"
"""Condition of a request that ended without an outcome of its agent."""

EVENT_TEXT: Final[Mapping[str, str]] = {
    "task.created": (
        'created, {status}: "{title}"|; for {reserved_for}|; waits for {open_blockers}'
        "|; part of {parent}"
    ),
    "task.aliased": "also called {alias}",
    "task.linked": (
        "{?kind=blocked-by}waits for {target}|{?kind=parent}is part of {target}"
        "|{?kind=discovered-from}was found while doing {target}"
    ),
    "task.backlinked": (
        "{?kind=blocked-by}blocks {source}|{?kind=parent}has the part {source}"
        "|{?kind=discovered-from}led to {source}"
    ),
    "task.unblocked": "no longer waits for {blocker}: it is {status}",
    "task.claimed": "claimed by {agent}: attempt {attempt}, fence {fence}, lease {ttl_ms:duration}",
    "task.transitioned": "{from} → {to}| ({reason})|: {other_text}",
    "task.requeued": (
        "attempt {attempt} is over| ({reason})|: ready again, not before {not_before:time}; "
        "failures in a row: {failures}"
    ),
    "task.reported": (
        "{?by}{agent} reported nothing, the {by} says {outcome}|{!by}{agent} reported {outcome}"
        "|: {notes}|; blocked by {blockers}"
    ),
    "task.noted": "noted: {text}",
    "task.progressed": (
        "says: |{progress}|{?progress}; {notes}|{!progress}{notes}|; blocked by {blockers}"
    ),
    "task.edited": (
        "edited:| title {title}|{?body} body| priority {priority}"
        "|{?review_required=True} review required|{?review_required=False} no review"
        "| reserved for {reserved_for}|{?reserved_for=} reserved for anyone"
    ),
    "task.warned": "warning: {reason}|, {detail}",
    "task.checkpointed": "checkpoint| at {commit}| ({reason})|: {description}|; {next_steps}",
    "task.rewound": (
        "rewound from {from} to {to}, as of its entry {version}|, its files on the branch {branch}"
        "| ({reason})"
    ),
    "task.handoff_changed": (
        "{!recipient}no longer on its way by {handoff}"
        "|{?is_taken}taken over by {recipient} by {handoff}"
        "|{!is_taken}on its way to {recipient} by {handoff}|; owners: {chain:chain}"
    ),
    "delegation.requested": (
        "{from_agent} hands it to {to_agent} as a part of {parent}, due by {due_by:time}"
    ),
    "delegation.accepted": "{agent} accepted the handoff",
    "delegation.rejected": "{agent} rejected the handoff| ({reason})",
    "delegation.escalated": "escalated: the handoff was due by {due_by:time} and is not finished",
    "command.refused": "refused |{kind}|{!kind}{command}| {target}|: {code}, {detail}",
    "message.received": "sent {kind}| about {target}|: nothing was left to change",
    "agent.registered": "registered: {role}|, speaks {speaks}",
    "agent.key_set": "{!key}signing key ended|signing key {key}",
    "token.issued": "token {id} issued, good until {expires_at:time}",
    "token.revoked": "token {id} revoked|{!id}all tokens revoked",
    "agent.paused": "paused| until {until:time}|: {reason}",
    "agent.resumed": "resumed",
    "agent.described": "can {skills}|; trust {trust}|, costs {cost}",
    "agent.assigned": "assigned {request_id}",
    "agent.relieved": "relieved of {request_id}",
    "agent.rated": (
        "{?success}succeeded|{!success}failed| with {request_id} after {duration_ms:duration}"
    ),
    "wave.started": "started, {beads:count} beads, at most {parallel} at a time",
    "wave.bead_released": "made {task} ready",
    "wave.completed": "complete: {counts:counts}",
    "reservation.taken": ("reserved for {holder} until {until:time}: {patterns:words}| ({reason})"),
    "reservation.renewed": "reserved until {until:time}: {id}",
    "reservation.ended": "reservations {why}: {ids}",
    "workq.added": "put into the work queue| ({title})",
    "workq.owner_changed": "{status}| by {owner}",
    "mail.posted": '{!kind=UNKNOWN}{kind} |letter to {to} in {thread}: |"{subject}"',
    "mail.read": "read by {reader}",
    "mail.acked": "acked by {agent}",
    "mail.answered": "answered by {by} with {answer}",
    "mail.escalated": (
        "escalated: {waiting_for} did not |{!only_answer}ack or |answer in time"
        "|; told to {notified}"
    ),
    "handoff.proposed": (
        'offers {task} to {recipient}|: "{title}"| ({reason})|, in the place of {supersedes}'
        "|; package {package_hash:12}"
    ),
    "handoff.transitioned": "{from} → {to}| ({note})|; {superseded_by} takes its place",
    "handoff.verified": (
        "checked: |{passed}|{!passed}nothing| passed|; failed: {failed:list}|; left out: {left_out}"
    ),
    "handoff.rejected": "rejected by {by}: {reason}|, {detail}|; suggested fix: {suggested_fix}",
    "handoff.approved": (
        "{?approved}approved|{!approved}denied| by {by}, package {package_hash:12}| ({note})"
    ),
    "handoff.escalated": (
        "{?to}escalated to {to}|{!to}escalated to nobody, as it was over"
        "|: {trigger} in {stage}|{?elapsed_ms} after {elapsed_ms:hours}"
        "|; recommended: {recommended}"
    ),
    "handoff.extended": "has more time, until {until:time}",
    "handoff.noted": (
        "{!text}{!data}no |{kind}|: {text}|{?text}, {data:pairs}|{!text}: {data:pairs}"
    ),
    "intent.created": 'requested by {by}: "{goal}"|; part of plan {plan}|; follows {follows}',
    "intent.proposed": (
        "{agent} proposed|{?score} with {score} (needs {threshold})|{!score}, not by a score"
        "|, of {candidates:count}"
    ),
    "intent.approved": "{agent} approved",
    "intent.rejected": "{agent}|{!agent}rejected|: {reasons:list}",
    "intent.dispatched": "{request_id} sent to {agent}|, due by {deadline:time}",
    "intent.updated": (
        "{agent}:|{?progress} {progress} %|{?message} {message}|{?sequence} piece {sequence}"
        "|{!progress}{!message}{!sequence} a piece of the output"
    ),
    "intent.completed": (
        f"{{?{_WITHDRAWN}}}{{request_id}} taken back from {{agent}}"
        f"|{{!{_WITHDRAWN}}}{{agent}} |{{?success}}succeeded|{{!success}}{{!{_WITHDRAWN}}}failed"
        f"|{{!{_WITHDRAWN}}} ({{synthetic}})|{{!{_WITHDRAWN}}} after {{duration_ms:duration}}"
        "|: {error}"
    ),
    "intent.feedback_applied": "counted for {agent}: {successes} successes, {failures} failures",
    "intent.satisfied": "satisfied",
    "intent.needs_follow_up": "{!cancelled}needs a follow-up: |{reason}",
    "intent.superseded": "{request_id} of {agent} is void|: {owner} is asked now",
    "intent.anomaly": "anomaly: {reason}",
    "turn.recorded": (
        "turn {turn_index} of the {agent}, {confidence:percent} sure|{?masked}, with secrets masked"
    ),
    # An agent's transition event is a request: an actual transition is an entry of its own.
    "trace.recorded": (
        "{type}|{?type=TASK_TRANSITION} asked for| in session {session}| about {task}"
        "|{?masked}, with secrets masked|: {envelope.payload.chunk:100}"
        "|: {envelope.payload.tool:60}"
        "| {envelope.payload.status:40}|: {envelope.payload.line:100}"
        "|: {envelope.payload.from_state:20} → {envelope.payload.to_state:20}"
    ),
    "trace.anomaly": "anomaly ({kind}) in session {session}: {detail}",
    "entropy.escalated": "escalated: {kind}, {detail} (turns {turns})",
    "entropy.settled": "settled: {kind} is over",
}
"""Event -> its sentence, as `fill` takes it: the rest of one that the actor begins."""


def describe_event(name: str, body: Mapping[str, Any]) -> str:
    """Sentence of an event, on one line."""
    text = fill(EVENT_TEXT.get(name, ""), body)
    return truncate(text or f"{name} {format_pairs(body)}".rstrip())


# --- entries ----------------------------------------------------------------------------------

Fields = Mapping[str, Any]
"""An entry as streams and `--json` show it."""

_SUBJECT_KINDS = frozenset(
    ("task", "agent", "mail", "wave", "handoff", "workq", "intent", "reputation", "turns")
)
"""Kinds of streams whose name says what an entry is about."""

_POSITION_WIDTH = 6
"""Width of positions, so that lines are aligned."""


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """JSON object of an entry, with all its fields."""
    return json.loads(encode(entry_resource(entry)))


def print_entry(entry: Fields, screen: Screen, *, names_task: bool = True) -> None:
    """Print position, time, actor, subject and sentence of an entry on one line."""
    # `via` is printed only when it says more than that somebody typed a command.
    via = f" (via {entry['via']})" if entry["via"] not in (None, "cli") else ""
    parts: list[StyledText] = [
        (f"{entry['position']:>{_POSITION_WIDTH}}", "dim"),
        f"  {entry['at']}  ",
        (entry["actor"], "bold"),
        f"{via}  ",
    ]
    kind, _, subject = entry["stream"].partition(":")
    if names_task and kind in _SUBJECT_KINDS:
        parts += [(subject, "cyan"), "  "]
    screen.line(*parts, describe_event(entry["type"], entry["body"]))


def history_result(owner: Mapping[str, str], entries: Sequence[Entry], limit: int) -> CommandResult:
    """Result with at most `limit` entries of one thing; `owner` names it in the JSON object."""
    page = [entry_to_dict(entry) for entry in entries[:limit]]
    next_version = page[-1]["version"] if len(entries) > limit else None

    def print_entries(screen: Screen) -> None:
        for entry in page:
            print_entry(entry, screen, names_task=False)
        if next_version is not None:
            screen.line(f"There are more: add --after {next_version}")

    return CommandResult({**owner, "entries": page, "next": next_version}, print_entries)


# --- entries as they come -----------------------------------------------------------------------

T = TypeVar("T")


def gap_warning(gap: Gap) -> str:
    """Warning for a reader whose position is beyond the end of the ledger."""
    return (
        f"the ledger ends at {gap.until}, before {gap.after}: it may have been restored from a "
        "backup. What comes from now on is shown; look through the rest once without --after"
    )


def resolve_start(context: CommandContext, store: Store, after: int) -> int:
    """Start position of a reader; one beyond the ledger's end is reported and becomes its end."""
    gap = find_gap(store, after)
    if gap is None:
        return after
    warn_of_gap(context, gap)
    return gap.until


def warn_of_gap(context: CommandContext, gap: Gap) -> None:
    """Print the warning that the reader was beyond the ledger's end."""
    context.err.line(("warning: ", "yellow"), gap_warning(gap))


def follow_entries(context: CommandContext, store: Store, after: int) -> Iterator[Entry]:
    """Entries after a position as they are committed, until nobody reads the output."""

    def read(after: int, limit: int) -> list[Entry]:
        return retry_while_unavailable(context, store, lambda: store.entries(after, limit))

    return follow(read, resolve_start(context, store, after), context.wait)


def retry_while_unavailable(context: CommandContext, store: Store, read: Callable[[], T]) -> T:
    """Retry a read until the store is available again, as while its server restarts."""
    while True:
        try:
            return read()
        except StoreUnavailable as error:
            context.err.line(
                ("warning: ", "yellow"), f"{error.detail}. Until it is back nothing is shown"
            )
            if not _wait_until_available(context, store):
                raise


def _wait_until_available(context: CommandContext, store: Store) -> bool:
    while context.wait():
        with suppress(StoreUnavailable):
            store.head()
            return True
    return False
