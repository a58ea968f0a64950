"""What the operations of Agent Mail are given and what they answer, as it travels."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_PATTERN, ID_PATTERN
from dragoman.core.limits import MAX_PAGE
from dragoman.protocols.agentmail.shapes import Message

Importance = Literal["low", "normal", "high", "urgent"]
LetterId = Annotated[str, Meta(extra_json_schema={"pattern": f"^{ID_PATTERN}$"})]
"""Id of a letter or a thread."""
OptionalAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_PATTERN})?$"})]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class SendMail(Struct, frozen=True, rename={"from_": "from"}.get):
    """A letter to send: a message row as agents of this dialect write it."""

    subject: str
    body_md: str
    to: tuple[str, ...] | str = ()
    """Names, @agents, @orchestrators, @humans, or a configured group; none: the type's defaults."""
    cc: tuple[str, ...] | str = ()
    from_: str = ""
    """Sender, who must be the caller."""
    id: str | int | None = None
    """Id chosen by the sender; a letter sent again under it is the same letter."""
    thread_id: str = ""
    reply_to: str = ""
    """The letter that it replies to, whose thread it continues."""
    importance: Importance = "normal"
    ack_required: bool | None = None
    """None: the default of its type."""
    ack_within_ms: int | None = None
    """Time after which a missing ack counts as late, from a second to 30 days; None: the setting.
    """
    attachments: tuple[str, ...] = ()
    """Paths or addresses of the attachments."""
    timestamp: str = ""


class OutgoingLetter(Struct, frozen=True):
    """A letter to send, and its parsed message."""

    row: SendMail
    message: Message


class InboxQuery(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}.get):
    """Filters of a mailbox."""

    agent: OptionalAgent = ""
    """Owner of the box; empty: the caller. Listing marks no letter as read."""
    box: Literal["in", "sent", "overdue", "waiting"] = "in"
    """Received; sent; all with a late ack or answer; all that wait for somebody unknown."""
    unread: bool = False
    pending: bool = False
    """Only letters that the box's owner has still to ack."""
    type: str = ""
    bead_id: str = ""
    thread_id: str = ""
    from_: str = ""
    only: Literal["all", "completions", "successes", "checked"] = "all"
    """All; those that end an attempt; those that end it successfully; of these, all checks passing.
    """
    after: Position = 0
    before: Position | None = None
    """Newest first, from this position back; 0: from the newest one."""
    limit: PageSize = 50


class LetterRef(Struct, frozen=True, forbid_unknown_fields=True):
    """A letter, by its id or an unambiguous beginning of it."""

    id: LetterId


class ThreadQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of a thread, oldest first, by the thread's id."""

    thread_id: LetterId
    after: Position = 0
    limit: PageSize = 50


class SummaryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A thread to summarize, by its id."""

    thread_id: LetterId
    before: Position | None = None
    """Only letters before this position: the `cursor` of a summary that left older letters out."""
    model: bool = False
    """Also ask the configured program for a summary; for orchestrators and people."""


class SearchQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Words to find in letters."""

    query: Annotated[str, Meta(max_length=1_000)]
    before: Position | None = None
    limit: PageSize = 50


ShownLetter = Mapping[str, Any]
"""A letter as its reader gets it."""
