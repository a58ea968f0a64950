"""Read-only mail operations: inbox, single letter, thread, search and summary."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, mail_stream
from dragoman.core.mail import LATE_KIND, Mail
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.wave import WAVE_COMPLETE_KIND
from dragoman.engine.delivered_messages import is_told_by_letter
from dragoman.engine.operation import (
    Facts,
    Fault,
    LongPoll,
    Operation,
    fault_from_refusal,
    query_operation,
)
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import END_OF_LIST
from dragoman.engine.queries.mail import (
    Letter,
    MailFilter,
    MailPage,
    find_letter,
    find_refusal,
    find_thread,
    is_empty_page,
    last_in_thread,
    late_mail,
    mail_page,
    page_from_items,
    task_name_in_mail,
    thread_page,
)
from dragoman.engine.queries.search import search_mail
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.visibility import find_reader, visible_to
from dragoman.ledger.entry import Entry, read_line
from dragoman.protocols.agentmail.grammar import ascii_upper
from dragoman.protocols.agentmail.parse import FOREIGN_FIELD_NAMES, Parser, unwrap_letter
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.wire import (
    ANSWERS,
    MESSAGE_TYPES,
    InboxQuery,
    LetterRef,
    Message,
    MessageType,
    Parsed,
    SearchQuery,
    SendMail,
    ShownLetter,
    SummaryQuery,
    ThreadQuery,
)

# --- letters as their readers get them --------------------------------------------------------

LETTER_KINDS: Final = (*MessageType, LATE_KIND, WAVE_COMPLETE_KIND)
"""Every kind of letter: the types, UNKNOWN, and the hub's own kinds."""

_MESSAGE_TYPES: Final = frozenset(MessageType)

_parser = Parser()


def format_letter(letter: Letter, reader: str, now: int) -> ShownLetter:
    """Format a letter for one reader, with that reader's read and ack state."""
    mail, message = letter.mail, to_message(letter.mail, reader)
    return {
        **msgspec.to_builtins(message),
        **({"kind": mail.kind} if mail.kind not in ("", message.type) else {}),
        "parsed": _stated_fields(message.parsed),
        "bead_id": mail.bead,
        "position": letter.position,
        "copied": mail.auto_copied,
        "reply_to": mail.reply_to,
        "attachments": mail.attachments,
        "acked_by": mail.acked_by,
        "read_by": mail.read_by,
        "waits_for": mail.awaited_acks,
        "answer": mail.answer,
        "overdue": mail.is_late(now),
        **({"sent_at": to_rfc3339(mail.sent_at)} if mail.sent_at is not None else {}),
    }


def _stated_fields(parsed: Parsed) -> dict[str, Any]:
    """Fields of the body that have a value."""
    fields: dict[str, Any] = msgspec.to_builtins(parsed)
    return {name: value for name, value in fields.items() if value not in (None, "", [], ())}


def to_message(mail: Mail, reader: str = "") -> Message:
    """Convert a stored letter to the message that the parser, filters and summaries use.

    It keeps the type and the bead as which it was delivered. `acknowledged` is the reader's own
    state if the letter wants the reader's ack, and the state of all recipients for everybody else.
    """
    message = _parser.parse(
        {
            "id": mail.id,
            "from": mail.sender,
            "to": list(mail.to),
            "cc": list(mail.cc),
            "subject": mail.subject,
            "body_md": mail.body,
            "thread_id": mail.thread,
            "timestamp": to_rfc3339(mail.posted_at),
            "importance": mail.importance,
            "ack_required": mail.ack_wanted,
            "acknowledged": _is_acknowledged(mail, reader),
            "read": reader in mail.read_by,
        },
        message_type(mail),
    )
    if not is_typed(mail):
        # It was not meant to be of a type, so an untyped subject is no problem.
        message = replace(message, problems=())
    if mail.bead in ("", message.bead_id):
        return message
    return replace(message, parsed=replace(message.parsed, bead_id=mail.bead))


def message_type(mail: Mail) -> MessageType:
    """Message type of a letter; UNKNOWN for the hub's own kinds."""
    return MESSAGE_TYPES.get(mail.kind, MessageType.UNKNOWN)


def is_typed(mail: Mail) -> bool:
    """Tell whether a letter was delivered as one of this dialect; the hub's own were not."""
    return mail.kind in _MESSAGE_TYPES


