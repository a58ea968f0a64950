"""The benchmark runs and prints every pair; its figures are never asserted."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import attacks, compare, delegation, handoffs, lifecycle, peers, translation
from bench.aof import reports, task_ids
from bench.handoffs import offer
from bench.letters import rows
from bench.tool_lists import measure_tool_list, own_command
from dragoman.store.memory import MemoryStore
from tests.requirements import proves

BARE_PYTHON = "Python with nothing to do"
ROOT = Path(__file__).parents[2]


@proves("BENCH-RUNS")
def test_run_measures_every_pair() -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--rounds", "1", "--seconds", "0.05"]
    done = subprocess.run(
        [*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    results = json.loads(done.stdout)
    assert [(row["name"], row["beside"]) for row in results] == [
        ("lifecycle, 64 callers", "raw loop"),
        ("the same under random keys, as UUIDv4", "raw loop"),
        ("lifecycle, one caller, handle_now", "raw loop"),
        ("lifecycle, one caller, handle", "raw loop"),
        ("lifecycle on PostgreSQL, 64 callers", "batched SQL"),
        ("the same, 64 callers", "16 connections"),
        ("the same, 16 callers", "16 connections"),
        ("completion report, 64 callers", "raw append"),
        ("completion report, 1,000 tasks", "100 tasks"),
        ("completion report, to all 1,000 tasks", "100 tasks"),
        ("files that follow reports", "atomic write"),
        ("files rebuilt, 20 tasks", "atomic write"),
        ("agent started, slowest of 100", "bare process"),
        ("agent started by a whole hub, slowest of 100", "bare process"),
        ("idle hub, seconds for one of a core's", "1% of a core"),
        ("idle hubs in a gigabyte", "120 MB"),
        ("POST of a report, 64 connections", "bare Starlette"),
        ("the same beside 200 stalled readers", "one reader"),
        ("reports in batches over HTTP", "in process"),
        ("1,000 events/s sent to 100, slowest of 100", "bare Starlette"),
        ("1,000 events/s sent to 100, slowest of 100", "20 ms"),
        ("letters read, ten types", "json.loads"),
        ("letters sent, 1 at a time", "raw append"),
        ("letters sent, 8 at a time", "raw append"),
        ("letters sent, 64 at a time", "raw append"),
        ("page of a box of 2,000", "of 100"),
        ("handoff with an artifact, 64 callers", "raw loop"),
        ("the same, each with a new artifact", "raw loop"),
        ("new artifacts kept, 16 MB", "hashlib"),
        ("kept artifacts verified, 16 MB", "hashlib"),
        ("page of 1,000 handoffs", "of 100"),
        ("ranking of 100 agents", "of 10"),
        ("ranking of 1,000 agents", "of 10"),
        ("delegated, done, fed back, 64 callers", "raw entries"),
        ("why, 100 Actions", "reading them"),
        *(
            (f"600 bytes, {source} to {target}", "msgspec, in and out")
            for source, target in translation.PAIRS
        ),
        ("delivered, translated", "posted as they are"),
        ("log text redacted, all rules, MB", "10 MB"),
        ("log text redacted, known rules, MB", "50 MB"),
        ("known values found, of 100", "100"),
        ("credentials found, of 100", "99"),
        ("named secrets found, of 100", "90"),
        ("masked lines that held a secret, of 100", "95"),
        ("thoughts sent to 20, cut at a word's end", "raw rows"),
        ("thoughts sent to 20, cut in a word", "raw rows"),
        ("claimed and given back, 1,000 tasks, half at rest", "100 tasks"),
        ("page of 1,000 tasks, half at rest", "100 tasks"),
        ("hubs in a gigabyte, 1,000 tasks, half at rest", "300 MB"),
        ("starts of a hub, 100 in progress", "2 s"),
        ("1,000 entries, verify --hashes", "SHA-256 alone"),
        ("status of 20 agents and 1,000 tasks, core", "50 ms"),
        ("board of 1,000 tasks first seen", "1 s"),
        ("task page at 100 events/s, 1 / busy", "half busy"),
        ("idle hub with an open page", "without"),
        ("dashboard, first load in 200 KB", "200 KB"),
        ("dashboard, all of it in 350 KB", "350 KB"),
        ("wheels in 2,000 KB", "2,000 KB"),
        ("dragoman --version, in a second of a core", "Python with typer"),
        ("dragoman task list, in a second of a core", "Python with typer"),
        *(
            (f"dragoman {words} through a hub, in a second of a core", BARE_PYTHON)
            for words in (
                "status",
                "task list",
                "task show",
                "task create",
                "task claim",
                "task heartbeat",
                "task log",
                "task complete",
                "send",
                "call mail.inbox",
                "mail send",
                "mail inbox",
            )
        ),
    ]
    assert all(row["base_per_second"] > 0 for row in results)
    assert all(row["dragoman_per_second"] > 0 for row in results)


@proves("BENCH-RUNS")
def test_peer_comparison_runs_our_side_and_has_the_scripts_of_the_peers() -> None:
    # Peers are measured only where uv may download them, which a test must not require.
    assert peers.ours_per_second(MemoryStore("bench"), 0.02) > 0
    for peer in peers.PEERS:
        script = Path(peers.__file__).with_name(peer.script)
        compile(script.read_text(), str(script), "exec")


@proves("BENCH-MAIL-BYTES")
def test_measured_letters_have_600_bytes_and_differ() -> None:
    samples = list(rows(iter(range(200))))
    assert {len(row) for row in samples} == {600}
    assert len(set(samples)) == 200


@proves("BENCH-HANDOFFS")
def test_measured_offers_have_4_kilobytes_and_an_artifact_and_differ() -> None:
    samples = [json.dumps(offer(number), separators=(",", ":")) for number in range(100)]
    assert {len(sample) for sample in samples} == {4_096}
    assert len(set(samples)) == 100
    assert all(len(json.loads(sample)["artifacts"]) == 1 for sample in samples)


@proves("BENCH-HANDOFFS")
def test_measured_handoffs_end_closed(tmp_path: Path) -> None:
    assert handoffs.lives(tmp_path, 2, 0.01) > 0
    histories = _histories(tmp_path, "handoff")
    assert histories
    assert all(
        [line["body"]["to"] for line in history if line["event"] == "handoff.transitioned"]
        == ["validating", "accepted", "activated", "completed", "closed"]
        for history in histories
    )


@proves("BENCH-LIVES")
@pytest.mark.parametrize("callers", [0, 2])
def test_measured_tasks_end_done(tmp_path: Path, callers: int) -> None:
    store = lifecycle.sqlite_store(tmp_path / "dragoman.db")
    if callers:
        assert lifecycle.engine_with_callers(store, callers, 0.01) > 0
    else:
        assert lifecycle.engine_alone(store, 0.01) > 0
    histories = _histories(tmp_path, "task")
    assert histories
    assert all(
        [line["event"] for line in history]
        == [
            "task.created",
            "task.claimed",
            "task.reported",
            "task.transitioned",
            "task.transitioned",
        ]
        for history in histories
    )
    assert {history[-1]["body"]["to"] for history in histories} == {"done"}


@proves("BENCH-LIVES")
def test_measured_delegations_are_satisfied_and_write_as_many_entries_as_the_raw_loop(
    tmp_path: Path,
) -> None:
    assert delegation.there_and_back(tmp_path, 2, 0.01) > 0
    histories = _histories(tmp_path, "intent")
    assert {history[-1]["event"] for history in histories} == {"intent.satisfied"}
    agents = delegation.AGENTS * len(("registered", "described"))
    entries = sum(map(len, _histories(tmp_path)))
    entries_each = delegation.ON_THE_WAY_OUT + delegation.ON_THE_WAY_BACK
    assert entries == agents + len(histories) * entries_each


def _histories(folder: Path, kind: str = "") -> list[list[dict[str, Any]]]:
    """Entries of each stream, of one kind or of all, in the measured store."""
    histories: dict[str, list[dict[str, Any]]] = {}
    store = lifecycle.sqlite_store(folder / "dragoman.db")
    for entry in store.entries(0, 1_000_000):
        if entry.stream.startswith(kind):
            histories.setdefault(entry.stream, []).append(json.loads(entry.line))
    store.close()
    return list(histories.values())


@proves("BENCH-REPORT-BYTES")
def test_measured_reports_have_600_bytes_and_differ() -> None:
    samples = list(reports(task_ids(7), iter(range(100))))
    assert {len(message) for message in samples} == {600}
    assert len(set(samples)) == 100
    assert all(any(task.encode() in message for message in samples[:7]) for task in task_ids(7))


@proves("BENCH-RUNS")
def test_comparison_measures_commands_and_requests_of_a_checkout(tmp_path: Path) -> None:
    costs = compare.measure_commands(ROOT, tmp_path) | compare.measure_requests(ROOT, tmp_path)
    assert {name.partition(":")[0] for name in costs} == {"command", "request"}
    assert all(cost > 0 for cost in costs.values())


@proves("BENCH-RUNS")
@pytest.mark.parametrize("case", ["slow bodies of four callers", "batches of junk"])
def test_honest_caller_is_served_under_attack(case: str) -> None:
    reading = attacks.measure(case, 0.2)
    for waits in (reading.before, reading.during):
        assert waits.count > waits.refused == 0
    assert 0 < reading.memory[0] <= reading.memory[1]


@proves("BENCH-RUNS", "MCP-SIZE")
def test_tool_list_is_measured_as_it_is_sent(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    subprocess.run([*own_command(data)[:-3], "init"], check=True, stdout=subprocess.DEVNULL)
    found = measure_tool_list(own_command(data), tmp_path)
    assert found.tools == 10
    assert found.model_bytes < found.answer_bytes <= 6_000
