"""Target: a letter in the owner's inbox for everything that needs a person, once each.

The letter has an id made from the entry that it is about, so that a repeated delivery adds nothing.
An owner who does not read is not flooded: beyond MAX_UNREAD unread letters none is written, because
`dragoman status` has all of it.
"""

from itertools import islice
from typing import Final

from dragoman.core.actor import HUB_ACTOR, HUB_NAME
from dragoman.core.base import AttentionKind
from dragoman.core.errors import Refused
from dragoman.core.mail import Mail, PostMail
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.attention import AttentionItem
from dragoman.engine.queries.entries import LIST_PAGE, stream_state, walk_list
from dragoman.engine.schemas.tasks import addressees
from dragoman.ledger.entry import Entry, read_line
from dragoman.notify.notification import Notification

MAX_UNREAD: Final = 20
"""Unread letters of the hub in the owner's inbox, beyond which it writes no others."""

_MAX_LOOKED_AT: Final = 200
"""Unread letters that are looked at."""

_NEARBY: Final = 16
"""Entries on either side in which another letter of the same request is looked for."""

_HEADS: Final[dict[AttentionKind, str]] = {
    "question": "A question",
    "help": "A request for help",
    "paused": "Paused",
    "no_progress": "No progress",
    "deadletter": "Given up",
    "escalation": "Escalated",
}
"""Kind of a notice -> the beginning of the subject."""

_LAST: Final = (
    f"You have {MAX_UNREAD} of these letters unread: no others are written until you have read "
    "some.\n"
)


class OwnerInbox:
    """Posts a letter to the owner for each notice."""

    name = "owner"

    def __init__(self, hub: Hub, owner: str) -> None:
        self._hub = hub
        self._owner = owner

    def deliver(self, notification: Notification, now: int) -> str:
        """Post the letter, unless the same request has written to the owner already."""
        del now
        notice, store = notification.notice, self._hub.store
        if notice is None or self._is_told(store, notice.entry):
            return ""
        unread = self._count_unread(store)
        if unread >= MAX_UNREAD:
            return ""
        letter = self._compose(notice.item, notice.entry, is_last=unread == MAX_UNREAD - 1)
        try:
            self._hub.submit(HUB_ACTOR, letter)
        except Refused as refused:
            # Delivered before, when the number of unread letters was another.
            return "" if refused.code == "already_exists" else refused.refusal.detail
        return ""

    def _compose(self, item: AttentionItem, entry: Entry, *, is_last: bool) -> PostMail:
        body = (
            f"{item.text}\n\nDeal with it: `{item.command}`\n\n"
            "All that needs you: `dragoman status`\n"
        )
        return PostMail(
            (self._owner,),
            f"{_HEADS[item.kind]}: {item.task or item.agent}",
            f"{body}\n{_LAST}" if is_last else body,
            id=f"notice-{entry.hash.hex()[:24]}",
            bead=item.task,
            importance="high",
        )

    def _is_told(self, store: Store, entry: Entry) -> bool:
        """True if a letter of the same request is addressed to the owner."""
        cause = read_line(entry.line).cause
        near = store.entries(max(0, entry.position - _NEARBY), 2 * _NEARBY)
        return any(
            self._owner in addressees(one) and read_line(one.line).cause == cause for one in near
        )

    def _count_unread(self, store: Store) -> int:
        listed = walk_list(store, ListQuery(f"unread:{self._owner}", limit=LIST_PAGE))
        states = (stream_state(store, place.row) for place in islice(listed, _MAX_LOOKED_AT))
        return sum(isinstance(mail, Mail) and mail.sender == HUB_NAME for mail in states)
