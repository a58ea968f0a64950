"""`dragoman trace`: a coding agent's own record of a session, as turns and events of a task."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dragoman.core.errors import Refusal
from dragoman.core.ids import is_task_name, quoted_name
from dragoman.core.states.trace import PARTS
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.growing import read_document, read_lines
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.reading import open_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.trace.sending import Sender, Sent, Tally
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.protocols.saop.capture.scribe import About, Captured
    from dragoman.protocols.saop.capture.transcript import Transcript

_AT_ONCE = 200
"""Number of messages that are sent together."""
_SHOWN = 5


def trace(
    call: Call,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False, help="The session file, or spans."),
    ],
    *,
    task: Annotated[
        str,
        typer.Option("--task", metavar="ID", show_default=False, help="The task that it is of."),
    ] = "",
    role: Annotated[
        Literal["researcher", "architect", "developer", "reviewer"] | None,
        typer.Option(
            "--role",
            show_default=False,
            help="The SAOP role of the agent; else that of --as, else developer.",
        ),
    ] = None,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            show_default=False,
            help="The agent's session; else that of its attempt, else the one in the file.",
        ),
    ] = "",
    kind: Annotated[
        Literal["claude-code", "codex", "otlp"] | None,
        typer.Option("--format", show_default=False, help="What the file is; else by its lines."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as the file grows; Ctrl-C ends it.")
    ] = False,
    close: Annotated[
        bool,
        typer.Option("--close", help="Take the last turn too, though it does not look finished."),
    ] = False,
) -> Answer | None:
    """Import the record of a coding agent's work.

    It reads session files of Claude Code and of Codex, and OpenTelemetry spans (OTLP/JSON), and
    records what the agent thought, did and observed as turns and events of a task. What was
    imported before is not imported again, so you can run it again when the file has grown. Secrets
    are masked on the way in.

    \b
    Examples:
      dragoman trace ~/.claude/projects/-home-ada-parser/7c1e6f0a.jsonl --task T-1 --as ada
      dragoman trace rollout.jsonl --task T-1 --role reviewer --follow
    """
    if not task:
        wrong_usage("say which task the session is of, with --task ID")
    if not is_task_name(task):
        wrong_usage(f"{quoted_name(task)} is not the name of a task: correct --task")
    from dragoman.protocols.saop.capture.scribe import About
    from dragoman.protocols.saop.capture.transcript import Transcript
    from dragoman.surfaces.cli.trace.reading import Before

    with open_source(str(file)) as opened, call.writing() as place:
        part = role or _part_of(place, call.speaker())
        about = About(task, part, session or _session_of(place, task))
        before = Before(place.hub.store, task, is_named=bool(session))
        transcript = Transcript(about, place.hub.clock.now(), kind or "", before)
        sender = Sender(place, call.actor(place, call.speaker()), task, before.turns)
        lines = read_lines(opened, file, call.wait if follow else None)
        captured = _captured(transcript, lines, file, closes=close)
        early = list["Captured"]()
        begin = _till_known(captured, early, lambda: _is_known(place, task))
        for some in chain(begin, _in_parts(captured, 1 if follow else _AT_ONCE)):
            for sent in sender.send(some):
                _tell(call, sender.tally, sent, is_told=follow)
            if sender.tally.is_hopeless:
                break
    if not transcript.kind:
        wrong_usage(_unknown(file, transcript.lines))
    if kind and not transcript.is_begun:
        wrong_usage(f"{file} holds nothing of {_session(kind)}: is --format the right one?")
    return _answer(about, transcript, sender.tally, len(early))


def _unknown(file: Path, lines: int) -> str:
    if not lines:
        return f"{file} is empty: import it when its session has begun"
    return f"{file} is no session file that is known here: name its --format"


def _is_known(place: Place, task: str) -> bool:
    from dragoman.engine.reads.ask import find_task

    return not isinstance(find_task(place.hub.store, task), Refusal)


def _part_of(place: Place, speaker: str) -> str:
    """SAOP role: the registered one of the actor, else developer."""
    from dragoman.engine.reads.ask import find_agent

    known = find_agent(place.hub.store, speaker) if speaker else None
    if known is not None and known.plays:
        return known.plays
    return speaker if speaker in PARTS else "developer"


def _session_of(place: Place, task: str) -> str:
    """Session of the task's lease, if it is held and the session has a name."""
    from dragoman.engine.reads.ask import find_task

    found = find_task(place.hub.store, task)
    return "" if isinstance(found, Refusal) or found.lease is None else found.lease.session


