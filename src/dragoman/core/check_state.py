"""Checks of a task: commands that the hub runs before a completion counts, and their results.

Work that is reported done waits in review until the hub has run the checks: then it is proven, or
goes back to its agent with their output.
"""

from typing import Final

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.backoff import Backoff
from dragoman.core.base import Event, TaskCommand
from dragoman.core.errors import Refusal
from dragoman.core.limits import check_count, check_text

MAX_CHECKS: Final = 8
"""Checks of one task."""

MAX_CHECK_LENGTH: Final = 1_000
"""Characters of one command."""

MAX_CHECK_OUTPUT: Final = 2_000
"""Characters of a check's output that are kept with the task, the last ones."""


class CheckResult(Struct, frozen=True, omit_defaults=True):
    """Result of one check."""

    command: str
    exit_code: int | None = None
    """None: it did not end by itself, or could not be started."""
    problem: str = ""
    """Reason why it failed whatever its exit code is: it took too long, changed the work, …"""
    duration_ms: int = 0
    output_sha256: str = ""
    """Hash of the file with its output, `runs/<id>/checks/<attempt>-<number>.log`."""
    output: str = ""
    """The end of its output."""

    @property
    def has_passed(self) -> bool:
        """True if it ended by itself, with success."""
        return self.exit_code == 0 and not self.problem


# --- commands ---------------------------------------------------------------------------------


class RecordChecks(TaskCommand, frozen=True, tag="task.record-checks"):
    """Record the results of an attempt's checks, which the hub has run."""

    attempt: int
    results: tuple[CheckResult, ...]
    backoff: Backoff = Backoff()
    """Backoff of work that failed them."""


# --- events -----------------------------------------------------------------------------------


class TaskChecked(Event, frozen=True):
    """The hub has run the checks of an attempt."""

    attempt: int
    passed: bool
    results: tuple[CheckResult, ...]


# --- state ------------------------------------------------------------------------------------


class Evidence(Struct, frozen=True, omit_defaults=True):
    """Results of the last checks of a task."""

    attempt: int
    passed: bool
    at: int
    results: tuple[CheckResult, ...]


# --- who may name checks ----------------------------------------------------------------------


def check_commands(checks: tuple[str, ...]) -> Refusal | None:
    """Refuse too many checks, or one that is empty or too long."""
    too_many = check_count("checks", checks, MAX_CHECKS)
    texts = (check_text("checks", one, MAX_CHECK_LENGTH, minimum=1) for one in checks)
    return too_many or next(filter(None, texts), None)


def check_may_name_checks(checks: tuple[str, ...], actor: Actor) -> Refusal | None:
    """Refuse checks of an agent: the hub runs them as commands of its own."""
    if not checks or actor.role in ("human", "system"):
        return None
    detail = (
        f"{actor.label} may not name checks, which the hub runs as commands: a person does, with "
        "`dragoman task create --check`, or in the settings of an agent"
    )
    return Refusal("not_authorized", detail, path="checks")
