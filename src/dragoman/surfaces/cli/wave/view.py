"""How the command line shows a wave to people: a table of beads, and what each waits for."""

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.surfaces.cli.screen import Column, Screen

Shown = Mapping[str, Any]

_STYLES = {
    "in-progress": "yellow",
    "ready": "cyan",
    "review": "green",
    "done": "green",
    "blocked": "red",
    "deadletter": "red",
}
_COLUMNS = (
    Column("BEAD", "bold"),
    Column("STATUS", styles=_STYLES),
    Column("ATTEMPTS"),
    Column("WHO"),
    Column("WAITS FOR, OR WHY IT IS STUCK"),
)


def show_wave(screen: Screen, wave: Shown) -> None:
    """Print a wave with its beads."""
    screen.line((wave["wave_id"], "bold"), f"  {headline(wave)}")
    rows = [
        (
            bead["id"],
            bead["status"],
            f"{bead['attempts']}",
            bead["assignee"] or "",
            waits_for(bead) or why_stuck(bead),
        )
        for bead in wave["beads"]
    ]
    screen.table(_COLUMNS, rows)


def headline(wave: Shown) -> str:
    """Progress of a wave in one line."""
    counts = ", ".join(f"{count} {status}" for status, count in wave["counts"].items())
    if wave["complete"]:
        since = f" since {wave['ended_at']}" if "ended_at" in wave else ""
        return f"complete{since}: {counts}"
    return f"under way since {wave['started_at']}, at most {wave['parallel']} at a time: {counts}"


def ended(wave: Shown) -> int:
    """Number of beads that have ended."""
    return sum(bead["ended"] for bead in wave["beads"])


def waits_for(bead: Shown) -> str:
    """The thing that a bead waits for; empty: nothing."""
    waiting = bead.get("waits_for")
    return "" if waiting is None else _WAITING[waiting["what"]](waiting)


def why_stuck(bead: Shown) -> str:
    """Reason why a bead is stuck; empty: it is not, or no reason was given."""
    return bead.get("why", "")


def _file(waiting: Shown) -> str:
    by = waiting["by"]
    bead = f"bead {by['task']}" if "task" in by else ""
    who = " for ".join(filter(None, (by["holder"], bead))) or "somebody"
    until = f", until {by['until']}" if by["until"] else ""
    return f"{waiting['file']}, reserved by {who} as {waiting['reserved']}{until}"


_WAITING: Mapping[str, Callable[[Shown], str]] = {
    "slot": lambda _: "a free slot",
    "file": _file,
    "room": lambda _: "room for more reservations",
    "task": lambda waiting: f"the end of {', '.join(waiting['tasks'])}",
    "rest": lambda waiting: f"{waiting['until']}, when its cooldown after a failure ends",
    "claim": lambda _: "an agent that claims it",
    "tick": lambda _: "the next check of the wave, by a hub or by `dragoman tick`",
}
