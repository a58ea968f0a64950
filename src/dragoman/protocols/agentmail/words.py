"""The words of Agent Mail: its ten types, its enumerations, and what counts as yes and no."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from dragoman.core.events import Role


class MessageType(StrEnum):
    """Type of a message; UNKNOWN if its subject names none."""

    BEAD_ACCEPTED = "BEAD_ACCEPTED"
    PROGRESS = "PROGRESS"
    HELP_REQUEST = "HELP_REQUEST"
    HELP_RESPONSE = "HELP_RESPONSE"
    OFFERING_READY = "OFFERING_READY"
    DONE = "DONE"
    FAILED = "FAILED"
    CHECKPOINT = "CHECKPOINT"
    SPAWN_REQUEST = "SPAWN_REQUEST"
    SPAWN_ACK = "SPAWN_ACK"
    UNKNOWN = "UNKNOWN"


MESSAGE_TYPES: Final[Mapping[str, MessageType]] = {
    type.value: type for type in MessageType if type is not MessageType.UNKNOWN
}
"""Word in a subject -> type."""

ISSUE_TYPES: Final = ("STUCK", "SPEC_UNCLEAR", "BLOCKED", "TECHNICAL")
FAILURE_TYPES: Final = ("TESTS_FAIL", "BUILD_FAIL", "SPEC_IMPOSSIBLE", "CONTEXT_HIGH", "ERROR")
CHECKPOINT_REASONS: Final = ("CONTEXT_HIGH", "MANUAL", "TIMEOUT")
COMPLETED_STATUSES: Final = ("DONE",)
FAILED_STATUSES: Final = ("FAILED",)
SPAWN_STATUSES: Final = ("spawned", "failed")
SPAWNED: Final = "spawned"

VERDICTS: Final[Mapping[str, bool]] = {
    "pass": True,
    "passed": True,
    "true": True,
    "yes": True,
    "ok": True,
    "fail": False,
    "failed": False,
    "false": False,
    "no": False,
}
"""Word for the result of a check, or for `resume` -> its value; other words have none."""

ACK_REQUIRED: Final[Mapping[MessageType, bool]] = {
    MessageType.BEAD_ACCEPTED: False,
    MessageType.PROGRESS: False,
    MessageType.HELP_REQUEST: True,
    MessageType.HELP_RESPONSE: False,
    MessageType.OFFERING_READY: True,
    MessageType.DONE: False,
    MessageType.FAILED: False,
    MessageType.CHECKPOINT: False,
    MessageType.SPAWN_REQUEST: True,
    MessageType.SPAWN_ACK: False,
    MessageType.UNKNOWN: False,
}
"""Default of a type for requesting an acknowledgement (S-MAIL-7)."""


ANSWERS: Final[Mapping[MessageType, MessageType]] = {
    MessageType.HELP_RESPONSE: MessageType.HELP_REQUEST,
    MessageType.SPAWN_ACK: MessageType.SPAWN_REQUEST,
}
"""Type of an answer -> the type that it answers and thereby acknowledges (S-MAIL-7)."""

ANSWER_ROLES: Final[Mapping[MessageType, tuple[Role, ...]]] = {
    MessageType.HELP_RESPONSE: ("human", "orchestrator", "coordinator", "system"),
    MessageType.SPAWN_ACK: ("system",),
}
"""Type of an answer -> roles that may answer a letter that is not in their own box."""
