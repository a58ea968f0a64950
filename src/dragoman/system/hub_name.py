"""The name of a data directory's hub among all that share a store."""

from collections.abc import Callable
from pathlib import Path

from dragoman.system.files import create_atomically


def load_or_create_hub_id(data: Path, new_id: Callable[[], str]) -> str:
    """Id of this hub, created once in `hub.id`; hubs that share their keys still have ids of their
    own."""
    path = data / "hub.id"
    if not path.exists():
        create_atomically(path, f"hub-{new_id()}\n".encode())
    return path.read_text(encoding="ascii").strip()
