"""One call of the command line: what was said to every command, and the place it works on."""

from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import typer
from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import DEFAULT_DATA, environment
from dragoman.core.actors import Actor
from dragoman.core.errors import DragomanError, LedgerError, Refused, SettingsError
from dragoman.surfaces.cli.person import actor_for, door
from dragoman.surfaces.cli.place import Evidence, House, Look, Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.system.plain_file import what_to_do
from dragoman.text.fault_words import in_words

if TYPE_CHECKING:
    from dragoman.engine.plan import Turned

T = TypeVar("T")

_UNDONE = {"checkpoint": "not signed", "notify": "nobody was told"}
"""Follower -> what is not yet so when it could not do its part."""


_PROOF: Final = "`dragoman verify`"


class Shared(Struct, frozen=True):
    """What may be said to every command, before or after its own arguments."""

    data: Path | None = None
    store: str = ""
    json: bool = False
    now: int | None = None
    speaker: str = ""

    def then(self, later: "Shared") -> "Shared":
        """Both; what was said later counts."""
        return Shared(
            data=self.data if later.data is None else later.data,
            store=later.store or self.store,
            json=later.json or self.json,
            now=self.now if later.now is None else later.now,
            speaker=later.speaker or self.speaker,
        )


class Answer(Struct, frozen=True):
    """What a command has to say: to programs, and to people."""

    data: Mapping[str, object]
    show: Callable[[Screen], None]
    is_ok: bool = True


