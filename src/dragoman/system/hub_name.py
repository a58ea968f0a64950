"""The name of a data directory's hub among all that share a store."""

from collections.abc import Callable
from pathlib import Path

from dragoman.system.files import create_atomically


def hub_name(data: Path, new_id: Callable[[], str]) -> str:
    """Made once, in `hub.id`; machines that share their keys still have names of their own."""
    path = data / "hub.id"
    if not path.exists():
        create_atomically(path, f"hub-{new_id()}\n".encode())
    return path.read_text(encoding="ascii").strip()
