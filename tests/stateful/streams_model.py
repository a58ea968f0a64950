"""The model of tasks, with letters and reserved files beside them: what one request may touch."""

from dataclasses import dataclass, field
from typing import Any

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AckMail,
    PostMail,
    ReadMail,
    ReleaseReservations,
    RenewReservations,
    ReserveFiles,
)
from tests.stateful.model import Applied, Model, No, Rules, may_write

FOLDERS = {"a/": "a/**", "b/": "b/**", "a/x": "a/x"}
"""What is asked for -> the pattern that is kept."""
COLLIDE = frozenset((("a/**", "a/x"), ("a/x", "a/**"), *((one, one) for one in FOLDERS.values())))
RUNS_THE_SHOW = ("human", "orchestrator", "coordinator")


@dataclass
class ModelLetter:
    """What is true of one letter."""

    sender: str
    to: tuple[str, ...]
    bead: str
    read_by: list[str] = field(default_factory=list[str])
    acked_by: list[str] = field(default_factory=list[str])


@dataclass
class ModelReservation:
    """Files that somebody has reserved."""

    pattern: str
    holder: str
    until: int
    exclusive: bool
    task: str
    fence: int


class StreamsModel(Model):
    """All tasks, letters and reservations."""

    def __init__(self) -> None:
        super().__init__()
        self.letters: dict[str, ModelLetter] = {}
        self.reserved: list[ModelReservation] = []

    def kept(self) -> tuple[Any, ...]:
        """Everything that a refusal leaves as it was."""
        return self.tasks, self.letters, self.reserved

    def put_back(self, kept: tuple[Any, ...]) -> None:
        """Make it so again."""
        self.tasks, self.letters, self.reserved = kept

    def rules(self) -> Rules:
        """Command -> what it does."""
        return super().rules() | {
            PostMail: self._post,
            ReadMail: self._read,
            AckMail: self._ack,
            ReserveFiles: self._reserve,
            RenewReservations: self._keep,
            ReleaseReservations: self._give_back,
        }

    # Letters

    def _post(self, actor: Actor, command: PostMail, now: int) -> Applied:
        del now
        may_write(actor)
        known = self.letters.get(command.id)
        if known is not None and known.sender == actor.name:
            if (known.to, known.bead) != (command.to, command.bead):
                raise No("already_exists")
            return None, True
        # Two senders may number their letters alike: the second one's gets the request's id.
        id = self.cause if known else command.id
        if id in self.letters:
            raise No("already_exists")
        self.letters[id] = ModelLetter(actor.name, command.to, command.bead)
        return None, True

    def _read(self, actor: Actor, command: ReadMail, now: int) -> Applied:
        del now
        _once(self._in_box(actor, command.mail).read_by, actor.name)
        return None, False

    def _ack(self, actor: Actor, command: AckMail, now: int) -> Applied:
        del now
        letter = self._in_box(actor, command.mail)
        _once(letter.acked_by, actor.name)
        _once(letter.read_by, actor.name)
        return None, False

    def _in_box(self, actor: Actor, id: str) -> ModelLetter:
        letter = self.letters.get(id)
        if letter is None:
            raise No("mail_not_found")
        if actor.name not in letter.to:
            raise No("not_authorized")
        return letter

    # Reservations

    def _reserve(self, actor: Actor, command: ReserveFiles, now: int) -> Applied:
        may_write(actor)
        task, fence = self._attempt(actor, command.task) if command.task else ("", 0)
        pattern, until = FOLDERS[command.patterns[0]], now + command.ttl_ms
        living = self._living(now)
        for one in living:
            is_own = one.holder == actor.name or (task and one.task == task)
            counts = (command.exclusive or one.exclusive) and not is_own
            if counts and (pattern, one.pattern) in COLLIDE:
                raise No("reserved")
        wanted = (pattern, actor.name, command.exclusive, task)
        for one in living:
            if (one.pattern, one.holder, one.exclusive, one.task) == wanted:
                one.until = max(one.until, until)
                return None, False
        new = ModelReservation(pattern, actor.name, until, command.exclusive, task, fence)
        self.reserved = [*living, new]
        return None, False

    def _attempt(self, actor: Actor, name: str) -> tuple[str, int]:
        task = self.find(name)
        if task.status != "in-progress":
            raise No("not_ready")
        if actor.role == "agent" and task.owner != actor.name:
            raise No("unauthorized_agent")
        return task.id, task.attempt

    def _keep(self, actor: Actor, command: RenewReservations, now: int) -> Applied:
        may_write(actor)
        meant = self._meant(actor, command.names, now, anyones=False)
        if not meant:
            raise No("reservation_not_found")
        for one in meant:
            one.until = max(one.until, now + command.ttl_ms)
        return None, False

    def _give_back(self, actor: Actor, command: ReleaseReservations, now: int) -> Applied:
        may_write(actor)
        anyones = actor.role in RUNS_THE_SHOW
        meant = self._meant(actor, command.names, now, anyones=anyones)
        self.reserved = [one for one in self._living(now) if one not in meant]
        return None, False

    def _living(self, now: int) -> list[ModelReservation]:
        return [one for one in self.reserved if now < one.until and self._is_at_work(one)]

    def _is_at_work(self, one: ModelReservation) -> bool:
        if not one.task:
            return True
        task = self.tasks[one.task]
        return task.status == "in-progress" and task.attempt == one.fence

    def _meant(
        self, actor: Actor, names: tuple[str, ...], now: int, *, anyones: bool
    ) -> list[ModelReservation]:
        living = self._living(now)
        own = [one for one in living if one.holder == actor.name]
        if not names:
            return own
        hits = [one for one in living if one.pattern == FOLDERS[names[0]]]
        meant = [one for one in hits if one in own] or (hits if anyones else [])
        if not meant:
            raise No("not_authorized" if hits else "reservation_not_found")
        return meant


def _once(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
