"""What the operations of Agent Mail are given and what they answer, as it travels."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_FORM, WORD_FORM
from dragoman.core.limits import PAGE
from dragoman.protocols.agentmail.shapes import Message

Importance = Literal["low", "normal", "high", "urgent"]
LetterName = Annotated[str, Meta(extra_json_schema={"pattern": f"^{WORD_FORM}$"})]
"""How the ids of letters and threads are written."""
MaybeAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_FORM})?$"})]
PageSize = Annotated[int, Meta(ge=1, le=PAGE)]
Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class SendMail(Struct, frozen=True, rename={"from_": "from"}.get):
    """A letter to hand in: the row of a message, as agents of this dialect write it."""

    subject: str
    body_md: str
    to: tuple[str, ...] | str = ()
    """Names, or @agents, @orchestrators, @humans and the groups of the settings; none: whoever
    letters of its type go to."""
    cc: tuple[str, ...] | str = ()
    from_: str = ""
    """The sender, who must be the caller."""
    id: str | int | None = None
    """Of the sender's own choice; the same letter again under it is the same letter."""
    thread_id: str = ""
    reply_to: str = ""
    """The letter that it replies to, whose thread it goes on with."""
    importance: Importance = "normal"
    ack_required: bool | None = None
    """None: as its type has it."""
    ack_within_ms: int | None = None
    """After how long a missing ack is told as late, from a second to 30 days; None: as the settings
    have it."""
    attachments: tuple[str, ...] = ()
    """Where they are: paths or addresses."""
    timestamp: str = ""


class Outgoing(Struct, frozen=True):
    """A letter to hand in, and what it says."""

    row: SendMail
    message: Message


class Inbox(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}.get):
    """Which letters of a box."""

    agent: MaybeAgent = ""
    """Whose box; empty: the caller's own. Nobody's letters become read by looking."""
    box: Literal["in", "sent", "overdue", "waiting"] = "in"
    """Received; sent; all whose ack or answer is late; all that wait for somebody unknown."""
    unread: bool = False
    pending: bool = False
    """Whether only those that the box's owner has still to ack."""
    type: str = ""
    bead_id: str = ""
    thread_id: str = ""
    from_: str = ""
    only: Literal["all", "completions", "successes", "checked"] = "all"
    """All; those that end an attempt; those that end it well; of these, all checks passing."""
    after: Position = 0
    before: Position | None = None
    """Newest first, from here on back; 0: from the newest one on."""
    limit: PageSize = 50


class OneLetter(Struct, frozen=True, forbid_unknown_fields=True):
    """A letter, by its id, or by enough of its beginning."""

    id: LetterName


class Thread(Struct, frozen=True, forbid_unknown_fields=True):
    """A thread, by its id: a page of its letters, oldest first."""

    thread_id: LetterName
    after: Position = 0
    limit: PageSize = 50


class Summed(Struct, frozen=True, forbid_unknown_fields=True):
    """A thread to sum up, by its id."""

    thread_id: LetterName
    before: Position | None = None
    """Only what stands before this place: `cursor` of a summary that left older letters out."""
    model: bool = False
    """Whether the program of the settings is asked as well; for orchestrators and people."""


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """Words to find in letters."""

    query: Annotated[str, Meta(max_length=1_000)]
    before: Position | None = None
    limit: PageSize = 50


Row = Mapping[str, Any]
"""A letter as a reader gets it."""
