"""Dependencies of the HTTP surface: hub, router, settings, timeouts and health callbacks.

`bootstrap` puts them together.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic

from msgspec import Struct

from dragoman.config import Settings
from dragoman.engine.auth import Authenticator, Principal
from dragoman.engine.forwarding import CommandRun, ForwardedCall
from dragoman.engine.hub import Hub
from dragoman.engine.router import Router
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.engine.service_health import HealthProblem
from dragoman.engine.subscribe import CommitHints
from dragoman.files.task_branches import TaskBranches
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.surfaces.http.sessions import Sessions
from dragoman.system.checkpoint_file import CheckpointFile


class Timeouts(Struct, frozen=True):
    """Timeouts and intervals of the HTTP surface; in seconds, where nothing else is said."""

    request_head: float = 10.0
    """For the head of a request, from its first byte (or from the start of the connection) on."""
    body_idle: float = 10.0
    """For the next part of a body."""
    body: float = 120.0
    """For a whole body."""
    slow_body: float = 5.0
    """After which a body that has not come loses its place if others need it."""
    write_stall: float = 60.0
    """Until a client reads some more of its response; the reader of a stream may take its time."""
    keepalive: float = 15.0
    """Between two keep-alive comments to the reader of a stream."""
    poll_interval: float = 1.0
    """Between two reads of the ledger without a commit hint: another process may have written."""
    claim_retry: float = 2.0
    """Between two attempts of a long poll to claim a task: a cooldown may be over."""
    token_check: float = 5.0
    """Between two checks of the tokens of open streams."""
    readiness_cache: float = 1.0
    """Time for which a result of /readyz is cached."""
    store_inspection: float = 600.0
    """Between two inspections of the database for damage, when /readyz is called."""
    max_lag: int = 20_000
    """In entries: the reader of a stream that had caught up and is now further behind than this
    skips ahead, with a gap event."""


class HttpDeps(Struct, frozen=True):
    """Dependencies of the HTTP surface, put together by `bootstrap`."""

    hub: Hub
    router: Router
    identity: Authenticator
    settings: Settings
    hints: CommitHints
    """Notified by the engine after every commit."""
    sessions: Sessions
    reload: Callable[[], Awaitable[ReloadedSettings]]
    """Reloads the settings; SettingsError if no hub would start with them."""
    service_health: Callable[[], Mapping[str, HealthProblem]] = dict[str, HealthProblem]
    """Returns each background service by name, and its trouble."""
    agent_states: Callable[[], Sequence[AgentState]] = list[AgentState]
    """Returns the state of each agent that the hub starts."""
    start_command: Callable[[ForwardedCall, Principal], CommandRun] | None = None
    """Runs a command of the command line for the bearer of a token; None: its caller does."""
    is_stopping: Callable[[], bool] = bool
    """Returns whether the hub gives out no more work."""
    task_branches: TaskBranches | None = None
    """Differences and merges of the branches of tasks; None: no repository is known."""
    checkpoints: CheckpointFile | None = None
    """Signed checkpoints; None: nothing is signed."""
    timeouts: Timeouts = Timeouts()
    monotonic: Callable[[], float] = monotonic
    """Monotonic seconds, for rates and waits."""
