"""Inbox folder: messages of agents that have only a file system (S-AOF-14).

`inbox/AGENT/FILE` is sent as that agent, `inbox/FILE` as the `fromAgent` that it names. Each
file ends in `processed/` or `rejected/` beside it, with a note where there is something to say.
It is renamed before it is read, so that its name is free for the next message; and it is sent
before it is moved away, so that a crash between the two sends it again: a repeat is answered as
before and changes nothing.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.ids import check_agent
from dragoman.files.atomic_write import find_free_name, force_folder, move_aside, write_if_changed
from dragoman.files.errors import Warn, is_systemic
from dragoman.files.layout import (
    INBOX,
    INBOX_LOCK,
    INBOX_RESULTS,
    PROCESSED,
    REASON_SUFFIX,
    REJECTED,
    WARNING_SUFFIX,
    shorten_name,
)
from dragoman.system.safe_fs import FileStat, SafeDisk
from dragoman.text.safe_text import safe_text

_TEMPORARY_SUFFIXES: Final = (".tmp", ".part")
_CLAIMED_PREFIX: Final = ".taken-"
"""Prefix of a message's name while it is being sent."""
_NOT_A_FILE: Final = {
    "link": "it is a link",
    "folder": "it is a folder; an agent's folder stands directly in the inbox",
    "other": "it is a pipe, a socket or a device",
}

SendResult = Refusal | Sequence[str]
"""A refusal, or the warnings of an accepted message."""

Send = Callable[[bytes, str | None], SendResult]
"""Sends a message on behalf of an agent, or (None) of the `fromAgent` that it names."""


class _Message(Struct, frozen=True):
    folder: str
    agent: str | None
    name: str

    @property
    def path(self) -> str:
        """Path under which it was dropped."""
        return f"{self.folder}/{self.name}"

    @property
    def claimed_path(self) -> str:
        """Path while it is being sent."""
        return f"{self.folder}/{_CLAIMED_PREFIX}{shorten_name(self.name, len(_CLAIMED_PREFIX))}"


