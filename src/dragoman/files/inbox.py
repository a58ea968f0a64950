"""The inbox: messages of agents that have only a file system (S-AOF-14).

`inbox/AGENT/FILE` speaks as that agent, `inbox/FILE` as the `fromAgent` that it names. Each file
ends in `processed/` or `rejected/` beside it, with a note where there is something to say. It is
renamed before it is read, so that its name is free for the next message; and it is sent before it
is filed, so that a crash between the two sends it again: a repeat is answered as before and changes
nothing.
"""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.ids import check_agent
from dragoman.files.disk import Disk, Look
from dragoman.files.guarding import Warn, concerns_all
from dragoman.files.layout import INBOX, REASON, TAKING, WARNING, fitted
from dragoman.files.putting import free_name, make_way, put, set_aside
from dragoman.text.safe_text import safe_text

PROCESSED: Final = "processed"
REJECTED: Final = "rejected"
_NO_MESSAGE: Final = re.compile(rf"({PROCESSED}|{REJECTED})(-found(-[0-9]+)?)?", re.ASCII)
"""Folders for results, and what was moved out of their way."""

_UNFINISHED: Final = (".tmp", ".part")
_TAKEN: Final = ".taken-"
"""Prefix of a message's name while it is being sent."""
_NOT_PLAIN: Final = {
    "link": "it is a link",
    "folder": "it is a folder; an agent's folder stands directly in the inbox",
    "other": "it is a pipe, a socket or a device",
}

Answer = Refusal | Sequence[str]
"""A refusal, or the warnings of an accepted message."""

Send = Callable[[bytes, str | None], Answer]
"""Sends a message on behalf of an agent, or (None) of the `fromAgent` that it names."""


class _Letter(Struct, frozen=True):
    folder: str
    speaker: str | None
    name: str

    @property
    def dropped(self) -> str:
        """Path under which it was dropped."""
        return f"{self.folder}/{self.name}"

    @property
    def taken(self) -> str:
        """Path while it is being sent."""
        return f"{self.folder}/{_TAKEN}{fitted(self.name, len(_TAKEN))}"


class Inbox:
    """Sends the messages in the inbox, in the order of their names."""

    name = "inbox"

    def __init__(self, disk: Disk, send: Send, most: int, warn: Warn) -> None:
        self._disk = disk
        self._send = send
        self._most = most
        self._warn = warn
        self._left: list[str] = []
        self._faults: list[Exception] = []
        """Unexpected errors: bugs of our own."""
        self.rejected = 0
        """Number of messages that the last run has rejected."""

    def trouble(self) -> str:
        """Summary of messages that could not be processed; empty when there are none."""
        words, *more = self._left or ("",)
        return words if not more else f"{words} (and {len(more)} more)"

    def run_once(self, now: int) -> int:
        """Send every message once; returns their number.

        A message that cannot be processed, for whatever reason, stops none of the others, and is
        reported.
        """
        del now
        self.rejected, self._left, self._faults, done = 0, [], [], 0
        with self._disk.lock(TAKING):
            found = [look for look in self._disk.list(INBOX) if _is_finished(look)]
            folders = [look for look in found if look.kind == "folder" and not _was_taken(look)]
            done += self._take_all(INBOX, None, [one for one in found if one not in folders])
            for agent in folders:
                folder = f"{INBOX}/{agent.name}"
                with self._confined(f"messages wait in the inbox: {folder}"):
                    inner = [look for look in self._disk.list(folder) if _is_finished(look)]
                    done += self._take_all(folder, agent.name, inner)
            self._disk.settle()
        for fault in self._faults[:1]:
            raise fault
        return done

    def _take_all(self, folder: str, speaker: str | None, found: Sequence[Look]) -> int:
        """Leftovers of a crash come first, because their names sort first."""
        taken = 0
        for look in found:
            letter = _Letter(folder, speaker, look.name.removeprefix(_TAKEN))
            with self._confined(f"a message waits in the inbox: {letter.dropped}"):
                self._take(letter)
                taken += 1
        return taken

    @contextmanager
    def _confined(self, what: str) -> Generator[None]:
        """Report an error of one message or folder, and go on with the others."""
        try:
            yield
        except Exception as error:
            if concerns_all(error):
                raise
            if isinstance(error, OSError | DragomanError):
                words = f"{what}: {_reason_of(error)}"
                self._left.append(words)
                self._warn(words)
            else:
                self._faults.append(error)

    def _take(self, letter: _Letter) -> None:
        found = self._disk.look(letter.taken) or self._seize(letter)
        if found is None:  # its sender has removed it
            return
        try:
            answer = self._answer(letter, found)
        except PermissionError:
            self._disk.move(letter.taken, letter.dropped)
            raise
        if isinstance(answer, Refusal) and self._disk.look(letter.taken) != found:
            return  # it was still being written: the next run reads it again
        with self._confined(f"a message was sent, but cannot be filed: {letter.taken}"):
            self._file(letter, answer)

    def _file(self, letter: _Letter, answer: Answer) -> None:
        if isinstance(answer, Refusal):
            end, mark, lines = REJECTED, REASON, (f"{answer.code}: {answer.detail}",)
        else:
            end, mark, lines = PROCESSED, WARNING, answer
        target = f"{letter.folder}/{end}"
        make_way(self._disk, target)
        kept = free_name(self._disk, f"{target}/{letter.name}", mark)
        self.rejected += end == REJECTED
        if lines:
            put(self._disk, kept + mark, _note(lines))
        set_aside(self._disk, letter.taken, kept)

    def _seize(self, letter: _Letter) -> Look | None:
        """Rename a message, so that nobody writes another one under the name that is read."""
        try:
            self._disk.move(letter.dropped, letter.taken)
        except FileNotFoundError:
            return None
        return self._disk.look(letter.taken)

    def _answer(self, letter: _Letter, found: Look) -> Answer:
        """Send a message, or refuse it unread."""
        wrong = check_agent(letter.speaker) if letter.speaker is not None else None
        wrong = wrong or _unsafe(found, self._most)
        if wrong:
            return wrong
        raw = self._disk.read(letter.taken, self._most)
        if raw is None:
            return Refusal("message_too_large", f"it is longer than {self._most} bytes")
        return self._send(raw, letter.speaker)


def _reason_of(error: OSError | DragomanError) -> str:
    if isinstance(error, OSError):
        return (
            f"{error.strerror or error}; move away what is in the way, or fix its permissions, "
            "then `dragoman tick` continues"
        )
    return f"{error.detail}; run `dragoman verify`"


def _was_taken(look: Look) -> bool:
    return look.name.startswith(_TAKEN) and look.name != _TAKEN


def _is_finished(look: Look) -> bool:
    """True for a complete message: one that is still being written has a name that says so."""
    if _was_taken(look):
        return True
    if _NO_MESSAGE.fullmatch(look.name) or look.name.startswith("."):
        return False
    return not look.name.endswith(_UNFINISHED)


def _unsafe(look: Look, most: int) -> Refusal | None:
    """Refuse a file that must not be opened."""
    if look.kind != "file":
        return Refusal("invalid_envelope", f"a message is a plain file: {_NOT_PLAIN[look.kind]}")
    if look.links > 1:
        return Refusal(
            "invalid_envelope", "a message is a plain file: this one has a second hard link"
        )
    if look.size > most:
        return Refusal(
            "message_too_large", f"the message has {look.size} bytes; at most {most} are allowed"
        )
    return None


def _note(lines: Sequence[str]) -> bytes:
    return "".join(safe_text(line, one_line=True) + "\n" for line in lines).encode()
