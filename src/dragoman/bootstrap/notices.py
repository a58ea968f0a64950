"""Who is told what happens here: the targets of the settings, and the duty that tells them."""

from functools import partial
from pathlib import Path
from time import monotonic

from dragoman.config import Settings, environment
from dragoman.engine.hub import Hub
from dragoman.notify.notice import News, Notice
from dragoman.services.notifier import Notifier, Target
from dragoman.system.outbox import OutboxFiles


def open_notifier(data: Path, settings: Settings, hub: Hub) -> Notifier[Notice]:
    """Open the notifier for all targets of the settings."""
    news = News(hub.store, settings.notify.statuses)
    return Notifier(hub, OutboxFiles(data), news, targets_of(settings, data), monotonic)


def targets_of(settings: Settings, data: Path) -> list[Target[Notice]]:
    """Build the targets of the settings."""
    notify, targets = settings.notify, list[Target[Notice]]()
    if notify.webhook_url:
        from dragoman.notify.webhook import Webhook
        from dragoman.system.fetch import Endpoint

        endpoint = Endpoint(notify.webhook_url, "notify.webhook_url", notify.allow_hosts)
        targets.append(Webhook(notify.webhook_secret, endpoint.post))
    if notify.command:
        from dragoman.notify.command import Command
        from dragoman.system.spawn import run

        targets.append(Command(notify.command, environment(), partial(run, folder=data)))
    return targets
