"""Keys: made once, owner-only, and a damaged file is named with a remedy."""

import os
import shlex
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)

from dragoman.core.errors import FAULTS
from dragoman.ledger.checkpoint import (
    EMPTY_TREE,
    key_id,
    make_checkpoint,
    read_checkpoint,
    sign_checkpoint,
)
from dragoman.system.keys import keys_remedy, load_or_create_keys
from dragoman.system.safe_fs import BadKey
from tests.requirements import proves
from tests.system.child_processes import child, next_line, resume

pytestmark = proves("SYSTEM-KEYS")

Damage = Callable[[Path], None]

ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(32))
X25519 = X25519PrivateKey.from_private_bytes(bytes(32))

RACER = """
import sys
from pathlib import Path
from dragoman.system.keys import load_or_create_keys
print("there", flush=True)
sys.stdin.readline()
key = load_or_create_keys(Path(sys.argv[1]))
print(key.id, key.secret.hex(), flush=True)
"""


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.touch(mode=0o600)
    path.write_bytes(content)


def pem(private: Ed25519PrivateKey | X25519PrivateKey, password: bytes | None = None) -> bytes:
    lock = BestAvailableEncryption(password) if password else NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)


def public_pem(private: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_keys_are_made_on_first_use_and_found_again(tmp_path: Path) -> None:
    made = load_or_create_keys(tmp_path)
    found = load_or_create_keys(tmp_path)
    assert (found.id, found.secret) == (made.id, made.secret)
    assert found.private.private_bytes_raw() == made.private.private_bytes_raw()
    assert len(made.secret) == 32
    assert made.id == key_id(made.public)
    assert sorted(p.name for p in (tmp_path / "keys").iterdir()) == [
        "ledger.key",
        "ledger.pub",
        "secret",
    ]


def test_two_directories_have_different_keys(tmp_path: Path) -> None:
    first, other = load_or_create_keys(tmp_path / "one"), load_or_create_keys(tmp_path / "other")
    assert first.id != other.id
    assert first.secret != other.secret


def test_private_files_and_folder_are_owner_only(tmp_path: Path) -> None:
    load_or_create_keys(tmp_path)
    keys = tmp_path / "keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert stat.S_IMODE((keys / "ledger.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((keys / "secret").stat().st_mode) == 0o600


def test_public_file_verifies_signatures(tmp_path: Path) -> None:
    key = load_or_create_keys(tmp_path)
    public = load_pem_public_key((tmp_path / "keys" / "ledger.pub").read_bytes())
    assert public == key.public
    checkpoint = make_checkpoint("ledger-1", EMPTY_TREE, 0, key.public)
    assert read_checkpoint(sign_checkpoint(checkpoint, key.private), key.public) == checkpoint


def test_repr_shows_no_secret(tmp_path: Path) -> None:
    key = load_or_create_keys(tmp_path)
    assert repr(key) == "LedgerKey()"


def test_concurrent_processes_agree_on_one_key(tmp_path: Path) -> None:
    with ExitStack() as stack:
        racers = [stack.enter_context(child(RACER, tmp_path)) for _ in range(6)]
        assert {next_line(racer) for racer in racers} == {"there"}
        for racer in racers:
            resume(racer)
        answers = {next_line(racer) for racer in racers}
    key = load_or_create_keys(tmp_path)
    assert answers == {f"{key.id} {key.secret.hex()}"}


@pytest.mark.parametrize("missing", [["ledger.pub"], ["ledger.pub", "ledger.key"]])
def test_interrupted_creation_is_completed(tmp_path: Path, missing: list[str]) -> None:
    made = load_or_create_keys(tmp_path)
    for name in missing:
        (tmp_path / "keys" / name).unlink()
    finished = load_or_create_keys(tmp_path)
    assert finished.secret == made.secret
    assert (finished.id == made.id) == ("ledger.key" not in missing)
    assert (tmp_path / "keys" / "ledger.pub").exists()


@pytest.mark.parametrize("name", ["ledger.key", "secret"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_file_readable_by_others_is_refused_with_remedy(
    tmp_path: Path, name: str, mode: int
) -> None:
    made = load_or_create_keys(tmp_path)
    path = tmp_path / "keys" / name
    path.chmod(mode)
    with pytest.raises(BadKey, match=f"its mode is {mode:o}.*chmod 600 {path}"):
        load_or_create_keys(tmp_path)
    path.chmod(0o600)
    assert load_or_create_keys(tmp_path).id == made.id


def test_remedy_commands_quote_the_directory() -> None:
    commands = [shlex.split(command) for command in keys_remedy(Path("/a b/keys")).split("`")[1::2]]
    assert [[word for word in words if "/a b" in word] for words in commands] == [
        ["/a b"],
        ["/a b/keys"],
        ["/a b"],
    ]


def replace_with(content: bytes) -> Damage:
    return lambda path: replace(path, content)


def truncate(path: Path) -> None:
    os.truncate(path, 60)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    ("name", "damage", "why"),
    [
        ("ledger.key", Path.unlink, "is missing although others beside it are there"),
        ("secret", Path.unlink, "is missing although others beside it are there"),
        ("ledger.key", replace_with(b""), "can be read"),
        ("ledger.key", replace_with(b"not a key"), "can be read"),
        ("ledger.key", truncate, "can be read"),
        ("ledger.key", replace_with(pem(ED25519, b"password")), "can be read"),
        ("ledger.key", replace_with(pem(X25519)), "does not hold an Ed25519 key"),
        ("ledger.key", replace_with(pem(ED25519)), "does not belong to the private key"),
        ("ledger.pub", replace_with(public_pem(ED25519)), "does not belong to the private key"),
        ("secret", replace_with(b"short"), "holds 5 bytes instead of 32"),
        ("secret", replace_with(bytes(33)), "holds 33 bytes instead of 32"),
        ("secret", make_folder, "is not a regular file"),
        ("secret", make_pipe, "is not a regular file"),
    ],
)
def test_damaged_file_is_named_with_remedy_and_stays(
    tmp_path: Path, name: str, damage: Damage, why: str
) -> None:
    load_or_create_keys(tmp_path)
    keys = tmp_path / "keys"
    damage(keys / name)
    before = {path.name: path.lstat().st_mtime_ns for path in keys.iterdir()}
    with pytest.raises(BadKey, match=why) as caught:
        load_or_create_keys(tmp_path)
    assert caught.value.code in FAULTS
    assert str(keys) in caught.value.detail
    assert "backup" in caught.value.detail
    assert before == {path.name: path.lstat().st_mtime_ns for path in keys.iterdir()}


def test_loading_keys_writes_nothing(tmp_path: Path) -> None:
    load_or_create_keys(tmp_path)
    before = (tmp_path / "keys").stat().st_mtime_ns
    load_or_create_keys(tmp_path)
    assert (tmp_path / "keys").stat().st_mtime_ns == before
