"""Operations of Agent Mail that only read: boxes, one letter, threads, words, summaries."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, mail_stream
from dragoman.core.states.letter import Mail
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Facts, Operation
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import find_agent
from dragoman.engine.reads.closed_letters import is_shown_to
from dragoman.engine.reads.letter_names import known_as, thread_of
from dragoman.engine.reads.mailbox import (
    LAST,
    Fits,
    Letter,
    Page,
    find_letter,
    is_nothing,
    last_of,
    late_by,
    page_from,
    page_of,
    refusal_of,
    thread_page,
)
from dragoman.engine.reads.search import search_mail
from dragoman.ledger.entry import Entry, read_line
from dragoman.protocols.agentmail.asking import asking, letter_in
from dragoman.protocols.agentmail.filters import COMPLETIONS, SUCCESSES, passes_checks
from dragoman.protocols.agentmail.row import OTHER_NAMES
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.shown import KINDS, as_message, as_row, is_typed, type_of
from dragoman.protocols.agentmail.summary import Waiting, summarize
from dragoman.protocols.agentmail.wire import Inbox, OneLetter, Search, SendMail, Summed, Thread
from dragoman.protocols.agentmail.words import ANSWERS, TYPES, MessageType
from dragoman.text.ascii_case import upper

_SUMMED_UP: Final = 1_000
"""Limit of letters in one summary."""

_TAKEN_OVER: Final = frozenset(
    (*OTHER_NAMES.values(), *(field.encode_name for field in msgspec.structs.fields(SendMail)))
)
"""Fields of a row that are stored as fields of a letter."""

_Ask = Callable[[Any, Actor, Facts, Fits], Any]
"""Query that is also given the filter of letters that the caller may see."""


def operations(choices: Choices) -> Iterator[Operation]:
    """Build the read-only operations."""

    def shown(ask: _Ask) -> Callable[[Any, Actor, Facts], Any]:
        """Restrict a query to letters that the caller may see."""

        def asked(words: Any, actor: Actor, facts: Facts) -> Any:
            return ask(words, actor, facts, is_shown_to(actor, choices.teamspaces, facts.store))

        return asked

    yield asking(
        "mail.inbox",
        Inbox,
        shown(_inbox),
        "Letters to you, oldest first; filter by unread, pending, type, bead.",
        is_empty=is_nothing,
        wakes="mail",
    )
    yield asking("mail.show", OneLetter, shown(_show), "Read one letter as a whole.")
    yield asking("mail.thread", Thread, shown(_thread), "Read a thread.")
    yield asking(
        "mail.search",
        Search,
        shown(_search),
        'Find letters by words: auth OR login "token expired" -draft dep*',
    )
    yield asking(
        "mail.summary",
        Summed,
        shown(partial(_summary, choices)),
        "Summarise a thread: counts, last status, what is open, files, commits.",
    )


def _inbox(asked: Inbox, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    owner = asked.agent or actor.name
    malformed = check_agent(owner)
    if malformed is not None:
        return fault_of(malformed, "agent")
    if asked.type and upper(asked.type) not in KINDS:
        detail = f"{asked.type[:40]!a} is not a type of letter; known: {', '.join(KINDS)}"
        return Fault("invalid_field", detail, "type")
    before = asked.before if asked.before != 0 else LAST
    query = ListQuery(_list_of(asked, owner), asked.after, before, asked.limit)

    is_bead, is_thread = _is_called(asked.bead_id, facts), _is_called(asked.thread_id, facts)

    def fits(mail: Mail) -> bool:
        is_there = asked.box != "waiting" or _waits(mail, facts.store)
        is_about = is_bead(_about(mail)) and is_thread(mail.thread)
        return is_there and is_about and _fits(asked, mail, owner) and is_shown(mail)

    now = facts.now()
    besides = late_by(facts.store, query, now) if asked.box == "overdue" else ()
    return _rows(page_of(facts.store, query, fits, besides), owner, now)


def _is_called(name: str, facts: Facts) -> Callable[[str], bool]:
    """Return a predicate that matches any name of the same task; everything for an empty name."""
    names = (name, known_as(name, facts.store))
    return lambda other: not name or other in names


def _about(mail: Mail) -> str:
    """Bead of a letter; an answer without one is about the bead of its thread."""
    return mail.bead or (mail.thread if mail.kind in ANSWERS else "")


def _waits(mail: Mail, store: Store) -> bool:
    """Tell whether an unregistered recipient has not read the letter."""
    return any(
        name not in mail.read_by and find_agent(store, name) is None for name in mail.unknown
    )


_SHARED: Final = frozenset({"overdue", "waiting"})


def _list_of(asked: Inbox, owner: str) -> str:
    """Name of the shortest stored list that contains the requested letters."""
    if asked.box in _SHARED:
        return asked.box
    if asked.box == "sent":
        return f"from:{owner}"
    if asked.pending:
        return f"pending:{owner}"
    return f"unread:{owner}" if asked.unread else f"in:{owner}"


def _fits(asked: Inbox, mail: Mail, owner: str) -> bool:
    return (
        upper(asked.type) in ("", mail.kind, type_of(mail))
        and asked.from_ in ("", mail.sender)
        and _ONLY[asked.only](mail)
        and not (asked.unread and owner in mail.read_by)
        and not (asked.pending and owner not in mail.waits_for)
    )


_ONLY: Final[Mapping[str, Callable[[Mail], bool]]] = {
    "all": lambda _: True,
    "completions": lambda mail: mail.kind in COMPLETIONS,
    "successes": lambda mail: mail.kind in SUCCESSES,
    "checked": lambda mail: mail.kind in SUCCESSES and passes_checks(as_message(mail)),
}
"""Choice of `only` -> predicate on letters."""


def _show(asked: OneLetter, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    mail = find_letter(facts.store, asked.id, is_shown)
    if isinstance(mail, Refusal):
        return fault_of(mail, "id")
    (first,) = facts.store.history(mail_stream(mail.id), 0, 1)
    passed_on = _passed_on(first)
    row = as_row(Letter(first.position, mail), actor.name, facts.now())
    return {**row, "passed_on": passed_on} if passed_on else row


def _passed_on(posted: Entry) -> dict[str, Any]:
    """Return fields of the original row that the hub does not interpret (S-LIMIT).

    They are kept apart from the letter, so that none of them passes for a statement of the hub.
    """
    said = read_line(posted.line).said
    words = None if said is UNSET else msgspec.json.decode(said)
    row: dict[str, Any] | None = letter_in(words, ("body_md", OTHER_NAMES["body_md"]))
    return {name: value for name, value in (row or {}).items() if _says_more(name, value)}


def _says_more(name: str, value: Any) -> bool:
    return name not in _TAKEN_OVER and value not in (None, [], "")


def _thread(asked: Thread, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    thread = thread_of(asked.thread_id, facts.store)
    if isinstance(thread, Refusal):
        return fault_of(thread, "thread_id")
    page = thread_page(facts.store, thread, asked.limit, after=asked.after, fits=is_shown)
    return {"thread_id": thread, **_rows(page, actor.name, facts.now())}


def _search(asked: Search, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    found = search_mail(facts.store, asked.query, asked.before, asked.limit + 1)
    if isinstance(found, Refusal):
        return fault_of(found, "query")
    page = page_from(facts.store, found, asked.limit, asked.before or 0, is_shown)
    return _rows(page, actor.name, facts.now())


def _summary(choices: Choices, asked: Summed, actor: Actor, facts: Facts, is_shown: Fits) -> Any:
    if asked.model and actor.role not in MAY_DISPATCH:
        return Fault(
            "not_authorized", f"{actor.label} may not request a summary by a model", "model"
        )
    if asked.model and choices.model is None:
        detail = "no model is configured: set agentmail.summarize_command to a program"
        return Fault("invalid_field", detail, "model")
    thread = thread_of(asked.thread_id, facts.store)
    if isinstance(thread, Refusal):
        return fault_of(thread, "thread_id")
    before = LAST if asked.before is None else asked.before
    page = last_of(facts.store, thread, _SUMMED_UP, before, is_shown)
    letters = [letter.mail for letter in page.letters]
    waiting = Waiting(
        frozenset(mail.id for mail in letters if mail.is_open),
        frozenset(mail.id for mail in letters if mail.waits_for),
        _refused_at_the_end(facts.store, page.letters),
    )
    summary = summarize(map(as_message, filter(is_typed, letters)), waiting)
    others = Counter(mail.kind or MessageType.UNKNOWN for mail in letters if not is_typed(mail))
    counts = dict(Counter(summary.counts) + others)
    told = msgspec.to_builtins(replace(summary, messages=len(letters), counts=counts))
    told |= {"cursor": page.cursor, "more": page.more}
    if not asked.model or choices.model is None:
        return told
    rows = [as_row(letter, actor.name, facts.now()) for letter in page.letters]
    return told | {"model": msgspec.to_builtins(choices.model(msgspec.json.encode(rows)))}


def _refused_at_the_end(store: Store, letters: Sequence[Letter]) -> frozenset[str]:
    """Ids of the latest letters whose effect was refused, back to the last one that was applied."""
    typed = (one for one in reversed(letters) if one.mail.kind in TYPES)
    refused = takewhile(lambda letter: refusal_of(store, letter), typed)
    return frozenset(letter.mail.id for letter in refused)


def _rows(page: Page, reader: str, now: int) -> Any:
    return {
        "messages": [as_row(letter, reader, now) for letter in page.letters],
        **page.way_on,
    }
