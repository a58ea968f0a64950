"""Handoffs in an export: artifacts are included, and the audit log is projected anew."""

from pathlib import Path

from dragoman.files.layout import artifact_path
from tests.engine.handoffs import accept, life, make, offer
from tests.files.lab import FilesLab
from tests.files.test_export_import import ExportLab
from tests.requirements import proves

pytestmark = proves("ACP-AUDIT", "FILES-ARCHIVE")

LOG = "teamspaces/default/handoffs/handoffs.jsonl"


def test_handoffs_are_exported_and_imported(tmp_path: Path) -> None:
    lab = ExportLab(tmp_path)
    life(lab)
    make(lab, "t2")
    offer(lab, "h2", "t2")
    accept(lab, "h2", artifacts={"log": "ab" * 32})
    lab.catch_up()
    exported_files = {
        artifact_path("ab" * 32): b"copy",
        "teamspaces/default/artifacts/log.txt": b"log",
    }
    partial_copy = {"artifacts/incoming/1": b"half"}
    for path, data in (exported_files | partial_copy).items():
        (lab.data / path).parent.mkdir(parents=True, exist_ok=True)
        (lab.data / path).write_bytes(data)
    lab.export()
    lab.run_import()
    for path, data in exported_files.items():
        assert (lab.target / path).read_bytes() == data
    assert not (lab.target / "artifacts/incoming").exists()
    assert not (lab.target / LOG).exists()
    imported = FilesLab(lab.target)
    imported.engine.store = imported.store = lab.opened_stores[0]
    imported.catch_up()
    assert imported.differences() == []
    assert (lab.target / LOG).read_bytes() == (lab.data / LOG).read_bytes()
