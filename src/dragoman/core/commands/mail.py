"""What is asked for about letters, waves and reserved files."""

from dragoman.core.commands.base import Command
from dragoman.core.events import Importance, Role, WaveBead


class PostMail(Command, frozen=True, tag="mail.post"):
    """Post a letter of the caller's own; a missing id or thread is assigned."""

    to: tuple[str, ...]
    subject: str
    body: str
    kind: str = ""
    """Type of the letter in its dialect."""
    id: str = ""
    thread: str = ""
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Recipients added because of the type of the letter."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_in_ms: int = 0
    """Time after which a missing ack or answer is reported as late; 0: never."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None

    @property
    def heartbeat_task(self) -> str:
        """Its bead, or the task of its thread: writing about it shows that the holder is alive."""
        return self.bead or self.thread


class ReadMail(Command, frozen=True, tag="mail.read"):
    """Mark a letter in the caller's inbox as read."""

    mail: str


class AckMail(Command, frozen=True, tag="mail.ack"):
    """Acknowledge a letter in the caller's inbox."""

    mail: str


class AnswerMail(Command, frozen=True, tag="mail.answer"):
    """Mark a letter as answered by the letter that this request posts."""

    mail: str
    answer: str = ""
    """Id of the answer, if it has one of its own."""
    roles: tuple[Role, ...] = ()
    """Roles that may answer though the letter is not in their inbox."""


class EscalateMail(Command, frozen=True, tag="mail.escalate"):
    """Record that an ack or an answer is late; no-op while it is not."""

    mail: str
    told: tuple[str, ...] = ()
    """Recipients of the notice about it."""


class StartWave(Command, frozen=True, tag="wave.start"):
    """Run tasks together; each goes by any of its names. A missing id is assigned."""

    beads: tuple[WaveBead, ...]
    parallel: int
    id: str = ""
    retries: dict[str, int] = {}
    told: str = ""
    """Recipient of the closing report; empty: the caller."""
    beside: tuple[str, ...] = ()
    """Waves known to run already, just before."""


class AdvanceWave(Command, frozen=True, tag="wave.advance"):
    """Release the beads of a wave that may start; no-op while none may."""

    wave: str = ""
    """Id of the wave; empty: the one that this request starts."""
    stuck: dict[str, str] = {}
    """Stuck task -> reason, for the closing report; only the hub closes a wave."""


class ReserveFiles(Command, frozen=True, tag="reservation.take"):
    """Reserve files against others, by paths and globs, for a time."""

    patterns: tuple[str, ...]
    ttl_ms: int
    exclusive: bool = True
    task: str = ""
    """Task that they are for: the reservation ends when it is no longer in progress."""
    reason: str = ""


class RenewReservations(Command, frozen=True, tag="reservation.renew"):
    """Extend reservations to a time from now on; none named: all of the caller's."""

    names: tuple[str, ...]
    """Ids of reservations, or patterns as they were reserved."""
    ttl_ms: int


class ReleaseReservations(Command, frozen=True, tag="reservation.release"):
    """Release reservations; none named: all of the caller's."""

    names: tuple[str, ...] = ()
