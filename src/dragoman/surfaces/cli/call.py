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

_UNDONE = {"checkpoint": "not signed", "notify": "nobody was notified"}
"""Service -> the consequence when it could not run after a write."""


_PROOF: Final = "`dragoman verify`"


class Shared(Struct, frozen=True):
    """Options of every command, given before or after its own arguments."""

    data: Path | None = None
    store: str = ""
    json: bool = False
    now: int | None = None
    speaker: str = ""

    def then(self, later: "Shared") -> "Shared":
        """Merge two sets of options; the later one wins."""
        return Shared(
            data=self.data if later.data is None else later.data,
            store=later.store or self.store,
            json=later.json or self.json,
            now=self.now if later.now is None else later.now,
            speaker=later.speaker or self.speaker,
        )


class Answer(Struct, frozen=True):
    """Result of a command: data for programs, and a function that prints it for people."""

    data: Mapping[str, object]
    show: Callable[[Screen], None]
    is_ok: bool = True


class Call(Struct, frozen=True):
    """Context of one command: options, output, and access to the data directory."""

    house: House
    wait: Callable[[], bool]
    """Pauses between two polls of the ledger; False: nobody reads the output any more."""
    out: Screen
    err: Screen
    shared: Shared = Shared()

    def saying(self, later: Shared) -> "Call":
        """Copy of this context with more options."""
        return replace(self, shared=self.shared.then(later))

    @property
    def data(self) -> Path:
        """Path of the data directory."""
        data = self.shared.data or DEFAULT_DATA
        _check_name(data)
        return data

    def next_command(self, words: str) -> str:
        """Format a command for people to type next, with --data where it is needed."""
        named = "" if self.data == DEFAULT_DATA else f" --data {quote(str(self.data.absolute()))}"
        return f"dragoman {words}{named}"

    def speaker(self, agent: str = "") -> str:
        """Name of the agent that the command acts for; empty: the person. `agent` is its own
        --agent."""
        speaker = self.shared.speaker
        if agent and speaker and agent != speaker:
            wrong_usage(f"--agent {agent} and --as {speaker} name two agents: give one of them")
        return agent or speaker

    def worker(self, agent: str) -> str:
        """Name of the agent for a command that only an agent can give; ends the call if missing."""
        return self.speaker(agent) or wrong_usage("say which agent this is, with --agent NAME")

    @property
    def door(self) -> str:
        """`via` label of a message that names its sender itself."""
        return door(speaks_for_another=True, clock_was_set=self.shared.now is not None)

    def actor(self, place: Place, speaker: str) -> Actor:
        """Actor of the command: the agent in its registered role, or the person."""
        from dragoman.engine.reads.ask import find_agent

        actor = actor_for(speaker, clock_was_set=self.shared.now is not None)
        known = find_agent(place.hub.store, speaker) if speaker else None
        return actor if known is None else Actor(known.role, actor.name, actor.via)

    @contextmanager
    def looking(self) -> Generator[Look]:
        """Open the store alone, which is quick; the directory must exist."""
        look = self._opened(self.house.open_look)
        with closing(look.store):
            yield look

    @contextmanager
    def proving(self) -> Generator[Evidence]:
        """Open the ledger and what proves it, without a hub; the directory must exist."""
        evidence = self._opened(self.house.open_evidence)
        with closing(evidence.store):
            yield evidence

    def _opened(self, open_it: Callable[[Path, str, int | None], T]) -> T:
        """Open something without a hub around it."""
        self._check_is_here()
        return open_it(self.data, self.shared.store, self.shared.now)

    @contextmanager
    def reading(self, *, keyed: bool = False) -> Generator[Place]:
        """Open the data directory for a command that changes nothing; it must exist.

        Reading needs no keys: they may be lost, or kept away from the reader. What can be checked
        or known by them alone is refused when it is needed. A command that needs them from the
        beginning asks for `keyed`.
        """
        place = self._open(create=False, keyed=keyed)
        try:
            yield place
        finally:
            place.hub.close()

    @contextmanager
    def writing(self, *, makes: bool = True, new_keys: bool = False) -> Generator[Place]:
        """Open the data directory for writing, made on first use; files are up to date at the end.

        A command that is of no use in an empty directory does not make one.
        """
        is_new = not self.data.exists()
        place = self._open(create=makes or not is_new, new_keys=new_keys)
        try:
            if is_new:
                self.err.line(f"made the data directory {self.data.absolute()}")
            yield place
            self._settle(place)
        except Refused:
            # A refusal is an entry too, so files have to follow it.
            self._settle(place)
            raise
        finally:
            place.hub.close()

    def _settle(self, place: Place) -> None:
        """Bring files, checkpoint and notices up to date; a failure does not undo what was
        committed."""
        for name, error in place.settle():
            undone = _UNDONE.get(name, f"{name} lags behind")
            why = in_words(error)
            self.err.line(f"done, but {undone}: {why}; run `dragoman tick` when that is mended")
        self.warn(place)

    def warn(self, place: Place, known: frozenset[str] = frozenset()) -> frozenset[str]:
        """Print warnings that were not printed already; returns all warnings that hold now."""
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
        """Refuse to make a data directory where DRAGOMAN_URL names a hub: an agent that a hub has
        started must not make a second hub by mistake."""
        said = self.shared
        if said.data is None and environment().get("DRAGOMAN_URL") and not self.data.is_dir():
            raise SettingsError(
                "DRAGOMAN_URL names a hub, and this command works on a data directory, of which "
                "there is none here: speak to that hub by `dragoman mcp` without --as, by the SDK "
                "or over HTTP; or name a data directory with --data or DRAGOMAN_DATA"
            )

    def finish(self, work: Callable[[], Answer | None]) -> int:
        """Do the work and print its result; returns the exit code."""
        try:
            answer = work()
            if answer is None:
                return 0
            self.tell(answer)
        except (DragomanError, OSError) as error:
            return self._fail(*told(error))
        return 0 if answer.is_ok else 1

    def tell(self, answer: Answer) -> None:
        """Print a result, as JSON or for a person."""
        if self.shared.json:
            self.out.json({"ok": answer.is_ok, **answer.data})
        else:
            answer.show(self.out)

    def turned(self, answer: "Turned", *, in_dialect: bool = False) -> Answer:
        """Result of a rejected message or operation, with the path of the field that is wrong.

        A command reports the hub's own refusal code, as all commands do; only a message in a
        dialect is answered by that dialect's code.
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
    """Refuse a data directory that is not UTF-8: SQLite, settings and entries cannot name it."""
    try:
        f"{data.absolute()}".encode()
    except UnicodeEncodeError:
        wrong_usage(
            f"the name of the data directory {f'{data.absolute()}'!a} is not UTF-8: name another "
            "one with --data or DRAGOMAN_DATA; nothing was made"
        )
    except FileNotFoundError:
        return  # the working directory is gone; what needs it reports that


class WrongUsage(typer.TyperException):
    """Invalid arguments: exit code 2."""

    exit_code = 2
    ctx: typer.Context | None = None
    """Context of the command, for its name in the message."""


def wrong_usage(sentence: str) -> NoReturn:
    """Raise UsageError with this sentence."""
    raise WrongUsage(sentence)


def told(error: DragomanError | OSError) -> tuple[str, str]:
    """Code and sentence of an error."""
    if isinstance(error, LedgerError) and _PROOF not in error.detail:
        # The error names no position; `verify` finds it.
        return error.code, f"{error.detail}; run {_PROOF}, which says where"
    if isinstance(error, DragomanError):
        return error.code, error.detail
    detail = f"{in_words(error)}; {what_to_do(error)}, or run `dragoman doctor`"
    return "store_unavailable", detail
