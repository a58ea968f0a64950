"""`dragoman guard`: a git hook that keeps files which somebody else has reserved out of commits."""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.surfaces.cli.call import Answer, Call, Shared, told, wrong_usage
from dragoman.surfaces.cli.person import actor_for
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.engine.reads.waves import Reserved

_MARK: Final = "# This hook was written by `dragoman guard install`, which may write it anew."
_HOOK: Final = """\
#!/bin/sh
{mark}
# It refuses commits of files that somebody else has reserved; git commit --no-verify passes it by.
if [ ! -x {python} ]; then
    echo "dragoman guard: "{python}" is gone, so nothing was checked; install the guard again" >&2
    exit 0
fi
{line}
"""
_LINE: Final = (
    '{python} -m dragoman{data} guard check ${{DRAGOMAN_AGENT:+--as "$DRAGOMAN_AGENT"}} || exit 1'
)
"""Runs the Python that installed the hook: PATH at commit time may have another, or none."""


def install(call: Call) -> Answer:
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
        wrong_usage(f"{error}; go to a git repository first")
    given = call.shared.data
    data = "" if given is None else f" --data {quote(str(given.absolute()))}"
    python = quote(sys.executable)
    line = _LINE.format(python=python, data=data)
    if hook.exists() and _MARK not in hook.read_text(encoding="utf-8", errors="replace"):
        raise Refused(
            Refusal(
                "already_exists",
                f"{hook} is somebody else's hook and stays as it is; add this line to it: {line}",
            )
        )
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(_HOOK.format(mark=_MARK, python=python, line=line), encoding="utf-8")
    hook.chmod(0o755)
    return Answer({"hook": str(hook)}, lambda screen: screen.line(f"wrote {hook}"))


def check(call: Call) -> Answer:
    """Refuse to commit files that somebody else has reserved.

    It looks at what is staged, and says who has the files, until when, and what to do. It asks the
    data directory; where there is none, the hub of DRAGOMAN_URL, or the data directory in the
    repository of which this is another worktree. Where there is none of these it warns and lets
    everything pass; `git commit --no-verify` passes it by.

    \b
    Examples:
      dragoman guard check
      dragoman guard check --as ada
    """
    from dragoman.system.git import NoRepository, staged_files

    try:
        staged = staged_files(Path.cwd(), environment())
    except NoRepository as error:
        wrong_usage(f"{error}; go to a git repository first")
    try:
        name, stopped = _look(call, staged)
    except DragomanError as error:
        code, detail = told(error)
        call.err.line(("dragoman guard: ", "yellow"), f"nothing was checked: {detail}")
        return Answer({"staged": len(staged), "unchecked": code}, lambda _: None)
    if not stopped:
        return Answer({"staged": len(staged)}, lambda _: None)

    def show(_: Screen) -> None:
        call.err.line(("dragoman guard: ", "bold red"), "these files are reserved by somebody else")
        for one in stopped:
            call.err.line(f"  {one.words}")
        call.err.line(
            f"You are {name}. Unstage them (git restore --staged FILE), wait, or ask for them; "
            "`git commit --no-verify` commits all the same."
        )

    data = {
        "code": "reserved",
        "detail": "staged, but reserved by somebody else: " + "; ".join(s.words for s in stopped),
        "staged": len(staged),
        "reserved": [{"file": one.file, "by": one.by} for one in stopped],
    }
    return Answer(data, show, is_ok=False)


class _Stopped(Struct, frozen=True):
    """A staged file that another agent or person has reserved."""

    file: str
    by: Mapping[str, Any]
    words: str


def _look(call: Call, staged: Sequence[str]) -> tuple[str, list[_Stopped]]:
    """Name of the committer, and the staged files that others have reserved exclusively."""
    from dragoman.core.deciding.mail.reserving import how_long, whose
    from dragoman.core.states.reservations import Shelf, Wish
    from dragoman.engine.shown.waves import shown_reservation

    with _asked(call) as (name, reserved):
        find = reserved.find
        # A shared reservation stops nobody from committing.
        exclusive = Shelf(one for one in reserved.living if one.exclusive)
        return name, [
            _Stopped(
                path,
                shown_reservation(found.by, find),
                f"{path}: by {whose(found.by, find)}, as {found.reserved}, {how_long(found.by)}",
            )
            for path in staged
            for found in exclusive.conflicts(Wish((path,), name, are_files=True), find)
        ]


@contextmanager
def _asked(call: Call) -> "Generator[tuple[str, Reserved]]":
    """Name of the committer, and the current reservations."""
    from dragoman.engine.reads.waves import reserved_now

    is_here = call.shared.data is not None or call.data.is_dir()
    if not is_here and environment().get("DRAGOMAN_URL"):
        actor = actor_for(call.speaker(), clock_was_set=False)
        yield actor.name, _from_afar(call.house.ask_hub("reserve.list", {}))
        return
    with (call if is_here else _at_home(call)).reading() as place:
        name = call.actor(place, call.speaker()).name
        yield name, reserved_now(place.hub.store, place.hub.clock.now())


def _at_home(call: Call) -> Call:
    """Context of the main checkout, where this is another worktree of it."""
    from dragoman.system.git import main_checkout

    home = main_checkout(Path.cwd(), environment())
    data = None if home is None else home / call.data
    return call if data is None or not data.is_dir() else call.saying(Shared(data=data))


def _from_afar(shown: Any) -> "Reserved":
    """Parse reservations as a hub returns them; the hub has resolved who works on what."""
    from dragoman.core import missing
    from dragoman.core.moments import parse_rfc3339
    from dragoman.core.states.reservations import Reservation
    from dragoman.engine.reads.waves import Reserved

    return Reserved(
        tuple(
            Reservation(
                one["id"],
                tuple(one["patterns"]),
                one["holder"] or "",
                None if one["until"] is None else parse_rfc3339(one["until"]),
                one["mode"] == "exclusive",
                one.get("task", ""),
                one.get("wave", ""),
                one.get("reason", ""),
            )
            for one in shown["reservations"]
        ),
        missing.task,
    )


VERBS = (Verb("install", install, speaks=False), Verb("check", check))
