"""Projection after every write: brings files and notifications up to date with the ledger."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic

from dragoman.config import Settings, environment
from dragoman.engine.hub import Hub
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.subscribe import DirtyStreams
from dragoman.files.projector import Projector
from dragoman.notify.notification import NotificationBuilder
from dragoman.notify.owner_inbox import OwnerInbox
from dragoman.protocols import aof
from dragoman.services.file_service import FileService
from dragoman.services.notifier import Notifier, Target
from dragoman.system.safe_fs import SafeDisk
from dragoman.system.state_files import OutboxFiles

# --- notifications ------------------------------------------------------------------------------


def open_notifier(data: Path, settings: Settings, hub: Hub) -> Notifier:
    """Open the notifier for all targets of the settings."""
    section = settings.notify
    notifications = NotificationBuilder(hub.store, section.statuses, section.attention)
    return Notifier(
        hub, OutboxFiles(data), notifications, notify_targets(settings, data), monotonic
    )


def open_owner_notifier(data: Path, settings: Settings, hub: Hub) -> Notifier:
    """Open the notifier that writes to the owner, who has an inbox since the first start of a
    hub."""
    notifications = NotificationBuilder(hub.store, (), settings.notify.attention)
    owner, is_wanted = settings.owner.name, settings.notify.inbox
    is_known = is_wanted and find_agent(hub.store, owner) is not None
    targets = [OwnerInbox(hub, owner)] if is_known else []
    outbox = OutboxFiles(data, "owner-inbox")
    notifier = Notifier(hub, outbox, notifications, targets, monotonic, "owner-inbox")
    notifier.register_targets()
    return notifier


def notify_targets(settings: Settings, data: Path) -> list[Target]:
    """Build the targets of the settings."""
    section, targets = settings.notify, list[Target]()
    if section.webhook_url:
        from dragoman.notify.webhook import WebhookTarget
        from dragoman.system.http_client import SafeHttpClient

        endpoint = SafeHttpClient(section.webhook_url, "notify.webhook_url", section.allow_hosts)
        targets.append(WebhookTarget(section.webhook_secret, endpoint.post))
    if section.command:
        from dragoman.notify.command_target import CommandTarget
        from dragoman.system.process import run_program

        targets.append(
            CommandTarget(section.command, environment(), partial(run_program, folder=data))
        )
    return targets


# --- plain files ------------------------------------------------------------------------------


class FileProjection:
    """Projection of one hub's ledger to the files of its data directory."""

    def __init__(
        self,
        data: Path,
        hub: Hub,
        warn: Callable[[str], None],
        renewed_leases: DirtyStreams,
        *,
        trust_moves: bool,
    ) -> None:
        self.data = data
        self.hub = hub
        self.warn = warn
        self.disk = SafeDisk(data)
        self.projector = Projector(hub, self.disk, aof.render_lines, warn, trust_moves=trust_moves)
        self.service = FileService(
            "projection",
            lambda: self.projector.catch_up(renewed_leases.take()),
            warn,
            find_leftovers=self.projector.failure_summary,
        )

    def check_runs(self) -> int:
        """Check the results of runs, with a disk of its own: any thread of a running hub may look
        them up while another one writes files."""
        with closing(SafeDisk(self.data)) as disk:
            Projector(self.hub, disk, aof.render_lines, self.warn).check_runs()
        return 0
