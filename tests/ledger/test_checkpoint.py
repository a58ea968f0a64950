"""Checkpoints are valid only if key, signature, bytes and tree are right."""

import json
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.errors import FAULTS
from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    BadCheckpoint,
    Checkpoint,
    checkpoint_tree,
    extend_tree,
    find_checkpoint_of,
    key_id,
    make_checkpoint,
    read_checkpoint,
    read_checkpoint_lines,
    sign_checkpoint,
    tree_root,
)
from tests.requirements import proves

pytestmark = proves("LEDGER-CHECKPOINT")

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = PRIVATE.public_key()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
AT = 1_770_647_400_123
TREE = extend_tree(EMPTY_TREE, [b"one", b"two", b"three"])
CHECKPOINT = make_checkpoint("ledger-1", TREE, AT, PUBLIC)
LINE = sign_checkpoint(CHECKPOINT, PRIVATE)

# As released: a signed line of the first format must stay readable.
RELEASED_LINE = (
    b'{"at":"2026-02-09T14:30:00.123Z","key":"56475aa75463474c","ledger":"ledger-1","peaks":["4f'
    b'55f619d9215235778b2b9f17d6f4915b16171214d152381293669764de722e","671f146c5e471e8a1a83a3c21'
    b'4ce4ba907b8f3a5888d14cc8cd3ce75bb12ef94"],"root":"5aac771c899ac292e74bf1afe2e6e302f8b55883'
    b'b2d1bf197b46a6bea6dabca9","signature":"9353cf00c1130ab4f5520a90c53acdf88f6d2cab7567a2a635d'
    b'517f47f6f0150676e0b3a4fcce06a9243d665e80e46c819ed88c5e2389a1e7be492e84017020c","size":3}'
)


def with_fields(**fields: Any) -> bytes:
    """Change fields of the line under the old signature."""
    return json.dumps(json.loads(LINE) | fields, sort_keys=True, separators=(",", ":")).encode()


@given(st.lists(st.binary(max_size=4), max_size=20), st.text(st.characters(codec="utf-8")))
def test_signed_checkpoint_is_read_back(leaves: list[bytes], ledger: str) -> None:
    tree = extend_tree(EMPTY_TREE, leaves)
    checkpoint = make_checkpoint(ledger, tree, AT, PUBLIC)
    line = sign_checkpoint(checkpoint, PRIVATE)
    assert b"\n" not in line
    assert read_checkpoint(line, PUBLIC) == checkpoint
    assert checkpoint_tree(checkpoint) == tree


def test_line_has_all_fields_and_a_signature_over_their_canonical_form() -> None:
    fields = json.loads(LINE)
    signature = bytes.fromhex(fields.pop("signature"))
    assert fields == {
        "ledger": "ledger-1",
        "size": 3,
        "root": tree_root(TREE).hex(),
        "peaks": [peak.hex() for peak in TREE.peaks],
        "at": "2026-02-09T14:30:00.123Z",
        "key": sha256(PUBLIC.public_bytes_raw()).hexdigest()[:16],
    }
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    PUBLIC.verify(signature, b"dragoman checkpoint v1\n" + canonical)


def test_released_format_is_still_written_and_read() -> None:
    assert LINE == RELEASED_LINE
    assert read_checkpoint(RELEASED_LINE, PUBLIC) == CHECKPOINT


def test_every_flipped_bit_is_detected() -> None:
    for place in range(len(LINE)):
        for bit in range(8):
            flipped = bytearray(LINE)
            flipped[place] ^= 1 << bit
            with pytest.raises(BadCheckpoint):
                read_checkpoint(bytes(flipped), PUBLIC)


