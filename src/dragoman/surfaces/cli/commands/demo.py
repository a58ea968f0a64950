"""`dragoman demo`: two agents, two crashes and a handoff, in simulated time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.surfaces.cli.commands.demo_scenario import DemoStep

_START = parse_rfc3339("2026-02-09T09:00:00Z")

_INTRODUCTION = (
    "A hub keeps tasks, hands each to one agent at a time, and writes it all down.",
    "Here mia is a person with work to do, ada and ben are agents that speak AOF/1;",
    "time is simulated, everything else is real.",
)

_NEXT_COMMANDS = (
    'dragoman task create "My first task" --ready   make one, in ./.dragoman',
    "dragoman task claim --agent ada                take it, as an agent would",
    "dragoman events --follow                       watch what happens",
)

_ACTOR_STYLES = {
    "mia": "bold magenta",
    "ada": "bold yellow",
    "ben": "bold cyan",
    "hub": "bold green",
}


class _DemoRun(Struct, frozen=True):
    """Result of the demo, to be printed."""

    steps: "Sequence[DemoStep]"
    files: Sequence[tuple[str, str]]
    keep_folder: Path | None


def demo(
    context: CommandContext,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            show_default=False,
            help="Leave the data directory of the demo there, to look at.",
        ),
    ] = None,
) -> CommandResult:
    """Play a story in AOF/1: a handoff, crashes, a review.

    Takes a moment, in simulated time; without --keep it leaves nothing behind.

    \b
    Examples:
      dragoman demo
      dragoman demo --keep seen && dragoman --data seen task list
    """
    from dragoman.surfaces.cli.commands.demo_scenario import open_demo_hub, run_scenario

    if keep is not None and keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise_usage_error(f"--keep {keep}: there is something already; name a new or empty folder")
    start = _START if context.shared.now is None else context.shared.now
    with open_demo_hub(context.wiring, start, keep) as demo_hub:
        steps = list(run_scenario(demo_hub))
        files = list(describe_files(demo_hub.directory.path))
    run = _DemoRun(steps, files, keep)
    data: dict[str, object] = {
        "steps": [
            {"at": to_rfc3339(s.at), "who": s.actor, "what": s.text, "why": s.explanation or None}
            for s in steps
        ],
        "files": [path for path, _ in files],
        "kept": None if keep is None else str(keep),
    }
    return CommandResult(data, lambda screen: _print_run(run, screen))


def _print_run(run: _DemoRun, screen: Screen) -> None:
    for line in _INTRODUCTION:
        screen.line(line)
    screen.line()
    for step in run.steps:
        clock = to_rfc3339(step.at)[11:19]
        screen.line(f"{clock}  ", (f"{step.actor:<5}", _ACTOR_STYLES[step.actor]), step.text)
        if step.explanation:
            screen.line((f"{'':<15}{step.explanation}", "dim italic"))
    screen.line()
    _print_files(run, screen)
    screen.line()
    screen.line("Try it yourself:")
    for line in _NEXT_COMMANDS:
        screen.line(f"  {line}")


def _print_files(run: _DemoRun, screen: Screen) -> None:
    where = f"in {run.keep_folder}" if run.keep_folder else "and took away (--keep DIR leaves them)"
    screen.line(f"The files it made, {where}:")
    width = max(len(path) for path, _ in run.files)
    for path, meaning in run.files:
        screen.line(f"  {path:<{width}}  ", (meaning, "dim italic"))


# --- files ------------------------------------------------------------------------------------

_FILE_MEANINGS = (
    ("dragoman.db", "the ledger"),
    ("checkpoints.jsonl", "its signatures"),
    ("events/*.jsonl", "what happened, by day"),
    ("runs/*/attempts/*/*", "the attempt that died"),
    ("runs/*/run.json", "who worked on it"),
    ("runs/*/run_heartbeat.json", "the last sign of life"),
    ("runs/*/run_result.json", "the report"),
    ("tasks/*/*.md", "state, text, work log"),
    ("tasks/*/*/inputs/handoff.json", "what was asked of ben"),
    ("tasks/*/*/inputs/handoff.md", "the same, to read"),
    ("tasks/*/*/outputs/*", "an agent's own file"),
)
"""Glob pattern -> what the file is for; other files are bookkeeping."""


def describe_files(data: Path) -> Iterator[tuple[str, str]]:
    """List every file that is worth reading, and its purpose."""
    for pattern, meaning in _FILE_MEANINGS:
        for path in sorted(data.glob(pattern)):
            yield path.relative_to(data).as_posix(), meaning


COMMANDS = (CliCommand("demo", demo, takes_as=False),)