class Inbox:
    """Sends the messages in the inbox, in the order of their names."""

    name = "inbox"

    def __init__(self, disk: SafeDisk, send: Send, max_bytes: int, warn: Warn) -> None:
        self._disk = disk
        self._send = send
        self._max_bytes = max_bytes
        self._warn = warn
        self._waiting: list[str] = []
        self._faults: list[Exception] = []
        """Unexpected errors: bugs of our own."""
        self.rejected = 0
        """Number of messages that the last run has rejected."""

    def failure_summary(self) -> str:
        """Summary of messages that could not be processed; empty when there are none."""
        problem, *more = self._waiting or ("",)
        return problem if not more else f"{problem} (and {len(more)} more)"

    def run_once(self, now: int) -> int:
        """Send every message once; returns their number.

        A message that cannot be processed, for whatever reason, stops none of the others, and is
        reported.
        """
        del now
        self.rejected, self._waiting, self._faults, done = 0, [], [], 0
        with self._disk.lock(INBOX_LOCK):
            found = [look for look in self._disk.list(INBOX) if _is_complete(look)]
            folders = [look for look in found if look.kind == "folder" and not _is_claimed(look)]
            done += self._process_all(INBOX, None, [one for one in found if one not in folders])
            for agent in folders:
                folder = f"{INBOX}/{agent.name}"
                with self._isolated(f"messages wait in the inbox: {folder}"):
                    inner = [look for look in self._disk.list(folder) if _is_complete(look)]
                    done += self._process_all(folder, agent.name, inner)
            self._disk.sync()
        for fault in self._faults[:1]:
            raise fault
        return done

    def _process_all(self, folder: str, agent: str | None, found: Sequence[FileStat]) -> int:
        """Leftovers of a crash come first, because their names sort first."""
        processed = 0
        for info in found:
            message = _Message(folder, agent, info.name.removeprefix(_CLAIMED_PREFIX))
            with self._isolated(f"a message waits in the inbox: {message.path}"):
                self._process(message)
                processed += 1
        return processed

    @contextmanager
    def _isolated(self, label: str) -> Generator[None]:
        """Report an error of one message or folder, and go on with the others."""
        try:
            yield
        except Exception as error:
            if is_systemic(error):
                raise
            if isinstance(error, OSError | DragomanError):
                problem = f"{label}: {_explain(error)}"
                self._waiting.append(problem)
                self._warn(problem)
            else:
                self._faults.append(error)

    def _process(self, message: _Message) -> None:
        found = self._disk.stat(message.claimed_path) or self._claim(message)
        if found is None:  # its sender has removed it
            return
        try:
            answer = self._submit(message, found)
        except PermissionError:
            self._disk.move(message.claimed_path, message.path)
            raise
        if isinstance(answer, Refusal) and self._disk.stat(message.claimed_path) != found:
            return  # it was still being written: the next run reads it again
        with self._isolated(f"a message was sent, but cannot be filed: {message.claimed_path}"):
            self._file_away(message, answer)

    def _file_away(self, message: _Message, answer: SendResult) -> None:
        if isinstance(answer, Refusal):
            end, note_suffix, lines = REJECTED, REASON_SUFFIX, (f"{answer.code}: {answer.detail}",)
        else:
            end, note_suffix, lines = PROCESSED, WARNING_SUFFIX, answer
        target = f"{message.folder}/{end}"
        force_folder(self._disk, target)
        target_path = find_free_name(self._disk, f"{target}/{message.name}", note_suffix)
        self.rejected += end == REJECTED
        if lines:
            write_if_changed(self._disk, target_path + note_suffix, _format_note(lines))
        move_aside(self._disk, message.claimed_path, target_path)

    def _claim(self, message: _Message) -> FileStat | None:
        """Rename a message, so that nobody writes another one under the name that is read."""
        try:
            self._disk.move(message.path, message.claimed_path)
        except FileNotFoundError:
            return None
        return self._disk.stat(message.claimed_path)

    def _submit(self, message: _Message, found: FileStat) -> SendResult:
        """Send a message, or refuse it unread."""
        refusal = check_agent(message.agent) if message.agent is not None else None
        refusal = refusal or _check_file(found, self._max_bytes)
        if refusal:
            return refusal
        raw = self._disk.read(message.claimed_path, self._max_bytes)
        if raw is None:
            return Refusal("message_too_large", f"it is longer than {self._max_bytes} bytes")
        return self._send(raw, message.agent)


def _explain(error: OSError | DragomanError) -> str:
    if isinstance(error, OSError):
        return (
            f"{error.strerror or error}; move away what is in the way, or fix its permissions, "
            "then `dragoman tick` continues"
        )
    return f"{error.detail}; run `dragoman verify`"


def _is_claimed(info: FileStat) -> bool:
    return info.name.startswith(_CLAIMED_PREFIX) and info.name != _CLAIMED_PREFIX


def _is_complete(info: FileStat) -> bool:
    """True for a complete message: one that is still being written has a name that says so."""
    if _is_claimed(info):
        return True
    if INBOX_RESULTS.fullmatch(info.name) or info.name.startswith("."):
        return False
    return not info.name.endswith(_TEMPORARY_SUFFIXES)


def _check_file(info: FileStat, max_bytes: int) -> Refusal | None:
    """Refuse a file that must not be opened."""
    if info.kind != "file":
        return Refusal("invalid_envelope", f"a message is a plain file: {_NOT_A_FILE[info.kind]}")
    if info.links > 1:
        return Refusal(
            "invalid_envelope", "a message is a plain file: this one has a second hard link"
        )
    if info.size > max_bytes:
        return Refusal(
            "message_too_large",
            f"the message has {info.size} bytes; at most {max_bytes} are allowed",
        )
    return None


def _format_note(lines: Sequence[str]) -> bytes:
    return "".join(safe_text(line, one_line=True) + "\n" for line in lines).encode()