def _is_acknowledged(mail: Mail, reader: str) -> bool:
    """Tell whether the reader's ack, or everybody's, is settled; an answer settles it too."""
    if reader and not mail.ack_wanted:
        return reader in mail.acked_by
    if reader in mail.to:
        return reader not in mail.awaited_acks
    return reader in mail.acked_by or not mail.awaited_acks


# --- queries ----------------------------------------------------------------------------------

_MAX_SUMMARIZED: Final = 1_000
"""Limit of letters in one summary."""

_STORED_FIELDS: Final = frozenset(
    (
        *FOREIGN_FIELD_NAMES.values(),
        *(field.encode_name for field in msgspec.structs.fields(SendMail)),
    )
)
"""Fields of a row that are stored as fields of a letter."""

_VisibleQuery = Callable[[Any, Actor, Facts, MailFilter], Any]
"""Query that is also given the filter of letters that the caller may see."""


def query_operations(choices: Choices) -> Iterator[Operation]:
    """Build the read-only operations."""

    def with_visibility(ask: _VisibleQuery) -> Callable[[Any, Actor, Facts], Any]:
        """Restrict a query to letters that the caller may see."""

        def run_query(words: Any, actor: Actor, facts: Facts) -> Any:
            reader = find_reader(actor, choices.teamspaces)
            return ask(words, actor, facts, visible_to(reader, facts.store))

        return run_query

    yield query_operation(
        "mail.inbox",
        InboxQuery,
        with_visibility(_query_inbox),
        "Letters to you, oldest first; filter by unread, pending, type, bead.",
        LongPoll(is_empty_page, "mail"),
    )
    yield query_operation(
        "mail.show", LetterRef, with_visibility(_query_letter), "Read one letter as a whole."
    )
    yield query_operation(
        "mail.thread", ThreadQuery, with_visibility(_query_thread), "Read a thread."
    )
    yield query_operation(
        "mail.search",
        SearchQuery,
        with_visibility(_query_search),
        'Find letters by words: auth OR login "token expired" -draft dep*',
    )
    yield query_operation(
        "mail.summary",
        SummaryQuery,
        with_visibility(_query_summary),
        "Summarise a thread: counts, last status, what is open, files, commits.",
    )


