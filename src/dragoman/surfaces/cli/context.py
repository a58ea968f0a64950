"""Context of one command: its shared options, the data directory, and how its result is printed."""

import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import environment
from dragoman.core.actor import Actor
from dragoman.core.errors import (
    DragomanError,
    LedgerError,
    Refusal,
    Refused,
    SettingsError,
    StoreUnavailable,
)
from dragoman.surfaces.cli.caller import (
    RunLocally,
    absolute_path,
    bearer,
    remote_caller,
    require_own_process,
)
from dragoman.surfaces.cli.data_directory import (
    CliWiring,
    DataDirectory,
    ReadOnlyDirectory,
    make_actor,
    via_label,
)
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.cli.thin_client import ELSEWHERE
from dragoman.system import data_search
from dragoman.system.safe_fs import file_remedy
from dragoman.text.error_messages import describe_exception

if TYPE_CHECKING:
    from dragoman.engine.queries.visibility import Reader
    from dragoman.engine.request import Accepted, Rejected


# --- shared options and results ---------------------------------------------------------------


class SharedOptions(Struct, frozen=True):
    """Options of every command, given before or after its own arguments."""

    data: Path | None = None
    store: str = ""
    json: bool = False
    now: int | None = None
    speaker: str = ""

    def overridden_by(self, later: "SharedOptions") -> "SharedOptions":
        """Merge two sets of options; the later one wins."""
        return SharedOptions(
            data=self.data if later.data is None else later.data,
            store=later.store or self.store,
            json=later.json or self.json,
            now=self.now if later.now is None else later.now,
            speaker=later.speaker or self.speaker,
        )


class CommandResult(Struct, frozen=True):
    """Result of a command: data for programs, and a function that prints it for people."""

    data: Mapping[str, object]
    render: Callable[[Screen], None]
    is_ok: bool = True


# --- context ----------------------------------------------------------------------------------

T = TypeVar("T")

_POLLS_PER_LOOK: Final = 10

_CATCH_UP_FAILURES = {"checkpoint": "not signed", "notifier": "nobody was notified"}
"""Service -> the consequence when it could not run after a write."""


