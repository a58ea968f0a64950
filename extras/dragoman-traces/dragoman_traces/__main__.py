"""`dragoman-traces import` and `dragoman-traces export`: the command line.

The hub is found as every agent finds it: DRAGOMAN_URL and DRAGOMAN_TOKEN, or the data directory.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.client import connect_sync
from dragoman.core.agent import SAOP_ROLES
from dragoman.core.errors import DragomanError, SettingsError
from dragoman.core.ids import is_task_name, quote_name
from dragoman_traces.exporter import (
    HEADERS_VARIABLE,
    DeliveryFailed,
    make_collector,
    parse_headers,
    post_spans,
    read_spans,
)
from dragoman_traces.importer import FileShrunk, Importer, captured_messages
from dragoman_traces.transcript import READERS, CaptureTarget, Transcript

_POLL_SECONDS = 0.5


class UsageError(Exception):
    """The command line asks for something that cannot be."""


def main(
    arguments: Sequence[str] | None = None,
    wait: Callable[[], bool] | None = None,
) -> int:
    """Run the command line; `wait` pauses until a followed file may have grown."""
    options = _parser().parse_args(arguments)
    run: Callable[[Namespace, Callable[[], bool]], bool] = options.run
    try:
        return 0 if run(options, wait or _pause) else 1
    except (UsageError, FileShrunk, SettingsError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    except (DragomanError, DeliveryFailed) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser("dragoman-traces", description=__doc__)
    commands = parser.add_subparsers(required=True)
    importing = commands.add_parser(
        "import", help="Import a session file of Claude Code or Codex, or OpenTelemetry spans."
    )
    importing.add_argument("file", type=Path, help="The session file, or spans.")
    importing.add_argument("--task", required=True, help="The task that it is of.")
    importing.add_argument(
        "--role", choices=SAOP_ROLES, default="developer", help="The SAOP role of the agent."
    )
    importing.add_argument("--session", default="", help="The session; else the one in the file.")
    importing.add_argument(
        "--format", choices=tuple(READERS), default="", help="Else by its lines."
    )
    importing.add_argument("--follow", "-f", action="store_true", help="Go on as the file grows.")
    importing.add_argument(
        "--close", action="store_true", help="Take the last turn too, finished or not."
    )
    importing.set_defaults(run=_import)
    exporting = commands.add_parser("export", help="Print a task's trace as OpenTelemetry spans.")
    exporting.add_argument("task")
    exporting.add_argument("--to", default="", help="Post it to this collector instead.")
    exporting.set_defaults(run=_export)
    return parser


def _import(options: Namespace, wait: Callable[[], bool]) -> bool:
    file: Path = options.file
    task: str = options.task
    if not is_task_name(task):
        raise UsageError(f"{quote_name(task)} is not the name of a task: correct --task")
    file.open("rb").close()
    target = CaptureTarget(task, options.role, options.session)
    with connect_sync() as hub:
        importer = Importer(hub, task, has_chosen_session=bool(options.session))
        transcript = Transcript(target, _now_ms(), options.format, importer.start_session)
        messages = captured_messages(
            transcript, file, wait if options.follow else None, closes=options.close
        )
        if options.follow:
            importer.send(messages, batch_size=1)
        else:
            importer.send(messages)
    if not transcript.lines:
        raise UsageError(f"{file} is empty: import it when its session has begun")
    if not transcript.kind:
        raise UsageError(f"{file} is no session file that is known here: name its --format")
    if options.format and not transcript.has_content:
        raise UsageError(f"{file} holds nothing of {options.format}: is --format the right one?")
    print(
        json.dumps(
            {
                "task": task,
                "format": transcript.kind,
                "session": transcript.session,
                "lines": transcript.lines,
                **importer.counts,
                "lastTurnOpen": not transcript.is_finished,
                "deferredEvents": importer.deferred,
                "unreadable": transcript.unreadable,
                "refused": importer.refused,
            }
        )
    )
    return not importer.refused


def _export(options: Namespace, _: Callable[[], bool]) -> bool:
    to: str = options.to
    collector = make_collector(to) if to else None
    try:
        headers = parse_headers(os.environ.get(HEADERS_VARIABLE, "")) if to else {}
    except ValueError as error:
        raise UsageError(error) from None
    with connect_sync() as hub:
        spans = read_spans(hub, options.task)
    if collector is None:
        print(json.dumps(spans))
        return True
    count = post_spans(collector, to, headers, spans)
    print(json.dumps({"task": options.task, "spans": count, "to": to}))
    return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _pause() -> bool:
    """Pause until a followed file may have grown; Ctrl-C ends it."""
    try:
        time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
