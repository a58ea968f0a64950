"""Full disk as people and agents see it: on the command line and over HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults.quota import Quota
from tests.faults.recorder import recorded_disk
from tests.faults.recording import ObservableStore
from tests.requirements import proves
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import HubServer, Timeouts, serving

ROOM = 100_000_000
LIMIT = 64 * 1024
"""Maximal length of a file: enough for a short message, too little for a long one."""

LIMITED = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}))
runpy.run_module("dragoman", run_name="__main__", alter_sys=True)
"""
"""The program under a limit of the operating system for the length of files."""


def run_limited(data: Path, *words: str) -> tuple[int, Any]:
    """Run a command under the limit; returns its exit code and its JSON."""
    done = subprocess.run(
        (sys.executable, "-c", LIMITED, "--data", str(data), *words, "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@proves("DISK-FULL", "DISK-ERROR", "CLI-EXIT")
def test_command_line_on_full_disk_refuses_reads_and_recovers(tmp_path: Path) -> None:
    data = tmp_path / "hub"
    console = Console(data)
    console.make("One", "--id", "T-1")

    code, refused = run_limited(
        data, "task", "create", "Two", "--id", "T-2", "--body", "x" * 100_000
    )
    assert (code, refused["code"]) == (1, "store_unavailable")
    assert f"the disk under {data / 'dragoman.db'} failed" in refused["detail"]
    code, listed = run_limited(data, "task", "list")
    assert (code, [task["id"] for task in listed["tasks"]]) == (0, ["T-1"])

    assert console.make("Two", "--id", "T-2", "--body", "x" * 100_000) == "T-2"
    assert console("verify").code == 0


@proves("DISK-FULL", "HTTP-HEALTH")
def test_http_on_full_disk_answers_503_and_serves_reads(tmp_path: Path) -> None:
    with recorded_disk() as disk:
        quota = Quota(disk, {}, ROOM)
        store = ObservableStore.at(tmp_path)
        with serving(HubServer(store, timeouts=Timeouts(readiness_cache=0))) as http_hub:
            assert (
                http_hub.request("POST", "/v1/tasks", {"title": "One", "id": "T-1"}).status == 201
            )
            quota.limit = quota.used
            refused = http_hub.request("POST", "/v1/tasks", {"title": "Two"})
            assert (refused.status, refused.code) == (503, "store_unavailable")
            assert "the disk is full" in refused.json["detail"]
            assert http_hub.request("GET", "/v1/tasks/T-1").status == 200
            quota.limit += ROOM
            assert http_hub.request("POST", "/v1/tasks", {"title": "Two"}).status == 201
            assert http_hub.request("GET", "/readyz", by="").status == 200
        store.close()
