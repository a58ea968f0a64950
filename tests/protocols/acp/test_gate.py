"""The acceptance gate: checks, failures, transient faults and human approval."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import ArtifactMismatch, ExpectedArtifact, StoredArtifact
from dragoman.engine.redaction import RequestRedactor
from dragoman.text.redact import Redactor
from tests.protocols.acp.hub import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    MAX_BYTES,
    AcpHub,
    artifact,
    offer,
)
from tests.requirements import proves

pytestmark = proves("ACP-GATE")

HELLO_SHA256 = hashlib.sha256(b"hello\n").hexdigest()


def expect_rejection(hub: AcpHub, *artifacts: dict[str, Any], **more: Any) -> Any:
    """Accept an offer that the gate must reject, and return the reply."""
    id = hub.propose(artifacts=list(artifacts), **more)
    reply = hub.act("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "rejected"), reply
    kept = hub.handoff(id)
    assert kept.rejection is not None
    assert (kept.rejection.by, kept.rejection.reason) == ("hub", reply["error"]["code"])
    return reply


@proves("ACP-ARTIFACTS")
def test_artifact_copy_is_stored_under_its_hash(hub: AcpHub, tmp_path: Path) -> None:
    file = hub.write_artifact()
    id = hub.propose(artifacts=[artifact(sha256=HELLO_SHA256, size_bytes=6)])
    assert hub.act("accept", id, BOB)["success"]
    file.write_text("changed afterwards")
    assert hub.handoff(id).artifacts == {"a": HELLO_SHA256}
    copy = tmp_path / "artifacts" / "sha256" / HELLO_SHA256[:2] / HELLO_SHA256
    assert copy.read_text() == "hello\n"
    assert hub.act("activate", id, BOB)["success"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "not there": (artifact(path="b.txt"), "missing_artifact"),
    "another hash": (artifact(sha256="0" * 64), "hash_mismatch"),
    "another size": (artifact(size_bytes=7), "hash_mismatch"),
    "a folder": (artifact(path="folder"), "missing_artifact"),
    "a link out": (artifact(path="link"), "missing_artifact"),
    "through a link": (artifact(path="way/secret"), "missing_artifact"),
    "a pipe": (artifact(path="pipe"), "missing_artifact"),
    "absolute, elsewhere": (artifact(path="/etc/passwd"), "missing_artifact"),
    "a device": (artifact(path="/dev/zero"), "missing_artifact"),
    "too large": (artifact(path="large"), "policy_violation"),
}


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize("which", WRONG)
def test_invalid_artifact_rejects_the_handoff(hub: AcpHub, tmp_path: Path, which: str) -> None:
    hub.write_artifact()
    secret = tmp_path / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_text("not for you")
    (hub.artifacts / "folder").mkdir()
    (hub.artifacts / "link").symlink_to(secret)
    (hub.artifacts / "way").symlink_to(secret.parent)
    os.mkfifo(hub.artifacts / "pipe")
    with (hub.artifacts / "large").open("wb") as file:
        file.truncate(10 << 30)
    reference, code = WRONG[which]
    reply = expect_rejection(hub, reference)
    assert reply["error"]["code"] == code
    assert reply["metadata"]["verification_failed"][0].startswith(f"{code}: a: ")
    assert not list(tmp_path.glob("artifacts/sha256/*/*"))


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "/../etc/passwd", "a\x00b", "c:\\x", "a//b"])
def test_unsafe_artifact_path_refuses_the_offer(hub: AcpHub, path: str) -> None:
    reply = hub.reply(offer(artifacts=[artifact(path=path)]), ALICE)
    assert reply["error"]["code"] == "schema_invalid"
    assert "artifacts[0].ref.path" in reply["error"]["detail"]


@pytest.mark.parametrize(
    "digest",
    [HELLO_SHA256.upper(), f"sha256:{HELLO_SHA256}", HELLO_SHA256[:-1], f"{HELLO_SHA256}\n"],
)
def test_digest_must_be_lower_case_hexadecimal(hub: AcpHub, digest: str) -> None:
    reply = hub.reply(offer(artifacts=[artifact(sha256=digest)]), ALICE)
    assert reply["error"]["code"] == "schema_invalid"
    assert "artifacts[0].ref.sha256" in reply["error"]["detail"]


def test_optional_artifact_may_be_missing_but_not_different(hub: AcpHub) -> None:
    hub.write_artifact()
    optional = artifact("b", "b.txt", required=False)
    id = hub.propose(artifacts=[artifact(), optional])
    reply = hub.act("accept", id, BOB)
    assert (reply["success"], reply["metadata"]["left_out"]) == (True, ["b"])
    assert hub.act("accept", id, BOB) == reply
    wrong = artifact("b", "a.txt", required=False, sha256="0" * 64)
    assert expect_rejection(hub, wrong, task="t-2")["error"]["code"] == "hash_mismatch"


@proves("ACP-PARTIAL")
def test_recipient_can_leave_out_artifacts(hub: AcpHub) -> None:
    hub.write_artifact()
    id = hub.propose(artifacts=[artifact(), artifact("b", "nowhere")])
    misspelt = hub.act("accept", id, BOB, leave_out=["c"])
    assert (misspelt["error"]["code"], misspelt["status"]) == ("schema_invalid", "proposed")
    reply = hub.act("accept", id, BOB, leave_out=["b"])
    assert (reply["success"], reply["metadata"]["left_out"]) == (True, ["b"])
    assert (hub.handoff(id).left_out, list(hub.handoff(id).artifacts)) == (("b",), ["a"])
    again = hub.act("accept", id, BOB, leave_out=["a"])
    assert again["error"]["code"] == "invalid_transition"


def test_only_file_artifacts_are_checked(hub: AcpHub) -> None:
    pull = {"artifact_id": "p", "ref": {"type": "pr", "path": "https://example.org/1"}}
    id = hub.propose(artifacts=[pull])
    assert hub.act("accept", id, BOB)["success"]


def test_all_failures_are_listed_and_the_first_in_order_is_the_reason(tmp_path: Path) -> None:
    hub = AcpHub(
        tmp_path, classifications=frozenset({"internal"}), sensitivities=frozenset({"low"})
    )
    policy = {"classification": "restricted", "sensitivity": "high", "visibility": "team"}
    id = hub.propose(artifacts=[artifact(path="b.txt")], policy=policy)
    kept = hub.handoff(id)
    package = {**kept.package, "context": {"summary": "another"}, "more": 1, "thread_id": 1}
    hub.tamper(id, package=package, chain=("alice", "bob"))

    reply = hub.act("accept", id, BOB)

    codes = [line.partition(":")[0] for line in reply["metadata"]["verification_failed"]]
    assert codes == [
        "schema_invalid",
        "policy_violation",
        "policy_violation",
        "missing_artifact",
        "ownership_conflict",
        "hash_mismatch",
    ]
    assert (reply["error"]["code"], reply["metadata"]["verification_passed"]) == (
        "schema_invalid",
        [],
    )


def test_change_of_a_nested_field_after_hashing_is_detected(hub: AcpHub) -> None:
    id = hub.propose()
    kept: Any = hub.handoff(id).package
    task = {**kept["task"], "objective": "People can log in as anybody."}
    hub.tamper(id, package={**kept, "task": task})
    reply = hub.act("accept", id, BOB)
    assert (reply["status"], reply["error"]["code"]) == ("rejected", "hash_mismatch")
    assert reply["metadata"]["verification_passed"] == ["schema", "policy", "artifacts", "cycle"]


def test_unhashable_package_and_malformed_artifacts_are_refused(hub: AcpHub) -> None:
    id = hub.propose()
    kept: Any = hub.handoff(id).package
    hub.tamper(id, package={**kept, "artifacts": 7, "work_state": {"percent_complete": 2**60}})
    codes = [
        line.partition(":")[0]
        for line in hub.act("accept", id, BOB)["metadata"]["verification_failed"]
    ]
    assert codes == ["schema_invalid", "hash_mismatch"]


class FaultyArtifactStore:
    """Artifact store with unreadable files or changed copies while a fault is set."""

    def __init__(self, fault: str = "passing") -> None:
        self.fault: Any = fault
        self.bytes = 0
        self.read_paths: list[str] = []

    def file_size(self, teamspace: str, path: str) -> int | ArtifactMismatch:
        """Return the size, or the fault."""
        del teamspace, path
        return ArtifactMismatch(self.fault, "input/output error") if self.fault else self.bytes

    def store_file(
        self, teamspace: str, path: str, expected: ExpectedArtifact
    ) -> StoredArtifact | ArtifactMismatch:
        """Record the path and return its copy, or the fault."""
        del teamspace
        self.read_paths.append(path)
        if self.fault:
            return ArtifactMismatch(self.fault, "input/output error")
        return StoredArtifact(expected.sha256 or "0" * 64, self.bytes)

    def verify_copy(self, sha256: str) -> ArtifactMismatch | None:
        """Return the fault, if one is set."""
        del sha256
        return ArtifactMismatch(self.fault, "the copy was changed") if self.fault else None


def test_transient_fault_leaves_the_handoff_retryable(tmp_path: Path) -> None:
    store = FaultyArtifactStore()
    hub = AcpHub(tmp_path, artifacts=store)
    id = hub.propose(artifacts=[artifact()])
    reply = hub.act("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "validating")
    assert reply["error"]["code"] == "conflict_retry"
    assert "input/output error" in reply["error"]["detail"]
    store.fault = ""
    assert hub.act("accept", id, BOB)["status"] == "accepted"


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("different", "hash_mismatch"),
        ("missing", "missing_artifact"),
        ("passing", "conflict_retry"),
    ],
)
def test_copies_are_verified_again_on_activate(tmp_path: Path, fault: str, code: str) -> None:
    store = FaultyArtifactStore("")
    hub = AcpHub(tmp_path, artifacts=store)
    id = hub.advance_to("accepted", artifacts=[artifact()])
    store.fault = fault
    reply = hub.act("activate", id, BOB)
    assert (reply["error"]["code"], reply["status"]) == (code, "accepted")
    store.fault = ""
    assert hub.act("activate", id, BOB)["success"]


@proves("ACP-ARTIFACTS")
def test_missing_local_copy_is_made_from_the_verified_file(hub: AcpHub, tmp_path: Path) -> None:
    """Two hubs on one store have separate data directories and may share the artifact roots."""
    file, path = hub.write_artifact(), "a.txt"
    id = hub.advance_to("accepted", artifacts=[artifact()])
    other = AcpHub(tmp_path / "other", hub.lab)

    def refused() -> tuple[str, str]:
        reply = other.act("activate", id, BOB)
        assert reply["status"] == "accepted"
        return reply["error"]["code"], reply["error"]["detail"].partition(" itself: ")[2]

    assert refused() == (
        "missing_artifact",
        f"there is no file '{path}' beneath the roots of artifacts",
    )
    other.write_artifact(text="hullo\n")
    code, detail = refused()
    assert (code, detail.endswith(f"and not {HELLO_SHA256}")) == ("missing_artifact", True)
    other.write_artifact(text=file.read_text())
    assert other.act("activate", id, BOB)["success"]
    copy = tmp_path / "other" / "artifacts" / "sha256" / HELLO_SHA256[:2] / HELLO_SHA256
    assert copy.read_text() == "hello\n"


def test_copies_are_missing_without_an_artifact_store(hub: AcpHub, tmp_path: Path) -> None:
    hub.write_artifact()
    id = hub.advance_to("accepted", artifacts=[artifact()])
    other = AcpHub(tmp_path / "other", hub.lab, artifacts=None)
    assert other.act("activate", id, BOB)["error"]["code"] == "missing_artifact"


@pytest.mark.parametrize("policy", [{"requires_human_approval": True}, {"human_gate": "required"}])
def test_person_must_approve_this_very_package(hub: AcpHub, policy: Any) -> None:
    id = hub.propose(policy=policy)
    pending = hub.act("accept", id, BOB)
    assert (pending["status"], pending["error"]["code"]) == ("validating", "approval_required")
    for actor in (BOB, COORDINATOR):
        assert hub.act("approve", id, actor)["error"]["code"] == "not_authorized"
    other = hub.act("approve", id, HUMAN, package_hash="0" * 64)
    assert other["error"]["code"] == "hash_mismatch"
    assert hub.act("approve", id, HUMAN, package_hash=hub.handoff(id).package_hash)["success"]
    assert hub.act("accept", id, BOB)["status"] == "accepted"


def test_denial_rejects_as_policy_violation(hub: AcpHub) -> None:
    id = hub.propose(policy={"requires_human_approval": True})
    assert hub.act("deny", id, HUMAN, notes="not on a Friday")["status"] == "rejected"
    rejection = hub.handoff(id).rejection
    assert rejection is not None
    assert rejection.reason == "policy_violation"


@proves("ACP-ARTIFACTS")
def test_crash_between_gate_and_commit_leaves_the_offer_acceptable(hub: AcpHub) -> None:
    hub.write_artifact()
    id = hub.propose(artifacts=[artifact()])
    hub.lab.store.faults = [StoreUnavailable("the power is gone")] * 3
    with pytest.raises(StoreUnavailable):
        hub.act("accept", id, BOB)
    hub.lab.store.faults.clear()
    assert hub.handoff(id).status == "proposed"
    assert hub.act("accept", id, BOB)["status"] == "accepted"


def test_files_are_not_read_for_unauthorized_callers(tmp_path: Path) -> None:
    store = FaultyArtifactStore("missing")
    hub = AcpHub(tmp_path, artifacts=store)
    id = hub.propose(artifacts=[artifact()])
    assert hub.act("accept", id, ALICE)["error"]["code"] == "not_authorized"
    assert hub.handoff(id).status == "proposed"


def test_artifact_size_limit_comes_from_the_settings(hub: AcpHub) -> None:
    hub.write_artifact("edge", "x" * MAX_BYTES)
    assert hub.act("accept", hub.propose(artifacts=[artifact(path="edge")]), BOB)["success"]
    hub.write_artifact("edge", "x" * (MAX_BYTES + 1))
    reference = artifact(path="edge")
    assert expect_rejection(hub, reference, task="t-2")["error"]["code"] == "policy_violation"


def test_cycle_that_arose_after_the_gate_check_rejects_the_handoff(hub: AcpHub) -> None:
    id = hub.propose()
    hub.tamper_task("t-1", chain=("bob", "alice"))
    reply = hub.act("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "rejected")
    assert reply["error"]["code"] == "ownership_conflict"
    assert reply["metadata"]["verification_failed"]


@proves("ACP-ARTIFACTS")
def test_artifacts_of_a_package_have_a_total_size_limit(tmp_path: Path) -> None:
    store = FaultyArtifactStore("")
    store.bytes = 10
    hub = AcpHub(tmp_path, artifacts=store, max_package_bytes=29)
    three = [artifact(f"a-{n}", f"{n}.txt") for n in range(3)]
    reply = expect_rejection(hub, *three)
    assert reply["error"]["code"] == "policy_violation"
    assert "30 bytes" in reply["error"]["detail"]
    assert store.read_paths == []
    id = hub.propose(artifacts=three[:2], task="t-2")
    assert hub.act("accept", id, BOB)["success"]


@proves("ACP-ARTIFACTS")
def test_file_shared_by_many_artifacts_is_read_once(tmp_path: Path) -> None:
    store = FaultyArtifactStore("")
    hub = AcpHub(tmp_path, artifacts=store)
    same = [artifact(f"a-{n}") for n in range(20)]
    id = hub.propose(artifacts=[*same, artifact("b", sha256=HELLO_SHA256)])
    assert hub.act("accept", id, BOB)["success"]
    assert store.read_paths == ["a.txt", "a.txt"]
    assert len(hub.handoff(id).artifacts) == 21


SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@proves("ACP-SECRETS")
def test_package_with_a_secret_is_refused_with_its_path(tmp_path: Path) -> None:
    redaction = RequestRedactor(Redactor(key=b"k" * 32))
    hub = AcpHub(tmp_path, find_secret=redaction.check_document)
    arguments = offer(context={"summary": "Log in with it.", "assumptions": [f"token {SECRET}"]})
    reply = hub.reply(arguments, ALICE)
    assert reply["error"]["code"] == "policy_violation"
    assert reply["error"]["detail"].startswith("context.assumptions[0] holds a secret")
    assert SECRET not in str(reply)
    later = AcpHub(tmp_path / "later")
    id = later.reply(arguments, ALICE)["handoff_id"]
    strict = AcpHub(tmp_path / "strict", later.lab, find_secret=redaction.check_document)
    assert strict.act("accept", id, BOB)["error"]["code"] == "policy_violation"


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize("is_first", [True, False])
def test_missing_artifact_is_reported_before_a_hash_mismatch(hub: AcpHub, is_first: bool) -> None:
    hub.write_artifact()
    absent, wrong = artifact("absent", "b.txt"), artifact("wrong", size_bytes=1)
    reply = expect_rejection(hub, *((absent, wrong) if is_first else (wrong, absent)))
    codes = [line.partition(":")[0] for line in reply["metadata"]["verification_failed"]]
    assert codes == ["missing_artifact", "hash_mismatch"]
    assert reply["error"]["code"] == "missing_artifact"


@proves("ACP-ARTIFACTS")
def test_completion_with_a_missing_artifact_is_refused_and_stays_activated(hub: AcpHub) -> None:
    id = hub.propose()
    assert hub.act("accept", id, BOB)["success"]
    assert hub.act("activate", id, BOB)["success"]
    named = [artifact(path="none.txt"), artifact(path="also-none.txt", required=False)]
    named[1]["artifact_id"] = "b"
    refused = hub.act("complete", id, BOB, final_artifacts=named)
    assert refused["error"]["code"] == "missing_artifact"
    assert hub.handoff(id).status == "activated"
    hub.write_artifact("none.txt")
    assert hub.act("complete", id, BOB, final_artifacts=named)["success"]
