"""`dragoman demo`: a story of two agents, two crashes and a handoff, in simulated time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.surfaces.cli.demo.story import Step

_START = parse_rfc3339("2026-02-09T09:00:00Z")

_INTRODUCTION = (
    "A hub keeps tasks, hands each to one agent at a time, and writes it all down.",
    "Here mia is a person with work to do, ada and ben are agents that speak AOF/1;",
    "time is simulated, everything else is real.",
)
_NEXT = (
    'dragoman task create "My first task" --ready   make one, in ./.dragoman',
    "dragoman task claim --agent ada                take it, as an agent would",
    "dragoman events --follow                       watch what happens",
)
_STYLES = {"mia": "bold magenta", "ada": "bold yellow", "ben": "bold cyan", "hub": "bold green"}


class _Played(Struct, frozen=True):
    """Result of the demo, to be printed."""

    steps: "Sequence[Step]"
    files: Sequence[tuple[str, str]]
    kept: Path | None


def demo(
    call: Call,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            show_default=False,
            help="Leave the data directory of the demo there, to look at.",
        ),
    ] = None,
) -> Answer:
    """Play a story in AOF/1: a handoff, crashes, a review.

    Takes a moment, in simulated time; without --keep it leaves nothing behind.

    \b
    Examples:
      dragoman demo
      dragoman demo --keep seen && dragoman --data seen task list
    """
    from dragoman.surfaces.cli.demo.files import files_made
    from dragoman.surfaces.cli.demo.stage import stage
    from dragoman.surfaces.cli.demo.story import play

    if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        wrong_usage(f"--keep {keep}: there is something already; name a new or empty folder")
    start = _START if call.shared.now is None else call.shared.now
    with stage(call.house, start, keep) as on:
        steps = list(play(on))
        files = list(files_made(on.place.data))
    played = _Played(steps, files, keep)
    data: dict[str, object] = {
        "steps": [
            {"at": to_rfc3339(s.at), "who": s.who, "what": s.what, "why": s.why or None}
            for s in steps
        ],
        "files": [path for path, _ in files],
        "kept": None if keep is None else str(keep),
    }
    return Answer(data, lambda screen: _print(played, screen))


def _print(played: _Played, screen: Screen) -> None:
    for line in _INTRODUCTION:
        screen.line(line)
    screen.line()
    for step in played.steps:
        clock = to_rfc3339(step.at)[11:19]
        screen.line(f"{clock}  ", (f"{step.who:<5}", _STYLES[step.who]), step.what)
        if step.why:
            screen.line((f"{'':<15}{step.why}", "dim italic"))
    screen.line()
    _print_files(played, screen)
    screen.line()
    screen.line("Try it yourself:")
    for line in _NEXT:
        screen.line(f"  {line}")


def _print_files(played: _Played, screen: Screen) -> None:
    where = f"in {played.kept}" if played.kept else "and took away (--keep DIR leaves them)"
    screen.line(f"The files it made, {where}:")
    width = max(len(path) for path, _ in played.files)
    for path, meaning in played.files:
        screen.line(f"  {path:<{width}}  ", (meaning, "dim italic"))


VERBS = (Verb("demo", demo, speaks=False),)