def _captured(
    transcript: "Transcript", lines: Iterator[bytes | None], file: Path, *, closes: bool
) -> Iterator["Captured"]:
    """Parse lines into messages; a document over many lines is parsed as one."""
    for line in lines:
        if line is None:
            if transcript.is_over:
                yield from transcript.close()
            continue
        if transcript.lines == 0 and not line.rstrip().endswith(b"}"):
            yield from transcript.feed(read_document(file))
            break
        yield from transcript.feed(line)
    if closes or transcript.is_over:
        yield from transcript.close()


def _till_known(
    captured: Iterator["Captured"], early: list["Captured"], is_known: Callable[[], bool]
) -> Iterator[list["Captured"]]:
    """Send turns one by one until the first has created the task; then the deferred events.

    Events before that are kept in `deferred`: recorded earlier they would belong to no task.
    """
    while not is_known():
        for one in captured:
            if one.kind == "turn":
                yield [one]
                break
            early.append(one)
        else:
            return
    while early:
        yield early[:_AT_ONCE]
        del early[:_AT_ONCE]


def _in_parts(captured: Iterator["Captured"], size: int) -> Iterator[list["Captured"]]:
    while part := list(islice(captured, size)):
        yield part


def _tell(call: Call, tally: Tally, sent: Sent, *, is_told: bool) -> None:
    """Print a refusal, and with --follow each new message."""
    if sent.refusal is not None:
        why = f"{sent.refusal.code}, {sent.refusal.detail}"
        call.err.line((f"{sent.what} was refused: ", "yellow"), why)
    elif is_told and tally.is_fresh(sent):
        data = {"what": sent.what, "position": sent.position, "masked": sent.masked}
        call.tell(Answer(data, lambda screen: screen.line(f"{sent.position:>6}  {sent.what}")))
        call.out.flush()


def _answer(about: "About", transcript: "Transcript", tally: Tally, early: int) -> Answer:
    turns, events = tally.taken["turn"], tally.taken["event"]
    data: dict[str, object] = {
        "task": about.task,
        "format": transcript.kind,
        "session": transcript.session,
        "lines": transcript.lines,
        "turns": turns,
        "events": events,
        "new": tally.fresh,
        "masked": tally.masked,
        "unfinished": not transcript.is_over,
        "waiting": early,
        "unreadable": transcript.unreadable,
    }
    refused = [
        {"what": sent.what, "code": sent.refusal.code, "detail": sent.refusal.detail}
        for sent in tally.refused
        if sent.refusal is not None
    ]
    if refused:
        data |= {"code": refused[0]["code"], "detail": refused[0]["detail"]}
    data["refused"] = refused
    return Answer(data, _shown(about, transcript, tally, early), is_ok=not tally.refused)


def _session(kind: str) -> str:
    return f"{'an' if kind.startswith('o') else 'a'} {kind} session"


def _shown(
    about: "About", transcript: "Transcript", tally: Tally, early: int
) -> Callable[[Screen], None]:
    def show(screen: Screen) -> None:
        turns, events = tally.taken["turn"], tally.taken["event"]
        screen.line(
            f"{about.task}: {turns} turns and {events} events of {_session(transcript.kind)}, "
            f"{tally.fresh} of them new"
        )
        if tally.masked:
            screen.line(f"secrets were masked in {tally.masked} of them")
        if not transcript.is_over:
            screen.line("the last turn is not finished: it is imported when it is, or with --close")
        if early:
            screen.line(f"{early} events wait for the first turn, which creates the task")
        if transcript.unreadable:
            some = ", ".join(map(str, transcript.unreadable[:_SHOWN]))
            screen.line(f"lines that are no JSON objects were left out: {some}")
        if tally.refused:
            screen.line(f"refused: {len(tally.refused)}; the rest is imported")

    return show


VERBS = (Verb("trace", trace),)
