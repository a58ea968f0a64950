"""Chain file: one stream that proves itself; every change is detected without the ledger."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dragoman.core.task_state import CreateTask, NoteTask, Task
from dragoman.engine.verify import check_chain_file, write_chain
from dragoman.ledger.checkpoint import key_id, make_checkpoint, sign_checkpoint
from dragoman.ledger.entry import GENESIS, link_hash
from dragoman.ledger.tree import EMPTY_TREE, extend_tree
from tests.engine.lab import HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("CHAIN-FILE")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def signed_checkpoint(lab: Lab, key: Ed25519PrivateKey = KEY) -> bytes:
    """Sign a checkpoint of the current ledger."""
    tree = extend_tree(EMPTY_TREE, [entry.hash for entry in lab.store.entries(0, 1_000)])
    return sign_checkpoint(
        make_checkpoint(lab.store.ledger_id(), tree, START, key.public_key()), key
    )


def export_parts(lab: Lab, *checkpoints: bytes) -> list[dict[str, Any]]:
    """Export the chain file of task `one`, and decode its parts."""
    lines = write_chain(lab.store, "task:one", checkpoints, KEY.public_key())
    return [json.loads(line) for line in lines]


def encode_parts(parts: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(part).encode() for part in parts)


@pytest.fixture
def two_tasks(lab: Lab) -> Lab:
    """Lab with two tasks and three notes on the first."""
    lab.do(HUMAN, CreateTask("One", id="one"))
    lab.do(HUMAN, CreateTask("Two", id="two"))
    for text in ("a", "b", "c"):
        lab.do(HUMAN, NoteTask("one", text))
    return lab


def test_intact_chain_is_valid_and_anchored(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    proof = check_chain_file(encode_parts(parts))
    assert proof.problems == ()
    assert (proof.stream, proof.ledger) == ("task:one", "lab")
    assert (proof.entries, proof.anchored) == (4, 4)
    assert proof.key == key_id(KEY.public_key())
    assert proof.signed_at == "2026-02-09T14:30:00.000Z"
    assert isinstance(proof.state, Task)
    assert proof.state.notes == 3
    assert check_chain_file(encode_parts(parts), KEY.public_key()).problems == ()


def test_entries_after_the_checkpoint_are_valid_but_unanchored(two_tasks: Lab) -> None:
    old = signed_checkpoint(two_tasks)
    two_tasks.do(HUMAN, NoteTask("one", "late"))
    proof = check_chain_file(encode_parts(export_parts(two_tasks, old)))
    assert proof.problems == ()
    assert (proof.entries, proof.anchored) == (5, 4)


def test_checkpoint_older_than_the_chain_anchors_nothing(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("Two", id="two"))
    old = signed_checkpoint(lab)
    lab.do(HUMAN, CreateTask("One", id="one"))
    for checkpoints in ((old,), ()):
        proof = check_chain_file(encode_parts(export_parts(lab, *checkpoints)))
        assert proof.problems == ()
        assert (proof.entries, proof.anchored, proof.key) == (1, 0, "")


def test_changing_any_field_is_detected(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    for number, part in enumerate(parts):
        for field, value in part.items():
            if field in ("part", "key"):
                continue
            for other in _other_values(value):
                changed = [dict(one) for one in parts]
                changed[number][field] = other
                assert check_chain_file(encode_parts(changed)).problems != (), (
                    number,
                    field,
                    other,
                )


def _other_values(value: Any) -> tuple[Any, ...]:
    if isinstance(value, int):
        return value + 100, value - 1, 0
    if isinstance(value, list):
        return ([],)
    return (value[:-1] + ("0" if value[-1] != "0" else "1"),)


def test_unsigned_field_is_rejected(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    parts[1]["position"] = 1
    assert "there is no such field" in check_chain_file(encode_parts(parts)).problems[0]


def test_rewritten_chain_does_not_match_its_checkpoint(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    previous = GENESIS
    for part in parts[1:-1]:
        part["line"] = part["line"].replace('"text":"a"', '"text":"z"')
        previous = link_hash(previous, part["line"].encode())
        part["hash"] = previous.hex()
    (problem,) = check_chain_file(encode_parts(parts)).problems
    assert "does not match the signed checkpoint" in problem


def test_checkpoint_of_an_untrusted_key_is_rejected(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    (problem,) = check_chain_file(encode_parts(parts), OTHER.public_key()).problems
    assert "the checkpoint is invalid" in problem


def test_checkpoint_of_another_ledger_is_rejected(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    parts[0]["ledger"] = "another"
    (problem,) = check_chain_file(encode_parts(parts)).problems
    assert "of another ledger" in problem


def test_line_that_is_not_an_entry_is_reported(two_tasks: Lab) -> None:
    parts = export_parts(two_tasks, signed_checkpoint(two_tasks))
    parts[2]["line"] = "{}"
    problems = check_chain_file(encode_parts(parts)).problems
    assert any("entry 2:" in problem for problem in problems)


@pytest.mark.parametrize("data", [b"", b"{", b'{"part":"entry"}', b"\xff"])
def test_malformed_file_is_rejected(data: bytes) -> None:
    (problem,) = check_chain_file(data).problems
    assert "not a chain file" in problem


def test_unknown_format_is_rejected() -> None:
    head = {"part": "head", "format": "x", "ledger": "l", "stream": "s", "entries": 0}
    assert "does not begin with" in check_chain_file(encode_parts([head])).problems[0]


def test_trusted_key_must_cover_all_entries_unless_a_tail_is_allowed(two_tasks: Lab) -> None:
    forged = export_parts(two_tasks, signed_checkpoint(two_tasks))[:-1]
    previous = GENESIS
    for part in forged[1:]:
        part["line"] = part["line"].replace('"text":"a"', '"text":"z"')
        previous = link_hash(previous, part["line"].encode())
        part["hash"] = previous.hex()
    for allow_tail in (False, True):
        proof = check_chain_file(encode_parts(forged), KEY.public_key(), allow_tail=allow_tail)
        assert proof.problems == ("no checkpoint of the key covers 4 of 4 entries",)
    old = signed_checkpoint(two_tasks)
    two_tasks.do(HUMAN, NoteTask("one", "late"))
    tail = encode_parts(export_parts(two_tasks, old))
    assert "covers 1 of 5 entries" in check_chain_file(tail, KEY.public_key()).problems[0]
    assert check_chain_file(tail, KEY.public_key(), allow_tail=True).problems == ()


@pytest.mark.parametrize(
    "order",
    ["0012345", "0123450", "0123455", "051234"],
    ids=["two heads", "head at the end", "two anchors", "anchor before its entries"],
)
def test_misplaced_head_or_anchor_is_rejected(two_tasks: Lab, order: str) -> None:
    found = export_parts(two_tasks, signed_checkpoint(two_tasks))
    parts = [found[int(number)] for number in order]
    for key in (None, KEY.public_key()):
        assert check_chain_file(encode_parts(parts), key).problems == (
            "it is not a chain file: it needs a head, entries, and at most one anchor",
        )
