"""Everything that can be asked for in ACP: handoffs, messages beside them, and the work queue."""

from typing import Any, Final

from dragoman.core.actors import Actor
from dragoman.core.ids import quoted_name
from dragoman.engine.faults import Fault
from dragoman.engine.operation import Dialect, Facts, Operation
from dragoman.protocols.acp import messages, query, translate, workq
from dragoman.protocols.acp.actions import HandoffCall
from dragoman.protocols.acp.after import follow_up, lingers
from dragoman.protocols.acp.detect import HANDOFF, hear
from dragoman.protocols.acp.errors import CODES
from dragoman.protocols.acp.lint import KINDS, lint
from dragoman.protocols.acp.outlook import outlook
from dragoman.protocols.acp.read import Asked, read_action
from dragoman.protocols.acp.render import RENDER
from dragoman.protocols.acp.reply import done, no_in, refused
from dragoman.protocols.acp.schema import package_schema
from dragoman.protocols.acp.settings import DEFAULTS, Choices

NAME: Final = "acp"
_LOOKS: Final = frozenset({"initiate", "validate", "query"})
"""Actions that read more than the handoff before the hub decides."""


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """The ACP dialect with these settings."""
    operations = (_handoff(choices), *messages.operations(choices), *workq.operations(choices))
    by_name = {operation.name: operation for operation in operations}
    return Dialect(
        name=NAME,
        operations=operations,
        hear=lambda incoming: hear(incoming, by_name),
        lint=lint,
        refusals=CODES,
        render=RENDER,
        kinds=KINDS,
        says_no=lambda message, refusal, actor, facts: refused(
            message, refusal, actor, facts, choices
        ),
        schema=package_schema,
        outlook=lambda handoff, facts: outlook(handoff, facts, choices),
        known_by=(
            "an object with action (initiate, accept, …), or with to, payload and type "
            "(status.update, …)"
        ),
    )


def _handoff(choices: Choices) -> Operation:
    def after(asked: Asked, actor: Actor, facts: Facts, reply: Any) -> Any:
        return follow_up(asked, actor, facts, reply, choices)

    return Operation(
        name=HANDOFF,
        shape=HandoffCall,
        read=read_action,
        commands=lambda _: (),
        gather=lambda asked, actor, facts: translate.commands(asked, actor, facts, choices),
        asks=lambda asked, actor, facts: query.answer(asked, actor, facts, choices),
        reply=done,
        after=after,
        looks=lambda asked: asked.action in _LOOKS or translate.is_looked_up(asked, choices),
        lingers=lambda asked, reply: lingers(asked, reply, choices),
        no_in=no_in,
        roles=messages.EVERYONE,
        identity=_impostor,
        summary=(
            "ACP: hand a task over with proof. Sender: initiate, withdraw, close. Recipient: "
            "accept (checks the package), then activate, complete; or reject. query looks handoffs "
            "up. The answer has success, status and, if it failed, error."
        ),
    )


def _impostor(asked: Asked, speaker: str) -> Fault | None:
    """Check that the sender of an offer is the caller; in a query `from_agent` is a filter."""
    named = asked.said.get("from_agent", "") if asked.action in ("initiate", "draft") else ""
    if named in ("", speaker):
        return None
    detail = f"{speaker} cannot hand over for {quoted_name(str(named))}"
    return Fault("identity_mismatch", detail, "from_agent")
