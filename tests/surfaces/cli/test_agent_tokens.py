"""agent add, token, revoke, list, show: credentials that are printed once and kept as digests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dragoman.core.errors import Refusal
from dragoman.core.tokens import read_token
from dragoman.engine.identity import Identity
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import SystemClock
from dragoman.system.ids import new_id
from dragoman.system.token_file import load_or_create_token
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CLI-AGENT")


def good(dragoman: Console, token: str) -> str:
    """The label of whoever has this token, or the code of the refusal."""
    store = SqliteStore.open(dragoman.data / "dragoman.db", new_id)
    try:
        owner = load_or_create_token(dragoman.data)
        found = Identity(store, b"secret", owner, SystemClock()).who(token, "http")
    finally:
        store.close()
    return found.code if isinstance(found, Refusal) else found.actor.label


def add(dragoman: Console, *words: str) -> Any:
    """What is printed about an agent that is added."""
    return dragoman.ask("agent", "add", *words)


@proves("IDENTITY-TOKEN")
def test_a_token_is_printed_and_speaks_for_the_agent(dragoman: Console) -> None:
    added = add(dragoman, "ada", "--role", "coordinator")
    claim = read_token(added["token"])
    assert claim is not None
    assert (claim.agent, claim.id) == ("ada", added["tokenId"])
    assert good(dragoman, added["token"]) == "coordinator:ada"

    said = dragoman("agent", "add", "ben", "--expires", "30d", "--now", NOON)
    first, second, token = said.out.splitlines()
    assert first == "ben is known: agent"
    assert second == "its token, good until 2026-03-11T12:00:00.000Z, is shown only this once:"
    assert read_token(token) is not None


@proves("IDENTITY-TOKEN")
def test_the_default_is_ninety_days(dragoman: Console) -> None:
    assert add(dragoman, "ada", "--now", NOON)["expiresAt"] == "2026-05-10T12:00:00.000Z"


@proves("IDENTITY-TOKEN")
def test_only_whoever_has_none_that_is_good_is_given_one(dragoman: Console) -> None:
    assert "token" not in add(dragoman, "ada", "--no-token")
    assert "token" in add(dragoman, "ada")
    assert "token" not in add(dragoman, "ada")
    dragoman.ask("agent", "revoke", "ada")
    assert "token" in add(dragoman, "ada")


@proves("IDENTITY-TOKEN", "IDENTITY-REVOKE")
def test_a_token_is_replaced_without_a_pause_and_without_another_role(dragoman: Console) -> None:
    old = add(dragoman, "boss", "--role", "orchestrator", "--speaks", "aof")
    new = dragoman.ask("agent", "token", "boss", "--expires", "1h")
    assert good(dragoman, old["token"]) == good(dragoman, new["token"]) == "orchestrator:boss"

    said = dragoman("agent", "revoke", "boss", "--token", old["tokenId"])
    assert said.out == f"boss: token {old['tokenId']} is revoked\n"
    assert good(dragoman, old["token"]) == "token_revoked"
    assert good(dragoman, new["token"]) == "orchestrator:boss"

    assert dragoman("agent", "revoke", "boss").out == "boss: all tokens are revoked\n"
    assert good(dragoman, new["token"]) == "token_revoked"
    shown = dragoman.ask("agent", "show", "boss")
    assert (shown["role"], shown["speaks"]) == ("orchestrator", ["aof"])
    assert [token["state"] for token in shown["tokens"]] == ["revoked", "revoked"]


@proves("CLI-EXIT")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("token", "nobody"), "agent_not_found"),
        (("revoke", "nobody"), "agent_not_found"),
        (("show", "nobody"), "agent_not_found"),
        (("revoke", "ada", "--token", "0" * 12), "token_not_found"),
        (("token", "ada", "--as", "ada"), "not_authorized"),
        (("token", "ada", "--as", "ben"), "not_authorized"),
        (("revoke", "ada", "--as", "ben"), "not_authorized"),
        (("add", "ada", "--key", "/nowhere/agent.pub"), "bad_key"),
    ],
)
def test_what_is_refused_says_why(dragoman: Console, words: tuple[str, ...], code: str) -> None:
    add(dragoman, "ada")
    assert dragoman.ask("agent", *words, code=1)["code"] == code


def test_who_is_known_is_listed_page_by_page(dragoman: Console) -> None:
    for name in ("cleo", "ada", "ben"):
        add(dragoman, name, "--speaks", "aof", "--now", NOON)
    page = dragoman.ask("agent", "list", "--limit", "2")
    assert [agent["name"] for agent in page["agents"]] == ["ada", "ben"]
    rest = dragoman.ask("agent", "list", "--after", page["next"])
    assert ([agent["name"] for agent in rest["agents"]], rest["next"]) == (["cleo"], None)

    said = dragoman("agent", "list", "--limit", "1", "--now", NOON).out.splitlines()
    assert [line.split() for line in said] == [
        ["NAME", "ROLE", "SPEAKS", "TOKENS", "PAUSED"],
        ["ada", "agent", "aof", "1"],
        ["There", "are", "more:", "add", "--after", "ada"],
    ]
    later = dragoman("agent", "list", "--now", "2027-02-09T12:00:00Z").out
    assert later.count("none good") == 3


@proves("AGENT-PAUSE")
def test_a_pause_is_shown_with_its_reason_until_it_is_ended(dragoman: Console) -> None:
    add(dragoman, "ada")
    why = "the build is broken"
    assert dragoman("agent", "pause", "ada", "--reason", why, "--now", NOON).out == (
        f"ada is paused: {why}\n"
    )
    shown = dragoman.ask("agent", "show", "ada")["paused"]
    assert shown == {"reason": why, "since": "2026-02-09T12:00:00.000Z", "until": None}
    assert why in dragoman("agent", "show", "ada").out
    assert dragoman("agent", "list").out.splitlines()[1].split()[-1] == "yes"
    assert dragoman.ask("agent", "resume", "ada", "--as", "ada", code=1)["code"] == "not_authorized"
    assert dragoman("agent", "resume", "ada").out == "ada is not paused any more\n"
    assert dragoman("agent", "resume", "ada").out == "ada is not paused, and was not\n"
    assert dragoman.ask("agent", "show", "ada")["paused"] is None


def test_before_anybody_is_known_the_list_says_how_to_begin(dragoman: Console) -> None:
    dragoman("init")
    assert "dragoman agent add NAME" in dragoman("agent", "list").out


@proves("IDENTITY-SIGNED")
def test_a_key_is_made_known_and_shown(dragoman: Console, tmp_path: Path) -> None:
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
        "no token speaks for it",
    ]


def public_halves(folder: Path) -> list[Path]:
    """The files of three keys."""
    paths = [folder / f"{number}.pub" for number in range(3)]
    for number, path in enumerate(paths):
        public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
        path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    return paths


@proves("IDENTITY-ROTATION")
def test_a_key_is_replaced_at_once_or_with_an_overlap(dragoman: Console, tmp_path: Path) -> None:
    paths = public_halves(tmp_path)
    words = ("agent", "add", "ada", "--no-token", "--now", NOON, "--key")
    assert "old key" not in dragoman(*words, str(paths[0])).out
    told = dragoman(*words, str(paths[1]), "--overlap", "10m").out
    assert "its old key is replaced: what that one signs is refused in 10m" in told
    until = "its key before that is good until 2026-02-09T12:10:00.000Z"
    assert until in dragoman("agent", "show", "ada", "--now", NOON).out
    assert until not in dragoman("agent", "show", "ada", "--now", "2026-02-09T12:10:00Z").out
    assert "; the one before is good until 2026-02-09T12:10" in dragoman("events").out
    told = dragoman(*words, str(paths[2])).out
    assert "what that one signs is refused from now on" in told
    assert dragoman("agent", "add", "ada", "--overlap", "1h").code == 2


@proves("IDENTITY-ROTATION")
def test_what_becomes_of_every_key_is_said(dragoman: Console, tmp_path: Path) -> None:
    first, second, third = map(str, public_halves(tmp_path))

    def add_key(*words: str) -> list[str]:
        said = dragoman("agent", "add", "ada", "--no-token", "--now", NOON, "--key", *words)
        return said.out.splitlines()[1:]

    def ends() -> str | None:
        return dragoman.ask("agent", "show", "ada", "--now", NOON)["formerKeyUntil"]

    has_it_already = ["it has this key already, and no other one is good"]
    assert add_key(first, "--overlap", "1h") == [
        "it has a key: what that one signs is taken from now on"
    ]
    assert add_key(first, "--overlap", "1h") == has_it_already
    old = "its old key is replaced: what that one signs is refused "
    assert add_key(second, "--overlap", "7d") == [f"{old}in 7d"]
    assert add_key(second, "--overlap", "10m") == [
        "its old key ends sooner: what that one signs is refused in 10m"
    ]
    assert ends() == "2026-02-09T12:10:00.000Z"
    assert add_key(second, "--overlap", "1h") == [
        f"its old key is good until {ends()}, as before: an overlap becomes no longer"
    ]
    was = ends()
    assert add_key(third, "--overlap", "5m") == [
        f"{old}in 5m",
        f"the key before that was good until {was}, and is refused from now on",
    ]
    assert add_key(second, "--overlap", "5m") == [f"{old}in 5m"], "which was good, and stays so"
    assert add_key(second) == [
        "its old key ends sooner: what that one signs is refused from now on"
    ]
    assert ends() is None
    assert add_key(second) == has_it_already


@proves("IDENTITY-ROTATION")
def test_the_first_key_of_a_known_agent_is_mentioned(dragoman: Console, tmp_path: Path) -> None:
    add(dragoman, "ada", "--no-token")
    said = dragoman("agent", "add", "ada", "--no-token", "--key", str(public_halves(tmp_path)[0]))
    assert "it has a key: what that one signs is taken from now on" in said.out


@proves("IDENTITY-REVOKED-KEYS")
@pytest.mark.parametrize("by", [(), ("--as", "ada")], ids=["by a person", "by the agent itself"])
def test_whoever_revokes_an_agent_ends_its_keys_too(
    dragoman: Console, tmp_path: Path, by: tuple[str, ...]
) -> None:
    one, two = tmp_path / "one.pub", tmp_path / "two.pub"
    for number, path in enumerate((one, two)):
        public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
        path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    token = add(dragoman, "ada", "--key", str(one))["tokenId"]
    dragoman.ask("agent", "add", "ada", "--key", str(two), "--overlap", "1h")

    only = dragoman.ask("agent", "revoke", "ada", "--token", token, *by)
    assert (only["keysEnded"], dragoman.ask("agent", "show", "ada")["key"] is None) == (0, False)
    said = dragoman("agent", "revoke", "ada", *by)

    assert said.out.splitlines() == [
        "ada: all tokens are revoked",
        (
            "its 2 signing keys have ended too: what it signs is refused from now on; "
            "`dragoman agent add ada --key FILE` makes a key good"
        ),
    ]
    shown = dragoman.ask("agent", "show", "ada")
    assert (shown["key"], shown["formerKeyUntil"]) == (None, None)
    assert dragoman.ask("agent", "revoke", "ada", *by)["keysEnded"] == 0
    dragoman.ask("agent", "add", "ada", "--key", str(one))
    assert "its signing key has ended too" in dragoman("agent", "revoke", "ada", *by).out


@proves("IDENTITY-SECRET")
def test_no_token_is_anywhere_in_the_data_directory(dragoman: Console, tmp_path: Path) -> None:
    tokens = [add(dragoman, "ada")["token"], dragoman.ask("agent", "token", "ada")["token"]]
    refused = dragoman.ask("agent", "revoke", "ada", "--token", tokens[0], code=1)
    assert refused["code"] == "policy_violation"
    dragoman("agent", "show", "ada")
    dragoman("tick")
    archive = tmp_path / "archive.tar"
    dragoman.ask("export", str(archive))
    owner = load_or_create_token(dragoman.data).decode()

    told = dragoman("events").out + dragoman("events", "--json").out
    # A part of a secret would be too much as well.
    secrets = [token[-43:-27] for token in tokens]
    for secret in secrets:
        assert secret not in told
        assert [
            path for path in _files(dragoman.data) if secret.encode() in path.read_bytes()
        ] == []
    kept = [path for path in _files(dragoman.data) if owner[5:].encode() in path.read_bytes()]
    assert kept == [dragoman.data / "token"]
    assert not any(one.encode() in archive.read_bytes() for one in (*secrets, owner[5:]))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@proves("CLI-AGENT", "LEDGER-NAMES")
def test_what_happened_is_told_in_words(dragoman: Console, tmp_path: Path) -> None:
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    path = tmp_path / "ada.pub"
    path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    token = add(dragoman, "ada", "--key", str(path), "--now", NOON)["tokenId"]
    dragoman("agent", "revoke", "ada", "--token", token)
    dragoman("agent", "revoke", "ada")
    told = [line.partition("  ada  ")[2] for line in dragoman("events").out.splitlines()]
    assert told[0] == "made known: agent"
    assert told[1].startswith("to sign with the key ")
    assert told[2:] == [
        f"given the token {token}, good until 2026-05-10T12:00:00.000Z",
        f"token {token} taken back",
        "all tokens taken back",
        "to sign with no key any more",
    ]
