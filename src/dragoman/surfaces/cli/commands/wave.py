"""`dragoman wave`: run beads together, and see how far they are."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast

from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    call_operation,
    raise_usage_error,
    read_source,
)
from dragoman.surfaces.cli.event_text import retry_while_unavailable
from dragoman.surfaces.cli.render import Column, Screen

if TYPE_CHECKING:
    from dragoman.surfaces.cli.data_directory import DataDirectory

_RETRY = re.compile(r"([^=]+)=([0-9]{1,4})", re.ASCII)

_WaveArgument = Annotated[str, argument("ID", "The wave.")]

_WAVE_COLUMNS = (Column("WAVE", "bold"), Column("STARTED"), Column("STATUS"))


def parse_retry(text: str) -> tuple[str, int]:
    """Parse TYPE=N."""
    match = _RETRY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!a} is not of the form TYPE=N, for example TESTS_FAIL=2")
    return match[1], int(match[2])


def start(
    context: CommandContext,
    beads: Annotated[
        list[str] | None,
        argument(
            "BEAD", "Beads, in the order in which they go; BEAD=GLOB,GLOB with the files it writes."
        ),
    ] = None,
    *,
    parallel: Annotated[int | None, option("--parallel", "N", "How many at a time.", min=1)] = None,
    file: Annotated[
        str,
        option(
            "--file", "FILE|-", 'More beads, as a JSON list of ids or {"id", "title", "files"}.'
        ),
    ] = "",
    wave: Annotated[str, option("--id", "ID", "What to call the wave.")] = "",
    retry: Annotated[
        list[Any] | None,
        option(
            "--retry",
            "TYPE=N",
            "Try a bead again N times after failures of this type, then block it.",
            parser=parse_retry,
        ),
    ] = None,
    orchestrator: Annotated[
        str, option("--orchestrator", "NAME", "Who gets the closing report; else you.")
    ] = "",
) -> CommandResult:
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
    bead_arguments: list[Any] = [_parse_bead(word) for word in beads or []]
    bead_arguments += _read_beads(file) if file else []
    if parallel is None:
        raise_usage_error("say how many beads may run at a time, with --parallel N")
    arguments = {
        "beads": bead_arguments,
        "parallel": parallel,
        "wave_id": wave or None,
        "retries": dict(retry or []),
        "orchestrator": orchestrator,
    }
    from dragoman.engine.request import Rejected

    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        answer = directory.router.call("wave.start", arguments, actor)
        if isinstance(answer, Rejected):
            return context.rejection_result(answer)
        started = _wave_status(context, directory, answer.reply["wave_id"])
    return CommandResult(started, lambda screen: print_wave(screen, started))


def show(context: CommandContext, wave: _WaveArgument) -> CommandResult:
    """Show how far a wave is, and what each bead waits for.

    \b
    Example:
      dragoman wave status w1
    """
    with context.open_for_reading() as directory:
        status = _wave_status(context, directory, wave)
    return CommandResult(status, lambda screen: print_wave(screen, status))


def watch(context: CommandContext, wave: _WaveArgument) -> CommandResult | None:
    """Follow a wave until it is complete; Ctrl-C ends it earlier.

    On a terminal it is a progress bar; elsewhere a line for every bead that changes. At the end
    it shows the closing report.

    \b
    Example:
      dragoman wave watch w1
    """
    with context.open_for_reading() as directory:
        status = _wave_status(context, directory, wave)
        _warn_without_hub(context, status)
        with context.out.progress(f"wave {status['wave_id']}", len(status["beads"])) as grow:
            done = 0
            seen: dict[str, str] = {}
            while True:
                grow(count_ended(status) - done)
                done = count_ended(status)
                for line in _changed_beads(status, seen):
                    _print_bead(context, line)
                if status["complete"]:
                    break
                if not context.wait():
                    return None
                status = retry_while_unavailable(
                    context, directory.hub.store, partial(_wave_status, context, directory, wave)
                )
    return CommandResult(status, lambda screen: print_wave(screen, status))


def list_waves(
    context: CommandContext,
    limit: Annotated[
        int, option("--limit", "N", "How many at most.", min=1, max=200, show_default=True)
    ] = 20,
) -> CommandResult:
    """List the newest waves.

    \b
    Example:
      dragoman wave list
    """
    with context.open_for_reading() as directory:
        reply = _query(context, directory, "wave.list", {"limit": limit})
    rows = [(one["wave_id"], one["started_at"], wave_headline(one)) for one in reply["waves"]]
    return CommandResult(reply, lambda screen: screen.table(_WAVE_COLUMNS, rows))


def _parse_bead(word: str) -> dict[str, Any]:
    name, _, files = word.partition("=")
    return {"id": name, "files": [file for file in files.split(",") if file]}


def _read_beads(source: str) -> list[Any]:
    from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

    try:
        value = parse_json(read_source(source, MAX_BYTES), MAX_BYTES)
    except StrictJsonError as error:
        raise_usage_error(f"{source} is not JSON: {error.reason}")
    listed: Any = cast(dict[str, Any], value).get("beads") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise_usage_error(f"{source} holds no list of beads")
    return cast(list[Any], listed)


def _wave_status(context: CommandContext, directory: "DataDirectory", wave: str) -> dict[str, Any]:
    return _query(context, directory, "wave.status", {"wave_id": wave})


def _query(
    context: CommandContext, directory: "DataDirectory", operation: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call an operation that only reads; a rejection is raised."""
    return call_operation(
        directory, operation, arguments, context.actor(directory, context.acting_agent())
    ).reply


