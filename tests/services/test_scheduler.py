"""The scheduler: services run at their interval, at hints, beside one another, and at stop."""

from queue import SimpleQueue
from threading import Event

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.service_health import HEALTHY, HealthProblem
from dragoman.services.scheduler import GroupWorker, Scheduler, ServiceGroup, idle_seconds
from tests.requirements import proves

pytestmark = proves("HUB-DUTIES")

TIMEOUT = 30.0
HOUR_SECONDS = 3_600.0


class ServiceStub:
    """A service that records its runs, and fails or hangs on request."""

    def __init__(self, name: str, fault: Exception | None = None) -> None:
        self.name = name
        self.fault = fault
        self.runs: SimpleQueue[int] = SimpleQueue()
        self.may_continue = Event()
        self.may_continue.set()

    def run_once(self, now: int) -> int:
        self.runs.put(now)
        assert self.may_continue.wait(TIMEOUT)
        if self.fault is not None:
            raise self.fault
        return 1


def service_worker(
    service: ServiceStub, *, rest: float = HOUR_SECONDS, follows: bool = False
) -> GroupWorker:
    services, followers = ((), (service,)) if follows else ((service,), ())
    return GroupWorker(ServiceGroup(service.name, services, followers, rest), lambda: 7)


def test_service_runs_at_start_and_then_at_its_interval() -> None:
    service = ServiceStub("one")
    worker = service_worker(service, rest=0.01)
    worker.start()
    assert [service.runs.get(timeout=TIMEOUT) for _ in range(3)] == [7, 7, 7]
    assert worker.stop(TIMEOUT)


def test_follower_runs_at_a_hint_and_once_more_at_stop() -> None:
    service = ServiceStub("one")
    worker = service_worker(service, follows=True)
    worker.start()
    service.runs.get(timeout=TIMEOUT)
    worker.hint(["task:T"])
    service.runs.get(timeout=TIMEOUT)

    assert worker.stop(TIMEOUT)
    assert service.runs.qsize() >= 1, "what was committed last is level"


def test_pause_after_a_slow_round_is_longer_but_bounded_and_not_after_a_failed_one() -> None:
    group = ServiceGroup("one", interval_seconds=1.0)
    assert idle_seconds(group, 0.01, 7) == 1.0
    assert idle_seconds(group, 0.2, 7) == 4.0
    assert idle_seconds(group, 60.0, 7) == 10.0
    assert idle_seconds(group, 60.0, None) == 1.0
    assert idle_seconds(ServiceGroup("two", idle_factor=100), 0.03, 0) == 3.0


@proves("HUB-INBOX")
def test_awaited_group_pauses_briefly_after_a_busy_round() -> None:
    group = ServiceGroup("one", interval_seconds=1.0, is_latency_sensitive=True)
    assert idle_seconds(group, 60.0, 7) == 1.0
    assert idle_seconds(group, 60.0, 0) == 10.0, "an idle hub stays idle"


def test_hint_does_not_wake_a_service_that_does_not_follow() -> None:
    service = ServiceStub("one")
    worker = service_worker(service)
    worker.start()
    service.runs.get(timeout=TIMEOUT)
    worker.hint(["task:T"])
    assert worker.stop(TIMEOUT)
    assert service.runs.empty()


def test_service_failure_is_reported_until_the_service_recovers() -> None:
    for fault in (StoreUnavailable("the disk is full"), OSError("no"), ValueError("a bug")):
        service = ServiceStub("one", fault)
        worker = service_worker(service, rest=0.01)
        scheduler = Scheduler([worker])
        scheduler.start()
        service.runs.get(timeout=TIMEOUT)
        service.runs.get(timeout=TIMEOUT)
        assert f"{fault}" in scheduler.health()["one"].message
        service.fault = None
        service.runs.get(timeout=TIMEOUT)
        service.runs.get(timeout=TIMEOUT)
        scheduler.stop(TIMEOUT)
        assert scheduler.health() == {"one": HEALTHY}


@proves("HUB-TROUBLE")
def test_partial_failure_of_a_service_is_reported() -> None:
    class LaggingService(ServiceStub):
        last_problem = HealthProblem("one file lags", is_partial=True)

    service = LaggingService("one")
    scheduler = Scheduler([service_worker(service, rest=0.01)])
    scheduler.start()
    service.runs.get(timeout=TIMEOUT)
    service.runs.get(timeout=TIMEOUT)
    assert scheduler.health() == {"one": service.last_problem}
    service.last_problem = HEALTHY
    service.runs.get(timeout=TIMEOUT)
    service.runs.get(timeout=TIMEOUT)
    scheduler.stop(TIMEOUT)
    assert scheduler.health() == {"one": HEALTHY}


def test_hanging_group_delays_no_other_and_is_named_at_stop() -> None:
    stuck, free = ServiceStub("stuck"), ServiceStub("free")
    stuck.may_continue.clear()
    scheduler = Scheduler([service_worker(stuck, rest=0.01), service_worker(free, rest=0.01)])
    scheduler.start()
    stuck.runs.get(timeout=TIMEOUT)
    for _ in range(3):
        free.runs.get(timeout=TIMEOUT)
    assert scheduler.stop(0.2) == ["stuck"]
    stuck.may_continue.set()
    assert scheduler.stop(TIMEOUT) == []


@proves("HUB-TROUBLE")
def test_hanging_service_and_those_queued_behind_it_are_reported() -> None:
    failed, stuck, behind = (
        ServiceStub("failed", OSError("no room")),
        ServiceStub("stuck"),
        ServiceStub("behind"),
    )
    slow = ServiceStub("slow")
    group = ServiceGroup("one", (failed, stuck, behind), hang_timeout_seconds=0.0)
    scheduler = Scheduler([GroupWorker(group, lambda: 7), service_worker(slow)])
    for service in (stuck, slow):
        service.may_continue.clear()
    scheduler.start()
    for service in (stuck, slow):
        service.runs.get(timeout=TIMEOUT)
    health = scheduler.health()
    assert "it hangs" in health["stuck"].message
    assert not health["stuck"].is_partial
    assert health["behind"].message.startswith("waits for stuck")
    assert health["failed"].message == "no room", "what is known of one is told as it is"
    assert health["slow"] == HEALTHY, "a while is no matter"

    for service in (stuck, slow):
        service.may_continue.set()
    scheduler.stop(TIMEOUT)
    assert scheduler.health() == {**dict.fromkeys(health, HEALTHY), "failed": health["failed"]}


def test_worker_that_never_started_can_be_stopped() -> None:
    assert service_worker(ServiceStub("one")).stop(TIMEOUT)
