"""Packages of handoffs: the fields that the hub fills in, and the package hash (S-ACP-2)."""

from collections.abc import Mapping

from dragoman.core.handoff.state import ProposeHandoff, package_section
from dragoman.core.task_state import Task
from dragoman.text.canonical import canonical_sha256


def add_hub_fields(
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
        **package_section(command.package, "provenance"),
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


def handoff_thread(stated: str, task: Task) -> str:
    """Thread of the letters about a handoff: a task has one thread, whichever of its names is
    stated.
    """
    return task.mail_name if not stated or stated in task.names else stated


def seal_package(package: Mapping[str, object]) -> tuple[dict[str, object], str]:
    """The package with its hash, and that hash."""
    package_hash = compute_package_hash(package)
    verification = {**package_section(package, "verification"), "package_hash": package_hash}
    return {**package, "verification": verification}, package_hash


def compute_package_hash(package: Mapping[str, object]) -> str:
    """Hash of the package without its hash field."""
    verification = package_section(package, "verification")
    unsealed = {key: value for key, value in verification.items() if key != "package_hash"}
    return canonical_sha256({**package, "verification": unsealed})