def test_every_truncated_line_is_detected() -> None:
    for length in range(len(LINE)):
        with pytest.raises(BadCheckpoint):
            read_checkpoint(LINE[:length], PUBLIC)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is empty"),
        (b"checkpoint", "is not JSON"),
        (b'{"ledger":"\xff"}', "is not JSON"),
        (b"[]", "does not have the right fields"),
        (b"{}", "does not have the right fields: .*missing"),
        (with_fields(size="3"), "does not have the right fields: .*size"),
        (with_fields(more=1), "does not have the right fields: .*more"),
        (with_fields(key=key_id(OTHER.public_key())), "but the ledger's key is"),
        (with_fields(signature="xyz"), "is not hexadecimal"),
        (with_fields(signature="00"), "signature of the checkpoint is wrong"),
        (with_fields(size=4), "signature of the checkpoint is wrong"),
        (with_fields(ledger="ledger-2"), "signature of the checkpoint is wrong"),
        (with_fields(at="2026-02-09T14:30:00.124Z"), "signature of the checkpoint is wrong"),
        (LINE + b" ", "not in its canonical form"),
        (b" " + LINE, "not in its canonical form"),
        (with_fields(signature=json.loads(LINE)["signature"].upper()), "not in its canonical form"),
        (b'{"size":9,' + LINE[1:], "not in its canonical form"),
    ],
)
def test_invalid_line_is_refused_with_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadCheckpoint, match=reason) as caught:
        read_checkpoint(line, PUBLIC)
    assert caught.value.code in FAULTS
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).endswith(".")


def test_line_under_another_key_is_refused() -> None:
    with pytest.raises(BadCheckpoint, match="but the ledger's key is"):
        read_checkpoint(LINE, OTHER.public_key())
    with pytest.raises(BadCheckpoint, match="but the ledger's key is"):
        sign_checkpoint(CHECKPOINT, OTHER)


def test_forged_key_id_is_refused() -> None:
    claimed = replace(CHECKPOINT, key=key_id(OTHER.public_key()))
    forged = json.loads(sign_checkpoint(claimed, OTHER)) | {"key": key_id(PUBLIC)}
    with pytest.raises(BadCheckpoint, match="signature of the checkpoint is wrong"):
        read_checkpoint(json.dumps(forged).encode(), PUBLIC)


@pytest.mark.parametrize(
    ("checkpoint", "reason"),
    [
        (replace(CHECKPOINT, size=4), "do not fit its size: .*has 1 peaks, not 2"),
        (replace(CHECKPOINT, size=-1), "do not fit its size"),
        (replace(CHECKPOINT, peaks=()), "do not fit its size"),
        (replace(CHECKPOINT, peaks=("00", "11")), "do not fit its size"),
        (replace(CHECKPOINT, peaks=("x" * 64, "y" * 64)), "do not fit its size"),
        (replace(CHECKPOINT, peaks=CHECKPOINT.peaks[::-1]), "do not give its root"),
        (replace(CHECKPOINT, root="00" * 32), "do not give its root"),
        (replace(CHECKPOINT, root=CHECKPOINT.root.upper()), "do not give its root"),
    ],
)
def test_inconsistent_peaks_are_refused_although_signed(
    checkpoint: Checkpoint, reason: str
) -> None:
    with pytest.raises(BadCheckpoint, match=reason):
        read_checkpoint(sign_checkpoint(checkpoint, PRIVATE), PUBLIC)


@proves("CHECKPOINT-NEWEST")
def test_each_line_is_judged_by_itself() -> None:
    valid, invalid = read_checkpoint_lines([LINE, b"", LINE[:-9], LINE], PUBLIC)
    assert [one.size for one in valid] == [valid[0].size] * 2
    assert [one.line for one in invalid] == [2, 3]
    assert "it is empty" in invalid[0].reason


@proves("LEDGER-INCLUSION")
def test_first_valid_checkpoint_that_signs_an_entry_is_found() -> None:
    larger = make_checkpoint("ledger-1", extend_tree(TREE, [b"four"]), AT, PUBLIC)
    lines = [b"nonsense", with_fields(signature="00"), LINE, sign_checkpoint(larger, PRIVATE)]
    sizes = [getattr(find_checkpoint_of(lines, PUBLIC, at), "size", None) for at in (1, 3, 4, 5)]
    assert sizes == [3, 3, 4, None]
    found = find_checkpoint_of(lines, PUBLIC, 1)
    assert found is not None
    assert found.signature == json.loads(LINE)["signature"]
