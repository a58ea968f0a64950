"""Summary of a thread, computed from its letters alone and therefore reproducible."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dragoman.protocols.agentmail.filters import is_pending
from dragoman.protocols.agentmail.parse import is_reply
from dragoman.protocols.agentmail.wire import ANSWERS, Message, MessageType, Parsed


class OpenLetter(Struct, frozen=True):
    """A letter that still waits for an answer or an ack."""

    id: str | int | None
    type: MessageType
    bead_id: str
    sender: str
    question: str = ""


class Summary(Struct, frozen=True):
    """Summary of a thread."""

    messages: int
    counts: dict[str, int]
    """Type -> number of letters, in the order of the types."""
    last_type: str
    """Type of the last typed letter whose effect was not refused."""
    last_status: str
    """Status that this letter states, or else its type."""
    open_questions: tuple[OpenLetter, ...]
    open_acks: tuple[OpenLetter, ...]
    files: tuple[str, ...]
    commits: tuple[str, ...]


class ThreadState(Struct, frozen=True):
    """State of a thread that its letters do not tell: ids of letters that wait or were refused."""

    awaiting_answers: frozenset[str]
    awaiting_acks: frozenset[str]
    refused: frozenset[str] = frozenset()
    """Letters whose effect was refused, so that the status they state is not true."""


def summarize(messages: Iterable[Message], state: ThreadState | None = None) -> Summary:
    """Summarize a thread's letters, given in their order.

    `state` is known to a hub, which has stored each letter's delivered type and whether it still
    waits. Without it, that is derived from the letters: a reply that repeats the last type is a
    plain letter, and an answer closes every earlier question about its bead.
    """
    thread = list(messages if state else _without_echoes(messages))
    counted = Counter(message.type for message in thread)
    refused = state.refused if state else frozenset[str]()
    typed = [message for message in thread if message.type is not MessageType.UNKNOWN]
    typed = [message for message in typed if message.id not in refused]
    questions, acks = _open_by_state(thread, state) if state else _open_by_letters(thread)
    return Summary(
        messages=len(thread),
        counts={type.value: counted[type] for type in MessageType if counted[type]},
        last_type=typed[-1].type.value if typed else "",
        last_status=_status_text(typed[-1]) if typed else "",
        open_questions=tuple(
            _to_open_letter(message)
            for message in questions
            if message.type is MessageType.HELP_REQUEST
        ),
        open_acks=tuple(map(_to_open_letter, acks)),
        files=_distinct(_named_files(message.parsed) for message in thread),
        commits=_distinct(_named_commits(message.parsed) for message in thread),
    )


def _without_echoes(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the letters; one that only echoes the type before it becomes UNKNOWN."""
    last = MessageType.UNKNOWN
    for message in messages:
        is_echo = message.type is last and is_reply(message.subject)
        yield replace(message, type=MessageType.UNKNOWN) if is_echo else message
        last = last if message.type is MessageType.UNKNOWN else message.type


def _open_by_state(
    thread: Sequence[Message], state: ThreadState
) -> tuple[list[Message], list[Message]]:
    questions = [message for message in thread if message.id in state.awaiting_answers]
    return questions, [message for message in thread if message.id in state.awaiting_acks]


def _open_by_letters(thread: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    unanswered = list(_unanswered(thread))
    return unanswered, [message for message in unanswered if is_pending(message)]


def _unanswered(thread: Sequence[Message]) -> Iterator[Message]:
    """Return the letters that no later letter answers, in their order."""
    answered: set[tuple[MessageType, str]] = set()
    unanswered: list[Message] = []
    for message in reversed(thread):
        if message.type in ANSWERS:
            answered.add((ANSWERS[message.type], message.bead_id))
        if not _is_answered(message, answered):
            unanswered.append(message)
    return reversed(unanswered)


def _is_answered(message: Message, answered: set[tuple[MessageType, str]]) -> bool:
    """Tell whether a later letter answers this one: about the same bead, or about none."""
    if not message.bead_id:
        return any(type is message.type for type, _ in answered)
    return bool(answered & {(message.type, message.bead_id), (message.type, "")})


def _status_text(message: Message) -> str:
    parsed = message.parsed
    stated = parsed.status or parsed.checkpoint_reason or parsed.issue_type
    return stated or message.type.value


def _to_open_letter(message: Message) -> OpenLetter:
    return OpenLetter(
        message.id, message.type, message.bead_id, message.sender, message.parsed.question
    )


def _named_files(parsed: Parsed) -> tuple[str, ...]:
    return parsed.files_touched + parsed.files


def _named_commits(parsed: Parsed) -> tuple[str, ...]:
    return tuple(filter(None, (parsed.commit_sha, parsed.partial_commit_sha)))


def _distinct(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Keep the first of each item."""
    return tuple(dict.fromkeys(item for group in groups for item in group))
