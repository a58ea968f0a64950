"""Filters for lists of letters; every filter keeps the order (S-MAIL-6)."""

from collections.abc import Iterable

from dragoman.protocols.agentmail.wire import Message, MessageType

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
