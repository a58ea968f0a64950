"""What is asked for about letters, waves and reserved files."""

from dragoman.core.commands.base import Command
from dragoman.core.events import Importance, Role, WaveBead


class PostMail(Command, frozen=True, tag="mail.post"):
    """Hand in a letter of the caller's own; without an id it gets one, without a thread too."""

    to: tuple[str, ...]
    subject: str
    body: str
    kind: str = ""
    """What its dialect takes it for."""
    id: str = ""
    thread: str = ""
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Who gets it because of what it is."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_in_ms: int = 0
    """After how long a missing ack or answer is told as late; 0: never."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None

    @property
    def held(self) -> str:
        """Whoever writes about the task that it works on, or in its thread, is alive."""
        return self.bead or self.thread


class ReadMail(Command, frozen=True, tag="mail.read"):
    """The caller has read a letter in its box."""

    mail: str


class AckMail(Command, frozen=True, tag="mail.ack"):
    """The caller took notice of a letter in its box."""

    mail: str


class AnswerMail(Command, frozen=True, tag="mail.answer"):
    """A letter waits no longer: the one that this request hands in is its answer."""

    mail: str
    answer: str = ""
    """The id of that one, if it has one of its own."""
    roles: tuple[Role, ...] = ()
    """Who may answer though the letter is not in its box."""


class EscalateMail(Command, frozen=True, tag="mail.escalate"):
    """Record that an ack or an answer is late; nothing happens while it is not."""

    mail: str
    told: tuple[str, ...] = ()
    """Who gets the letter from now on."""


class StartWave(Command, frozen=True, tag="wave.start"):
    """Run tasks together; each is named by any of its names. Without an id the wave gets one."""

    beads: tuple[WaveBead, ...]
    parallel: int
    id: str = ""
    retries: dict[str, int] = {}
    told: str = ""
    """Who gets the closing report; empty: the caller."""
    beside: tuple[str, ...] = ()
    """The waves that run already, as far as was known just before."""


class AdvanceWave(Command, frozen=True, tag="wave.advance"):
    """Let those tasks of a wave go that may; nothing happens while none may."""

    wave: str = ""
    """Empty: the one that this request starts."""
    stuck: dict[str, str] = {}
    """Task that does not go on by itself -> why, for the closing report; only the hub closes."""


class ReserveFiles(Command, frozen=True, tag="reservation.take"):
    """Keep others from files, by paths and globs, for a time."""

    patterns: tuple[str, ...]
    ttl_ms: int
    exclusive: bool = True
    task: str = ""
    """The task that they are for: the reservation ends when it is no longer in progress."""
    reason: str = ""


class RenewReservations(Command, frozen=True, tag="reservation.renew"):
    """Keep files for a time from now on; none named: all of the caller's."""

    names: tuple[str, ...]
    """Ids of reservations, or patterns as they were reserved."""
    ttl_ms: int


class ReleaseReservations(Command, frozen=True, tag="reservation.release"):
    """Give files back; none named: all of the caller's."""

    names: tuple[str, ...] = ()
