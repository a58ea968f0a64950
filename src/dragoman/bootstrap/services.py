"""Background services of a hub in one table: `tick` runs all, `up` a thread for each group."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.checks import open_check_runner
from dragoman.bootstrap.open_router import Routing
from dragoman.bootstrap.projection import FileProjection, open_owner_notifier
from dragoman.config import AgentSettings, Settings
from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.mail import Mail
from dragoman.core.trace import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.lint import explain_unrecognized
from dragoman.engine.request import Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.files.atomic_write import write_if_changed
from dragoman.files.errors import Warn
from dragoman.files.inbox import Inbox, SendResult
from dragoman.files.layout import DELIVERIES
from dragoman.protocols.agentmail import MessageType, compose
from dragoman.services.check_runner import CheckRunner
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.deliverer import Deliverer
from dragoman.services.file_service import FileService
from dragoman.services.notifier import Notifier
from dragoman.services.scheduler import ServiceGroup
from dragoman.services.search_indexer import SearchIndexer
from dragoman.services.spawner import Spawner, SpawnPolicy, SpawnResult
from dragoman.services.stale_stream_closer import StaleCarryOver, StaleStreamCloser
from dragoman.services.timers import time_driven_services
from dragoman.surfaces.cli.data_directory import DirectoryParts
from dragoman.system.safe_fs import SafeDisk
from dragoman.system.state_files import StateFile
from dragoman.text.strict_json import MAX_BYTES

# --- requests for workers ---------------------------------------------------------------------


def agent_queues(name: str, agent: AgentSettings) -> tuple[str, ...]:
    """Queues of an agent of the settings; "" stands for tasks of anyone."""
    return ("",) * agent.takes_unassigned + (name, *agent.capabilities)


def open_spawner(settings: Settings, hub: Hub, router: Router) -> Spawner:
    """Open the spawner, which answers in the hub's own name."""
    policy = spawn_policy(settings)
    # The sender is the addressee of the request; the role shows that the hub wrote the letter.
    actor = Actor("system", policy.spawner, "spawner")
    return Spawner(hub, policy, partial(_post_answer, router, actor))


def spawn_policy(settings: Settings) -> SpawnPolicy:
    """Policy for requests for workers, from the settings."""
    section = settings.agentmail
    return SpawnPolicy(section.spawner, MessageType.SPAWN_REQUEST, section.spawn_within_ms)


def _post_answer(router: Router, actor: Actor, request: Mail, result: SpawnResult) -> None:
    ack = _format_ack(request, result)
    row = {
        "to": [request.sender],
        "subject": ack.subject,
        "body_md": f"{ack.body_md}\n{result.reason}".rstrip() + "\n",
        "reply_to": request.id,
    }
    # Two hubs on one store may both answer: the key makes one letter of it.
    answer = router.call("mail.send", row, actor, key=f"spawn.{request.id}")
    if isinstance(answer, Rejected):
        raise Refused(Refusal(answer.code, answer.detail))


def _format_ack(request: Mail, result: SpawnResult) -> compose.Rendered:
    status = "spawned" if result.session else "failed"
    if not request.bead:  # a request without a task has no issue for the form
        return compose.Rendered(MessageType.SPAWN_ACK, f"Status: {status}\n")
    return compose.render(
        compose.draft(MessageType.SPAWN_ACK, request.bead, status=status, session=result.session)
    )


# --- plain files ------------------------------------------------------------------------------


def open_inbox(disk: SafeDisk, router: Router, facts: StoreFacts, warn: Warn) -> Inbox:
    """Open the inbox; its messages go to this router."""
    return Inbox(disk, partial(_submit_inbox_message, router, facts), MAX_BYTES, warn)


def _submit_inbox_message(
    router: Router, facts: StoreFacts, message: bytes, agent: str | None
) -> SendResult:
    """Submit a message of the inbox: as the agent whose folder it lay in, or as the one that it
    names.
    """
    speaker = None if agent is None else facts.resolve_actor(agent, "inbox")
    answer = router.send(message, speaker=speaker, via="inbox")
    if answer is None:
        fault = explain_unrecognized(message, router.dialects)
        return Refusal(fault.code, fault.detail)
    if isinstance(answer, Rejected):
        return Refusal(answer.code, answer.detail)
    return answer.warnings


