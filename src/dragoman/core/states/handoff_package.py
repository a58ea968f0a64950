"""The package of a handoff: what the hub adds to it, and the hash that stands for it (S-ACP-2)."""

from collections.abc import Mapping

from dragoman.core.commands import ProposeHandoff
from dragoman.core.states.handoff import Handoff, section
from dragoman.core.states.task import Task
from dragoman.text.canonical import canonical_sha256


def filled(
    command: ProposeHandoff,
    id: str,
    thread: str,
    sender: str,
    *,
    session: str,
    chain: tuple[str, ...],
) -> dict[str, object]:
    """The package with the fields that only the hub knows, whatever its sender put there
    (S-ACP-16).

    A sender that holds no task has no session known to the hub: its name is used instead.
    """
    provenance = {
        **section(command.package, "provenance"),
        "origin_session": session or sender,
        "message_thread_refs": [thread],
        "handoff_chain": list(chain),
    }
    return {
        **command.package,
        "handoff_id": id,
        "thread_id": thread,
        "provenance": provenance,
    }


def thread_of(stated: str, task: Task) -> str:
    """Thread of the letters about a handoff: a task has one thread, whichever of its names is
    stated.
    """
    return task.in_letters if not stated or stated in task.names else stated


def sealed(package: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """The package with its hash, and that hash."""
    package_hash = hash_of(package)
    verification = {**section(package, "verification"), "package_hash": package_hash}
    return {**package, "verification": verification}, package_hash


def mark_of(draft: Handoff) -> str:
    """Fingerprint of a draft: it changes with every change of the draft."""
    said = {"package": draft.package, "to": draft.recipient, "teamspace": draft.teamspace}
    return canonical_sha256(said)


def hash_of(package: Mapping[str, object]) -> str:
    """Hash of the package without its hash field."""
    verification = section(package, "verification")
    bare = {key: value for key, value in verification.items() if key != "package_hash"}
    return canonical_sha256({**package, "verification": bare})
