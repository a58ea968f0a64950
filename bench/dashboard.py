"""Dashboard: first paint with many tasks, a task page under load, its size, an idle page; and the
status that all of it begins with.

A page is measured in Chromium, by the processor time of its main thread where that says enough.
"""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from threading import Event
from time import perf_counter, process_time
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZipFile

from playwright.sync_api import BrowserContext, Page, sync_playwright

import dragoman
from bench.callers import open_hub
from bench.hub import Hub, started
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.task_state import CreateTask
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.status import find_status
from dragoman.engine.schemas.status import status_resource
from dragoman.engine.schemas.tasks import encode
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import dashboard
from dragoman.system.clock import new_id

AGENTS = 20
RATE = 1_000
"""Events a second to the task page."""

PAINT_SECONDS = 1.0
STATUS_SECONDS = 0.05
BUSY_SHARE = 0.5
FIRST_LOAD_BYTES, ALL_BYTES, WHEEL_BYTES = 200_000, 350_000, 2_000_000
"""Aims."""

_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PERSON = Actor("human", "reviewer")
_AT_ONCE = 500
_BATCHES_PER_SECOND = 20
_MS = 60_000
_LEAST_SECONDS = 1e-6
"""Time of a core that counts where none was taken, as in a very short run."""
_SETTLE_SECONDS = 3.0
"""After so long a hub that was started, and a page that was opened, are idle."""
_TASK = "under-load"
_LINES = ("the quick brown fox", "pytest tests/test_login.py .....", "E   assert 302 == 200")


# --- hubs -------------------------------------------------------------------------------------


def make_tasks(folder: Path, tasks: int) -> None:
    """Make a ledger of so many tasks, of which 20 agents hold some and have reported others."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        for begin in range(0, tasks, _AT_ONCE):
            some = range(begin, min(begin + _AT_ONCE, tasks))
            hub.submit(_PERSON, *(CreateTask(f"Task {n}", f"T-{n}", ready=True) for n in some))
        for number in range(AGENTS):
            agent = Actor("agent", f"agent-{number}")
            for outcome in (None, "done", "blocked"):
                task = hub.submit(agent, ClaimTask("", agent.name)).receipts[0].task
                if outcome is not None:
                    blockers = ("a question",) if outcome == "blocked" else ()
                    hub.submit(agent, ReportOutcome(task, outcome, "", blockers, apply=True))


def statuses(folder: Path, seconds: float) -> float:
    """Whole statuses as the hub answers them, in a second of a core."""
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        store, done, begun = hub.store, 0, process_time()
        while done == 0 or process_time() - begun < seconds:
            now = hub.clock.now()
            encode(status_resource(find_status(store, now, find_attention(store, now))))
            done += 1
        return done / (process_time() - begun)


class _Client:
    """One connection to a hub, as its owner or as somebody else."""

    def __init__(self, hub: Hub, token: str = "") -> None:
        address = urlsplit(hub.url)
        self._line = HTTPConnection(address.hostname or "", address.port)
        self._token = token or hub.token

    def post(self, path: str, body: Any, media: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._line.request("POST", path, content, headers)
        answer = self._line.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return None if media.endswith("ndjson") else json.loads(text)


# --- pages ------------------------------------------------------------------------------------


@contextmanager
def _signed_in(hub: Hub) -> Generator[BrowserContext]:
    """A browser with a cold cache, signed in as the owner."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=[*_FLAGS])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(_MS)
        path = _Client(hub).post("/v1/sign-in/links", {})["path"]
        headers = {"Dragoman-Page": "1"}
        code = {"code": path.partition("#")[2]}
        assert context.request.post(f"{hub.url}/v1/sign-in", data=code, headers=headers).ok
        try:
            yield context
        finally:
            browser.close()


def boards_per_second(folder: Path, _: float) -> float:
    """First paints a second of the board's cards, one after the other, from a cold cache."""
    with started(folder) as hub, _signed_in(hub) as context:
        page = context.new_page()
        page.goto(f"{hub.url}/board", wait_until="commit")
        shown = page.wait_for_function(
            "() => [...document.querySelectorAll('main *')]"
            ".some(e => !e.children.length && /^Task \\d+$/.test(e.textContent))"
            " && performance.now()"
        )
        return 1_000 / float(shown.json_value())


