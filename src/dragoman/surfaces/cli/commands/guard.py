"""`dragoman guard`: a git hook that keeps files reserved by somebody else out of commits."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    describe_error,
    raise_usage_error,
)
from dragoman.surfaces.cli.render import Screen

_HOOK_MARKER: Final = (
    "# This hook was written by `dragoman guard install`, which may write it anew."
)
_HOOK_SCRIPT: Final = """\
#!/bin/sh
{mark}
# It refuses commits of files that somebody else has reserved; git commit --no-verify passes it by.
if [ ! -x {python} ]; then
    echo "dragoman guard: "{python}" is gone, so nothing was checked; install the guard again" >&2
    exit 0
fi
{line}
"""
_HOOK_LINE: Final = (
    '{python} -m dragoman{data} guard check ${{DRAGOMAN_AGENT:+--as "$DRAGOMAN_AGENT"}} || exit 1'
)
"""Runs the Python that installed the hook: PATH at commit time may have another, or none."""


def install(context: CommandContext) -> CommandResult:
    """Write the git hook of the repository that you stand in.

    It runs `dragoman guard check` before every commit. A hook of somebody else is left as it is;
    you are told which line to add to it.

    \b
    Example:
      dragoman guard install
    """
    from dragoman.system.git import NoRepository, hooks_folder

    try:
        hook = hooks_folder(Path.cwd(), environment()) / "pre-commit"
    except NoRepository as error:
        raise_usage_error(f"{error}; go to a git repository first")
    data = f" --data {quote(str(context.data.absolute()))}"
    python = quote(sys.executable)
    line = _HOOK_LINE.format(python=python, data=data)
    if hook.exists() and _HOOK_MARKER not in hook.read_text(encoding="utf-8", errors="replace"):
        raise Refused(
            Refusal(
                "already_exists",
                f"{hook} is somebody else's hook and stays as it is; add this line to it: {line}",
            )
        )
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(
        _HOOK_SCRIPT.format(mark=_HOOK_MARKER, python=python, line=line), encoding="utf-8"
    )
    hook.chmod(0o755)
    return CommandResult({"hook": str(hook)}, lambda screen: screen.line(f"wrote {hook}"))


def check(context: CommandContext) -> CommandResult:
    """Refuse to commit files that somebody else has reserved.

    It looks at what is staged, and says who has the files, until when, and what to do. Where there
    is no data directory it warns and lets everything pass; `git commit --no-verify` passes it by.

    \b
    Examples:
      dragoman guard check
      dragoman guard check --as ada
    """
    from dragoman.system.git import NoRepository, staged_files

    try:
        staged = staged_files(Path.cwd(), environment())
    except NoRepository as error:
        raise_usage_error(f"{error}; go to a git repository first")
    try:
        name, blocked = _find_blocked_files(context, staged)
    except DragomanError as error:
        code, detail = describe_error(error)
        context.err.line(("dragoman guard: ", "yellow"), f"nothing was checked: {detail}")
        return CommandResult({"staged": len(staged), "unchecked": code}, lambda _: None)
    if not blocked:
        return CommandResult({"staged": len(staged)}, lambda _: None)

    def show(_: Screen) -> None:
        context.err.line(
            ("dragoman guard: ", "bold red"), "these files are reserved by somebody else"
        )
        for one in blocked:
            context.err.line(f"  {one.text}")
        context.err.line(
            f"You are {name}. Unstage them (git restore --staged FILE), wait, or ask for them; "
            "`git commit --no-verify` commits all the same."
        )

    data = {
        "code": "files_reserved",
        "detail": "staged, but reserved by somebody else: " + "; ".join(s.text for s in blocked),
        "staged": len(staged),
        "reserved": [{"file": one.file, "by": one.reservation} for one in blocked],
    }
    return CommandResult(data, show, is_ok=False)


class _BlockedFile(Struct, frozen=True):
    """A staged file that another agent or person has reserved."""

    file: str
    reservation: Mapping[str, Any]
    text: str


def _find_blocked_files(
    context: CommandContext, staged: Sequence[str]
) -> tuple[str, list[_BlockedFile]]:
    """Name of the committer, and the staged files that others have reserved."""
    from dragoman.core.reservation import find_conflicts, format_conflict
    from dragoman.engine.queries.waves import find_reservations
    from dragoman.engine.schemas.waves import reservation_resource
    from dragoman.text.repository_paths import glob_matches

    with context.open_for_reading() as directory:
        name = context.actor(directory, context.acting_agent()).name
        reserved = find_reservations(directory.hub.store, directory.hub.clock.now())
    return name, [
        _BlockedFile(path, reservation_resource(found.by), format_conflict(found))
        for path in staged
        for found in find_conflicts((path,), reserved, name, glob_matches)
    ]


COMMANDS = (
    CliCommand("install", install, takes_as=False),
    CliCommand("check", check),
)
