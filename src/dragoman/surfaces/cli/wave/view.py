"""How the command line shows a wave to people: a table of beads, and what each waits for."""

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.surfaces.cli.screen import Column, Screen

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