def _query_inbox(filters: InboxQuery, actor: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    owner = filters.agent or actor.name
    refusal = check_agent(owner)
    if refusal is not None:
        return fault_from_refusal(refusal, "agent")
    if filters.type and ascii_upper(filters.type) not in LETTER_KINDS:
        detail = f"{filters.type[:40]!a} is not a type of letter; known: {', '.join(LETTER_KINDS)}"
        return Fault("invalid_field", detail, "type")
    before = filters.before if filters.before != 0 else END_OF_LIST
    query = ListQuery(_list_name(filters, owner), filters.after, before, filters.limit)

    matches_bead, matches_thread = (
        _name_matcher(filters.bead_id, facts),
        _name_matcher(filters.thread_id, facts),
    )

    record = find_agent(facts.store, owner) if filters.box == "in" else None

    def fits(mail: Mail) -> bool:
        if is_told_by_letter(mail, record):
            return False
        is_there = filters.box != "waiting" or _is_undelivered(mail, facts.store)
        is_about = matches_bead(_bead_of(mail)) and matches_thread(mail.thread)
        return is_there and is_about and _matches_filters(filters, mail, owner) and is_shown(mail)

    now = facts.now()
    late = late_mail(facts.store, query, now) if filters.box == "overdue" else ()
    return _format_page(mail_page(facts.store, query, fits, late), owner, now)


def _name_matcher(name: str, facts: Facts) -> Callable[[str], bool]:
    """Return a predicate that matches any name of the same task; everything for an empty name."""
    names = (name, task_name_in_mail(name, facts.store))
    return lambda candidate: not name or candidate in names


def _bead_of(mail: Mail) -> str:
    """Bead of a letter; an answer without one is about the bead of its thread."""
    return mail.bead or (mail.thread if mail.kind in ANSWERS else "")


def _is_undelivered(mail: Mail, store: Store) -> bool:
    """Tell whether an unregistered recipient has not read the letter."""
    return any(
        name not in mail.read_by and find_agent(store, name) is None for name in mail.unknown
    )


_SHARED_BOXES: Final = frozenset({"overdue", "waiting"})


def _list_name(filters: InboxQuery, owner: str) -> str:
    """Name of the shortest stored list that contains the requested letters."""
    if filters.box in _SHARED_BOXES:
        return filters.box
    if filters.box == "sent":
        return f"from:{owner}"
    if filters.pending:
        return f"pending:{owner}"
    return f"unread:{owner}" if filters.unread else f"in:{owner}"


def _matches_filters(filters: InboxQuery, mail: Mail, owner: str) -> bool:
    return (
        ascii_upper(filters.type) in ("", mail.kind, message_type(mail))
        and filters.from_ in ("", mail.sender)
        and _COMPLETION_FILTERS[filters.only](mail)
        and not (filters.unread and owner in mail.read_by)
        and not (filters.pending and owner not in mail.awaited_acks)
    )


_COMPLETION_FILTERS: Final[Mapping[str, Callable[[Mail], bool]]] = {
    "all": lambda _: True,
    "completions": lambda mail: mail.kind in COMPLETIONS,
    "successes": lambda mail: mail.kind in SUCCESSES,
    "checked": lambda mail: mail.kind in SUCCESSES and passes_checks(to_message(mail)),
}
"""Choice of `only` -> predicate on letters."""


def _query_letter(arguments: LetterRef, actor: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    mail = find_letter(facts.store, arguments.id, is_shown)
    if isinstance(mail, Refusal):
        return fault_from_refusal(mail, "id")
    (first,) = facts.store.history(mail_stream(mail.id), 0, 1)
    extra = _extra_fields(first)
    row = format_letter(Letter(first.position, mail), actor.name, facts.now())
    return {**row, "extra_fields": extra} if extra else row


def _extra_fields(posted: Entry) -> dict[str, Any]:
    """Return fields of the original row that the hub does not interpret (S-LIMIT).

    They are kept apart from the letter, so that none of them passes for a statement of the hub.
    """
    original = read_line(posted.line).original_text
    message = None if original is UNSET else msgspec.json.decode(original)
    row: dict[str, Any] | None = unwrap_letter(message, ("body_md", FOREIGN_FIELD_NAMES["body_md"]))
    return {name: value for name, value in (row or {}).items() if _is_extra_field(name, value)}


def _is_extra_field(name: str, value: Any) -> bool:
    return name not in _STORED_FIELDS and value not in (None, [], "")


def _query_thread(arguments: ThreadQuery, actor: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    thread = find_thread(arguments.thread_id, facts.store)
    if isinstance(thread, Refusal):
        return fault_from_refusal(thread, "thread_id")
    page = thread_page(
        facts.store, thread, arguments.limit, after=arguments.after, matches=is_shown
    )
    return {"thread_id": thread, **_format_page(page, actor.name, facts.now())}


def _query_search(arguments: SearchQuery, actor: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    found = search_mail(facts.store, arguments.query, arguments.before, arguments.limit + 1)
    if isinstance(found, Refusal):
        return fault_from_refusal(found, "query")
    page = page_from_items(facts.store, found, arguments.limit, arguments.before or 0, is_shown)
    return _format_page(page, actor.name, facts.now())


def _query_summary(arguments: SummaryQuery, _: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    thread = find_thread(arguments.thread_id, facts.store)
    if isinstance(thread, Refusal):
        return fault_from_refusal(thread, "thread_id")
    before = END_OF_LIST if arguments.before is None else arguments.before
    page = last_in_thread(facts.store, thread, _MAX_SUMMARIZED, before, is_shown)
    letters = [letter.mail for letter in page.letters]
    summary = summarize(letters, _refused_tail(facts.store, page.letters))
    found = find_task(facts.store, thread)
    status = "" if isinstance(found, Refusal) else found.task.status
    return {**summary, "task_status": status, "cursor": page.cursor, "more": page.more}


def _refused_tail(store: Store, letters: Sequence[Letter]) -> frozenset[str]:
    """Ids of the latest letters whose effect was refused, back to the last one that was applied."""
    typed = (one for one in reversed(letters) if one.mail.kind in MESSAGE_TYPES)
    refused = takewhile(lambda letter: find_refusal(store, letter), typed)
    return frozenset(letter.mail.id for letter in refused)


def _format_page(page: MailPage, reader: str, now: int) -> Any:
    return {
        "messages": [format_letter(letter, reader, now) for letter in page.letters],
        **page.continuation,
    }


def summarize(letters: Sequence[Mail], refused: Collection[str] = ()) -> dict[str, Any]:
    """Summarize a thread's letters, given in their order.

    The state is not taken from letters whose effect was `refused`.
    """
    messages = [to_message(mail) for mail in letters if is_typed(mail)]
    counted = Counter(mail.kind or MessageType.UNKNOWN for mail in letters)
    types = (message for message in reversed(messages) if message.type is not MessageType.UNKNOWN)
    last = next((message for message in types if message.id not in refused), None)
    asking = {mail.id for mail in letters if mail.awaits_answer}
    wanting = {mail.id for mail in letters if mail.awaited_acks}
    return {
        "messages": len(letters),
        "counts": {kind: counted[kind] for kind in LETTER_KINDS if counted[kind]},
        "last_type": last.type if last else "",
        "last_status": _status_text(last) if last else "",
        "open_questions": [
            _open_letter(one)
            for one in messages
            if one.id in asking and one.type is MessageType.HELP_REQUEST
        ],
        "open_acks": [_open_letter(one) for one in messages if one.id in wanting],
        "files": _distinct(one.parsed.files_touched + one.parsed.files for one in messages),
        "commits": _distinct(
            tuple(filter(None, (one.parsed.commit_sha, one.parsed.partial_commit_sha)))
            for one in messages
        ),
    }


def _status_text(message: Message) -> str:
    parsed = message.parsed
    stated = parsed.status or parsed.checkpoint_reason or parsed.issue_type
    return stated or message.type.value


def _open_letter(message: Message) -> dict[str, Any]:
    """A letter that still waits for an answer or an ack."""
    return {
        "id": message.id,
        "type": message.type,
        "bead_id": message.bead_id,
        "sender": message.sender,
        "question": message.parsed.question,
    }


def _distinct(groups: Iterable[tuple[str, ...]]) -> list[str]:
    """Keep the first of each item."""
    return list(dict.fromkeys(item for group in groups for item in group))


SUCCESSES = frozenset({MessageType.OFFERING_READY, MessageType.DONE})
COMPLETIONS = SUCCESSES | {MessageType.FAILED, MessageType.CHECKPOINT}


def filter_by_type(messages: Iterable[Message], *types: MessageType) -> list[Message]:
    """Keep letters of any of these types."""
    return [message for message in messages if message.type in types]


def filter_by_bead_id(messages: Iterable[Message], bead_id: str) -> list[Message]:
    """Keep letters about a bead."""
    return [message for message in messages if message.bead_id == bead_id]


def filter_by_thread_id(messages: Iterable[Message], thread_id: str) -> list[Message]:
    """Keep letters of a thread."""
    return [message for message in messages if message.thread_id == thread_id]


def filter_by_sender(messages: Iterable[Message], sender: str) -> list[Message]:
    """Keep letters from a sender."""
    return [message for message in messages if message.sender == sender]


def filter_completions(messages: Iterable[Message]) -> list[Message]:
    """Keep letters that end an attempt, successfully or not."""
    return [message for message in messages if message.type in COMPLETIONS]


def filter_successes(messages: Iterable[Message], *, checked: bool = False) -> list[Message]:
    """Keep letters that end an attempt successfully; with `checked`, only if all checks pass."""
    return [
        message
        for message in messages
        if message.type in SUCCESSES and (not checked or passes_checks(message))
    ]


def passes_checks(message: Message) -> bool:
    """Tell whether tests, lint and build all pass; a check that is not mentioned does not."""
    parsed = message.parsed
    return parsed.tests_pass is parsed.lint_pass is parsed.build_pass is True


def filter_pending(messages: Iterable[Message]) -> list[Message]:
    """Keep letters that want an acknowledgement and have none."""
    return [message for message in messages if is_pending(message)]


def is_pending(message: Message) -> bool:
    """Tell whether a letter wants an acknowledgement and has none."""
    return message.ack_required and not message.acknowledged


def filter_unread(messages: Iterable[Message]) -> list[Message]:
    """Keep letters that are not marked as read."""
    return [message for message in messages if not message.read]