class CommandContext(Struct, frozen=True):
    """Context of one command: options, output, and access to the data directory."""

    wiring: CliWiring
    wait: Callable[[], bool]
    """Pauses between two polls of the ledger; False: nobody reads the output any more."""
    out: Screen
    err: Screen
    shared: SharedOptions = SharedOptions()

    def with_options(self, options: SharedOptions) -> "CommandContext":
        """Copy of this context with more options."""
        shared = self.shared.overridden_by(options)
        names_other = shared.data != self.shared.data and self.shared.data is not None
        if bearer() is not None and (names_other or shared.store or shared.now is not None):
            # Whoever is elsewhere has this hub, as it is, and no other directory of its machine.
            raise RunLocally
        return replace(self, shared=shared)

    @property
    def data(self) -> Path:
        """Path of the data directory: the named one, else the nearest, else one in this folder."""
        data = self.shared.data or Path(data_search.find_data()[0] or data_search.FOLDER)
        _check_utf8_path(data)
        return data

    @property
    def is_data_named(self) -> bool:
        """True if the caller has named the data directory, which then need not be found."""
        caller = remote_caller()
        return self.shared.data is not None if caller is None else caller.names_data

    def next_command(self, arguments: str) -> str:
        """Format a command for people to type next, with --data or --url where it is needed."""
        caller = remote_caller()
        if caller is not None and caller.url:
            return f"dragoman {arguments} --url {quote(caller.url)}"
        is_found = not self.is_data_named or self.data == Path(data_search.FOLDER)
        data_option = "" if is_found else f" --data {quote(str(absolute_path(self.data)))}"
        return f"dragoman {arguments}{data_option}"

    def acting_agent(self, agent: str = "") -> str:
        """Name of the agent that the command acts for; empty: the person. `agent` is its own
        --agent."""
        speaker = self.shared.speaker
        if agent and speaker and agent != speaker:
            raise_usage_error(
                f"--agent {agent} and --as {speaker} name two agents: give one of them"
            )
        named, bound = agent or speaker, bound_bearer()
        if bound is None:
            return named
        check_bearer(bound, named)
        return bound.name

    def required_agent(self, agent: str) -> str:
        """Name of the agent for a command that only an agent can give; ends the call if missing."""
        return self.acting_agent(agent) or raise_usage_error(
            "say which agent this is, with --agent NAME"
        )

    @property
    def message_via(self) -> str:
        """`via` label of a message that names its sender itself."""
        return via_label(
            acts_for_agent=bound_bearer() is None, clock_overridden=self.shared.now is not None
        )

    def actor(self, directory: DataDirectory, agent: str) -> Actor:
        """Actor of the command: the agent in its registered role, or the person."""
        from dragoman.engine.queries.agents import find_agent

        bound = bound_bearer()
        if bound is not None:
            check_bearer(bound, agent)
            return replace(bound, via=self.message_via)
        actor = make_actor(
            agent, directory.settings.owner.name, clock_overridden=self.shared.now is not None
        )
        record = find_agent(directory.hub.store, agent) if agent else None
        return actor if record is None else Actor(record.role, actor.name, actor.via)

    def reader(self, directory: DataDirectory) -> "Reader":
        """Actor of the command, as a reader of what is not for everybody."""
        from dragoman.engine.queries.visibility import find_reader

        actor = self.actor(directory, self.acting_agent())
        return find_reader(actor, directory.settings.teamspaces)

    @staticmethod
    def bearer_as_reader(directory: ReadOnlyDirectory) -> "Reader":
        """Bearer of a token from elsewhere as a reader; the person here and the owner see all."""
        from dragoman.engine.queries.visibility import OWNER, find_reader

        bound = bound_bearer()
        return OWNER if bound is None else find_reader(bound, directory.teamspaces)

    @contextmanager
    def open_readonly(self) -> Generator[ReadOnlyDirectory]:
        """Open the store alone, which is quick; the directory must exist."""
        self._check_not_meant_for_remote_hub()
        self._check_found()
        directory = self.wiring.open_readonly(self.data, self.shared.store, self.shared.now)
        try:
            yield directory
        finally:
            directory.close()

    def prepare_to_wait(self) -> None:
        """Announce that the command waits for others, before it does anything."""
        if bearer() is None:
            require_own_process()

    def wait_for(self, wait_ms: int, find: Callable[[ReadOnlyDirectory], T | None]) -> T | None:
        """Call `find` now and whenever the ledger has grown, until it returns something; None: the
        time is over, or nobody reads the output any more.

        Time alone may bring what it looks for, so it is called now and then all the same.
        """
        end = time.monotonic() + wait_ms / 1_000
        with self.open_readonly() as directory:
            seen = polls = -1
            while True:
                head, polls = directory.store.head(), polls + 1
                if head != seen or polls % _POLLS_PER_LOOK == 0:
                    seen = head
                    if (found := find(directory)) is not None:
                        return found
                if not self.wait() or time.monotonic() >= end:
                    return None

    @contextmanager
    def open_for_reading(self) -> Generator[DataDirectory]:
        """Open the data directory for a command that changes nothing; it must exist."""
        directory = self._open_directory(create=False)
        try:
            yield directory
        finally:
            directory.hub.close()

    @contextmanager
    def open_for_writing(
        self, *, founds: bool = False, create_missing: bool = False, new_keys: bool = False
    ) -> Generator[DataDirectory]:
        """Open the data directory for writing; files are up to date at the end.

        One that is missing is made by a command that `founds` directories; if it was named, also by
        one that is of use in an empty directory (`create_missing`).
        """
        is_new = not self.data.exists()
        may_create = founds or (create_missing and self.is_data_named)
        directory = self._open_directory(create=may_create or not is_new, new_keys=new_keys)
        try:
            if is_new:
                self.err.line(f"made the data directory {self.data.absolute()}")
            yield directory
            self._catch_up(directory)
        except Refused:
            # A refusal is an entry too, so files have to follow it.
            self._catch_up(directory)
            raise
        finally:
            directory.hub.close()

    def _catch_up(self, directory: DataDirectory) -> None:
        """Bring files, checkpoint and notifications up to date; a failure does not undo what was
        committed."""
        for name, error in directory.catch_up():
            consequence = _CATCH_UP_FAILURES.get(name, f"{name} lags behind")
            reason = describe_exception(error)
            self.err.line(
                f"done, but {consequence}: {reason}; run `dragoman tick` when that is mended"
            )
        self.print_warnings(directory)

    def print_warnings(self, directory: DataDirectory) -> None:
        for warning in directory.warnings:
            self.err.line(("warning: ", "yellow"), warning)
        directory.warnings.clear()

    def _open_directory(self, *, create: bool, new_keys: bool = False) -> DataDirectory:
        options = self.shared
        self._check_not_meant_for_remote_hub()
        if not create:
            self._check_found()
        return self.wiring.open_directory(
            self.data, options.store, options.now, create=create, new_keys=new_keys
        )

    def _check_found(self) -> None:
        """Refuse to go on without a data directory that was named or found, here or by the
        caller."""
        if self.is_data_named or remote_caller() is not None:
            return
        found, foreign = data_search.find_data()
        if not found:
            raise StoreUnavailable(missing_data_text(foreign))

    def _check_not_meant_for_remote_hub(self) -> None:
        """Refuse to use a data directory that was not named where DRAGOMAN_URL names a hub: an
        agent that a hub has started must neither make a second hub nor act as the owner of one."""
        is_here = remote_caller() is None and self.shared.data is None
        if is_here and environment().get("DRAGOMAN_URL"):
            raise SettingsError(ELSEWHERE)

    def run(self, function: Callable[[], CommandResult | int | None]) -> int:
        """Do the work and print its result; returns the exit code."""
        try:
            result = function()
            if not isinstance(result, CommandResult):
                return result or 0
            self.print_result(result)
        except (DragomanError, OSError) as error:
            self.print_failure(*describe_error(error))
            return 1
        return 0 if result.is_ok else 1

    def print_result(self, result: CommandResult) -> None:
        """Print a result, as JSON or for a person."""
        if self.shared.json:
            self.out.json({"ok": result.is_ok, **result.data})
        else:
            result.render(self.out)

    def rejection_result(self, rejected: "Rejected", *, in_dialect: bool = False) -> CommandResult:
        """Result of a rejected message or operation, with the path of the field that is wrong.

        A command reports the hub's own refusal code, as all commands do; only a message in a
        dialect is answered by that dialect's code.
        """
        code = rejected.code if in_dialect else rejected.refusal.code
        fields = {"code": code, "detail": rejected.detail, "path": rejected.path}
        reply: Mapping[str, object] = {} if in_dialect else rejected.reply or {}
        return CommandResult(
            {**reply, **{name: value for name, value in fields.items() if value}},
            lambda _: self._print_refusal(code, rejected.detail),
            is_ok=False,
        )

    def print_failure(self, code: str, detail: str, about: str = "") -> None:
        """Print a failure; `about`: the task that it is about, where a command takes several."""
        if self.shared.json:
            named = {"id": about} if about else {}
            self.out.json({"ok": False, **named, "code": code, "detail": detail})
        else:
            self._print_refusal(code, detail, about)

    def _print_refusal(self, code: str, detail: str, about: str = "") -> None:
        self.err.line(f"{about}: " if about else "", (f"{code}: ", "bold red"), detail)