def _changed_beads(status: dict[str, Any], seen: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Beads that changed since they were last seen."""
    for bead in status["beads"]:
        now = f"{bead['status']} {bead['assignee']} {describe_wait(bead)} {stuck_reason(bead)}"
        if seen.get(bead["task"]) != now:
            seen[bead["task"]] = now
            yield bead


def _print_bead(context: CommandContext, bead: dict[str, Any]) -> None:
    """Print a line for a bead that changed; a terminal has the bar instead."""
    if context.shared.json:
        context.out.json({"ok": True, "bead": bead})
    elif not context.out.is_terminal:
        who = f", {bead['assignee']}" if bead["assignee"] else ""
        waiting = f", waits for {waiting}" if (waiting := describe_wait(bead)) else ""
        why = f": {why}" if (why := stuck_reason(bead)) else ""
        context.out.line(f"{bead['id']}: {bead['status']}{who}{waiting}{why}")
    context.out.flush()


def _warn_without_hub(context: CommandContext, status: dict[str, Any]) -> None:
    from dragoman.system.hub_lock import find_hub

    if not status["complete"] and find_hub(context.data) is None:
        context.err.line(
            ("warning: ", "yellow"),
            "no hub runs here: the wave goes on with `dragoman up` or `dragoman tick --watch`",
        )


# --- printing ---------------------------------------------------------------------------------

WaveReply = Mapping[str, Any]

_BEAD_STYLES = {
    "in-progress": "yellow",
    "ready": "cyan",
    "review": "green",
    "done": "green",
    "blocked": "red",
    "deadletter": "red",
}

_BEAD_COLUMNS = (
    Column("BEAD", "bold"),
    Column("STATUS", styles=_BEAD_STYLES),
    Column("ATTEMPTS"),
    Column("WHO"),
    Column("WAITS FOR, OR WHY IT IS STUCK"),
)


def print_wave(screen: Screen, wave: WaveReply) -> None:
    """Print a wave with its beads."""
    screen.line((wave["wave_id"], "bold"), f"  {wave_headline(wave)}")
    rows = [
        (
            bead["id"],
            bead["status"],
            f"{bead['attempts']}",
            bead["assignee"] or "",
            describe_wait(bead) or stuck_reason(bead),
        )
        for bead in wave["beads"]
    ]
    screen.table(_BEAD_COLUMNS, rows)


def wave_headline(wave: WaveReply) -> str:
    """Progress of a wave in one line."""
    counts = ", ".join(f"{count} {status}" for status, count in wave["counts"].items())
    if wave["complete"]:
        since = f" since {wave['ended_at']}" if "ended_at" in wave else ""
        return f"complete{since}: {counts}"
    return f"under way since {wave['started_at']}, at most {wave['parallel']} at a time: {counts}"


def count_ended(wave: WaveReply) -> int:
    """Number of beads that have ended."""
    return sum(bead["ended"] for bead in wave["beads"])


def describe_wait(bead: WaveReply) -> str:
    """The thing that a bead waits for; empty: nothing."""
    waiting = bead.get("waits_for")
    return "" if waiting is None else _WAIT_TEXT[waiting["what"]](waiting)


def stuck_reason(bead: WaveReply) -> str:
    """Reason why a bead is stuck; empty: it is not, or no reason was given."""
    return bead.get("why", "")


def _file_wait_text(waiting: WaveReply) -> str:
    by = waiting["by"]
    bead = f"bead {by['task']}" if "task" in by else ""
    holder = " for ".join(filter(None, (by["holder"], bead))) or "somebody"
    until = f", until {by['until']}" if by["until"] else ""
    return f"{waiting['file']}, reserved by {holder} as {waiting['reserved']}{until}"


_WAIT_TEXT: Mapping[str, Callable[[WaveReply], str]] = {
    "slot": lambda _: "a free slot",
    "file": _file_wait_text,
    "room": lambda _: "room for more reservations",
    "task": lambda waiting: f"the end of {', '.join(waiting['tasks'])}",
    "rest": lambda waiting: f"{waiting['until']}, when its cooldown after a failure ends",
    "claim": lambda _: "an agent that claims it",
    "tick": lambda _: "the next check of the wave, by a hub or by `dragoman tick`",
}


COMMANDS = (
    CliCommand("start", start),
    CliCommand("status", show, takes_as=False),
    CliCommand("watch", watch, takes_as=False),
    CliCommand("list", list_waves, takes_as=False),
    CliCommand("show", show, takes_as=False, hidden=True),
)
