"""Everything that can be asked for in ACP: handoffs, messages beside them, and the work queue."""

from typing import Any, Final

from dragoman.core.actors import Actor
from dragoman.core.ids import quote_name
from dragoman.engine.faults import Fault
from dragoman.engine.operation import Dialect, Facts, Operation
from dragoman.protocols.acp import messages, query, translate, workq
from dragoman.protocols.acp.actions import HandoffCall
from dragoman.protocols.acp.after import follow_up, has_follow_up
from dragoman.protocols.acp.detect import HANDOFF, parse_message
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.lint import KINDS, lint
from dragoman.protocols.acp.outlook import diagnose
from dragoman.protocols.acp.read import ActionCall, parse_action
from dragoman.protocols.acp.render import RENDERERS
from dragoman.protocols.acp.reply import refusal_in_reply, refusal_reply, success_reply
from dragoman.protocols.acp.schema import package_schema
from dragoman.protocols.acp.settings import DEFAULTS, Choices

NAME: Final = "acp"
_LOOKUP_ACTIONS: Final = frozenset({"initiate", "validate", "query"})
"""Actions that read more than the handoff before the hub decides."""


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """The ACP dialect with these settings."""
    operations = (
        _handoff_operation(choices),
        *messages.message_operations(choices),
        *workq.workq_operations(choices),
    )
    by_name = {operation.name: operation for operation in operations}
    return Dialect(
        name=NAME,
        operations=operations,
        parse=lambda incoming: parse_message(incoming, by_name),
        lint=lint,
        refusal_codes=REFUSAL_CODES,
        renderers=RENDERERS,
        message_types=KINDS,
        format_error=lambda message, refusal, actor, facts: refusal_reply(
            message, refusal, actor, facts, choices
        ),
        schema=package_schema,
        diagnose=lambda handoff, facts: diagnose(handoff, facts, choices),
        recognition_hint=(
            "an object with action (initiate, accept, …), or with to, payload and type "
            "(status.update, …)"
        ),
    )


def _handoff_operation(choices: Choices) -> Operation:
    def after(call: ActionCall, actor: Actor, facts: Facts, reply: Any) -> Any:
        return follow_up(call, actor, facts, reply, choices)

    return Operation(
        name=HANDOFF,
        input_type=HandoffCall,
        validate=parse_action,
        commands=lambda _: (),
        gather=lambda asked, actor, facts: translate.action_commands(asked, actor, facts, choices),
        maybe_query=lambda asked, actor, facts: query.answer_query(asked, actor, facts, choices),
        reply=success_reply,
        follow_up=after,
        needs_lookup=lambda asked: (
            asked.action in _LOOKUP_ACTIONS or translate.needs_handoff(asked, choices)
        ),
        blocking_after=lambda asked, reply: has_follow_up(asked, reply, choices),
        refusal_in_reply=refusal_in_reply,
        roles=messages.ALL_ROLES,
        check_identity=_check_sender,
        summary=(
            "ACP: hand a task over with proof. Sender: initiate, withdraw, close. Recipient: "
            "accept (checks the package), then activate, complete; or reject. query looks handoffs "
            "up. The answer has success, status and, if it failed, error."
        ),
    )


def _check_sender(call: ActionCall, speaker: str) -> Fault | None:
    """Check that the sender of an offer is the caller; in a query `from_agent` is a filter."""
    sender = call.filled.get("from_agent", "") if call.action in ("initiate", "draft") else ""
    if sender in ("", speaker):
        return None
    detail = f"{speaker} cannot hand over for {quote_name(str(sender))}"
    return Fault("identity_mismatch", detail, "from_agent")
