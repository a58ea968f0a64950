"""The file of one stream: written for somebody elsewhere, and checked there without a hub."""

from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.surfaces.cli.call import CommandResult, raise_usage_error
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.reading import open_file
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.words.phrases import pluralize

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from dragoman.engine.verifying.chain_file import ChainProof


def write_chain_file(directory: DataDirectory, stream: str, target: Path) -> int:
    """Write the entries of a stream with their proof to a file; returns its number of lines."""
    from dragoman.engine.verifying.chain_file import write_chain
    from dragoman.system.files import write_atomically

    lines = list(
        write_chain(
            directory.hub.store,
            stream,
            list(directory.checkpoints.lines()),
            directory.checkpoints.public,
        )
    )
    try:
        write_atomically(target, b"".join(line + b"\n" for line in lines))
    except OSError as error:
        raise_usage_error(f"{target} cannot be written: {error.strerror}")
    return len(lines)


def verify_chain_file(path: Path, key: Path | None, *, allow_tail: bool = False) -> CommandResult:
    """Check the chain file of a stream by itself, without a hub."""
    from dragoman.engine.verifying.chain_file import check_chain_file

    with open_file(path) as file:
        data = file.read()
    trusted = None if key is None else _load_public_key(key)
    proof = check_chain_file(data, trusted, allow_tail=allow_tail)
    result_fields: dict[str, object] = {
        "stream": proof.stream,
        "ledger": proof.ledger,
        "entries": proof.entries,
        "anchored": proof.anchored,
        "key": proof.key or None,
        "signedAt": proof.signed_at or None,
        "findings": list(proof.problems),
    }
    if proof.problems:
        error_fields = {"code": "ledger_broken", "detail": proof.problems[0]}
        return CommandResult(
            result_fields | error_fields,
            lambda screen: _print_proof_problems(proof, screen),
            is_ok=False,
        )
    return CommandResult(
        result_fields, lambda screen: _print_proof(proof, screen, is_trusted=key is not None)
    )


def _load_public_key(path: Path) -> "Ed25519PublicKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from dragoman.system.public_key import read_public_key
    from dragoman.text.base64url import decode_base64url

    return Ed25519PublicKey.from_public_bytes(decode_base64url(read_public_key(path)) or b"")


def _print_proof(proof: "ChainProof", screen: Screen, *, is_trusted: bool) -> None:
    good = ": all good" if proof.anchored == proof.entries else ""
    entries = pluralize(proof.entries, "entry", "entries")
    screen.line((proof.stream, "bold"), f": {entries}, each hash fits{good}")
    if not proof.anchored:
        screen.line(
            ("warning: ", "yellow"),
            "no checkpoint covers them: a completely rewritten chain would not be noticed",
        )
        return
    screen.line(
        f"{proof.anchored} of them are in what key {proof.key} has signed at {proof.signed_at}"
    )
    if not is_trusted:
        screen.line("the key is the file's own: compare it with the hub's keys/ledger.pub by --key")


def _print_proof_problems(proof: "ChainProof", screen: Screen) -> None:
    screen.line((proof.stream or "the file", "bold"), ": ", ("NOT good", "bold red"))
    for problem in proof.problems:
        screen.line(f"  {problem}")
