"""`dragoman demo`: a task's life with two workers, a crash and a recovery, in simulated time."""

from typing import TYPE_CHECKING

from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.surfaces.cli.demo_story import Step

_START = parse_rfc3339("2026-02-09T09:00:00Z")

_INTRODUCTION = (
    "A hub keeps tasks, hands each to one worker at a time, and writes it all down.",
    "Here mia is a person with work to do, ada and ben are agents; time is simulated.",
)
_NEXT = (
    'dragoman task create "My first task" --ready   make one, in ./.dragoman',
    "dragoman task claim --agent ada                take it, as an agent would",
    "dragoman events --follow                       watch what happens",
)
_STYLES = {"mia": "bold magenta", "ada": "bold yellow", "ben": "bold cyan", "hub": "bold green"}


def demo(call: Call) -> Answer:
    """Play a task's life: two workers, a crash, a recovery. Takes a second, leaves nothing behind.

    \b
    Example:
      dragoman demo
    """
    from dragoman.surfaces.cli.demo_stage import stage
    from dragoman.surfaces.cli.demo_story import play

    start = _START if call.shared.now is None else call.shared.now
    with stage(start) as on:
        steps = list(play(on))
    data = {
        "steps": [
            {"at": to_rfc3339(s.at), "who": s.who, "what": s.what, "why": s.why or None}
            for s in steps
        ]
    }
    return Answer(data, lambda screen: _print(steps, screen))


def _print(steps: "list[Step]", screen: Screen) -> None:
    for line in _INTRODUCTION:
        screen.line(line)
    screen.line()
    for step in steps:
        clock = to_rfc3339(step.at)[11:19]
        screen.line(f"{clock}  ", (f"{step.who:<5}", _STYLES[step.who]), step.what)
        if step.why:
            screen.line((f"{'':<17}{step.why}", "dim italic"))
    screen.line()
    screen.line("Try it yourself:")
    for line in _NEXT:
        screen.line(f"  {line}")


VERBS = (Verb("demo", demo, speaks=False),)
