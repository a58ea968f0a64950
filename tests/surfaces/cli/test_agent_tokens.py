"""`agent add`, `token`, `revoke`, `list` and `show`: tokens are printed once, stored as digests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dragoman.core.agent import parse_token
from dragoman.core.errors import Refusal
from dragoman.engine.auth import Authenticator
from dragoman.store.sqlite import SqliteStore
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.clock import SystemClock, new_id
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-AGENT")


def authenticate(dragoman: Console, token: str) -> str:
    """Return the actor label of a token, or the code of the refusal."""
    store = SqliteStore.open(dragoman.data / "dragoman.db", new_id)
    try:
        owner = load_or_create_token(dragoman.data)
        found = Authenticator(store, b"secret", owner, SystemClock()).authenticate(token, "http")
    finally:
        store.close()
    return found.code if isinstance(found, Refusal) else found.actor.label


def add(dragoman: Console, *args: str) -> Any:
    """Run `agent add` and return its reply."""
    return dragoman.ask("agent", "add", *args)


@proves("IDENTITY-TOKEN")
def test_printed_token_authenticates_the_agent(dragoman: Console) -> None:
    added = add(dragoman, "ada", "--role", "coordinator")
    claim = parse_token(added["token"])
    assert claim is not None
    assert (claim.agent, claim.id) == ("ada", added["tokenId"])
    assert authenticate(dragoman, added["token"]) == "coordinator:ada"

    result = dragoman("agent", "add", "ben", "--expires", "30d", "--now", NOON)
    first, second, token = result.out.splitlines()
    assert first == "ben is known: agent"
    assert second == "its token, good until 2026-03-11T12:00:00.000Z, is shown only this once:"
    assert parse_token(token) is not None


@proves("IDENTITY-TOKEN")
def test_token_expires_after_ninety_days_by_default(dragoman: Console) -> None:
    assert add(dragoman, "ada", "--now", NOON)["expiresAt"] == "2026-05-10T12:00:00.000Z"


@proves("IDENTITY-TOKEN")
def test_add_issues_a_token_only_if_no_valid_one_exists(dragoman: Console) -> None:
    assert "token" not in add(dragoman, "ada", "--no-token")
    assert "token" in add(dragoman, "ada")
    assert "token" not in add(dragoman, "ada")
    dragoman.ask("agent", "revoke", "ada")
    assert "token" in add(dragoman, "ada")


@proves("IDENTITY-TOKEN", "IDENTITY-REVOKE")
def test_token_rotation_keeps_role_and_has_no_gap(dragoman: Console) -> None:
    old = add(dragoman, "boss", "--role", "orchestrator", "--speaks", "aof")
    new = dragoman.ask("agent", "token", "boss", "--expires", "1h")
    assert (
        authenticate(dragoman, old["token"])
        == authenticate(dragoman, new["token"])
        == "orchestrator:boss"
    )

    result = dragoman("agent", "revoke", "boss", "--token", old["tokenId"])
    assert result.out == f"boss: token {old['tokenId']} is revoked\n"
    assert authenticate(dragoman, old["token"]) == "token_revoked"
    assert authenticate(dragoman, new["token"]) == "orchestrator:boss"

    assert dragoman("agent", "revoke", "boss").out == "boss: all tokens are revoked\n"
    assert authenticate(dragoman, new["token"]) == "token_revoked"
    shown = dragoman.ask("agent", "show", "boss")
    assert (shown["role"], shown["speaks"]) == ("orchestrator", ["aof"])
    assert [token["state"] for token in shown["tokens"]] == ["revoked", "revoked"]


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("token", "nobody"), "agent_not_found"),
        (("revoke", "nobody"), "agent_not_found"),
        (("show", "nobody"), "agent_not_found"),
        (("revoke", "ada", "--token", "0" * 12), "token_not_found"),
        (("token", "ada", "--as", "ada"), "not_authorized"),
        (("token", "ada", "--as", "ben"), "not_authorized"),
        (("revoke", "ada", "--as", "ben"), "not_authorized"),
    ],
)
def test_refused_command_names_its_code(
    dragoman: Console, args: tuple[str, ...], code: str
) -> None:
    add(dragoman, "ada")
    assert dragoman.ask("agent", *args, code=1)["code"] == code


def test_list_is_paged_by_name(dragoman: Console) -> None:
    for name in ("cleo", "ada", "ben"):
        add(dragoman, name, "--speaks", "aof", "--now", NOON)
    page = dragoman.ask("agent", "list", "--limit", "2")
    assert [agent["name"] for agent in page["agents"]] == ["ada", "ben"]
    rest = dragoman.ask("agent", "list", "--after", page["next"])
    assert ([agent["name"] for agent in rest["agents"]], rest["next"]) == (
        ["cleo", "owner"],
        None,
    )

    output = dragoman("agent", "list", "--limit", "1", "--now", NOON).out.splitlines()
    assert [line.split() for line in output] == [
        ["NAME", "ROLE", "SPEAKS", "TOKENS", "HOLDS", "PAUSED"],
        ["ada", "agent", "aof", "1"],
        ["There", "are", "more:", "add", "--after", "ada"],
    ]
    later = dragoman("agent", "list", "--now", "2027-02-09T12:00:00Z").out
    assert later.count("none good") == 4


@proves("AGENT-PAUSE")
def test_pause_is_shown_with_its_reason_until_resume(dragoman: Console) -> None:
    add(dragoman, "ada")
    reason = "the build is broken"
    assert dragoman("agent", "pause", "ada", "--reason", reason, "--now", NOON).out == (
        f"ada is paused: {reason}\n"
    )
    shown = dragoman.ask("agent", "show", "ada")["paused"]
    assert shown == {"reason": reason, "since": "2026-02-09T12:00:00.000Z", "until": None}
    assert reason in dragoman("agent", "show", "ada").out
    assert dragoman("agent", "list").out.splitlines()[1].split()[-1] == "yes"
    assert dragoman.ask("agent", "resume", "ada", "--as", "ada", code=1)["code"] == "not_authorized"
    for _ in range(2):
        assert dragoman("agent", "resume", "ada").out == "ada is not paused\n"
    assert dragoman.ask("agent", "show", "ada")["paused"] is None


def test_empty_list_names_the_add_command(dragoman: Console) -> None:
    dragoman("init")
    assert "dragoman agent add NAME" in dragoman("agent", "list").out


@proves("IDENTITY-SIGNED")
def test_public_key_is_registered_and_shown(dragoman: Console, tmp_path: Path) -> None:
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    path = tmp_path / "ada.pub"
    path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    add(dragoman, "ada", "--key", str(path), "--speaks", "aof", "--no-token", "--now", NOON)
    key = dragoman.ask("agent", "show", "ada")["key"]
    assert len(key) == 43
    assert dragoman("agent", "show", "ada").out.splitlines() == [
        "ada is agent, known since 2026-02-09T12:00:00.000Z",
        "speaks aof",
        f"signs with the Ed25519 key {key}",
        "it has no valid token",
    ]


def public_key_files(folder: Path) -> list[Path]:
    """Write three public keys into files."""
    paths = [folder / f"{number}.pub" for number in range(3)]
    for number, path in enumerate(paths):
        public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
        path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    return paths


@proves("IDENTITY-ROTATION")
def test_add_says_what_becomes_of_the_old_key(dragoman: Console, tmp_path: Path) -> None:
    first, second, _ = map(str, public_key_files(tmp_path))

    def add_key(path: str) -> str:
        return dragoman("agent", "add", "ada", "--no-token", "--key", path).out.splitlines()[1]

    assert add_key(first) == "its key is registered: what it signs is accepted from now on"
    assert add_key(first) == "it has this key already"
    replaced = "its old key is replaced: what that one signs is refused from now on"
    assert add_key(second) == replaced


@proves("IDENTITY-ROTATION")
def test_first_key_of_a_known_agent_is_reported(dragoman: Console, tmp_path: Path) -> None:
    add(dragoman, "ada", "--no-token")
    result = dragoman(
        "agent", "add", "ada", "--no-token", "--key", str(public_key_files(tmp_path)[0])
    )
    assert "its key is registered: what it signs is accepted from now on" in result.out


@proves("IDENTITY-REVOKED-KEYS")
@pytest.mark.parametrize("by", [(), ("--as", "ada")], ids=["by a person", "by the agent itself"])
def test_revocation_ends_the_signing_key_too(
    dragoman: Console, tmp_path: Path, by: tuple[str, ...]
) -> None:
    one, two = tmp_path / "one.pub", tmp_path / "two.pub"
    for number, path in enumerate((one, two)):
        public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
        path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    token = add(dragoman, "ada", "--key", str(one))["tokenId"]
    dragoman.ask("agent", "add", "ada", "--key", str(two))

    only = dragoman.ask("agent", "revoke", "ada", "--token", token, *by)
    assert only["keyEnded"] is False
    assert dragoman.ask("agent", "show", "ada")["key"] is not None
    result = dragoman("agent", "revoke", "ada", *by)

    assert result.out.splitlines() == [
        "ada: all tokens are revoked",
        (
            "its signing key has ended too: what it signs is refused from now on; "
            "`dragoman agent add ada --key FILE` makes a key good"
        ),
    ]
    shown = dragoman.ask("agent", "show", "ada")
    assert shown["key"] is None
    assert dragoman.ask("agent", "revoke", "ada", *by)["keyEnded"] is False


@proves("IDENTITY-SECRET")
def test_data_directory_and_archive_contain_no_token(dragoman: Console, tmp_path: Path) -> None:
    tokens = [add(dragoman, "ada")["token"], dragoman.ask("agent", "token", "ada")["token"]]
    refused = dragoman.ask("agent", "revoke", "ada", "--token", tokens[0], code=1)
    assert refused["code"] == "policy_violation"
    dragoman("agent", "show", "ada")
    dragoman("tick")
    archive = tmp_path / "archive.tar"
    dragoman.ask("export", str(archive))
    owner = load_or_create_token(dragoman.data).decode()

    output = dragoman("events").out + dragoman("events", "--json").out
    # Even a part of a secret must not appear.
    secrets = [token[-43:-27] for token in tokens]
    for secret in secrets:
        assert secret not in output
        assert [
            path for path in _files(dragoman.data) if secret.encode() in path.read_bytes()
        ] == []
    files_with_owner_token = [
        path for path in _files(dragoman.data) if owner[5:].encode() in path.read_bytes()
    ]
    assert files_with_owner_token == [dragoman.data / "token"]
    assert not any(one.encode() in archive.read_bytes() for one in (*secrets, owner[5:]))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@proves("CLI-AGENT", "LEDGER-NAMES")
def test_events_describe_tokens_and_keys(dragoman: Console, tmp_path: Path) -> None:
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    path = tmp_path / "ada.pub"
    path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    token = add(dragoman, "ada", "--key", str(path), "--now", NOON)["tokenId"]
    dragoman("agent", "revoke", "ada", "--token", token)
    dragoman("agent", "revoke", "ada")
    texts = [line.partition("  ada  ")[2] for line in dragoman("events").out.splitlines()]
    assert texts[0] == "registered: agent"
    assert texts[1].startswith("signing key ")
    assert texts[2:] == [
        f"token {token} issued, good until 2026-05-10T12:00:00.000Z",
        f"token {token} revoked",
        "all tokens revoked",
        "signing key ended",
    ]
