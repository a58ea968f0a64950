"""What happened to letters, waves and reserved files."""

from typing import Literal

from msgspec import Struct

from dragoman.core.events.base import Event, Importance


class MailPosted(Event, frozen=True):
    """A letter was posted; it is in the inbox of every recipient from now on."""

    id: str
    sender: str
    to: tuple[str, ...]
    thread: str
    kind: str
    subject: str
    body: str
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Recipients added because of the type of the letter, not by its sender."""
    unknown: tuple[str, ...] = ()
    """Recipients that are not registered."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_by: int | None = None
    """When an ack or an answer that is still missing is reported as late."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    """When it was written, as its sender states."""


class MailRead(Event, frozen=True):
    """A recipient has read the letter."""

    mail: str
    reader: str


class MailAcked(Event, frozen=True):
    """A recipient has acknowledged the letter."""

    mail: str
    agent: str


class MailAnswered(Event, frozen=True):
    """Another letter is the answer that this one waited for."""

    mail: str
    by: str
    answer: str


class MailEscalated(Event, frozen=True):
    """An ack or an answer did not come in time."""

    mail: str
    waiting_for: tuple[str, ...]
    told: tuple[str, ...] = ()
    """Recipients of a notice about it."""
    task: str = ""
    """The task that it is about, if there is one."""
    only_answer: bool = False
    """No ack is missing: an answer is awaited."""


class WaveBead(Struct, frozen=True, omit_defaults=True):
    """One of the tasks of a wave, and the files that its worker will write."""

    task: str
    files: tuple[str, ...] = ()


class WaveStarted(Event, frozen=True):
    """Tasks are run together, a limited number at a time."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    told: str
    """Recipient of the closing report."""
    retries: dict[str, int] = {}
    """Type of failure -> retries that a bead may use for it."""


class WaveBeadReleased(Event, frozen=True):
    """A task of the wave may start."""

    wave: str
    task: str


class WaveCompleted(Event, frozen=True):
    """All tasks of the wave have ended; their number by status."""

    wave: str
    counts: dict[str, int]


class ReservationTaken(Event, frozen=True):
    """Files are reserved by an agent, or for the worker of a bead."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    until: int | None = None
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Fencing token of the task's attempt in which it was taken; 0 without one."""


class ReservationRenewed(Event, frozen=True):
    """A reservation lasts until a later time."""

    id: str
    until: int


class ReservationsEnded(Event, frozen=True):
    """Reservations have ended: released, or expired."""

    ids: tuple[str, ...]
    why: Literal["released", "over"]
