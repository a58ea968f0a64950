"""Agents of the day that `test_day_one` plays: programs that only know the hub and their name.

`python day_agent.py KIND NAME FOLDER`: FOLDER is where one that fails on purpose remembers that it
has done so.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from dragoman.client import connect

IDLE_S = 0.3
"""Pause of an agent that found no work."""

IDLE = Event()
"""Never set."""

NOW = "2026-02-09T12:00:00Z"


def is_first_time(folder: Path, name: str) -> bool:
    """Return True once."""
    mark = folder / f"{name}.mark"
    was_there = mark.exists()
    mark.touch()
    return not was_there


def dragoman(*args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command."""
    command = (sys.executable, "-m", "dragoman", *args)
    return subprocess.run(command, capture_output=True, text=True, check=False)


# --- Python SDK -------------------------------------------------------------------------------


async def work_by_sdk(name: str, folder: Path) -> None:
    """Work on whatever there is; one asks, one falls silent in its first attempt."""
    async with connect() as hub:
        works = hub.work(name, beat_ms=500)
        while True:
            work = await anext(works)
            try:
                async with work:
                    if name == "sdk-silent" and is_first_time(folder, name):
                        await asyncio.Event().wait()
                    notes = "painted"
                    if name == "sdk-asks":
                        notes = await work.ask(f"Which colour for {work.task.id}?")
                    await work.progress("half of it")
                    await work.complete(notes)
            except Exception as error:  # noqa: BLE001  it goes on with the next task
                sys.stderr.write(f"{name}: {error}\n")


# --- MCP --------------------------------------------------------------------------------------


class McpClient:
    """A client of `dragoman mcp`, over standard input and output."""

    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "dragoman", "mcp", "--as", name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._requests = 0
        client = {"name": name, "version": "1"}
        self._request(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """Call a tool; None if it is refused."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        return None if result.get("isError") else json.loads(result["content"][0]["text"])

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._requests += 1
        self._send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._requests:
                return answer["result"]
        raise EOFError("the server has gone")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def work_by_mcp(name: str, _: Path) -> None:
    """Work on whatever there is."""
    client = McpClient(name)
    while True:
        claimed = client.call("claim")
        if claimed is None:
            IDLE.wait(IDLE_S)
            continue
        client.call("update", task=claimed["task"], progress="half of it")
        client.call("complete", task=claimed["task"], notes="painted")


# --- files and letters ------------------------------------------------------------------------


def work_by_folder(name: str, _: Path) -> None:
    """Accept tasks that wait for this agent, and report them, by files alone."""
    data = Path(os.environ["DRAGOMAN_DATA"])
    inbox = data / "inbox" / name
    inbox.mkdir(parents=True, exist_ok=True)
    while True:
        for status, drop in (("ready", _accept), ("in-progress", _report)):
            for file in (data / "tasks" / status).glob("*.md"):
                text = file.read_text() if file.exists() else ""
                target = inbox / f"{status}-{file.stem}.json"
                if f"\nassignee: {name}\n" in text and not list(inbox.rglob(f"{target.stem}*")):
                    draft = target.with_suffix(".draft")
                    draft.write_text(json.dumps(drop(name, file.stem)))
                    draft.rename(target)
        IDLE.wait(IDLE_S)


def _accept(_: str, task: str) -> dict[str, Any]:
    return {"subject": f"[{task}] BEAD_ACCEPTED", "body_md": f"Bead: {task}"}


def _report(name: str, task: str) -> dict[str, Any]:
    return {
        "protocol": "aof",
        "version": 1,
        "type": "completion.report",
        "taskId": task,
        "fromAgent": name,
        "toAgent": "dispatcher",
        "sentAt": NOW,
        "payload": {
            "outcome": "done",
            "summaryRef": "outputs/summary.md",
            "tests": {"total": 0, "passed": 0, "failed": 0},
            "notes": "painted",
        },
    }


def work_by_mail(name: str, _: Path) -> None:
    """Accept tasks that wait for this agent, and report them, by letters."""
    while True:
        ready = dragoman("task", "list", "--ready", "--assignee", name, "--json").stdout
        for task in re.findall(r'"id": ?"([^"]+)"', ready):
            for kind in ("BEAD_ACCEPTED", "DONE"):
                letter = ("--subject", f"[{task}] {kind}", "--body", f"Bead: {task}")
                dragoman("mail", "send", "--as", name, *letter)
        IDLE.wait(IDLE_S)


# --- started by the hub -----------------------------------------------------------------------


def work_once(name: str, folder: Path) -> None:
    """Read the prompt and print a report; one hangs in its first attempt."""
    prompt = sys.stdin.read()
    if name == "hangs" and is_first_time(folder, name):
        signal.pause()
    task = re.search(r"^Task (\S+), attempt", prompt, re.MULTILINE)
    assert task is not None, prompt
    sys.stdout.write(f"AOF/1 {json.dumps(_report(name, task[1]))}\n")


KINDS: dict[str, Callable[[str, Path], Any]] = {
    "sdk": lambda name, folder: asyncio.run(work_by_sdk(name, folder)),
    "mcp": work_by_mcp,
    "folder": work_by_folder,
    "mail": work_by_mail,
    "started": work_once,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
