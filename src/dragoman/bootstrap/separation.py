"""Separation of started programs from the hub: another user of the system, a sandbox, or none."""

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from dragoman.config import AgentSettings, Settings, environment
from dragoman.config.store_url import sqlite_path
from dragoman.core.errors import SettingsError
from dragoman.files.layout import INBOX, RUNS, TASKS, run_folder_path, task_folder_path
from dragoman.system.agent_user import (
    AgentUser,
    check_way,
    find_user,
    give_folder,
    open_way,
    show_folder,
)

if TYPE_CHECKING:
    from dragoman.engine.ports import Assignment
    from dragoman.system.bubblewrap import Sandbox
    from dragoman.system.worktree import GitFolders

_OTHERS_ACCESS: Final = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
_OTHERS_PASSAGE: Final = stat.S_IXGRP | stat.S_IXOTH

_WAYS: Final = (TASKS, f"{TASKS}/in-progress", RUNS, INBOX)
"""Folders that an agent with a user passes through to its own."""

_DEFAULTS: Final = AgentSettings()


def check_separation(name: str, settings: AgentSettings, data: Path) -> None:
    """Raise SettingsError for a separation that this installation cannot keep."""
    label = f"agents.{name}"
    for key in ("user", "sandbox"):
        if getattr(settings, key) and not settings.command:
            raise SettingsError(
                f"{label}.{key}: only a command runs on this machine as a program; leave it out, "
                "or name the program that the hub shall start"
            )
    user = _find_user(name, settings)
    if settings.user and settings.checks and not settings.sandbox:
        raise SettingsError(
            f"{label}.checks: the work of a program with a user of its own is closed to the hub's; "
            'add sandbox = "bwrap", in which its checks run, too'
        )
    if user is not None and settings.repository:
        raise SettingsError(
            f"{label}.user: git would make the worktree as the hub's user, in a repository that "
            f"{user.name} writes to; leave out the repository, and let the program clone it"
        )
    if settings.sandbox:
        _check_sandbox(label, settings, user, data)
        return
    for key in ("sandbox_network", "sandbox_readable", "sandbox_writable"):
        if getattr(settings, key) != getattr(_DEFAULTS, key):
            raise SettingsError(f'{label}.{key} needs sandbox = "bwrap" beside it')
    if user is not None:
        check_way(user, data, f"{label}.user")


def _find_user(name: str, settings: AgentSettings) -> AgentUser | None:
    return find_user(settings.user, f"agents.{name}.user") if settings.user else None


def _check_sandbox(label: str, settings: AgentSettings, user: AgentUser | None, data: Path) -> None:
    from dragoman.system.bubblewrap import check_sandbox

    for key in ("sandbox_readable", "sandbox_writable"):
        for path in map(Path, getattr(settings, key)):
            if path.resolve() == Path("/") or path.resolve().is_relative_to("/proc"):
                raise SettingsError(
                    f"{label}.{key}: {path} shows the hub's processes; name the folders that the "
                    "program needs"
                )
            if path.resolve() != path and data.resolve().is_relative_to(path.resolve()):
                raise SettingsError(
                    f"{label}.{key}: {path} leads to {path.resolve()}, where the hub's own files "
                    "are: name that, so that they stay hidden"
                )
            if not path.is_absolute() or not path.exists():
                problem = "does not exist" if path.is_absolute() else "is no absolute path"
                raise SettingsError(f"{label}.{key}: {path} {problem}")
    has_network = settings.sandbox_network
    check_sandbox(f"{label}.sandbox", environment(), user, has_network=has_network)


def restrict_directory(data: Path, agents: Iterable[AgentSettings]) -> Sequence[str]:
    """Close a data directory to others, except for the ways that agents with a user need; what a
    person should know of it."""
    has_ways = any(agent.needs_ways for agent in agents)
    closed = _OTHERS_ACCESS if has_ways else _OTHERS_ACCESS | _OTHERS_PASSAGE
    mode = stat.S_IMODE(data.stat().st_mode)
    found = f"others on this machine could use {data.absolute()} (mode {mode:03o})"
    try:
        if has_ways:
            open_way(data.absolute(), _WAYS)
        elif mode & closed:
            data.chmod(stat.S_IRWXU)
    except OSError as error:
        remedy = f"its owner has to run `chmod 700 {quote(str(data))}`"
        return [f"{found}, and still can: {error.strerror}; {remedy}"]
    return [f"{found}: it is closed to them now"] if mode & closed else []


