"""Opens the router of a data directory, with all dialects and the facts that operations look up."""

from contextlib import closing
from functools import partial

from msgspec import Struct

from dragoman.bootstrap.dialects import OpenedDialects
from dragoman.bootstrap.projection import FileProjection
from dragoman.config import Settings
from dragoman.core.base import Role
from dragoman.engine.router import ForwardToHub, Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.task_actions import ActionSettings, action_dialect
from dragoman.files.task_work_folder import has_task_file
from dragoman.services.file_service import FileService
from dragoman.system.safe_fs import SafeDisk

INBOX_ROLES: frozenset[Role] = frozenset({"agent", "observer"})
"""Roles that may use the inbox, where a name is the only credential; the settings may trust
everyone who can write there."""


class Routing(Struct, frozen=True):
    """The router of a data directory, and what it shares with the services."""

    router: Router
    inbox_router: Router
    """Router of the messages that lie in the inbox."""
    opened: OpenedDialects
    facts: StoreFacts


def open_routing(settings: Settings, secret: bytes, files: FileProjection) -> Routing:
    """Connect the hub with its dialects."""
    hub = files.hub
    opened, facts = OpenedDialects(settings, files.data, hub, secret), _open_facts(files)
    # Of an engine that has its requests run elsewhere.
    forward: ForwardToHub | None = getattr(hub.engine, "forward", None)
    actions = action_dialect(ActionSettings(settings.retry, settings.attempts.pauses_limited))
    router = Router(hub, opened.dialects, facts, forward=forward, own=actions)
    inbox_router = (
        router
        if settings.files.trust_moves
        else Router(hub, opened.dialects, facts, admitted_roles=INBOX_ROLES, forward=forward)
    )
    return Routing(router, inbox_router, opened, facts)


def _open_facts(files: FileProjection) -> StoreFacts:
    hub, runs = files.hub, FileService("runs", files.check_runs, files.warn)
    return StoreFacts(
        hub.store,
        partial(_has_file, files),
        lambda: runs.run_once(hub.clock.now()),
        hub.clock.now,
    )


def _has_file(files: FileProjection, task: str, ref: str) -> bool:
    # In any thread of a running hub, while another one writes files: with a disk of its own.
    with closing(SafeDisk(files.data)) as disk:
        return has_task_file(files.hub.store, disk, task, ref)
