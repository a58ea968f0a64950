"""All duties of a hub in one table: `tick` runs it whole, and `up` makes a thread of each group."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.bootstrap.spawning import open_spawner
from dragoman.config import Settings
from dragoman.core.commands import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Router
from dragoman.engine.workq import WorkQueue
from dragoman.notify.notice import Notice
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.clockwork import ServiceGroup
from dragoman.services.handing_on import WorkqSync
from dragoman.services.indexer import SearchIndexer
from dragoman.services.notifier import Notifier
from dragoman.services.projector import FileService
from dragoman.services.thoughts import StaleCarryOver, StaleStreamCloser
from dragoman.services.timely import time_driven_services


class FileServices(Struct, frozen=True):
    """Services for plain files; none, where there are no files."""

    inbox: tuple[FileService, ...] = ()
    """Process messages of the inbox; their senders wait for an answer."""
    polled: tuple[FileService, ...] = ()
    """Process changes that people and agents make to files."""
    commit_driven: tuple[FileService, ...] = ()
    """Bring the files up to date with the ledger."""
    cleanup: tuple[FileService, ...] = ()
    """Remove what is not needed any more; this may take long."""


class ServicePorts(Struct, frozen=True):
    """Ports of the services beyond the store."""

    workq: WorkQueue
    carry_over: StaleCarryOver
    close_stream: Callable[[str, str], RecordTrace | None]
    checkpointer: Checkpointer
    notifier: Notifier[Notice]
    files: FileServices = FileServices()


def service_groups(
    hub: Hub, settings: Settings, router: Router, ports: ServicePorts
) -> tuple[ServiceGroup, ...]:
    """All services of a hub, each once; one that may take long or hang has a group of its own."""
    files = ports.files
    return (
        ServiceGroup(
            "time",
            time_driven_services(
                hub,
                settings,
                StaleStreamCloser(hub, ports.carry_over, ports.close_stream),
                open_spawner(settings, hub, router),
            ),
        ),
        # A remote queue may be slow.
        ServiceGroup("handing-on", (WorkqSync(hub, ports.workq),), interval_seconds=5.0),
        ServiceGroup("inbox", files.inbox, interval_seconds=0.5, is_latency_sensitive=True),
        # A round checks the file of every task: even of very many it takes a hundredth of a core.
        ServiceGroup(
            "files", files.polled, files.commit_driven, interval_seconds=2.0, idle_factor=100
        ),
        # Once a day it reads all handoffs.
        ServiceGroup("copies", files.cleanup, interval_seconds=60.0),
        ServiceGroup("checkpoint", commit_driven=(ports.checkpointer,)),
        ServiceGroup("notify", commit_driven=(ports.notifier,)),
        ServiceGroup("search", (SearchIndexer(hub),), interval_seconds=2.0),
    )
