"""Context of one command: its shared options, the data directory, and how its result is printed."""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TypeVar

import typer
from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import DEFAULT_DATA, environment
from dragoman.core.actor import Actor
from dragoman.core.errors import DragomanError, LedgerError, Refused, SettingsError
from dragoman.surfaces.cli.caller import absolute_path, remote_caller, require_own_process
from dragoman.surfaces.cli.data_directory import (
    CliWiring,
    DataDirectory,
    Evidence,
    ReadOnlyDirectory,
    make_actor,
    via_label,
)
from dragoman.surfaces.cli.render import Screen
from dragoman.system.safe_fs import file_remedy
from dragoman.text.error_messages import describe_exception

if TYPE_CHECKING:
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
        return replace(self, shared=self.shared.overridden_by(options))

    @property
    def data(self) -> Path:
        """Path of the data directory."""
        data = self.shared.data or DEFAULT_DATA
        _check_utf8_path(data)
        return data

    def next_command(self, arguments: str) -> str:
        """Format a command for people to type next, with --data where it is needed."""
        data_option = (
            "" if self.data == DEFAULT_DATA else f" --data {quote(str(absolute_path(self.data)))}"
        )
        return f"dragoman {arguments}{data_option}"

    def acting_agent(self, agent: str = "") -> str:
        """Name of the agent that the command acts for; empty: the person. `agent` is its own
        --agent."""
        speaker = self.shared.speaker
        if agent and speaker and agent != speaker:
            raise_usage_error(
                f"--agent {agent} and --as {speaker} name two agents: give one of them"
            )
        return agent or speaker

    def required_agent(self, agent: str) -> str:
        """Name of the agent for a command that only an agent can give; ends the call if missing."""
        return self.acting_agent(agent) or raise_usage_error(
            "say which agent this is, with --agent NAME"
        )

    @property
    def message_via(self) -> str:
        """`via` label of a message that names its sender itself."""
        return via_label(acts_for_agent=True, clock_overridden=self.shared.now is not None)

    def actor(self, directory: DataDirectory, agent: str) -> Actor:
        """Actor of the command: the agent in its registered role, or the person."""
        from dragoman.engine.queries.agents import find_agent

        actor = make_actor(agent, clock_overridden=self.shared.now is not None)
        record = find_agent(directory.hub.store, agent) if agent else None
        return actor if record is None else Actor(record.role, actor.name, actor.via)

    @contextmanager
    def open_readonly(self) -> Generator[ReadOnlyDirectory]:
        """Open the store alone, which is quick; the directory must exist."""
        directory = self._open_with(self.wiring.open_readonly)
        try:
            yield directory
        finally:
            directory.close()

    @contextmanager
    def open_evidence(self) -> Generator[Evidence]:
        """Open the ledger and what proves it, without a hub; the directory must exist."""
        evidence = self._open_with(self.wiring.open_evidence)
        with closing(evidence.store):
            yield evidence

    def _open_with(self, open_function: Callable[[Path, str, int | None], T]) -> T:
        """Open something without a hub around it."""
        self._check_not_meant_for_remote_hub()
        return open_function(self.data, self.shared.store, self.shared.now)

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
        self, *, create_missing: bool = True, new_keys: bool = False
    ) -> Generator[DataDirectory]:
        """Open the data directory for writing, made on first use; files are up to date at the end.

        A command that is of no use in an empty directory does not make one.
        """
        is_new = not self.data.exists()
        directory = self._open_directory(create=create_missing or not is_new, new_keys=new_keys)
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
        """Bring files, checkpoint and notices up to date; a failure does not undo what was
        committed."""
        for name, error in directory.catch_up():
            consequence = _CATCH_UP_FAILURES.get(name, f"{name} lags behind")
            reason = describe_exception(error)
            self.err.line(
                f"done, but {consequence}: {reason}; run `dragoman tick` when that is mended"
            )
        self.print_warnings(directory)

    def print_new_warnings(
        self, directory: DataDirectory, already_printed: frozenset[str]
    ) -> frozenset[str]:
        """Print warnings that were not printed already; returns all warnings that hold now."""
        problems = (service.last_problem.message for service in directory.parts.file_services)
        current = frozenset((*directory.warnings, *problems))
        self.print_warnings(directory, already_printed)
        return current

    def print_warnings(
        self, directory: DataDirectory, already_printed: frozenset[str] = frozenset()
    ) -> None:
        """Print warnings that were not printed already."""
        for warning in directory.warnings:
            if warning not in already_printed:
                self.err.line(("warning: ", "yellow"), warning)
        directory.warnings.clear()

    def _open_directory(self, *, create: bool, new_keys: bool = False) -> DataDirectory:
        options = self.shared
        self._check_not_meant_for_remote_hub()
        return self.wiring.open_directory(
            self.data, options.store, options.now, create=create, new_keys=new_keys
        )

    def _check_not_meant_for_remote_hub(self) -> None:
        """Refuse to make a data directory where DRAGOMAN_URL names a hub: an agent that a hub has
        started must not make a second hub by mistake."""
        options = self.shared
        if options.data is None and environment().get("DRAGOMAN_URL") and not self.data.is_dir():
            raise SettingsError(
                "DRAGOMAN_URL names a hub, and this command works on a data directory, of which "
                "there is none here: speak to that hub by `dragoman mcp` without --as, by the SDK "
                "or over HTTP; or name a data directory with --data or DRAGOMAN_DATA"
            )

    def run(self, function: Callable[[], CommandResult | None]) -> int:
        """Do the work and print its result; returns the exit code."""
        try:
            result = function()
            if result is None:
                return 0
            self.print_result(result)
        except (DragomanError, OSError) as error:
            return self._print_failure(*describe_error(error))
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

    def _print_failure(self, code: str, detail: str) -> int:
        if self.shared.json:
            self.out.json({"ok": False, "code": code, "detail": detail})
        else:
            self._print_refusal(code, detail)
        return 1

    def _print_refusal(self, code: str, detail: str) -> None:
        self.err.line((f"{code}: ", "bold red"), detail)


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


class UsageError(typer.TyperException):
    """Invalid arguments: exit code 2."""

    exit_code = 2
    ctx: typer.Context | None = None
    """Context of the command, for its name in the message."""


def raise_usage_error(sentence: str) -> NoReturn:
    """Raise UsageError with this sentence."""
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
