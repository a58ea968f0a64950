"""All duties of a hub in one table: `tick` runs it whole, and `up` makes a thread of each group."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.bootstrap.spawning import open_spawner
from dragoman.config import Settings
from dragoman.core.commands import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.workq import Workq
from dragoman.notify.notice import Notice
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.clockwork import Group
from dragoman.services.handing_on import HandingOn
from dragoman.services.indexer import Indexer
from dragoman.services.notifier import Notifier
from dragoman.services.projector import FilesDuty
from dragoman.services.thoughts import Tails, Thoughts
from dragoman.services.timely import timely


class OfFiles(Struct, frozen=True):
    """Services for plain files; none, where there are no files."""

    inbox: tuple[FilesDuty, ...] = ()
    """Process messages of the inbox; their senders wait for an answer."""
    watched: tuple[FilesDuty, ...] = ()
    """Process changes that people and agents make to files."""
    followers: tuple[FilesDuty, ...] = ()
    """Bring the files up to date with the ledger."""
    swept: tuple[FilesDuty, ...] = ()
    """Remove what is not needed any more; this may take long."""


class Outside(Struct, frozen=True):
    """Ports of the services beyond the store."""

    workq: Workq
    tails: Tails
    end_thought: Callable[[str, str], RecordTrace | None]
    checkpointer: Checkpointer
    notifier: Notifier[Notice]
    files: OfFiles = OfFiles()


def all_duties(
    hub: Hub, settings: Settings, interpreter: Interpreter, outside: Outside
) -> tuple[Group, ...]:
    """All services of a hub, each once; one that may take long or hang has a group of its own."""
    files = outside.files
    return (
        Group(
            "time",
            timely(
                hub,
                settings,
                Thoughts(hub, outside.tails, outside.end_thought),
                open_spawner(settings, hub, interpreter),
            ),
        ),
        # A remote queue may be slow.
        Group("handing-on", (HandingOn(hub, outside.workq),), rest_seconds=5.0),
        Group("inbox", files.inbox, rest_seconds=0.5, is_awaited=True),
        # A round checks the file of every task: even of very many it takes a hundredth of a core.
        Group("files", files.watched, files.followers, rest_seconds=2.0, rest_share=100),
        # Once a day it reads all handoffs.
        Group("copies", files.swept, rest_seconds=60.0),
        Group("checkpoint", followers=(outside.checkpointer,)),
        Group("notify", followers=(outside.notifier,)),
        Group("search", (Indexer(hub),), rest_seconds=2.0),
    )