class Call(Struct, frozen=True):
    """A command's surroundings."""

    house: House
    wait: Callable[[], bool]
    """Pauses between two looks at the ledger; False: nobody listens any more."""
    out: Screen
    err: Screen
    shared: Shared = Shared()

    def saying(self, later: Shared) -> "Call":
        """The call, with more said to it."""
        return replace(self, shared=self.shared.then(later))

    @property
    def data(self) -> Path:
        """The data directory."""
        data = self.shared.data or DEFAULT_DATA
        _check_name(data)
        return data

    def next_command(self, words: str) -> str:
        """A command for people to type next: with the data directory, where it would be missed."""
        named = "" if self.data == DEFAULT_DATA else f" --data {quote(str(self.data.absolute()))}"
        return f"dragoman {words}{named}"

    def speaker(self, agent: str = "") -> str:
        """Whom the command speaks for; empty: the person. `agent` is its own --agent."""
        speaker = self.shared.speaker
        if agent and speaker and agent != speaker:
            wrong_usage(f"--agent {agent} and --as {speaker} name two agents: give one of them")
        return agent or speaker

    def worker(self, agent: str) -> str:
        """The same, for a command that only an agent can give."""
        return self.speaker(agent) or wrong_usage("say which agent this is, with --agent NAME")

    @property
    def door(self) -> str:
        """The door of a message that says itself whose it is."""
        return door(speaks_for_another=True, clock_was_set=self.shared.now is not None)

    def actor(self, place: Place, speaker: str) -> Actor:
        """Whoever speaks, in the role that the name was given if it was given one."""
        from dragoman.engine.reads.ask import find_agent

        actor = actor_for(speaker, clock_was_set=self.shared.now is not None)
        known = find_agent(place.hub.store, speaker) if speaker else None
        return actor if known is None else Actor(known.role, actor.name, actor.via)

    @contextmanager
    def looking(self) -> Generator[Look]:
        """The store, for a command that needs nothing else; it must exist, and is quickly open."""
        look = self._opened(self.house.open_look)
        with closing(look.store):
            yield look

    @contextmanager
    def proving(self) -> Generator[Evidence]:
        """The ledger and what proves it, for a command that needs nothing else; it must exist."""
        evidence = self._opened(self.house.open_evidence)
        with closing(evidence.store):
            yield evidence

    def _opened(self, open_it: Callable[[Path, str, int | None], T]) -> T:
        """What is opened by itself, without a hub around it."""
        self._check_is_here()
        return open_it(self.data, self.shared.store, self.shared.now)

    @contextmanager
    def reading(self, *, keyed: bool = False) -> Generator[Place]:
        """The place, for a command that changes nothing; it must exist.

        Whoever only reads needs no keys: they may be lost, or kept away from who reads. What can
        be checked or known by them alone is refused when it comes to that. A command that needs
        them from the beginning says that it must be `keyed`.
        """
        place = self._open(create=False, keyed=keyed)
        try:
            yield place
        finally:
            place.hub.close()

    @contextmanager
    def writing(self, *, makes: bool = True, new_keys: bool = False) -> Generator[Place]:
        """The place, made on first use; what lies beside the ledger is level with it at the end.

        A command that has no use for an empty place makes none.
        """
        is_new = not self.data.exists()
        place = self._open(create=makes or not is_new, new_keys=new_keys)
        try:
            if is_new:
                self.err.line(f"made the data directory {self.data.absolute()}")
            yield place
            self._settle(place)
        except Refused:
            # A refusal is an entry too.
            self._settle(place)
            raise
        finally:
            place.hub.close()

    def _settle(self, place: Place) -> None:
        """Bring what lies beside the ledger level; what was committed is done all the same."""
        for name, error in place.settle():
            undone = _UNDONE.get(name, f"{name} lags behind")
            why = in_words(error)
            self.err.line(f"done, but {undone}: {why}; run `dragoman tick` when that is mended")
        self.warn(place)

    def warn(self, place: Place, known: frozenset[str] = frozenset()) -> frozenset[str]:
        """Tell what the person should know, though it stopped nothing, unless it is known; what is
        known from now on."""
        found = frozenset((*place.warnings, *(duty.undone.words for duty in place.file_duties)))
        for warning in place.warnings:
            if warning not in known:
                self.err.line(("warning: ", "yellow"), warning)
        place.warnings.clear()
        return found

    def _open(self, *, create: bool, new_keys: bool = False, keyed: bool = True) -> Place:
        said = self.shared
        self._check_is_here()
        return self.house.open_place(
            self.data, said.store, said.now, create=create, new_keys=new_keys, keyed=keyed
        )

    def _check_is_here(self) -> None:
        """An agent that a hub has started must not make a second hub by mistake."""
        said = self.shared
        if said.data is None and environment().get("DRAGOMAN_URL") and not self.data.is_dir():
            raise SettingsError(
                "DRAGOMAN_URL names a hub, and this command works on a data directory, of which "
                "there is none here: speak to that hub by `dragoman mcp` without --as, by the SDK "
                "or over HTTP; or name a data directory with --data or DRAGOMAN_DATA"
            )

    def finish(self, work: Callable[[], Answer | None]) -> int:
        """Do the work and print its answer; the exit code."""
        try:
            answer = work()
            if answer is None:
                return 0
            self.tell(answer)
        except (DragomanError, OSError) as error:
            return self._fail(*told(error))
        return 0 if answer.is_ok else 1

    def tell(self, answer: Answer) -> None:
        """Print an answer, for a program or for a person."""
        if self.shared.json:
            self.out.json({"ok": answer.is_ok, **answer.data})
        else:
            answer.show(self.out)

    def turned(self, answer: "Turned", *, in_dialect: bool = False) -> Answer:
        """A no with its place in what was said, if it has one.

        A command has the hub's code for it, as others that look for the same thing; only what
        somebody says in a dialect is answered by the code of that.
        """
        code = answer.code if in_dialect else answer.refusal.code
        data = {"code": code, "detail": answer.detail, "path": answer.path}
        return Answer(
            {name: value for name, value in data.items() if value},
            lambda _: self._show_refusal(code, answer.detail),
            is_ok=False,
        )

    def _fail(self, code: str, detail: str) -> int:
        if self.shared.json:
            self.out.json({"ok": False, "code": code, "detail": detail})
        else:
            self._show_refusal(code, detail)
        return 1

    def _show_refusal(self, code: str, detail: str) -> None:
        self.err.line((f"{code}: ", "bold red"), detail)


def _check_name(data: Path) -> None:
    """Neither SQLite nor settings nor entries can name a file that is not UTF-8."""
    try:
        f"{data.absolute()}".encode()
    except UnicodeEncodeError:
        wrong_usage(
            f"the name of the data directory {f'{data.absolute()}'!a} is not UTF-8: name another "
            "one with --data or DRAGOMAN_DATA; nothing was made"
        )
    except FileNotFoundError:
        return  # where we stand is gone; whoever needs it says so


class WrongUsage(typer.TyperException):
    """The call was not understood."""

    exit_code = 2
    ctx: typer.Context | None = None
    """Which command it was."""


def wrong_usage(sentence: str) -> NoReturn:
    """End the call: it was not understood."""
    raise WrongUsage(sentence)


def told(error: DragomanError | OSError) -> tuple[str, str]:
    """The code of what went wrong, and the sentence about it."""
    if isinstance(error, LedgerError) and _PROOF not in error.detail:
        # Whoever reads a line does not know where it stands.
        return error.code, f"{error.detail}; run {_PROOF}, which says where"
    if isinstance(error, DragomanError):
        return error.code, error.detail
    detail = f"{in_words(error)}; {what_to_do(error)}, or run `dragoman doctor`"
    return "store_unavailable", detail
