"""The operation by which an agent reads what was delivered to it in its dialect."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from dragoman.core.actor import HUB_NAME, Actor
from dragoman.core.agent import AgentRecord
from dragoman.core.limits import MAX_PAGE
from dragoman.core.mail import Mail
from dragoman.engine.operation import Facts, LongPoll, QueryOperation
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.mail import Letter, is_empty_page, mail_page


class DeliveredQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to you, oldest first."""

    after: Annotated[int, Meta(ge=0, le=2**53 - 1)] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50


DELIVERY_PREFIX: Final = "delivery-"
"""Beginning of the id of a letter that holds a delivered message; that of a question ends with the
question's id."""


def delivery_id(digest: str, question: str) -> str:
    """Id of the letter that holds a delivered message."""
    return f"{DELIVERY_PREFIX}{digest}{question and f'-{question}'}"


def is_delivery_of(letter: str, question: str) -> bool:
    """True for the id of a letter in which this question was delivered."""
    return letter.startswith(DELIVERY_PREFIX) and letter.endswith(f"-{question}")


def is_foreign_kind(kind: str) -> bool:
    """True for the kind of a letter that is a message of another dialect than Agent Mail."""
    return "." in kind


def is_told_by_letter(mail: Mail, record: AgentRecord | None) -> bool:
    """True for another agent's message that a letter of its own tells this agent, too: one that
    reads letters, and no messages."""
    if record is None or not record.dialects or not is_foreign_kind(mail.kind):
        return False
    reads_letters = record.dialects[0] == "agentmail" and "acp" not in record.dialects
    is_said = mail.sender not in (HUB_NAME, record.name)
    return reads_letters and is_said and mail.posted_at >= record.registered_at


def delivered_kind(dialect: str, kind: str) -> str:
    """Kind of the letter that holds a message of a dialect."""
    return f"{dialect}.{kind}"[:64]


def inbox_operation(dialect: str, name: str) -> QueryOperation:
    """Operation that lists the messages that were delivered to its caller in this dialect."""
    prefix = delivered_kind(dialect, "")

    def plan(query: DeliveredQuery, actor: Actor, facts: Facts) -> Any:
        def is_message(mail: Mail) -> bool:
            return mail.kind.startswith(prefix)

        listed = ListQuery(f"in:{actor.name}", query.after, limit=query.limit)
        page = mail_page(facts.store, listed, is_message)
        return {"messages": [_row(letter) for letter in page.letters], **page.continuation}

    return QueryOperation(
        name=name,
        input=DeliveredQuery,
        plan=plan,
        wait=LongPoll(is_empty_page, "mail"),
        summary=f"Messages of {dialect} that were delivered to you, oldest first.",
    )


def _row(letter: Letter) -> dict[str, Any]:
    return {
        "position": letter.position,
        "id": letter.mail.id,
        "message": msgspec.json.decode(letter.mail.body),
    }
