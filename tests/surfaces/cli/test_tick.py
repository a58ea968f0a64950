"""tick: every duty once, and the second time nothing is left to do."""

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

DUTIES = (
    "recovery",
    "sla",
    "inbox",
    "files",
    "projection",
    "promotion",
    "checkpoint",
    "notify",
)

LATER = "2026-02-09T12:10:00Z"

pytestmark = proves("CLI-TICK")


@proves("LEASE-RECOVERY", "RETRY-BACKOFF")
def test_tick_recovers_promotes_and_signs(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)

    early = dragoman.ask("tick", "--now", "2026-02-09T12:04:59Z")
    assert early["duties"] == dict.fromkeys(DUTIES, 0)
    assert dragoman.ask("tick", "--now", LATER)["duties"]["recovery"] == 1
    assert dragoman.ask("task", "show", "T-1")["status"] == "ready"
    assert dragoman.ask("tick", "--now", "2026-02-09T12:10:05Z")["duties"]["promotion"] == 1


def test_a_second_tick_at_the_same_time_changes_nothing(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("tick", "--now", LATER)
    before = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()

    again = dragoman.ask("tick", "--now", LATER)

    assert set(again["duties"].values()) == {0}
    after = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()
    assert after == before


def test_tick_tells_people_what_each_duty_did(dragoman: Console) -> None:
    lines = dragoman("tick").out.splitlines()

    assert [line.split()[:2] for line in lines] == [[duty, "0"] for duty in DUTIES]


@proves("LEDGER-CHECKPOINT")
def test_every_command_that_wrote_leaves_a_checkpoint_level_with_the_ledger(
    dragoman: Console,
) -> None:
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-9", "--agent", "ada", code=1)

    reached = len(dragoman("events", "--json").objects)
    assert reached == 2, "a refusal is an entry too"
    assert dragoman.ask("verify")["checkpoints"] == 2
    last = (dragoman.data / "checkpoints.jsonl").read_text().splitlines()[-1]
    assert f'"size":{reached}' in last