def idle_share_under_load(folder: Path, rate: int, seconds: float) -> float:
    """Seconds for each second that the main thread of the task page works, while so many events a
    second come; none may be lost."""
    (folder / "dragoman.toml").write_text("[http]\nrate_per_second = 0\n")
    token = _add_agent(folder)
    with started(folder) as hub:
        owner, agent = _Client(hub), _Client(hub, token)
        owner.post("/v1/tasks", {"id": _TASK, "title": "Under load", "ready": True})
        agent.post(f"/v1/tasks/{_TASK}/claim", {"agent": "ada", "session": "s-1"})
        with _signed_in(hub) as context:
            page = context.new_page()
            page.goto(f"{hub.url}/tasks/{_TASK}")
            page.get_by_role("list", name="Story").wait_for()
            before = _listed(page)
            devtools: Any = context.new_cdp_session(page)
            devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
            worked, begun = _worked(devtools), perf_counter()
            sent = _send_events(agent, rate, seconds)
            page.wait_for_function(_LISTED_ALL, arg=before + sent)
            return (perf_counter() - begun) / (_worked(devtools) - worked)


_LISTED_ALL = """wanted => [...document.querySelectorAll('button[aria-pressed] small')]
    .reduce((sum, one) => sum + Number(one.textContent.replace(/\\D/g, '')), 0) >= wanted"""


def _listed(page: Page) -> int:
    counts = page.locator("button[aria-pressed] small").all_inner_texts()
    return sum(int(re.sub(r"\D", "", text)) for text in counts)


def _worked(devtools: Any) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def _send_events(agent: _Client, rate: int, seconds: float) -> int:
    """Send lines of a terminal at this rate, in batches; the number of them."""
    size = max(1, rate // _BATCHES_PER_SECOND)
    batches = max(1, round(seconds * _BATCHES_PER_SECOND))

    begun = perf_counter()
    for batch in range(batches):
        lines = (_event(batch * size + number) for number in range(size))
        agent.post("/v1/messages", b"\n".join(lines), "application/x-ndjson")
        Event().wait(max(0, begun + (batch + 1) / _BATCHES_PER_SECOND - perf_counter()))
    return size * batches


def _event(number: int) -> bytes:
    line = f"{number} {_LINES[number % len(_LINES)]}"
    payload = {
        "type": "SANDBOX_PULSE",
        "line": line,
        "masked": False,
        "timestamp": "2026-02-09T14:30:00Z",
    }
    id = f"01890a5d-ac96-774b-bcce-{number:012x}"
    return json.dumps({"event_id": id, "session_id": "s-1", "payload": payload}).encode()


def _add_agent(folder: Path) -> str:
    """Register an agent that may send traces; its token."""
    program = [sys.executable, "-m", "dragoman", "--data", str(folder)]
    added = ("agent", "add", "ada", "--saop-role", "developer", "--json")
    subprocess.run([*program, *added], check=True, stdout=subprocess.DEVNULL)
    token = subprocess.run(
        [*program, "agent", "token", "ada", "--json"], check=True, stdout=subprocess.PIPE
    )
    return json.loads(token.stdout)["token"]


def idle_without_page(folder: Path, seconds: float) -> float:
    """Seconds for each second of a core that an idle hub takes, without a page."""
    with started(folder) as hub, _signed_in(hub):
        return _idle_seconds(hub, seconds)


def idle_with_page(folder: Path, seconds: float) -> float:
    """The same while somebody has the board open."""
    with started(folder) as hub, _signed_in(hub) as context:
        page = context.new_page()
        page.goto(f"{hub.url}/board")
        page.get_by_role("heading", level=1).first.wait_for()
        return _idle_seconds(hub, seconds)


def _idle_seconds(hub: Hub, seconds: float) -> float:
    Event().wait(_SETTLE_SECONDS)
    before, begun = _core_seconds(hub.pid), perf_counter()
    Event().wait(seconds)
    return (perf_counter() - begun) / max(_core_seconds(hub.pid) - before, _LEAST_SECONDS)


def _core_seconds(pid: int) -> float:
    """Time of a core that a process has taken, finer than the ticks of its statistics."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


# --- sizes ------------------------------------------------------------------------------------


def first_load_bytes() -> int:
    """Bytes, compressed, that the first visit of the start page loads in English."""
    files = dashboard.load_dashboard()
    page = files["/"].content.decode()
    named = ["/", *re.findall(r'(?:src|href)="(/[^"]+)"', page)]
    latin = [path for path in files if re.search(r"geist(-mono)?-latin-wght", path)]
    return sum(_sent_bytes(files[path]) for path in (*named, *latin))


def all_bytes() -> int:
    """Bytes of all files, compressed, with the fonts of every script."""
    return sum(map(_sent_bytes, dashboard.load_dashboard().values()))


def _sent_bytes(file: dashboard.DashboardFile) -> int:
    return len(file.compressed or file.content)


def wheel_bytes() -> int:
    """Bytes of the package as a compressed archive, which a wheel is."""
    package, archive = Path(dragoman.__file__).parent, BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as wheel:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                wheel.write(path, path.relative_to(package.parent))
    return len(archive.getvalue())
