"""`dragoman wave`: run beads together, and see how far they are."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.following import enduring
from dragoman.surfaces.cli.mail.asking import asked
from dragoman.surfaces.cli.reading import read_source
from dragoman.surfaces.cli.screen import Column
from dragoman.surfaces.cli.verb import Verb
from dragoman.surfaces.cli.wave.view import ended, headline, show_wave, waits_for, why_stuck

if TYPE_CHECKING:
    from dragoman.surfaces.cli.place import Place

_RETRY = re.compile(r"([^=]+)=([0-9]{1,4})", re.ASCII)
_WaveArgument = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="The wave.")]
_COLUMNS = (Column("WAVE", "bold"), Column("STARTED"), Column("STATUS"))


def read_retry(given: str) -> tuple[str, int]:
    """Parse TYPE=N."""
    found = _RETRY.fullmatch(given)
    if found is None:
        raise ValueError(f"{given!a} is not of the form TYPE=N, for example TESTS_FAIL=2")
    return found[1], int(found[2])


def start(
    call: Call,
    beads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BEAD",
            show_default=False,
            help="Beads, in the order in which they go; BEAD=GLOB,GLOB with the files it writes.",
        ),
    ] = None,
    *,
    parallel: Annotated[
        int | None,
        typer.Option(
            "--parallel", metavar="N", min=1, show_default=False, help="How many at a time."
        ),
    ] = None,
    file: Annotated[
        str,
        typer.Option(
            "--file",
            metavar="FILE|-",
            show_default=False,
            help='More beads, as a JSON list of ids or {"id", "title", "files"}.',
        ),
    ] = "",
    wave: Annotated[
        str, typer.Option("--id", metavar="ID", show_default=False, help="What to call the wave.")
    ] = "",
    retry: Annotated[
        list[Any] | None,
        typer.Option(
            "--retry",
            metavar="TYPE=N",
            parser=read_retry,
            show_default=False,
            help="Try a bead again N times after failures of this type, then block it.",
        ),
    ] = None,
    orchestrator: Annotated[
        str,
        typer.Option(
            "--orchestrator",
            metavar="NAME",
            show_default=False,
            help="Who gets the closing report; else you.",
        ),
    ] = "",
) -> Answer:
    """Start a wave: beads that are run together.

    They become ready in their order, at most so many at a time, and two that want the same files
    one after the other. Beads that are unknown here become tasks. It goes on by itself while a hub
    runs, or with every `dragoman tick`.

    \b
    Examples:
      dragoman wave start ol-1 ol-2 ol-3 --parallel 2
      dragoman wave start "ol-1=src/auth/" "ol-2=src/auth/login.py,docs/" --parallel 2 --id w1
      dragoman wave start --file beads.json --parallel 4 --retry TESTS_FAIL=2
    """
    wanted: list[Any] = [_bead(word) for word in beads or []]
    wanted += _from_file(file) if file else []
    if parallel is None:
        wrong_usage("say how many beads may run at a time, with --parallel N")
    arguments = {
        "beads": wanted,
        "parallel": parallel,
        "wave_id": wave or None,
        "retries": dict(retry or []),
        "orchestrator": orchestrator,
    }
    from dragoman.engine.plan import Turned

    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        answer = place.interpreter.call("wave.start", arguments, actor)
        if isinstance(answer, Turned):
            return call.turned(answer)
        started = _look(call, place, answer.reply["wave_id"])
    return Answer(started, lambda screen: show_wave(screen, started))


def show(call: Call, wave: _WaveArgument) -> Answer:
    """Show how far a wave is, and what each bead waits for.

    \b
    Example:
      dragoman wave status w1
    """
    with call.reading() as place:
        found = _look(call, place, wave)
    return Answer(found, lambda screen: show_wave(screen, found))


def watch(call: Call, wave: _WaveArgument) -> Answer | None:
    """Follow a wave until it is complete; Ctrl-C ends it earlier.

    On a terminal it is a progress bar; elsewhere a line for every bead that changes. At the end
    it shows the closing report.

    \b
    Example:
      dragoman wave watch w1
    """
    with call.reading() as place:
        found = _look(call, place, wave)
        _warn_without_hub(call, found)
        with call.out.progress(f"wave {found['wave_id']}", len(found["beads"])) as grow:
            done = 0
            seen: dict[str, str] = {}
            while True:
                grow(ended(found) - done)
                done = ended(found)
                for line in _news(found, seen):
                    _tell(call, line)
                if found["complete"]:
                    break
                if not call.wait():
                    return None
                found = enduring(call, place.hub.store, partial(_look, call, place, wave))
    return Answer(found, lambda screen: show_wave(screen, found))


def show_all(
    call: Call,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=200, help="How many at most.")
    ] = 20,
) -> Answer:
    """List the newest waves.

    \b
    Example:
      dragoman wave list
    """
    with call.reading() as place:
        reply = _ask(call, place, "wave.list", {"limit": limit})
    rows = [(one["wave_id"], one["started_at"], headline(one)) for one in reply["waves"]]
    return Answer(reply, lambda screen: screen.table(_COLUMNS, rows))


def _bead(word: str) -> dict[str, Any]:
    name, _, files = word.partition("=")
    return {"id": name, "files": [file for file in files.split(",") if file]}


def _from_file(source: str) -> list[Any]:
    from dragoman.text.strict_json import MOST_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(read_source(source, MOST_BYTES), MOST_BYTES)
    except StrictJsonError as error:
        wrong_usage(f"{source} is not JSON: {error.reason}")
    listed: Any = cast(dict[str, Any], value).get("beads") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        wrong_usage(f"{source} holds no list of beads")
    return cast(list[Any], listed)


def _look(call: Call, place: "Place", wave: str) -> dict[str, Any]:
    return _ask(call, place, "wave.status", {"wave_id": wave})


def _ask(call: Call, place: "Place", operation: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Call an operation that only reads; a rejection is raised."""
    return asked(place, operation, wanted, call.actor(place, call.speaker())).reply


def _news(found: dict[str, Any], seen: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Beads that changed since they were last seen."""
    for bead in found["beads"]:
        now = f"{bead['status']} {bead['assignee']} {waits_for(bead)} {why_stuck(bead)}"
        if seen.get(bead["task"]) != now:
            seen[bead["task"]] = now
            yield bead


def _tell(call: Call, bead: dict[str, Any]) -> None:
    """Print a line for a bead that changed; a terminal has the bar instead."""
    if call.shared.json:
        call.out.json({"ok": True, "bead": bead})
    elif not call.out.is_terminal:
        who = f", {bead['assignee']}" if bead["assignee"] else ""
        waiting = f", waits for {waiting}" if (waiting := waits_for(bead)) else ""
        why = f": {why}" if (why := why_stuck(bead)) else ""
        call.out.line(f"{bead['id']}: {bead['status']}{who}{waiting}{why}")
    call.out.flush()


def _warn_without_hub(call: Call, found: dict[str, Any]) -> None:
    from dragoman.system.hub_address import find_hub

    if not found["complete"] and find_hub(call.data) is None:
        call.err.line(
            ("warning: ", "yellow"),
            "no hub runs here: the wave goes on with `dragoman up` or `dragoman tick --watch`",
        )


VERBS = (
    Verb("start", start),
    Verb("status", show, speaks=False),
    Verb("watch", watch, speaks=False),
    Verb("list", show_all, speaks=False),
    Verb("show", show, speaks=False, hidden=True),
)
