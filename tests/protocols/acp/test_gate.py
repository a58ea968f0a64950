"""The gate: every check, every failure, what is passing, and what a person has to agree to."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.artifacts import Expected, Kept, NotKept
from dragoman.engine.redaction import Redaction
from dragoman.text.redact import Redactor
from tests.protocols.acp.desk import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    MOST,
    Desk,
    artifact,
    offer,
)
from tests.requirements import proves

pytestmark = proves("ACP-GATE")

HELLO = hashlib.sha256(b"hello\n").hexdigest()


def rejected(desk: Desk, *artifacts: dict[str, Any], **more: Any) -> Any:
    """What accept answers about an offer that must not pass."""
    id = desk.offered(artifacts=list(artifacts), **more)
    reply = desk.do("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "rejected"), reply
    kept = desk.handoff(id)
    assert kept.rejection is not None
    assert (kept.rejection.by, kept.rejection.reason) == ("hub", reply["error"]["code"])
    return reply


@proves("ACP-ARTIFACTS")
def test_an_artifact_is_kept_as_it_was_hashed(desk: Desk, tmp_path: Path) -> None:
    file = desk.put()
    id = desk.offered(artifacts=[artifact(sha256=HELLO, size_bytes=6)])
    assert desk.do("accept", id, BOB)["success"]
    file.write_text("changed afterwards")
    assert desk.handoff(id).artifacts == {"a": HELLO}
    copy = tmp_path / "artifacts" / "sha256" / HELLO[:2] / HELLO
    assert copy.read_text() == "hello\n"
    assert desk.do("activate", id, BOB)["success"]


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
def test_an_artifact_that_is_not_as_it_has_to_be_rejects_the_handoff(
    desk: Desk, tmp_path: Path, which: str
) -> None:
    desk.put()
    secret = tmp_path / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_text("not for you")
    (desk.artifacts / "folder").mkdir()
    (desk.artifacts / "link").symlink_to(secret)
    (desk.artifacts / "way").symlink_to(secret.parent)
    os.mkfifo(desk.artifacts / "pipe")
    with (desk.artifacts / "large").open("wb") as file:
        file.truncate(10 << 30)
    given, code = WRONG[which]
    reply = rejected(desk, given)
    assert reply["error"]["code"] == code
    assert reply["metadata"]["verification_failed"][0].startswith(f"{code}: a: ")
    assert not list(tmp_path.glob("artifacts/sha256/*/*"))


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "/../etc/passwd", "a\x00b", "c:\\x", "a//b"])
def test_a_path_that_leads_astray_is_not_even_offered(desk: Desk, path: str) -> None:
    reply = desk.say(offer(artifacts=[artifact(path=path)]), ALICE)
    assert reply["error"]["code"] == "schema_invalid"
    assert "artifacts[0].ref.path" in reply["error"]["detail"]


@pytest.mark.parametrize("digest", [HELLO.upper(), f"sha256:{HELLO}", HELLO[:-1], f"{HELLO}\n"])
def test_a_digest_has_one_form(desk: Desk, digest: str) -> None:
    reply = desk.say(offer(artifacts=[artifact(sha256=digest)]), ALICE)
    assert reply["error"]["code"] == "schema_invalid"
    assert "artifacts[0].ref.sha256" in reply["error"]["detail"]


def test_what_is_not_required_may_be_missing_but_not_different(desk: Desk) -> None:
    desk.put()
    optional = artifact("b", "b.txt", required=False)
    id = desk.offered(artifacts=[artifact(), optional])
    reply = desk.do("accept", id, BOB)
    assert (reply["success"], reply["metadata"]["left_out"]) == (True, ["b"])
    assert desk.do("accept", id, BOB) == reply
    wrong = artifact("b", "a.txt", required=False, sha256="0" * 64)
    assert rejected(desk, wrong, task="t-2")["error"]["code"] == "hash_mismatch"


@proves("ACP-PARTIAL")
def test_a_recipient_takes_only_what_it_wants(desk: Desk) -> None:
    desk.put()
    id = desk.offered(artifacts=[artifact(), artifact("b", "nowhere")])
    misspelt = desk.do("accept", id, BOB, leave_out=["c"])
    assert (misspelt["error"]["code"], misspelt["status"]) == ("schema_invalid", "proposed")
    reply = desk.do("accept", id, BOB, leave_out=["b"])
    assert (reply["success"], reply["metadata"]["left_out"]) == (True, ["b"])
    assert (desk.handoff(id).left_out, list(desk.handoff(id).artifacts)) == (("b",), ["a"])
    again = desk.do("accept", id, BOB, leave_out=["a"])
    assert again["error"]["code"] == "invalid_transition"


def test_only_files_are_looked_at(desk: Desk) -> None:
    pull = {"artifact_id": "p", "ref": {"type": "pr", "path": "https://example.org/1"}}
    id = desk.offered(artifacts=[pull])
    assert desk.do("accept", id, BOB)["success"]


def test_all_failures_are_listed_and_the_first_in_order_is_the_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path, classifications=frozenset({"internal"}), sensitivities=frozenset({"low"}))
    policy = {"classification": "restricted", "sensitivity": "high", "visibility": "team"}
    id = desk.offered(artifacts=[artifact(path="b.txt")], policy=policy)
    kept = desk.handoff(id)
    package = {**kept.package, "context": {"summary": "another"}, "more": 1, "thread_id": 1}
    desk.tamper(id, package=package, chain=("alice", "bob"))

    reply = desk.do("accept", id, BOB)

    codes = [line.partition(":")[0] for line in reply["metadata"]["verification_failed"]]
    assert codes == [
        "schema_invalid",
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


def test_a_nested_field_that_was_changed_after_hashing_is_noticed(desk: Desk) -> None:
    id = desk.offered()
    kept: Any = desk.handoff(id).package
    task = {**kept["task"], "objective": "People can log in as anybody."}
    desk.tamper(id, package={**kept, "task": task})
    reply = desk.do("accept", id, BOB)
    assert (reply["status"], reply["error"]["code"]) == ("rejected", "hash_mismatch")
    assert reply["metadata"]["verification_passed"] == ["schema", "policy", "artifacts", "cycle"]


def test_what_cannot_be_hashed_and_artifacts_that_are_none(desk: Desk) -> None:
    id = desk.offered()
    kept: Any = desk.handoff(id).package
    desk.tamper(id, package={**kept, "artifacts": 7, "work_state": {"percent_complete": 2**60}})
    codes = [
        line.partition(":")[0]
        for line in desk.do("accept", id, BOB)["metadata"]["verification_failed"]
    ]
    assert codes == [*["schema_invalid"] * 4, "hash_mismatch"]


class Shaky:
    """A shelf on a disk that cannot be read just now, or whose copies are not what they were."""

    def __init__(self, trouble: str = "passing") -> None:
        self.trouble: Any = trouble
        self.bytes = 0
        self.taken: list[str] = []

    def size(self, teamspace: str, path: str) -> int | NotKept:
        """Nothing can be looked at while there is trouble."""
        del teamspace, path
        return NotKept(self.trouble, "input/output error") if self.trouble else self.bytes

    def take(self, teamspace: str, path: str, expected: Expected) -> Kept | NotKept:
        """It is kept."""
        del teamspace
        self.taken.append(path)
        if self.trouble:
            return NotKept(self.trouble, "input/output error")
        return Kept(expected.sha256 or "0" * 64, self.bytes)

    def check(self, sha256: str) -> NotKept | None:
        """The same."""
        del sha256
        return NotKept(self.trouble, "the copy was changed") if self.trouble else None


def test_passing_trouble_leaves_it_where_it_is_and_it_can_be_tried_again(tmp_path: Path) -> None:
    shelf = Shaky()
    desk = Desk(tmp_path, artifacts=shelf)
    id = desk.offered(artifacts=[artifact()])
    reply = desk.do("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "validating")
    assert reply["error"]["code"] == "try_again"
    assert "input/output error" in reply["error"]["detail"]
    shelf.trouble = ""
    assert desk.do("accept", id, BOB)["status"] == "accepted"


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize(
    ("trouble", "code"),
    [("different", "hash_mismatch"), ("missing", "missing_artifact"), ("passing", "try_again")],
)
def test_copies_are_looked_at_again_before_the_work_begins(
    tmp_path: Path, trouble: str, code: str
) -> None:
    shelf = Shaky("")
    desk = Desk(tmp_path, artifacts=shelf)
    id = desk.at("accepted", artifacts=[artifact()])
    shelf.trouble = trouble
    reply = desk.do("activate", id, BOB)
    assert (reply["error"]["code"], reply["status"]) == (code, "accepted")
    shelf.trouble = ""
    assert desk.do("activate", id, BOB)["success"]


@proves("ACP-ARTIFACTS")
def test_a_copy_that_another_hub_has_is_made_here_from_what_was_verified(
    desk: Desk, tmp_path: Path
) -> None:
    """Two hubs of one store have a data directory each, and may share where artifacts lie."""
    file, path = desk.put(), "a.txt"
    id = desk.at("accepted", artifacts=[artifact()])
    other = Desk(tmp_path / "other", desk.lab)

    def refused() -> tuple[str, str]:
        reply = other.do("activate", id, BOB)
        assert reply["status"] == "accepted"
        return reply["error"]["code"], reply["error"]["detail"].partition(" itself: ")[2]

    assert refused() == (
        "missing_artifact",
        f"there is no file '{path}' beneath the roots of artifacts",
    )
    other.put(text="hullo\n")
    code, why = refused()
    assert (code, why.endswith(f"and not {HELLO}")) == ("missing_artifact", True)
    other.put(text=file.read_text())
    assert other.do("activate", id, BOB)["success"]
    copy = tmp_path / "other" / "artifacts" / "sha256" / HELLO[:2] / HELLO
    assert copy.read_text() == "hello\n"


def test_copies_without_a_place_are_missing(desk: Desk, tmp_path: Path) -> None:
    desk.put()
    id = desk.at("accepted", artifacts=[artifact()])
    other = Desk(tmp_path / "other", desk.lab, artifacts=None)
    assert other.do("activate", id, BOB)["error"]["code"] == "missing_artifact"


@pytest.mark.parametrize("policy", [{"requires_human_approval": True}, {"human_gate": "required"}])
def test_a_person_has_to_agree_to_this_very_package(desk: Desk, policy: Any) -> None:
    id = desk.offered(policy=policy)
    waits = desk.do("accept", id, BOB)
    assert (waits["status"], waits["error"]["code"]) == ("validating", "approval_required")
    for nobody in (BOB, COORDINATOR):
        assert desk.do("approve", id, nobody)["error"]["code"] == "not_authorized"
    other = desk.do("approve", id, HUMAN, package_hash="0" * 64)
    assert other["error"]["code"] == "hash_mismatch"
    assert desk.do("approve", id, HUMAN, package_hash=desk.handoff(id).package_hash)["success"]
    assert desk.do("accept", id, BOB)["status"] == "accepted"


def test_a_person_may_say_no(desk: Desk) -> None:
    id = desk.offered(policy={"requires_human_approval": True})
    assert desk.do("deny", id, HUMAN, notes="not on a Friday")["status"] == "rejected"
    said = desk.handoff(id).rejection
    assert said is not None
    assert said.reason == "policy_violation"


@proves("ACP-ARTIFACTS")
def test_a_crash_between_the_gate_and_the_commit_leaves_the_offer_to_be_accepted(
    desk: Desk,
) -> None:
    desk.put()
    id = desk.offered(artifacts=[artifact()])
    desk.lab.store.faults = [StoreUnavailable("the power is gone")] * 3
    with pytest.raises(StoreUnavailable):
        desk.do("accept", id, BOB)
    desk.lab.store.faults.clear()
    assert desk.handoff(id).status == "proposed"
    assert desk.do("accept", id, BOB)["status"] == "accepted"


def test_files_are_not_touched_for_whom_they_are_not_meant(tmp_path: Path) -> None:
    shelf = Shaky("missing")
    desk = Desk(tmp_path, artifacts=shelf)
    id = desk.offered(artifacts=[artifact()])
    assert desk.do("accept", id, ALICE)["error"]["code"] == "not_authorized"
    assert desk.handoff(id).status == "proposed"


def test_the_bound_is_that_of_the_settings(desk: Desk) -> None:
    desk.put("edge", "x" * MOST)
    assert desk.do("accept", desk.offered(artifacts=[artifact(path="edge")]), BOB)["success"]
    desk.put("edge", "x" * (MOST + 1))
    given = artifact(path="edge")
    assert rejected(desk, given, task="t-2")["error"]["code"] == "policy_violation"


def test_a_cycle_that_has_come_about_since_the_gate_looked_is_a_no_all_the_same(
    desk: Desk,
) -> None:
    id = desk.offered()
    desk.tamper_task("t-1", chain=("bob", "alice"))
    reply = desk.do("accept", id, BOB)
    assert (reply["success"], reply["status"]) == (False, "rejected")
    assert reply["error"]["code"] == "ownership_conflict"
    assert reply["metadata"]["verification_failed"]


@proves("ACP-ARTIFACTS")
def test_all_artifacts_of_a_package_have_a_bound_together(tmp_path: Path) -> None:
    shelf = Shaky("")
    shelf.bytes = 10
    desk = Desk(tmp_path, artifacts=shelf, artifacts_bytes=29)
    three = [artifact(f"a-{n}", f"{n}.txt") for n in range(3)]
    reply = rejected(desk, *three)
    assert reply["error"]["code"] == "policy_violation"
    assert "30 bytes" in reply["error"]["detail"]
    assert shelf.taken == []
    id = desk.offered(artifacts=three[:2], task="t-2")
    assert desk.do("accept", id, BOB)["success"]


@proves("ACP-ARTIFACTS")
def test_a_file_to_which_many_artifacts_refer_is_read_once(tmp_path: Path) -> None:
    shelf = Shaky("")
    desk = Desk(tmp_path, artifacts=shelf)
    same = [artifact(f"a-{n}") for n in range(20)]
    id = desk.offered(artifacts=[*same, artifact("b", sha256=HELLO)])
    assert desk.do("accept", id, BOB)["success"]
    assert shelf.taken == ["a.txt", "a.txt"]
    assert len(desk.handoff(id).artifacts) == 21


SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@proves("ACP-SECRETS")
def test_a_package_with_a_secret_is_not_taken_and_its_place_is_named(tmp_path: Path) -> None:
    redaction = Redaction(Redactor(key=b"k" * 32))
    desk = Desk(tmp_path, secret_in=redaction.refusal)
    said = offer(context={"summary": "Log in with it.", "assumptions": [f"token {SECRET}"]})
    reply = desk.say(said, ALICE)
    assert reply["error"]["code"] == "policy_violation"
    assert reply["error"]["detail"].startswith("context.assumptions[0] holds a secret")
    assert SECRET not in str(reply)
    later = Desk(tmp_path / "later")
    id = later.say(said, ALICE)["handoff_id"]
    strict = Desk(tmp_path / "strict", later.lab, secret_in=redaction.refusal)
    assert strict.do("accept", id, BOB)["error"]["code"] == "policy_violation"


@proves("ACP-FORESEEN")
def test_who_offers_what_the_gate_would_turn_down_is_told_so_at_once(desk: Desk) -> None:
    desk.put("there.txt")
    desk.put("large.bin", "x" * (MOST + 1))
    files = [
        artifact("there", "there.txt"),
        artifact("gone", "gone.txt"),
        artifact("outside", "/etc/hostname"),
        artifact("large", "large.bin"),
        artifact("grown", "there.txt", size_bytes=1),
        artifact("spare", "spare.txt", required=False),
    ]
    said = desk.say(offer(artifacts=files), ALICE)
    assert said["success"]
    told = [warning.partition(" ")[0::2] for warning in said["metadata"]["warnings"]]
    assert [(code, detail.partition(":")[0]) for code, detail in told] == [
        ("missing_artifact:", "gone"),
        ("missing_artifact:", "outside"),
        ("policy_violation:", "large"),
        ("hash_mismatch:", "grown"),
    ]
    failed = desk.do("accept", said["handoff_id"], BOB)["metadata"]["verification_failed"]
    assert len(failed) == len(told)


@proves("ACP-FORESEEN")
def test_what_was_missing_may_be_there_by_the_time_it_is_accepted(desk: Desk) -> None:
    draft = {**offer(artifacts=[artifact()]), "action": "draft"}
    id = desk.say(draft, ALICE)["handoff_id"]
    assert "a: there is no file" in desk.do("validate", id, ALICE)["metadata"]["warnings"][0]
    assert len(desk.do("propose", id, ALICE)["metadata"]["warnings"]) == 1
    desk.put()
    assert desk.do("accept", id, BOB)["status"] == "accepted"


@proves("ACP-FORESEEN")
def test_all_files_together_may_be_too_much(tmp_path: Path) -> None:
    desk = Desk(tmp_path, artifacts_bytes=10)
    desk.put("a.txt", "x" * 6)
    desk.put("b.txt", "x" * 6)
    files = [artifact("a", "a.txt"), artifact("b", "b.txt")]
    (told,) = desk.say(offer(artifacts=files), ALICE)["metadata"]["warnings"]
    assert told.startswith("policy_violation: all artifacts have 12 bytes")


@proves("ACP-FINAL-ARTIFACTS")
def test_who_finishes_with_files_that_are_not_there_is_told_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, artifacts_bytes=20)
    desk.put("good.txt", "hello\n")
    digest = hashlib.sha256(b"hello\n").hexdigest()
    id = desk.at("activated")
    finals = [
        artifact("good", "good.txt", sha256=digest, size_bytes=6),
        artifact("gone", "gone.txt"),
        artifact("forged", "good.txt", sha256="0" * 64),
        artifact("short", "good.txt", size_bytes=7),
        artifact("maybe", "other.txt", required=False),
        {"artifact_id": "pr", "ref": {"type": "pr", "path": "17"}},
    ]
    assert "metadata" not in desk.do("complete", id, ALICE, final_artifacts=finals)
    done = desk.do("complete", id, BOB, final_artifacts=finals)
    assert (done["success"], done["status"]) == (True, "completed")
    assert [told.split(": ")[:2] for told in done["metadata"]["warnings"]] == [
        ["missing_artifact", "gone"],
        ["hash_mismatch", "forged"],
        ["hash_mismatch", "short"],
    ]
    assert not (tmp_path / "artifacts" / "sha256").exists(), "nothing is kept of them"
    again = desk.do("complete", id, BOB, final_artifacts=finals)
    assert (again["success"], again["status"]) == (True, "completed")


@proves("ACP-FINAL-ARTIFACTS")
def test_files_of_finished_work_that_are_too_much_are_not_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path, artifacts_bytes=10)
    desk.put("good.txt", "hello\n")
    forged = artifact("forged", "good.txt", sha256="0" * 64)
    id = desk.at("activated")
    twice = [forged, forged | {"artifact_id": "too"}]
    (told,) = desk.do("complete", id, BOB, final_artifacts=twice)["metadata"]["warnings"]
    assert "at most 10 are taken" in told
    bare = Desk(tmp_path / "bare", artifacts=None)
    done = bare.do("complete", bare.at("activated"), BOB, final_artifacts=twice)
    assert (done["status"], "warnings" in done.get("metadata", {})) == ("completed", False)


@proves("ACP-ARTIFACTS")
@pytest.mark.parametrize("is_first", [True, False])
def test_that_a_file_is_missing_comes_before_what_another_holds(desk: Desk, is_first: bool) -> None:
    desk.put()
    absent, wrong = artifact("absent", "b.txt"), artifact("wrong", size_bytes=1)
    reply = rejected(desk, *((absent, wrong) if is_first else (wrong, absent)))
    codes = [line.partition(":")[0] for line in reply["metadata"]["verification_failed"]]
    assert codes == ["missing_artifact", "hash_mismatch"]
    assert reply["error"]["code"] == "missing_artifact"
