"""Messages beside handoffs: send one, look into the own box, look messages up (S-ACP-14).

They are letters like all others of the hub, of a kind of their own, with a payload as their body.
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, cast, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.commands import PostMail
from dragoman.core.deciding.handoffs.common import COORDINATOR
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.ids import check_agent, quoted_name
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.letter import Mail
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Commands, Facts, Operation
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import find_agent, find_task
from dragoman.engine.reads.closed_letters import is_shown_to
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.reads.letter_names import known_as, thread_of
from dragoman.engine.reads.mailbox import (
    Fits,
    Letter,
    Page,
    find_letter,
    is_nothing,
    page_of,
    walk,
)
from dragoman.engine.reads.teamspaces import closed_to, coordinators
from dragoman.engine.request import Accepted
from dragoman.protocols.acp.actions import PageSize, Position
from dragoman.protocols.acp.doubts import doubts_about_name
from dragoman.protocols.acp.read import shaped
from dragoman.protocols.acp.reply import Reply, with_metadata
from dragoman.protocols.acp.settings import Choices

MessageType = Literal[
    "handoff.initiate",
    "handoff.accept",
    "handoff.reject",
    "handoff.complete",
    "status.update",
    "status.blocked",
    "status.complete",
    "knowledge.push",
    "knowledge.query",
    "knowledge.response",
    "system.ack",
    "system.error",
]
TYPES: Final[frozenset[str]] = frozenset(get_args(MessageType))
EVERYONE: Final[frozenset[Role]] = frozenset(get_args(Role))
MOST_PAYLOAD: Final = 4_096

_OF_HANDOFF: Final = frozenset({"handoff_id", "package_hash"})
"""Payload keys of a message about a handoff; everything else is looked up by them."""


class Send(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}.get
):
    """A message to agents."""

    to: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=1_000, description="Names; `coordinator`: who has that role"),
    ]
    type: MessageType
    payload: Annotated[dict[str, Any], Meta(description="At most 4,096 bytes")]
    thread_id: str = ""
    task_id: str = ""
    reply_to: str = ""
    from_: str = ""


class Inbox(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to you, oldest first."""

    unread: bool = False
    type: MessageType | Literal[""] = ""
    after: Position = 0
    limit: PageSize = 50


class Lookup(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}.get
):
    """Messages by thread, task, sender or recipient, oldest first; else those to you."""

    thread_id: str = ""
    task_id: str = ""
    from_: str = ""
    to: str = ""
    type: MessageType | Literal[""] = ""
    after: Position = 0
    limit: PageSize = 50


def operations(choices: Choices) -> Iterator[Operation]:
    """The three operations of messages."""

    def lookup(asked: Lookup, actor: Actor, facts: Facts) -> Any:
        return _lookup(asked, actor, facts, is_shown_to(actor, choices.teamspaces, facts.store))

    yield Operation(
        name="acp_send",
        shape=Send,
        read=read_message,
        commands=lambda _: (),
        gather=lambda sent, actor, facts: _posted(sent, actor, facts.store, choices),
        reply=_sent,
        after=lambda sent, actor, facts, reply: ((), _doubted(sent, actor, facts.store, reply)),
        roles=MAY_WRITE,
        identity=_impostor,
        summary="ACP: send a typed message (status.*, knowledge.*, system.*) to agents.",
    )
    yield _asking("acp_inbox", Inbox, _inbox, "ACP: messages to you, oldest first.")
    yield _asking("acp_query", Lookup, lookup, "ACP: look messages up by thread, task, sender.")


def _asking(name: str, shape: Any, ask: Any, summary: str) -> Operation:
    return Operation(
        name=name,
        shape=shape,
        read=lambda value: shaped(value, shape),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=EVERYONE,
        ask=ask,
        is_empty=is_nothing,
        wakes="mail",
        summary=summary,
    )


def read_message(value: Any) -> Send | Fault:
    """Parse a message to send; its payload must fit its type and the size limit."""
    sent = shaped(value, Send)
    if isinstance(sent, Fault):
        return sent
    size = len(msgspec.json.encode(sent.payload))
    if size > MOST_PAYLOAD:
        detail = f"it has {size} bytes, and at most {MOST_PAYLOAD} are taken"
        return Fault("message_too_large", detail, "payload")
    if sent.type.startswith("handoff.") and sent.payload.keys() != _OF_HANDOFF:
        detail = f"a {sent.type} carries handoff_id and package_hash, and nothing else"
        return Fault("schema_invalid", detail, "payload")
    return sent


def _impostor(sent: Send, speaker: str) -> Fault | None:
    if sent.from_ in ("", speaker):
        return None
    return Fault(
        "identity_mismatch", f"{speaker} cannot send for {quoted_name(sent.from_)}", "from"
    )


def _posted(sent: Send, actor: Actor, store: Store, choices: Choices) -> Commands | Fault:
    if sent.type.startswith("handoff.") and (wrong := _unfounded(sent, actor, store, choices)):
        return wrong
    if sent.reply_to:
        is_shown = is_shown_to(actor, choices.teamspaces, store)
        replied = find_letter(store, sent.reply_to, is_shown)
        if isinstance(replied, Refusal):
            return fault_of(replied, "reply_to")
        sent = replace(sent, reply_to=replied.id)
    names = [name for given in sent.to for name in _meant(given, store, choices)]
    return (
        PostMail(
            to=tuple(dict.fromkeys(names)),
            subject=f"{sent.type}: {sent.task_id}" if sent.task_id else sent.type,
            body=msgspec.json.encode(sent.payload).decode(),
            kind=sent.type,
            thread=known_as(sent.thread_id, store),
            bead=known_as(sent.task_id, store),
            reply_to=sent.reply_to,
        ),
    )