class FileServices(Struct, frozen=True):
    """Services for plain files; none, where there are no files."""

    inbox: tuple[FileService, ...] = ()
    """Process messages of the inbox; their senders wait for an answer."""
    polled: tuple[FileService, ...] = ()
    """Process changes that people and agents make to files."""
    commit_driven: tuple[FileService, ...] = ()
    """Bring the files up to date with the ledger."""


def open_file_services(
    files: FileProjection, inbox: Inbox, sweep: Callable[[int], int]
) -> FileServices:
    """Services for the files; `sweep` removes what a crash has left of artifacts."""
    warn, now = files.warn, files.hub.clock.now
    process_inbox = FileService(
        "inbox", lambda: inbox.run_once(now()), warn, find_leftovers=inbox.failure_summary
    )
    return FileServices(
        inbox=(process_inbox,),
        polled=(
            FileService("file-watch", files.projector.scan, warn),
            FileService("artifacts", lambda: sweep(now()), warn),
        ),
        commit_driven=(files.service,),
    )


def _write_delivery(data: Path, agent: str, name: str, content: bytes) -> None:
    """Write a delivered message where an agent finds it that has only a file system."""
    with closing(SafeDisk(data)) as disk:
        write_if_changed(disk, f"{DELIVERIES}/{agent}/{name}", content)


# --- the table --------------------------------------------------------------------------------


class ServicePorts(Struct, frozen=True):
    """Ports of the services beyond the store."""

    carry_over: StaleCarryOver
    close_stream: Callable[[str, str], RecordTrace | None]
    checkpointer: Checkpointer
    notifier: Notifier
    owner_notifier: Notifier
    check_runner: CheckRunner
    deliverer: Deliverer
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
        ServiceGroup("deliverer", commit_driven=(ports.deliverer,)),
        # A remote queue may be slow.
        ServiceGroup("inbox", files.inbox, interval_seconds=0.5, is_latency_sensitive=True),
        # A round checks the file of every task: even of very many it takes a hundredth of a core.
        ServiceGroup(
            "file-watch", files.polled, files.commit_driven, interval_seconds=2.0, idle_factor=100
        ),
        # A check may take as long as its time limit, which delays no round after it.
        ServiceGroup(
            "checks",
            commit_driven=(ports.check_runner,),
            idle_factor=0,
            hang_timeout_seconds=inf,
        ),
        ServiceGroup("checkpoint", commit_driven=(ports.checkpointer,)),
        ServiceGroup("notifier", commit_driven=(ports.notifier,)),
        ServiceGroup("owner-inbox", (ports.owner_notifier,)),
        ServiceGroup("search-index", (SearchIndexer(hub),), interval_seconds=2.0),
    )


# --- parts of a data directory ----------------------------------------------------------------


def build_parts(
    settings: Settings,
    routing: Routing,
    files: FileProjection,
    checkpointer: Checkpointer,
    notifier: Notifier,
) -> DirectoryParts:
    """Connect the hub with all services."""
    data, hub, warn = files.data, files.hub, files.warn
    opened = routing.opened
    # The inbox is processed in a thread of its own, so it needs a disk of its own.
    inbox = open_inbox(SafeDisk(data), routing.inbox_router, routing.facts, warn)
    artifacts = opened.handoff_ports.artifacts
    assert artifacts is not None, "a data directory has a store of artifacts"
    file_services = open_file_services(files, inbox, opened.handoff_ports.sweep)
    ports = ServicePorts(
        carry_over=opened.carry_over,
        close_stream=opened.close_stream,
        checkpointer=checkpointer,
        notifier=notifier,
        owner_notifier=open_owner_notifier(data, settings, hub),
        check_runner=open_check_runner(settings, data, hub),
        deliverer=Deliverer(
            hub,
            opened.dialects,
            StateFile(data / "deliveries.cursor"),
            partial(_write_delivery, data),
        ),
        files=file_services,
    )
    return DirectoryParts(
        service_groups(hub, settings, routing.router, ports),
        partial(_service_remarks, inbox, notifier),
        artifacts.verify_copy,
    )


def _service_remarks(inbox: Inbox, notifier: Notifier) -> dict[str, str]:
    rejected = f"rejected, with the reason beside it: {inbox.rejected}"
    return {
        **({"inbox": rejected} if inbox.rejected else {}),
        **({"notifier": trouble} if (trouble := notifier.problem_summary()) else {}),
    }
