"""Reference model of tasks with letters and reservations: all that one request may touch."""

from dataclasses import dataclass, field
from typing import Any

from dragoman.core.actor import Actor
from dragoman.core.mail import AckMail, PostMail, ReadMail
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from tests.stateful.task_model import Applied, Model, ModelRefusal, Rules, check_may_write

PATTERNS = {"a/": "a/**", "b/": "b/**", "a/x": "a/x"}
"""Requested path -> pattern that is stored."""
OVERLAPPING = frozenset(
    (("a/**", "a/x"), ("a/x", "a/**"), *((one, one) for one in PATTERNS.values()))
)
RELEASING_ROLES = ("human", "orchestrator", "coordinator")


@dataclass
class ModelLetter:
    sender: str
    to: tuple[str, ...]
    bead: str
    read_by: list[str] = field(default_factory=list[str])
    acked_by: list[str] = field(default_factory=list[str])


@dataclass
class ModelReservation:
    pattern: str
    holder: str
    until: int


class StreamsModel(Model):
    def __init__(self) -> None:
        super().__init__()
        self.letters: dict[str, ModelLetter] = {}
        self.reserved: list[ModelReservation] = []

    def snapshot(self) -> tuple[Any, ...]:
        """State that a refusal leaves unchanged."""
        return self.tasks, self.letters, self.reserved

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        self.tasks, self.letters, self.reserved = snapshot

    def rules(self) -> Rules:
        """Command -> its rule."""
        return super().rules() | {
            PostMail: self._post,
            ReadMail: self._read,
            AckMail: self._ack,
            ReserveFiles: self._reserve,
            ReleaseReservations: self._release_files,
        }

    # Letters

    def _post(self, actor: Actor, command: PostMail, now: int) -> Applied:
        del now
        check_may_write(actor)
        known = self.letters.get(command.id)
        if known is not None and known.sender == actor.name:
            if (known.to, known.bead) != (command.to, command.bead):
                raise ModelRefusal("already_exists")
            return None, True
        # Two senders may use the same letter id: the second letter gets the id of its request.
        id = self.cause if known else command.id
        if id in self.letters:
            raise ModelRefusal("already_exists")
        self.letters[id] = ModelLetter(actor.name, command.to, command.bead)
        return None, True

    def _read(self, actor: Actor, command: ReadMail, now: int) -> Applied:
        del now
        _append_once(self._in_box(actor, command.mail).read_by, actor.name)
        return None, False

    def _ack(self, actor: Actor, command: AckMail, now: int) -> Applied:
        del now
        letter = self._in_box(actor, command.mail)
        _append_once(letter.acked_by, actor.name)
        _append_once(letter.read_by, actor.name)
        return None, False

    def _in_box(self, actor: Actor, id: str) -> ModelLetter:
        letter = self.letters.get(id)
        if letter is None:
            raise ModelRefusal("mail_not_found")
        if actor.name not in letter.to:
            raise ModelRefusal("not_authorized")
        return letter

    # Reservations

    def _reserve(self, actor: Actor, command: ReserveFiles, now: int) -> Applied:
        check_may_write(actor)
        pattern, until = PATTERNS[command.patterns[0]], now + command.ttl_ms
        living = self._valid(now)
        for one in living:
            if one.holder != actor.name and (pattern, one.pattern) in OVERLAPPING:
                raise ModelRefusal("files_reserved")
        for one in living:
            if (one.pattern, one.holder) == (pattern, actor.name):
                one.until = max(one.until, until)
                return None, False
        self.reserved = [*living, ModelReservation(pattern, actor.name, until)]
        return None, False

    def _release_files(self, actor: Actor, command: ReleaseReservations, now: int) -> Applied:
        check_may_write(actor)
        any_holder = actor.role in RELEASING_ROLES
        matching = self._matching(actor, command.names, now, any_holder=any_holder)
        self.reserved = [one for one in self._valid(now) if one not in matching]
        return None, False

    def _valid(self, now: int) -> list[ModelReservation]:
        return [one for one in self.reserved if now < one.until]

    def _matching(
        self, actor: Actor, names: tuple[str, ...], now: int, *, any_holder: bool
    ) -> list[ModelReservation]:
        living = self._valid(now)
        own = [one for one in living if one.holder == actor.name]
        if not names:
            return own
        hits = [one for one in living if one.pattern == PATTERNS[names[0]]]
        matching = [one for one in hits if one in own] or (hits if any_holder else [])
        if not matching:
            raise ModelRefusal("not_authorized" if hits else "reservation_not_found")
        return matching


def _append_once(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
