"""`dragoman guard`: a git hook that keeps files which somebody else has reserved out of commits."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.surfaces.cli.call import Answer, Call, told, wrong_usage
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

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
"""By the program that installed it: what is on the PATH of a commit may be another, or none."""


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
    """A staged file that somebody else has reserved."""

    file: str
    by: Mapping[str, Any]
    words: str


def _look(call: Call, staged: Sequence[str]) -> tuple[str, list[_Stopped]]:
    """Who commits, and what of it somebody else has reserved exclusively."""
    from dragoman.core.reservations import Shelf, Wish
    from dragoman.core.reserving import how_long, whose
    from dragoman.engine.shown_waves import shown_reservation
    from dragoman.engine.waves import reserved_now

    with call.reading() as place:
        name = call.actor(place, call.speaker()).name
        reserved = reserved_now(place.hub.store, place.hub.clock.now())
        find = reserved.find
        # Whoever only shares a file stops nobody from committing it.
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


VERBS = (Verb("install", install, speaks=False), Verb("check", check))
