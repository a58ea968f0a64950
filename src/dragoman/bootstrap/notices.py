"""Who is told what happens here: the targets of the settings, and the duty that tells them."""

from functools import partial
from pathlib import Path
from time import monotonic

from dragoman.config import Settings, environment
from dragoman.engine.hub import Hub
from dragoman.notify.notice import Notice, NoticeBuilder
from dragoman.services.notifier import Notifier, Target
from dragoman.system.outbox import OutboxFiles


def open_notifier(data: Path, settings: Settings, hub: Hub) -> Notifier[Notice]:
    """Open the notifier for all targets of the settings."""
    notices = NoticeBuilder(hub.store, settings.notify.statuses)
    return Notifier(hub, OutboxFiles(data), notices, notify_targets(settings, data), monotonic)


def notify_targets(settings: Settings, data: Path) -> list[Target[Notice]]:
    """Build the targets of the settings."""
    section, targets = settings.notify, list[Target[Notice]]()
    if section.webhook_url:
        from dragoman.notify.webhook import WebhookTarget
        from dragoman.system.fetch import SafeHttpClient

        endpoint = SafeHttpClient(section.webhook_url, "notify.webhook_url", section.allow_hosts)
        targets.append(WebhookTarget(section.webhook_secret, endpoint.post))
    if section.command:
        from dragoman.notify.command import CommandTarget
        from dragoman.system.spawn import run_program

        targets.append(
            CommandTarget(section.command, environment(), partial(run_program, folder=data))
        )
    return targets
