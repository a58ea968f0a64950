"""Hub lock: one hub per data directory, and its holder is known to all."""

import fcntl
import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman.core.errors import FAULTS
from dragoman.system.clock import FixedClock
from dragoman.system.hub_lock import HubLock, HubRunning, LockHolder, find_lock_holder
from tests.requirements import proves
from tests.system.child_processes import child, next_line, resume

pytestmark = proves("STORE-SECOND-HUB")

CLOCK = FixedClock(1_770_647_400_123)

HUB = """
import sys
from pathlib import Path
from dragoman.system.hub_lock import HubLock, HubRunning
print("there", flush=True)
sys.stdin.readline()
try:
    with HubLock.acquire(Path(sys.argv[1]), "the first hub"):
        print("held", flush=True)
        sys.stdin.readline()
except HubRunning:
    print("refused", flush=True)
"""


def test_holder_has_process_host_time_and_name(tmp_path: Path) -> None:
    with HubLock.acquire(tmp_path, "dragoman serve", clock=CLOCK):
        assert find_lock_holder(tmp_path) == LockHolder(
            pid=os.getpid(),
            host=socket.gethostname(),
            since="2026-02-09T14:30:00.123Z",
            program="dragoman serve",
        )
        assert json.loads((tmp_path / "hub.lock").read_bytes()) == {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": "2026-02-09T14:30:00.123Z",
            "program": "dragoman serve",
        }
    assert find_lock_holder(tmp_path) is None


def test_second_hub_is_refused_with_holder_and_remedy(tmp_path: Path) -> None:
    with child(HUB, tmp_path) as hub:
        next_line(hub)
        resume(hub)
        assert next_line(hub) == "held"
        with pytest.raises(HubRunning) as caught:
            HubLock.acquire(tmp_path, "a second hub")
        found = find_lock_holder(tmp_path)
        assert found is not None
        resume(hub)
        assert hub.wait() == 0
    assert caught.value.code in FAULTS
    for part in (
        str(tmp_path),
        "the first hub",
        f"process {hub.pid} on {socket.gethostname()}",
        f"since {found.since}",
        "Stop that hub first",
    ):
        assert part in caught.value.detail


def test_lock_of_killed_process_is_released(tmp_path: Path) -> None:
    with child(HUB, tmp_path) as hub:
        next_line(hub)
        resume(hub)
        assert next_line(hub) == "held"
        hub.send_signal(signal.SIGKILL)
        assert hub.wait() == -signal.SIGKILL
    assert json.loads((tmp_path / "hub.lock").read_bytes())["pid"] == hub.pid
    assert find_lock_holder(tmp_path) is None
    with HubLock.acquire(tmp_path, "the next hub"):
        found = find_lock_holder(tmp_path)
        assert found is not None
        assert found.pid == os.getpid()


def test_child_process_does_not_keep_lock_of_parent(tmp_path: Path) -> None:
    lock = HubLock.acquire(tmp_path, "parent")
    with child(HUB, tmp_path) as process:
        next_line(process)
        lock.release()
        assert find_lock_holder(tmp_path) is None


def test_one_of_many_processes_gets_the_lock(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hubs = [stack.enter_context(child(HUB, tmp_path)) for _ in range(6)]
        assert {next_line(hub) for hub in hubs} == {"there"}
        for hub in hubs:
            resume(hub)
        answers = sorted(next_line(hub) for hub in hubs)
    assert answers == ["held", *["refused"] * 5]


def test_lock_file_is_never_removed(tmp_path: Path) -> None:
    HubLock.acquire(tmp_path, "first").release()
    first = (tmp_path / "hub.lock").stat().st_ino
    with HubLock.acquire(tmp_path, "second"), pytest.raises(HubRunning):
        HubLock.acquire(tmp_path, "third")
    assert (tmp_path / "hub.lock").stat().st_ino == first


def test_release_is_idempotent_and_runs_on_error(tmp_path: Path) -> None:
    lock = HubLock.acquire(tmp_path, "first")
    lock.release()
    with HubLock.acquire(tmp_path, "second"):
        lock.release()
        assert find_lock_holder(tmp_path) is not None
    with pytest.raises(KeyError), HubLock.acquire(tmp_path, "third"):
        raise KeyError
    assert find_lock_holder(tmp_path) is None


def test_reading_holder_blocks_no_hub(tmp_path: Path) -> None:
    HubLock.acquire(tmp_path, "makes the file").release()

    def read_holder() -> None:
        for _ in range(20_000):
            find_lock_holder(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        looking = [pool.submit(read_holder) for _ in range(2)]
        while not all(each.done() for each in looking):
            with HubLock.acquire(tmp_path, "hub"):
                assert find_lock_holder(tmp_path) is not None


@pytest.mark.parametrize(
    "content", [b"", b"not json", b'{"pid":"1"}', b'{"program":"\xff"}', b"[]"]
)
def test_holder_with_unreadable_record_still_holds(tmp_path: Path, content: bytes) -> None:
    with HubLock.acquire(tmp_path, "hub"):
        (tmp_path / "hub.lock").write_bytes(content)
        assert find_lock_holder(tmp_path) == LockHolder()
        with pytest.raises(HubRunning, match="a process that has not written its name yet"):
            HubLock.acquire(tmp_path, "second")


def test_hostile_holder_name_is_escaped(tmp_path: Path) -> None:
    with (
        HubLock.acquire(tmp_path, "\x1b]52;c;eA==\x07hub\nforged"),
        pytest.raises(HubRunning) as caught,
    ):
        HubLock.acquire(tmp_path, "second")
    assert "hub\u23ceforged" in caught.value.detail
    assert caught.value.detail.isprintable()


def test_acquire_gives_up_on_endless_reader(tmp_path: Path) -> None:
    HubLock.acquire(tmp_path, "makes the file").release()
    with (tmp_path / "hub.lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        with pytest.raises(HubRunning, match="a process that has not written its name yet"):
            HubLock.acquire(tmp_path, "hub")
    HubLock.acquire(tmp_path, "hub").release()


def test_folder_without_lock_has_no_holder(tmp_path: Path) -> None:
    assert find_lock_holder(tmp_path) is None
    assert find_lock_holder(tmp_path / "none") is None


def test_symlink_in_place_of_lock_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    (tmp_path / "hub.lock").symlink_to(outside)
    with pytest.raises(OSError, match=r"hub\.lock"):
        HubLock.acquire(tmp_path, "hub")
    assert outside.read_bytes() == b"untouched"
