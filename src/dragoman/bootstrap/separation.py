"""Separation of started programs from the hub: by another user of the system, or by nothing."""

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from dragoman.config import AgentSettings
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

_OTHERS_ACCESS: Final = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH

_WAYS: Final = (TASKS, f"{TASKS}/in-progress", RUNS, INBOX)
"""Folders that an agent with a user passes through to its own."""


def check_separation(name: str, settings: AgentSettings, data: Path) -> None:
    """Raise SettingsError for a separation that this installation cannot keep."""
    if not settings.user:
        return
    label = f"agents.{name}.user"
    if not settings.command:
        raise SettingsError(
            f"{label}: only a command runs as a user of this machine; leave it out, or name the "
            "program that the hub shall start"
        )
    if settings.repository:
        raise SettingsError(
            f"{label}: git would make the worktree as the hub's user, in a repository that "
            f"{settings.user} writes to; leave out the repository, and let the program clone it"
        )
    check_way(find_user(settings.user, label), data, label)


def restrict_directory(data: Path, agents: Iterable[AgentSettings]) -> Sequence[str]:
    """Close a data directory to others, except for the ways that agents with a user need; what a
    person should know of it."""
    mode = stat.S_IMODE(data.stat().st_mode)
    found = f"others on this machine could use {data.absolute()} (mode {mode:03o})"
    try:
        if any(agent.user for agent in agents):
            open_way(data.absolute(), _WAYS)
        elif mode & _OTHERS_ACCESS:
            data.chmod(stat.S_IRWXU)
    except OSError as error:
        remedy = f"its owner has to run `chmod 700 {quote(str(data))}`"
        return [f"{found}, and still can: {error.strerror}; {remedy}"]
    return [f"{found}: it is closed to them now"] if mode & _OTHERS_ACCESS else []


class Separation(Struct, frozen=True):
    """Separation of an agent's programs from the hub."""

    data: Path
    user: AgentUser | None

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of the user that the programs run as."""
        return self.user.variables if self.user else {}

    def separate(
        self, command: Sequence[str], assignment: "Assignment", folder: Path
    ) -> Sequence[str]:
        """Give the folders of an attempt to the agent's user; the command to start."""
        del folder
        if self.user is not None:
            inbox = self.data / INBOX / assignment.agent
            inbox.mkdir(parents=True, exist_ok=True)
            give_folder(inbox, self.user)
            give_folder(self.data / task_folder_path("in-progress", assignment.aof_id), self.user)
            show_folder(self.data / run_folder_path(assignment.aof_id), self.user)
        return command


def open_separation(name: str, settings: AgentSettings, data: Path) -> Separation:
    """Find what separates an agent; SettingsError if it cannot be kept."""
    check_separation(name, settings, data)
    user = find_user(settings.user, f"agents.{name}.user") if settings.user else None
    return Separation(data.absolute(), user)
