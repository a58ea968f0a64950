"""Lifecycle of a handoff over HTTP, with a hub in its own process."""

import hashlib
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e.hub_process import run_hub
from tests.e2e.program import Program
from tests.protocols.acp.hub import artifact, offer
from tests.requirements import proves

pytestmark = proves("ACP-RESPONSE", "ACP-GATE", "ACP-ARTIFACTS")


def post(url: str, token: str, action: dict[str, Any]) -> tuple[int, Any]:
    """Post an action and return the HTTP status and the reply."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(  # noqa: S310  our own hub
        f"{url}/v1/acp/acp_handoff", json.dumps(action).encode(), headers
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310  the same
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_handoff_goes_from_proposed_to_closed_over_http(program: Program) -> None:
    folder: Path = program.data / "teamspaces" / "default" / "artifacts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("hello\n")
    stated = hashlib.sha256(b"hello\n").hexdigest()
    tokens: dict[str, str] = {}
    for name in ("alice", "bob"):
        program.prepare("agent", "add", name, "--speaks", "acp")
    with run_hub(program) as running:
        for name in ("alice", "bob"):
            tokens[name] = program.ask("agent", "token", name)["token"]

        def act(by: str, **fields: Any) -> tuple[int, Any]:
            return post(running.url, tokens[by], fields)

        status, reply = act(
            "alice",
            **offer(artifacts=[artifact(sha256=stated)], policy={"requires_human_approval": True}),
        )
        assert (status, reply["status"]) == (200, "proposed")
        handoff = {"handoff_id": reply["handoff_id"]}
        assert act("alice", action="accept", **handoff)[0] == 403
        status, reply = act("bob", action="accept", **handoff)
        assert (status, reply["error"]["code"]) == (409, "approval_required")
        assert act("bob", action="approve", **handoff)[0] == 403
        assert program.run("handoff", "approve", handoff["handoff_id"]).code == 0
        for action, by, state in (
            ("accept", "bob", "accepted"),
            ("activate", "bob", "activated"),
            ("complete", "bob", "completed"),
            ("close", "alice", "closed"),
        ):
            status, reply = act(by, action=action, **handoff)
            assert (status, reply["success"], reply["status"]) == (200, True, state)
        assert act("bob", action="query", **handoff)[1]["handoffs"][0]["status"] == "closed"
        running.stop()
    assert program.ask("verify")["found"] == 0
    lines = (program.data / "teamspaces/default/handoffs/handoffs.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert (events[0], events[-1]) == ("handoff_created", "handoff_closed")
    copy = program.data / "artifacts" / "sha256" / stated[:2] / stated
    assert copy.read_text() == "hello\n"
