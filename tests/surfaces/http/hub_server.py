"""A hub behind a real HTTP server on a free port, with a token for each agent, and its client."""

import json
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from typing import Any

import uvloop
from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import HttpSettings, LeaseSettings, Settings
from dragoman.core.actor import Actor
from dragoman.core.agent import IssueToken, RegisterAgent, digest_token, format_token
from dragoman.core.base import Command, Role
from dragoman.engine.auth import Authenticator
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import Clock, Store
from dragoman.engine.router import Router
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.engine.service_health import HealthProblem
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.subscribe import CommitHints
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.services.dispatch.agent_slots import AgentState
from dragoman.services.workq import HubWorkq
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http import HttpDeps, HttpServer, Timeouts, build_app
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.auth import PeerPolicy
from dragoman.surfaces.http.sessions import Sessions
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.clock import ManualClock, SequentialIds

START = 1_770_670_500_000
"""2026-02-09T20:55:00Z."""

OWNER_TOKEN = "drgo_the-owner-of-this-machine"
DAY_MS = 86_400_000
HERA = Actor("human", "hera")
SECRET = bytes(32)
JSON_HEADERS = {"Content-Type": "application/json"}


def _dialects(hub: Hub) -> tuple[Dialect, ...]:
    handoffs = acp.dialect(acp.Choices(workq=HubWorkq(hub)))
    return aof.dialect(), agentmail.dialect(), handoffs, ccos.dialect(), saop.dialect()


class Response(Struct, frozen=True):
    """Response of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Code of the problem document."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        return self.json["code"]


async def _reload_nothing() -> ReloadedSettings:
    return ReloadedSettings((), (), (), ())


class HubServer:
    """Hub with its HTTP application; `serving` serves it."""

    def __init__(
        self,
        store: Store | None = None,
        *,
        http: HttpSettings | None = None,
        leases: LeaseSettings | None = None,
        timeouts: Timeouts | None = None,
        monotonic: Callable[[], float] | None = None,
        clock: Clock | None = None,
        service_health: Callable[[], Mapping[str, HealthProblem]] = dict[str, HealthProblem],
        agent_states: Callable[[], Sequence[AgentState]] = list[AgentState],
        is_stopping: Callable[[], bool] = bool,
        checkpoints: CheckpointFile | None = None,
        is_hinted: bool = True,
    ) -> None:
        self._is_hinted = is_hinted
        self.clock = ManualClock(START)
        self.hints = CommitHints()
        self.ids = SequentialIds()
        self.store = store or MemoryStore("house")
        engine = Engine(self.store, clock or self.clock, SECRET, on_commit=self._on_commit)
        self.hub = Hub(engine, self.ids)
        self.identity = Authenticator(self.store, SECRET, OWNER_TOKEN.encode(), clock or self.clock)
        facts = StoreFacts(self.store, lambda _task, _ref: True, now=(clock or self.clock).now)
        self.tokens = {"owner": OWNER_TOKEN}
        self.deps = HttpDeps(
            hub=self.hub,
            router=Router(self.hub, _dialects(self.hub), facts),
            identity=self.identity,
            settings=Settings(
                http=http or HttpSettings(port=0, rate_per_second=0),
                leases=leases or LeaseSettings(),
            ),
            hints=self.hints,
            sessions=Sessions(SECRET, clock or self.clock),
            reload=_reload_nothing,
            service_health=service_health,
            agent_states=agent_states,
            is_stopping=is_stopping,
            checkpoints=checkpoints,
            timeouts=timeouts or Timeouts(),
        )
        if monotonic is not None:
            self.deps = replace(self.deps, monotonic=monotonic)
        self.app: HttpApp = build_app(self.deps)
        self.port = 0

    def _on_commit(self, streams: Iterable[str]) -> None:
        if self._is_hinted:
            changed = tuple(streams)
            self.identity.invalidate(changed)
            self.hints.notify(changed)

    def submit(self, *commands: Command, actor: Actor = HERA) -> str:
        """Submit commands to the hub directly; return the name of the last task."""
        return self.hub.submit(actor, *commands).receipts[-1].task

    def add_agent(self, name: str, role: Role = "agent") -> str:
        """Register an agent; return a token for it."""
        number = len(self.tokens)
        token = format_token(name, f"{number:012x}", "s" * 43)
        expires = self.hub.clock.now() + DAY_MS
        self.submit(
            RegisterAgent(name, role),
            IssueToken(name, f"{number:012x}", digest_token(token), expires),
        )
        self.tokens[name] = token
        return token

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        by: str = "owner",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request with the token of this agent; empty: without a token."""
        sent_headers = {"Authorization": f"Bearer {self.tokens[by]}"} if by else {}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent_headers |= (JSON_HEADERS if data is not None else {}) | dict(headers or {})
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, data, sent_headers)
            response = connection.getresponse()
            received_headers = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, received_headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, *, by: str = "owner", headers: Mapping[str, str] | None = None) -> Any:
        """Get the JSON at a path."""
        response = self.request("GET", path, by=by, headers=headers)
        assert response.status == 200, response
        return response.json

    def post(self, path: str, body: Any, *, by: str = "owner") -> Any:
        """Post a body; return the JSON of the response."""
        response = self.request("POST", path, body, by=by)
        assert response.status in (200, 201), response
        return response.json

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        """Open a bare connection to the server."""
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(30)
        sock.connect(("127.0.0.1", self.port))
        return sock

    def request_head(self, method: str, path: str, *lines: str, by: str = "owner") -> bytes:
        """Build the head of a request, to be sent over a bare connection."""
        return "\r\n".join(
            (
                f"{method} {path} HTTP/1.1",
                f"Host: 127.0.0.1:{self.port}",
                f"Authorization: Bearer {self.tokens[by]}",
                *lines,
                "",
                "",
            )
        ).encode()


@contextmanager
def serving(
    server: HubServer, connections: int = 0, peers: PeerPolicy | None = None
) -> Generator[HubServer]:
    """Serve the hub from a new thread; close both at the end."""
    http = server.deps.settings.http
    http_server = HttpServer(server.app, http, connections=connections, peers=peers)
    sock = http_server.bind()
    server.port = http_server.port
    thread = threading.Thread(target=lambda: uvloop.run(http_server.serve([sock])))
    thread.start()
    assert http_server.is_up.wait(30)
    try:
        yield server
    finally:
        http_server.stop()
        thread.join()
        with suppress(OSError):
            sock.close()
        server.hub.close()
