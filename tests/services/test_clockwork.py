"""Duties in the background: at their pace, at a hint, beside one another, and to the end."""

from queue import SimpleQueue
from threading import Event

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.trouble import NONE, Trouble
from dragoman.services.clockwork import Clockwork, Group, Wheel, rest_of_round
from tests.requirements import proves

pytestmark = proves("HUB-DUTIES")

PATIENCE = 30.0
NEVER = 3_600.0


class Duty:
    """Says when it is run, and fails or hangs if told to."""

    def __init__(self, name: str, fault: Exception | None = None) -> None:
        self.name = name
        self.fault = fault
        self.runs: SimpleQueue[int] = SimpleQueue()
        self.may_go = Event()
        self.may_go.set()

    def run_once(self, now: int) -> int:
        self.runs.put(now)
        assert self.may_go.wait(PATIENCE)
        if self.fault is not None:
            raise self.fault
        return 1


def wheel(duty: Duty, *, rest: float = NEVER, follows: bool = False) -> Wheel:
    duties, followers = ((), (duty,)) if follows else ((duty,), ())
    return Wheel(Group(duty.name, duties, followers, rest), lambda: 7)


def test_a_duty_runs_at_once_and_then_at_its_pace() -> None:
    duty = Duty("one")
    turning = wheel(duty, rest=0.01)
    turning.start()
    assert [duty.runs.get(timeout=PATIENCE) for _ in range(3)] == [7, 7, 7]
    assert turning.stop(PATIENCE)


def test_a_follower_runs_at_a_hint_and_a_last_time_at_the_end() -> None:
    duty = Duty("one")
    turning = wheel(duty, follows=True)
    turning.start()
    duty.runs.get(timeout=PATIENCE)
    turning.hint(["task:T"])
    duty.runs.get(timeout=PATIENCE)

    assert turning.stop(PATIENCE)
    assert duty.runs.qsize() >= 1, "what was committed last is level"


def test_a_slow_round_is_followed_by_a_longer_rest_but_not_by_any_and_a_failed_one_is_not() -> None:
    group = Group("one", rest_seconds=1.0)
    assert rest_of_round(group, 0.01, 7) == 1.0
    assert rest_of_round(group, 0.2, 7) == 4.0
    assert rest_of_round(group, 60.0, 7) == 10.0
    assert rest_of_round(group, 60.0, None) == 1.0
    assert rest_of_round(Group("two", rest_share=100), 0.03, 0) == 3.0


@proves("HUB-INBOX")
def test_where_somebody_waits_a_round_that_had_much_to_do_is_soon_followed_by_the_next() -> None:
    group = Group("one", rest_seconds=1.0, is_awaited=True)
    assert rest_of_round(group, 60.0, 7) == 1.0
    assert rest_of_round(group, 60.0, 0) == 10.0, "an idle hub stays idle"


def test_a_hint_wakes_nobody_who_does_not_follow() -> None:
    duty = Duty("one")
    turning = wheel(duty)
    turning.start()
    duty.runs.get(timeout=PATIENCE)
    turning.hint(["task:T"])
    assert turning.stop(PATIENCE)
    assert duty.runs.empty()


def test_what_is_wrong_is_told_until_it_is_mended() -> None:
    for fault in (StoreUnavailable("the disk is full"), OSError("no"), ValueError("a bug")):
        duty = Duty("one", fault)
        turning = wheel(duty, rest=0.01)
        works = Clockwork([turning])
        works.start()
        duty.runs.get(timeout=PATIENCE)
        duty.runs.get(timeout=PATIENCE)
        assert f"{fault}" in works.health()["one"].words
        duty.fault = None
        duty.runs.get(timeout=PATIENCE)
        duty.runs.get(timeout=PATIENCE)
        works.stop(PATIENCE)
        assert works.health() == {"one": NONE}


@proves("HUB-TROUBLE")
def test_what_a_duty_could_not_do_though_it_did_the_rest_is_told_too() -> None:
    class Lagging(Duty):
        undone = Trouble("one file lags", is_partial=True)

    duty = Lagging("one")
    works = Clockwork([wheel(duty, rest=0.01)])
    works.start()
    duty.runs.get(timeout=PATIENCE)
    duty.runs.get(timeout=PATIENCE)
    assert works.health() == {"one": duty.undone}
    duty.undone = NONE
    duty.runs.get(timeout=PATIENCE)
    duty.runs.get(timeout=PATIENCE)
    works.stop(PATIENCE)
    assert works.health() == {"one": NONE}


def test_a_group_that_hangs_holds_up_no_other_and_is_left_behind_at_the_end() -> None:
    stuck, free = Duty("stuck"), Duty("free")
    stuck.may_go.clear()
    works = Clockwork([wheel(stuck, rest=0.01), wheel(free, rest=0.01)])
    works.start()
    stuck.runs.get(timeout=PATIENCE)
    for _ in range(3):
        free.runs.get(timeout=PATIENCE)
    assert works.stop(0.2) == ["stuck"]
    stuck.may_go.set()
    assert works.stop(PATIENCE) == []


@proves("HUB-TROUBLE")
def test_a_duty_that_hangs_is_told_and_so_are_those_that_wait_behind_it() -> None:
    failed, stuck, behind = Duty("failed", OSError("no room")), Duty("stuck"), Duty("behind")
    slow = Duty("slow")
    group = Group("one", (failed, stuck, behind), hangs_after_seconds=0.0)
    works = Clockwork([Wheel(group, lambda: 7), wheel(slow)])
    for duty in (stuck, slow):
        duty.may_go.clear()
    works.start()
    for duty in (stuck, slow):
        duty.runs.get(timeout=PATIENCE)
    health = works.health()
    assert "it hangs" in health["stuck"].words
    assert not health["stuck"].is_partial
    assert health["behind"].words.startswith("waits for stuck")
    assert health["failed"].words == "no room", "what is known of one is told as it is"
    assert health["slow"] == NONE, "a while is no matter"

    for duty in (stuck, slow):
        duty.may_go.set()
    works.stop(PATIENCE)
    assert works.health() == {**dict.fromkeys(health, NONE), "failed": health["failed"]}


def test_a_wheel_that_never_turned_can_be_stopped() -> None:
    assert wheel(Duty("one")).stop(PATIENCE)
