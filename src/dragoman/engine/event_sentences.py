"""Events as sentences, for people: the rest of a sentence that the actor begins.

The sentences are data. An event without one is shown by its name and its fields, so that entries of
a newer release can be read too.
"""

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.attempt_state import OUTCOME_STATUSES
from dragoman.core.task_state import (
    CHECKS_PASSED_REASON,
    REPORTED_PREFIX,
    STALE_HEARTBEAT_PREFIX,
    STALE_HEARTBEAT_REASON,
    TOO_LONG_REASON,
    UNREPORTED_PREFIX,
)
from dragoman.engine.sentences import fill, format_pairs, truncate

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
    "task.unlinked": "waits for {target} no more: the dependency was removed",
    "task.unbacklinked": "blocks {source} no more: the dependency was removed",
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
    "attempt.quiet": "quiet: no progress of {agent} since {since:time}; it keeps the task",
    "attempt.escalated": (
        "escalated: still no progress of {agent} since {since:time}; it keeps the task"
    ),
    "task.checked": (
        "ran {results:count} checks of attempt {attempt}|{?passed=True}: passed"
        "|{?passed=False}: failed"
    ),
    "task.noted": "noted: {text}",
    "task.progressed": (
        "says: |{progress}|{?progress}; {notes}|{!progress}{notes}|; blocked by {blockers}"
    ),
    "task.edited": (
        "edited:| title {title}|{?body} body| priority {priority}"
        "|{!deadline=0} deadline {deadline:time}|{?deadline=0} no deadline"
        "|{?review_required=True} review required|{?review_required=False} no review"
        "| reserved for {reserved_for}|{?reserved_for=} reserved for anyone"
        "| checks {checks:list}|{?checks=[]} no checks"
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
    "question.asked": "asks {id}: {text}",
    "question.answered": "answered {id}: {text}",
    "question.withdrawn": "withdrew the question {id}",
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
    "agent.presence": "session {session}: {state}|: {text}",
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
        "{!approved=False}approved|{?approved=False}denied| by {by}, package {package_hash:12}"
        "| ({note})"
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

_OUTCOME_REASONS: Final[Mapping[str, str]] = {
    REPORTED_PREFIX: "its agent reported {outcome}",
    STALE_HEARTBEAT_PREFIX: "its lease ran out, after its agent had reported {outcome}",
    UNREPORTED_PREFIX: "its agent ended without a report, which counts as {outcome}",
}
"""Prefix of a reason, which the outcome follows -> the words for it."""

_REASONS: Final[Mapping[str, str]] = {
    STALE_HEARTBEAT_REASON: "its lease ran out without a heartbeat",
    TOO_LONG_REASON: "it took longer than an attempt may",
    CHECKS_PASSED_REASON: "its checks have passed",
    **{
        f"{prefix}{outcome}": words.format(outcome=outcome.replace("_", " "))
        for prefix, words in _OUTCOME_REASONS.items()
        for outcome in OUTCOME_STATUSES
    },
}
"""Reason of a status change that the hub gives -> the words for it."""


def describe_reason(reason: str) -> str:
    """Reason of a status change in words; one that somebody wrote stays as it is."""
    return _REASONS.get(reason, reason)


def describe_event(name: str, body: Mapping[str, Any]) -> str:
    """Sentence of an event, on one line."""
    text = fill(EVENT_TEXT.get(name, ""), body)
    return truncate(text or f"{name} {format_pairs(body)}".rstrip())