# --- callers elsewhere ------------------------------------------------------------------------


def bound_bearer() -> Actor | None:
    """Actor of the token with which a caller elsewhere acts, and as which alone it may act; None:
    the person at the keyboard, or the owner, who may act for anybody."""
    caller = bearer()
    return None if caller is None or caller.is_owner else caller.actor


def check_bearer(bound: Actor, named: str) -> None:
    """Refuse another name than that of the bearer."""
    if named not in ("", bound.name):
        raise Refused(
            Refusal(
                "not_authorized",
                f"this token is that of {bound.name}, who may not act as {named}: leave out the "
                f"name, or use the token of {named}",
            )
        )


def _check_utf8_path(data: Path) -> None:
    """Refuse a data directory that is not UTF-8: SQLite, settings and entries cannot name it."""
    try:
        f"{absolute_path(data)}".encode()
    except UnicodeEncodeError:
        raise_usage_error(
            f"the name of the data directory {f'{data.absolute()}'!a} is not UTF-8: name another "
            "one with --data or DRAGOMAN_DATA; nothing was made"
        )
    except FileNotFoundError:
        return  # the working directory is gone; what needs it reports that


def missing_data_text(foreign: str = "") -> str:
    """Sentence on a data directory that was neither named nor found."""
    others = f" ({foreign} belongs to another user, and is used only if it is named)"
    return (
        f"there is no data directory {data_search.FOLDER} in this folder or above it"
        f"{others if foreign else ''}: run `dragoman init`, which makes one here, or name another "
        "one with --data or DRAGOMAN_DATA"
    )


