"""Lives of one hub after another, each killed, and the oracle that looks at what they leave.

Nothing acknowledged is lost, nothing is doubled, nothing is half done: the ledger that is found is,
word for word, what an undisturbed hub had written after the last step that was answered, or after
the one that was under way. Answers are the same when they are asked for again, the ledger and its
views verify, the files agree with the store, and every notice is delivered in order.
"""

import shutil
import subprocess
import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.crash.dispatching import Dispatch
from tests.crash.life import Build, Job, Said
from tests.crash.points import Kill
from tests.crash.restoring import Restoration
from tests.crash.story import STORY

ROOT = Path(__file__).parents[2]
KILLED = -9
MEMORY = Path("/dev/shm")  # noqa: S108  what is made there has a name of its own
"""A kill leaves the page cache alone, so nothing is lost by a disk that is none; power cuts are
another test."""

_MOST_DEATHS = 1_000

_said = msgspec.json.Decoder(Said)


class Wrong(AssertionError):
    """What the oracle has found."""


class Whole(Struct, frozen=True):
    """An undisturbed life: what a disturbed one is compared with."""

    heads: tuple[int, ...]
    """Where the ledger stood before each step, and at the end."""
    digests: tuple[str, ...]
    """Of the ledger up to each position."""
    answers: tuple[Sequence[str], ...]
    notices: tuple[str, ...]


class Server:
    """The fork server, as its user sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def live(self, job: Job | Restoration | Dispatch) -> int:
        """Let a child do the job; how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def serving() -> Generator[Server]:
    """A fork server that is gone afterwards."""
    command = [sys.executable, "-m", "tests.crash.server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()


class Fate(Struct, frozen=True):
    """What is to happen to one life."""

    kill: Kill = Kill()
    microseconds: int = 0
    verify: bool = False


class Hub:
    """A data directory and what its lives have said so far."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        *,
        whole: Whole | None = None,
        store: str = "",
        build: Build = "ours",
        seed: int = 0,
    ) -> None:
        """Without a `whole` nothing is compared: this one shows how it goes undisturbed."""
        self._server = server
        self._whole = whole
        self._path = folder / "said"
        self._job = Job(
            str(folder / "data"), str(self._path), store=store, files=not store, build=build
        )
        self._read = 0
        self.data = folder / "data"
        self.seed = seed
        self.acknowledged = 0
        """How many steps were answered."""
        self.deaths: list[str] = []
        """Where each life ended."""
        self.said: list[Said] = []

    @property
    def has_ended(self) -> bool:
        """Whether the story was told to its end."""
        return any(said.what == "ended" for said in self.said)

    def live(self, fate: Fate) -> bool:
        """One more life; whether it was killed."""
        if len(self.deaths) > _MOST_DEATHS:
            raise self._wrong("it dies and dies, and its story does not come to an end")
        job = replace(
            self._job,
            begin=self.acknowledged,
            kill=fate.kill,
            microseconds=fate.microseconds,
            verify=fate.verify,
            seed=self.seed + len(self.deaths),
        )
        ended = self._server.live(job)
        heard = self._hear()
        killed_by_itself = next((said.text for said in heard if said.what == "dies"), "")
        if ended == KILLED:
            self.deaths.append(killed_by_itself or f"after {fate.microseconds} microseconds")
        elif ended:
            raise self._wrong(f"the process ended with {ended}: see its standard error")
        for said in heard:
            self._judge(said)
        return ended == KILLED

    def finish(self) -> None:
        """Live on undisturbed, check everything, and look at the notices."""
        self.live(Fate(verify=True))
        if not self.has_ended:
            raise self._wrong("the story did not come to its end")
        if self._whole is not None and self._job.files and self.notices() != self._whole.notices:
            raise self._wrong(f"delivered: {self.notices()}, not {self._whole.notices}")

    def remove(self) -> None:
        """It is over, and nobody looks at it any more."""
        shutil.rmtree(self.data.parent)

    def notices(self) -> tuple[str, ...]:
        """What was delivered, in order; the last one may come again after a crash."""
        return tuple(
            text for text, _ in groupby(s.text for s in self.said if s.what == "delivered")
        )

    def _hear(self) -> list[Said]:
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        heard = [_said.decode(line) for line in lines[self._read :]]
        self._read = len(lines)
        self.said += heard
        return heard

    def _judge(self, said: Said) -> None:
        if said.what == "wrong":
            raise self._wrong(said.text)
        if said.what == "answered":
            self.acknowledged = said.step + 1
        if self._whole is None:
            return
        if said.what == "found":
            self._judge_found(said, self._whole)
        if said.what in ("answered", "again"):
            self._judge_answers(said, self._whole)

    def _judge_found(self, said: Said, whole: Whole) -> None:
        """The steps that were answered, and of the one under way all or nothing; a tick is many."""
        before, after = whole.heads[said.step], whole.heads[min(said.step + 1, len(STORY))]
        is_tick = said.step < len(STORY) and not STORY[said.step].requests
        self._judge_stand(said, whole, range(before, after + 1) if is_tick else (before, after))

    def _judge_answers(self, said: Said, whole: Whole) -> None:
        if said.answers and said.answers != whole.answers[said.step]:
            expected = whole.answers[said.step]
            raise self._wrong(f"step {said.step} {said.what}: {said.answers}, not {expected}")
        if said.what == "answered":
            self._judge_stand(said, whole, (whole.heads[said.step + 1],))

    def _judge_stand(self, said: Said, whole: Whole, expected: Collection[int]) -> None:
        """A build that answers too early cannot say where the ledger stands."""
        if said.stand is None:
            return
        if said.stand.head not in expected:
            raise self._wrong(
                f"{self.acknowledged} steps were acknowledged, so there must be {expected} "
                f"entries, but there are {said.stand.head} ({said.what})"
            )
        if said.stand.digest != whole.digests[said.stand.head]:
            raise self._wrong(f"the first {said.stand.head} entries are others ({said.what})")

    def _wrong(self, text: str) -> Wrong:
        return Wrong(f"{text}\nseed {self.seed}, killed at: {self.deaths}")


class Campaign:
    """Hubs on one server, all compared with an undisturbed one."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self._count = 0
        self._whole: Whole | None = None
        self._whole = _undisturbed(self.hub())

    def hub(self, *, seed: int = 0, store: str = "", build: Build = "ours") -> Hub:
        """A new data directory."""
        self._count += 1
        folder = self._folder / f"{self._count}"
        folder.mkdir()
        return Hub(self.server, folder, whole=self._whole, store=store, build=build, seed=seed)


def _undisturbed(hub: Hub) -> Whole:
    hub.finish()
    answered = [said for said in hub.said if said.what == "answered"]
    return Whole(
        heads=(0, *(said.stand.head for said in answered if said.stand)),
        digests=tuple(hub.said[-1].answers),
        answers=tuple(said.answers for said in answered),
        notices=hub.notices(),
    )
