"""Handoffs that move to another data directory: artifacts go along, the log is written anew."""

from pathlib import Path

from dragoman.files.layout import artifact_path
from tests.engine.handoffs import accept, life, make, offer
from tests.files.lab import FilesLab
from tests.files.test_archive import Carrier
from tests.requirements import proves

pytestmark = proves("ACP-AUDIT", "FILES-ARCHIVE")

LOG = "teamspaces/default/handoffs/handoffs.jsonl"


def test_handoffs_are_exported_and_imported(tmp_path: Path) -> None:
    carrier = Carrier(tmp_path)
    life(carrier)
    make(carrier, "t2")
    offer(carrier, "h2", "t2")
    accept(carrier, "h2", artifacts={"log": "ab" * 32})
    carrier.level()
    kept = {artifact_path("ab" * 32): b"copy", "teamspaces/default/artifacts/log.txt": b"log"}
    half = {"artifacts/incoming/1": b"half"}
    for path, data in (kept | half).items():
        (carrier.data / path).parent.mkdir(parents=True, exist_ok=True)
        (carrier.data / path).write_bytes(data)
    carrier.export()
    carrier.take()
    for path, data in kept.items():
        assert (carrier.target / path).read_bytes() == data
    assert not (carrier.target / "artifacts/incoming").exists()
    assert not (carrier.target / LOG).exists()
    there = FilesLab(carrier.target)
    there.engine.store = there.store = carrier.opened[0]
    there.level()
    assert there.differences() == []
    assert (carrier.target / LOG).read_bytes() == (carrier.data / LOG).read_bytes()
