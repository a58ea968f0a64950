"""Messages in files, as arguments of a command."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MessageFiles:
    """Folder of message files beside the data directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def __call__(self, message: Mapping[str, Any] | str | bytes) -> str:
        """Write this message into a new file and return its path."""
        if not isinstance(message, str | bytes):
            message = json.dumps(message)
        path = self._folder / f"{len(list(self._folder.iterdir()))}.json"
        path.write_bytes(message if isinstance(message, bytes) else message.encode())
        return str(path)