# --- input ------------------------------------------------------------------------------------

STANDARD_INPUT = "-"


def open_source(source: str) -> AbstractContextManager[BinaryIO]:
    """Open a file or standard input for reading, in the caller's own process."""
    require_own_process()
    return nullcontext(sys.stdin.buffer) if source == STANDARD_INPUT else open_file(Path(source))


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; ends the call if it cannot be read."""
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name cannot be one"
        raise_usage_error(f"{path} cannot be read: {reason}")


def read_source(source: str, max_bytes: int) -> bytes:
    """Read up to `max_bytes` + 1 bytes, so that the caller can refuse input that is too long."""
    caller = remote_caller()
    if caller is not None:
        return caller.read(source, max_bytes + 1)
    with open_source(source) as file:
        return file.read(max_bytes + 1)


# --- operations -------------------------------------------------------------------------------


def call_operation(
    directory: DataDirectory, operation: str, arguments: bytes | Mapping[str, Any], actor: "Actor"
) -> "Accepted":
    """Call an operation; a rejection is raised as Refused."""
    from dragoman.engine.request import Rejected

    answer = directory.router.call(operation, arguments, actor)
    if isinstance(answer, Rejected):
        raise Refused(answer.refusal)
    return answer


def query_operation(context: CommandContext, operation: str, **arguments: Any) -> Any:
    """Call an operation that only reads."""
    with context.open_for_reading() as directory:
        return call_operation(
            directory, operation, arguments, context.actor(directory, context.acting_agent())
        ).reply


Reply = Mapping[str, Any]


# --- usage errors and failures ----------------------------------------------------------------


class UsageError(Exception):
    """Invalid arguments: exit code 2."""

    path = "dragoman"
    """Command that was called, for its name in the message."""


def raise_usage_error(sentence: str) -> NoReturn:
    raise UsageError(sentence)


_VERIFY_COMMAND: Final = "`dragoman verify`"


def describe_error(error: DragomanError | OSError) -> tuple[str, str]:
    """Code and sentence of an error."""
    if isinstance(error, LedgerError) and _VERIFY_COMMAND not in error.detail:
        # The error names no position; `verify` finds it.
        return error.code, f"{error.detail}; run {_VERIFY_COMMAND}, which says where"
    if isinstance(error, DragomanError):
        return error.code, error.detail
    detail = f"{describe_exception(error)}; {file_remedy(error)}, or run `dragoman doctor`"
    return "store_unavailable", detail
