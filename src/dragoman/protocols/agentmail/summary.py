"""A thread in a few fields, from its letters alone: the same letters give the same summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dragoman.protocols.agentmail.filters import is_pending
from dragoman.protocols.agentmail.shapes import Message, Parsed
from dragoman.protocols.agentmail.subject import is_reply
from dragoman.protocols.agentmail.words import ANSWERS, MessageType


class Open(Struct, frozen=True):
    """A letter that somebody still has to answer."""

    id: str | int | None
    type: MessageType
    bead_id: str
    sender: str
    question: str = ""


class Summary(Struct, frozen=True):
    """What a thread has come to."""

    messages: int
    counts: dict[str, int]
    """The type -> how many; the order is that of the types."""
    last_type: str
    """The type of the last letter that has one, and was not refused what it asks for."""
    last_status: str
    """What that letter says of the state of things; its type when it says nothing."""
    open_questions: tuple[Open, ...]
    open_acks: tuple[Open, ...]
    files: tuple[str, ...]
    commits: tuple[str, ...]


class Waiting(Struct, frozen=True):
    """What is known of a thread besides its letters: the ids of those that wait, or that came to
    nothing."""

    for_answers: frozenset[str]
    for_acks: frozenset[str]
    refused: frozenset[str] = frozenset()
    """Whose effect was refused: what they say of the state of things is not so."""


def summarize(messages: Iterable[Message], waiting: Waiting | None = None) -> Summary:
    """A thread's letters, in their order, summed up.

    Whoever keeps the letters knows as what each was delivered, and which of them still wait. Else
    that is told by the letters: a reply that only repeats the last type is a plain letter, and an
    answer closes every earlier question about its bead.
    """
    thread = list(messages if waiting else _meant(messages))
    counted = Counter(message.type for message in thread)
    refused = waiting.refused if waiting else frozenset[str]()
    typed = [message for message in thread if message.type is not MessageType.UNKNOWN]
    typed = [message for message in typed if message.id not in refused]
    questions, acks = _known(thread, waiting) if waiting else _told(thread)
    return Summary(
        messages=len(thread),
        counts={type.value: counted[type] for type in MessageType if counted[type]},
        last_type=typed[-1].type.value if typed else "",
        last_status=_status(typed[-1]) if typed else "",
        open_questions=tuple(
            _open(message) for message in questions if message.type is MessageType.HELP_REQUEST
        ),
        open_acks=tuple(map(_open, acks)),
        files=_distinct(_files(message.parsed) for message in thread),
        commits=_distinct(_commits(message.parsed) for message in thread),
    )


def _meant(messages: Iterable[Message]) -> Iterator[Message]:
    """The letters; of those that echo the type before them, without it."""
    last = MessageType.UNKNOWN
    for message in messages:
        is_echo = message.type is last and is_reply(message.subject)
        yield replace(message, type=MessageType.UNKNOWN) if is_echo else message
        last = last if message.type is MessageType.UNKNOWN else message.type


def _known(thread: Sequence[Message], waiting: Waiting) -> tuple[list[Message], list[Message]]:
    questions = [message for message in thread if message.id in waiting.for_answers]
    return questions, [message for message in thread if message.id in waiting.for_acks]


def _told(thread: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    unanswered = list(_unanswered(thread))
    return unanswered, [message for message in unanswered if is_pending(message)]


def _unanswered(thread: Sequence[Message]) -> Iterator[Message]:
    """All letters but those that a later one answers."""
    answered: set[tuple[MessageType, str]] = set()
    left: list[Message] = []
    for message in reversed(thread):
        if message.type in ANSWERS:
            answered.add((ANSWERS[message.type], message.bead_id))
        if not _is_answered(message, answered):
            left.append(message)
    return reversed(left)


def _is_answered(message: Message, answered: set[tuple[MessageType, str]]) -> bool:
    """Whether a later letter answers it: about the same bead, or about none in particular."""
    if not message.bead_id:
        return any(type is message.type for type, _ in answered)
    return bool(answered & {(message.type, message.bead_id), (message.type, "")})


def _status(message: Message) -> str:
    parsed = message.parsed
    said = parsed.status or parsed.checkpoint_reason or parsed.issue_type
    return said or message.type.value


def _open(message: Message) -> Open:
    return Open(message.id, message.type, message.bead_id, message.sender, message.parsed.question)


def _files(parsed: Parsed) -> tuple[str, ...]:
    return parsed.files_touched + parsed.files


def _commits(parsed: Parsed) -> tuple[str, ...]:
    return tuple(filter(None, (parsed.commit_sha, parsed.partial_commit_sha)))


def _distinct(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each once, where it stood first."""
    return tuple(dict.fromkeys(item for group in groups for item in group))
