"""Answers to an ACP offer in the dialect of its recipient: accept and activate it, or reject it.

Who accepts begins: the other dialects have no step between the two. The gate is that of `accept`;
where it refuses, what it found is recorded, and the message has no effect (S-ACP-18).
"""

from typing import Final, cast, get_args

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import AcceptHandoff, Handoff, RejectHandoff, RejectReason
from dragoman.core.limits import MAX_TEXT
from dragoman.core.notice import Notice
from dragoman.engine.operation import Facts, Fault, OfferAnswer
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands
from dragoman.protocols.acp.gate_checks import run_gate
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import activate_command

_ANSWERING_KINDS: Final = frozenset(("accepted", "progress", "rejected", "failed"))

_REASONS: Final[frozenset[str]] = frozenset(get_args(RejectReason))

_BEGUN_STATUSES: Final = frozenset(("", "in-progress"))
"""Statuses of a progress report that say no more than that the work is going on."""


def answer_offer(
    notice: Notice, actor: Actor, facts: Facts, choices: Choices
) -> OfferAnswer | None:
    """The answer that a notice gives to the active offer of its task, or to work that was sent back
    to the recipient of its last one; None: it gives none.
    """
    found = find_offer(notice.task, actor, facts) if notice.kind in _ANSWERING_KINDS else None
    if found is None:
        return _take_again(notice, actor, facts, choices)
    is_begun = found.status == "activated"
    if notice.kind == "rejected" or (notice.kind == "failed" and not is_begun):
        return OfferAnswer((_reject_command(found, notice),))
    if notice.kind == "accepted":
        return OfferAnswer(_begin_commands(found, choices))
    if notice.kind == "progress" and not is_begun and notice.status in _BEGUN_STATUSES:
        return OfferAnswer(_begin_commands(found, choices), is_work=True)
    return None


def _take_again(notice: Notice, actor: Actor, facts: Facts, choices: Choices) -> OfferAnswer | None:
    is_begin = notice.kind in ("accepted", "progress") and notice.status in _BEGUN_STATUSES
    found = find_task(facts.store, notice.task) if is_begin and notice.task else None
    if found is None or isinstance(found, Refusal):
        return None
    task, name = found.task, actor.name
    is_its_rework = (task.status, task.assignee, task.chain[-1:]) == ("ready", name, (name,))
    if not is_its_rework or task.handoff is not None:
        return None
    claim = ClaimTask(task.id, name, ttl_ms=choices.ttl_ms)
    return OfferAnswer((claim,), is_work=notice.kind == "progress")


def find_offer(task: str, actor: Actor, facts: Facts) -> Handoff | None:
    """The active handoff of a task, if this agent is its recipient."""
    found = find_task(facts.store, task) if task else None
    active = None if found is None or isinstance(found, Refusal) else found.task.handoff
    if active is None or active.recipient != actor.name:
        return None
    handoff = find_handoff(facts.store, active.id)
    return None if isinstance(handoff, Refusal) else handoff


def _reject_command(handoff: Handoff, notice: Notice) -> RejectHandoff:
    reason = notice.reason if notice.reason in _REASONS else "other"
    said = (notice.text, "" if reason == notice.reason else notice.reason, *notice.blockers)
    detail = "; ".join(one for one in said if one.strip()) or "no reason given"
    return RejectHandoff(
        handoff.id,
        cast(RejectReason, reason),
        detail[:MAX_TEXT],
        notice.recommendation[:MAX_TEXT],
    )


def _begin_commands(handoff: Handoff, choices: Choices) -> Commands:
    """Accept and activate; an activated one is only claimed again, if its lease was lost."""
    if handoff.status == "activated":
        claim = ClaimTask(
            handoff.task, handoff.recipient, ttl_ms=choices.ttl_ms, renew_if_held=True
        )
        return (claim,)
    is_accepted = handoff.status == "accepted"
    activate = activate_command(handoff.id, handoff if is_accepted else None, choices)
    if isinstance(activate, Fault):
        return (RejectMessage(activate.code, activate.detail, handoff.task),)
    if is_accepted:
        return (activate,)
    result = run_gate(handoff, (), choices)
    accept = AcceptHandoff(
        handoff.id,
        handoff.package_hash,
        passed=result.passed,
        failed=result.failed,
        waits_for=result.waits_for,
        artifacts=result.artifacts,
        must_pass=True,
    )
    return (accept, activate)