class Separation(Struct, frozen=True):
    """Separation of an agent's programs from the hub."""

    settings: AgentSettings
    data: Path
    user: AgentUser | None
    secret_files: Sequence[Path]
    """Files with secrets of the hub that may lie outside of its data directory."""
    certificate: str
    git_variables: Mapping[str, str]

    @property
    def switches_itself(self) -> bool:
        """True if the command itself switches to the user: a sandbox is made before."""
        return bool(self.settings.sandbox)

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of the user that the programs run as."""
        return self.user.variables if self.user else {}

    def separate(
        self, command: Sequence[str], assignment: "Assignment", folder: Path
    ) -> Sequence[str]:
        """Prepare the folders of an attempt that works in a folder; the command to start."""
        if self.user is None and not self.settings.sandbox:
            return command
        home, runs, inbox = self._folders(assignment)
        inbox.mkdir(mode=0o750, parents=True, exist_ok=True)
        if self.user is not None:
            give_folder(inbox, self.user)
            give_folder(home, self.user)
            show_folder(runs, self.user)
        if not self.settings.sandbox:
            return command
        has_network = self.settings.sandbox_network
        return self._sandbox(assignment, folder, has_network=has_network).wrap(command, folder)

    def wrap_git(
        self, command: Sequence[str], assignment: "Assignment", folder: Path
    ) -> Sequence[str]:
        """Wrap a command of git in a worktree, whose agent may have left links there."""
        if not self.settings.sandbox:
            return command
        return self._sandbox(assignment, folder, has_network=False).wrap(command, folder)

    def wrap_check(self, command: Sequence[str], folder: Path) -> Sequence[str]:
        """Wrap a command that looks at the work in a folder after the attempt has ended."""
        if not self.settings.sandbox:
            return command
        git = self._git_folders(folder)
        sandbox = self._build_sandbox(
            shown=git.shown if git else [],
            given=git.given if git else [folder],
            locked=git.locked if git else [],
            has_network=self.settings.sandbox_network,
        )
        return sandbox.wrap(command, folder)

    def _folders(self, assignment: "Assignment") -> tuple[Path, Path, Path]:
        task = assignment.aof_id
        return (
            self.data / task_folder_path("in-progress", task),
            self.data / run_folder_path(task),
            self.data / INBOX / assignment.agent,
        )

    def _sandbox(self, assignment: "Assignment", folder: Path, *, has_network: bool) -> "Sandbox":
        home, runs, inbox = self._folders(assignment)
        git = self._git_folders(folder)
        return self._build_sandbox(
            shown=[runs, *(git.shown if git else [])],
            given=[home, inbox, *(git.given if git else [])],
            locked=[*(git.locked if git else []), *map(Path, filter(None, [self.certificate]))],
            has_network=has_network,
        )

    def _build_sandbox(
        self,
        *,
        shown: Sequence[Path],
        given: Sequence[Path],
        locked: Sequence[Path],
        has_network: bool,
    ) -> "Sandbox":
        from dragoman.system.bubblewrap import Sandbox

        return Sandbox(
            readable=[Path(path) for path in self.settings.sandbox_readable],
            writable=[Path(path) for path in self.settings.sandbox_writable],
            hidden_files=self.secret_files,
            hidden_folder=self.data,
            shown=shown,
            given=given,
            locked=locked,
            home=self.variables.get("HOME", self.git_variables.get("HOME", "")),
            has_network=has_network,
            user=self.user,
        )

    def _git_folders(self, folder: Path) -> "GitFolders | None":
        from dragoman.system.worktree import list_git_folders

        if not self.settings.repository:
            return None
        return list_git_folders(self.data / self.settings.repository, folder, self.git_variables)


def open_separation(
    name: str,
    settings: AgentSettings,
    data: Path,
    secret_files: Sequence[Path],
    certificate: str,
    git_variables: Mapping[str, str],
) -> Separation:
    """Find what separates an agent; SettingsError if it cannot be kept."""
    check_separation(name, settings, data)
    user = _find_user(name, settings)
    return Separation(settings, data.absolute(), user, secret_files, certificate, git_variables)


def list_secret_files(settings: Settings, data: Path, config: Path | None) -> Sequence[Path]:
    """List files with secrets that may lie outside of the data directory."""
    files = [config] if config else []
    if settings.http.tls_key:
        files.append(Path(settings.http.tls_key))
    if settings.notify.webhook_secret_file:
        files.append(data / settings.notify.webhook_secret_file)
    database = sqlite_path(settings.store.url, data) if settings.store.url else None
    if database is not None:
        files += [database.with_name(f"{database.name}{end}") for end in ("", "-wal", "-shm")]
    return [file.absolute() for file in files]
