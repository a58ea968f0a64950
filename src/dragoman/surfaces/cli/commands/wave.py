"""`dragoman wave`: run beads together, and see how far they are."""

import re
from typing import Any

from dragoman.surfaces.cli.context import CommandContext
from dragoman.surfaces.cli.generated import (
    Field,
    OperationCommand,
    Typed,
    make_commands,
)

# --- beads ------------------------------------------------------------------------------------

_RETRY = re.compile(r"([^=]+)=([0-9]{1,4})", re.ASCII)


def parse_retry(text: str) -> tuple[str, int]:
    """Parse TYPE=N."""
    match = _RETRY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!a} is not of the form TYPE=N, for example TESTS_FAIL=2")
    return match[1], int(match[2])


def parse_bead(text: str) -> dict[str, Any]:
    """Parse BEAD or BEAD=GLOB,GLOB."""
    name, _, files = text.partition("=")
    return {"id": name, "files": [file for file in files.split(",") if file]}


def _complete_wave(_: CommandContext, arguments: dict[str, Any], typed: Typed) -> None:
    arguments["retries"] = dict(typed["retry"] or ())


# --- wave -------------------------------------------------------------------------------------

_WAITS = (
    "{?waits_for.what=slot}a free slot"
    "|{?waits_for.what=file}{waits_for.file}, reserved|{?waits_for.what=file} by "
    "{waits_for.by.holder}|{?waits_for.what=file} for {waits_for.by.task}"
    "|{?waits_for.what=file} as {waits_for.reserved}"
    "|{?waits_for.what=file}, until {waits_for.by.until}"
    "|{?waits_for.what=task}the end of {waits_for.tasks}"
    "|{?waits_for.what=rest}{waits_for.until}, when its cooldown after a failure ends"
    "|{?waits_for.what=claim}an agent that claims it"
    "|{?waits_for.what=tick}the next check of the wave, by a hub or by `dragoman tick`"
)

_PROGRESS = (
    "{?complete}complete| since {ended_at}"
    "|{!complete}under way since {started_at}, at most {parallel} at a time|: {counts:counts}"
)

_WAVE = Field("wave_id", "", "ID", "The wave.", required=True)

START = OperationCommand(
    "start",
    "wave.start",
    """Start a wave: beads that are run together.

    They become ready in their order, at most so many at a time, and two that want the same files
    one after the other. Beads that are unknown here become tasks. It goes on by itself while a hub
    runs, or with every `dragoman tick`.""",
    "dragoman wave start ol-1=src/auth/ ol-2=src/auth/login.py,docs/ --parallel 2 --id w1",
    fields=(
        Field(
            "beads",
            "",
            "BEAD",
            "Beads, in the order in which they go; BEAD=GLOB,GLOB with the files it writes.",
            parse=parse_bead,
            many=True,
            required=True,
        ),
        Field("parallel", "--parallel", "N", "How many at a time.", required=True, range=(1, None)),
        Field("wave_id", "--id", "ID", "What to call the wave."),
        Field(
            "",
            "--retry",
            "TYPE=N",
            "Try a bead again N times after failures of this type, then block it.",
            parse=parse_retry,
            many=True,
        ),
        Field("orchestrator", "--orchestrator", "NAME", "Who gets the closing report; else you."),
    ),
    complete=_complete_wave,
    shown_by="wave.status",
    headline=("{wave_id}  |" + _PROGRESS,),
    columns={
        "BEAD": "{id}",
        "STATUS": "{status}",
        "ATTEMPTS": "{attempts}",
        "WHO": "{assignee}",
        "WAITS FOR, OR WHY IT IS STUCK": _WAITS + "|{why}",
    },
    styles={
        "in-progress": "yellow",
        "ready": "cyan",
        "review": "green",
        "done": "green",
        "blocked": "red",
        "deadletter": "red",
    },
)

STATUS = OperationCommand(
    "status",
    "wave.status",
    "Show how far a wave is, and what each bead waits for.",
    "dragoman wave status w1",
    fields=(_WAVE,),
    writes=False,
    headline=START.headline,
    columns=START.columns,
    styles=START.styles,
)

LIST = OperationCommand(
    "list",
    "wave.list",
    "List the newest waves.",
    "dragoman wave list",
    fields=(Field("limit", "--limit", "N", "How many at most.", range=(1, 200), default=20),),
    writes=False,
    columns={"WAVE": "{wave_id}", "STARTED": "{started_at}", "STATUS": _PROGRESS},
)


COMMANDS = make_commands((START, STATUS, LIST))
