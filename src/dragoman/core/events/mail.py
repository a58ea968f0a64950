"""What happened to letters, waves and reserved files."""

from typing import Literal

from msgspec import Struct

from dragoman.core.events.base import Event, Importance


class MailPosted(Event, frozen=True):
    """A letter was handed in; it lies in the box of every recipient from now on."""

    id: str
    sender: str
    to: tuple[str, ...]
    thread: str
    kind: str
    subject: str
    body: str
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Who gets it because of what it is, though its sender did not name them."""
    unknown: tuple[str, ...] = ()
    """Those of its recipients whom nobody has made known yet."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_by: int | None = None
    """When an ack or an answer that is still missing is told as late."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    """When its sender says that it was written."""


class MailRead(Event, frozen=True):
    """A recipient has read the letter."""

    mail: str
    reader: str


class MailAcked(Event, frozen=True):
    """A recipient has said that it took notice."""

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
    """Who got a letter about it."""
    task: str = ""
    """The task that it is about, if there is one."""
    only_answer: bool = False
    """Whether no ack is missing: those who wait wait for an answer."""


class WaveBead(Struct, frozen=True, omit_defaults=True):
    """One of the tasks of a wave, and the files that whoever works on it will write."""

    task: str
    files: tuple[str, ...] = ()


class WaveStarted(Event, frozen=True):
    """Tasks are run together, at most so many at a time."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    told: str
    """Who gets the closing report."""
    retries: dict[str, int] = {}
    """Type of failure -> how often a bead may fail with it and be tried again."""


class WaveBeadReleased(Event, frozen=True):
    """A task of the wave may begin."""

    wave: str
    task: str


class WaveCompleted(Event, frozen=True):
    """All tasks of the wave have ended; so many in each status."""

    wave: str
    counts: dict[str, int]


class ReservationTaken(Event, frozen=True):
    """Files are in somebody's hands, or in those of whoever works on a bead."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    until: int | None = None
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Of the attempt on its task that it was taken in; 0 without one."""


class ReservationRenewed(Event, frozen=True):
    """A reservation lasts until a later time."""

    id: str
    until: int


class ReservationsEnded(Event, frozen=True):
    """Reservations stop nobody any more: given back, or over by themselves."""

    ids: tuple[str, ...]
    why: Literal["released", "over"]