def _unfounded(sent: Send, actor: Actor, store: Store, choices: Choices) -> Fault | None:
    """Check that the caller is a party of the handoff, and that the hash is that of its package."""
    id, stated = (str(sent.payload[name]) for name in ("handoff_id", "package_hash"))
    found = find_handoff(store, id, actor.name, closed_to(choices.teamspaces, actor))
    if isinstance(found, Refusal):
        return fault_of(found, "payload.handoff_id")
    if actor.name not in (found.sender, found.recipient):
        detail = f"{actor.label} may not send a {sent.type} about {id}: that is for its two sides"
        return Fault("not_authorized", detail, "payload.handoff_id")
    if stated != found.package_hash:
        detail = f"{id} has the hash {found.package_hash}"
        return Fault("hash_mismatch", detail, "payload.package_hash")
    return None


def _meant(name: str, store: Store, choices: Choices) -> tuple[str, ...]:
    """Resolve a recipient: the role `coordinator` can be addressed like an agent."""
    if name != COORDINATOR or find_agent(store, name) is not None:
        return (name,)
    return coordinators(store) or (choices.coordinator,)


def _sent(_: Send, __: Commands, accepted: Accepted) -> Any:
    told = accepted.receipts[0]
    return {
        "success": True,
        "message_id": told.stream.partition(":")[2],
        "thread_id": told.thread,
    }


def _doubted(sent: Send, actor: Actor, store: Store, reply: Reply) -> Reply:
    """Add warnings about recipients that nobody is registered as; somebody always stands in for the
    coordinators.
    """
    names = (name for name in dict.fromkeys(sent.to) if name != COORDINATOR)
    doubts = [doubt for name in names for doubt in doubts_about_name(name, actor, store)]
    return with_metadata(reply, warnings=doubts) if doubts else reply


def _inbox(asked: Inbox, actor: Actor, facts: Facts) -> Any:
    box = f"unread:{actor.name}" if asked.unread else f"in:{actor.name}"
    query = ListQuery(box, asked.after, limit=asked.limit)
    return _rows(page_of(facts.store, query, lambda mail: _is_of(mail, asked.type)), actor.name)


def _lookup(asked: Lookup, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    task = find_task(facts.store, asked.task_id) if asked.task_id else None
    if isinstance(task, Refusal):
        return fault_of(task, "task_id")
    malformed = next(filter(None, _malformed(asked)), None)
    if malformed is not None:
        return malformed
    thread = thread_of(asked.thread_id, facts.store) if asked.thread_id else ""
    if isinstance(thread, Refusal):
        return fault_of(thread, "thread_id")

    def fits(mail: Mail) -> bool:
        return (
            _is_of(mail, asked.type)
            and (task is None or mail.bead in task.task.names)
            and thread in ("", mail.thread)
            and asked.from_ in ("", mail.sender)
            and (not asked.to or mail.is_for(asked.to))
            and is_shown(mail)
        )

    names = sorted(task.task.names) if task else ()
    narrow = (
        [f"thread:{thread}"] if thread else [],
        [f"{kind}:{name}" for name in names for kind in ("thread", "bead")],
        [f"from:{asked.from_}"] if asked.from_ else [],
        [f"in:{asked.to or actor.name}"],
    )
    first, *more = next(filter(None, narrow))
    query = ListQuery(first, asked.after, limit=asked.limit)
    others = (walk(facts.store, replace(query, list=name)) for name in more)
    besides = merge(*others, key=attrgetter("position"))
    return _rows(page_of(facts.store, query, fits, besides), actor.name)


def _malformed(asked: Lookup) -> Iterator[Fault | None]:
    checks = (
        ("from", asked.from_, check_agent),
        ("to", asked.to, check_agent),
    )
    for field, word, check in checks:
        refusal = check(word) if word else None
        yield None if refusal is None else fault_of(refusal, field)


def _is_of(mail: Mail, type: str) -> bool:
    return mail.kind in TYPES and type in ("", mail.kind)


def _rows(page: Page, reader: str) -> Any:
    return {
        "success": True,
        "messages": [_row(letter, reader) for letter in page.letters],
        **page.way_on,
    }


def _row(letter: Letter, reader: str) -> Mapping[str, Any]:
    mail = letter.mail
    return {
        "message_id": mail.id,
        "type": mail.kind,
        "from": mail.sender,
        "to": mail.to,
        "thread_id": mail.thread,
        "task_id": mail.bead,
        "payload": _payload(mail.body),
        "sent_at": to_rfc3339(mail.posted_at),
        "read": reader in mail.read_by,
        "position": letter.position,
    }


def _payload(body: str) -> Mapping[str, Any]:
    """Decode the payload; a letter of this kind may have been written by hand."""
    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        said = None
    return cast(dict[str, Any], said) if isinstance(said, dict) else {"text": body}
