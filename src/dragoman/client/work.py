"""Work: one attempt on a task, its heartbeat, and what happens when the lease is lost."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from math import inf
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from msgspec import Struct
from msgspec.structs import replace

from dragoman.client.errors import LeaseLost, QuestionClosed
from dragoman.client.models import AskedQuestion, Claim, Task
from dragoman.client.requests import Message, Request, SubtaskFields, post, task_path
from dragoman.client.transport import ApiClient, Transport
from dragoman.core.base import Outcome
from dragoman.core.errors import DragomanError, Refused
from dragoman.core.limits import MAX_REASON
from dragoman.engine.schemas.accepted_message import AcceptedMessage
from dragoman.engine.schemas.tasks import QuestionDetail
from dragoman.text.safe_text import safe_text

T = TypeVar("T")

_log = logging.getLogger("dragoman.client")

# --- heartbeat --------------------------------------------------------------------------------

DEFAULT_HEARTBEAT_MS: Final = 10_000

MIN_HEARTBEAT_MS: Final = 100
"""With a shorter interval, heartbeats would be most of what the hub has to do."""


class LeaseTiming(Struct, frozen=True):
    """Duration of a lease without a heartbeat, and interval of heartbeats."""

    ttl_ms: int
    beat_ms: int
    """A lost lease, taken away by a person for example, is noticed after so long at most."""

    def __post_init__(self) -> None:
        if self.beat_ms < MIN_HEARTBEAT_MS:
            raise ValueError(f"beat_ms is {self.beat_ms}: it must be at least {MIN_HEARTBEAT_MS}")

    @property
    def ttl_s(self) -> float:
        """In seconds."""
        return self.ttl_ms / 1_000

    @property
    def interval_s(self) -> float:
        """Seconds between two heartbeats: two may be lost."""
        return min(self.ttl_ms / 3, self.beat_ms) / 1_000

    def as_granted(self, task: Task) -> "LeaseTiming":
        """Return it with the duration that the hub has granted; a lease that has ended has none."""
        return self if task.lease is None else replace(self, ttl_ms=task.lease.ttl_ms)


class HeldClaim(Struct, frozen=True):
    """A claimed task, and the timing of its lease."""

    claim: Claim
    timing: LeaseTiming
    earliest_start: float
    """Its lease did not begin before then, by the clock of the event loop."""

    def is_heartbeat_due(self, now: float) -> bool:
        """Return whether the lease may be so old already that the first heartbeat must not wait."""
        return now - self.earliest_start + 2 * self.timing.interval_s > self.timing.ttl_s


class Heartbeat:
    """Renews a lease; `on_lost` is called once, with the reason, if it could not."""

    def __init__(
        self, transport: Transport, held: HeldClaim, on_lost: Callable[[LeaseLost], None]
    ) -> None:
        self._transport = transport
        self._held = held
        self._claim = held.claim
        self._timing = held.timing
        self._on_lost = on_lost
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Stop sending heartbeats."""
        self._task.cancel()

    async def _run(self) -> None:
        claim, loop = self._claim, asyncio.get_running_loop()
        # It has no key: a repeat does no harm.
        path = task_path(claim.task.id, "heartbeat")
        request = post(path, Any, {"fence": claim.fence}, "")
        lease_end = loop.time() + self._timing.ttl_s
        if not self._held.is_heartbeat_due(loop.time()):
            # A short task needs no heartbeat, and one that comes after the report is refused, which
            # the ledger records.
            lease_end = self._held.earliest_start + self._timing.ttl_s
            await asyncio.sleep(self._timing.interval_s)
        while True:
            requested_at = loop.time()
            try:
                async with asyncio.timeout_at(lease_end):
                    await self._transport.send(request, token=claim.token or "", patience=inf)
            except TimeoutError:
                self._on_lost(self._unreachable())
                return
            except LeaseLost as lost:
                self._on_lost(lost)
                return
            except Refused as refused:
                self._on_lost(LeaseLost(str(refused)))
                return
            except DragomanError as error:
                # Something between us and the hub has answered: it may be better next time.
                _log.warning("%s: a heartbeat was lost: %s", claim.task.id, error)
                if loop.time() + self._timing.interval_s >= lease_end:
                    self._on_lost(self._unreachable())
                    return
            else:
                lease_end = requested_at + self._timing.ttl_s
            await asyncio.sleep(self._timing.interval_s)

    def _unreachable(self) -> LeaseLost:
        return LeaseLost(
            f"the hub could not be reached for {self._timing.ttl_s:g} s, so that the lease on "
            f"{self._claim.task.id} (fence {self._claim.fence}) has ended: stop working on it"
        )


# --- attempt ----------------------------------------------------------------------------------

FINAL_REPORT_S: Final = 5.0
"""Time limit for reporting the end of a task when its worker leaves."""

_UNREPORTED: Final = "the worker went on without reporting an outcome"


WAIT_MS: Final = 20_000
"""Longest wait of one request for new work, new events or an answer."""


def _closed_detail(question: QuestionDetail) -> str:
    if question.state == "withdrawn":
        return f"{question.id} of {question.task} was withdrawn by {question.closed_by}"
    return f"{question.task} has gone on without an answer to {question.id}"


class Work:
    """One attempt on one task; its heartbeat runs until the attempt has ended.

    If the lease is lost, the task that works on it is cancelled: `async with work`, or else the
    block of `connect`, then raises LeaseLost.
    """

    def __init__(
        self,
        api: ApiClient,
        held: HeldClaim,
        handler: asyncio.Task[Any] | None,
        on_close: "Callable[[Work], None]",
    ) -> None:
        claim = held.claim
        self.task: Final = claim.task
        """The task as it was claimed."""
        self.agent: Final = claim.agent
        self.attempt: Final = claim.attempt
        self.fence: Final = claim.fence
        self.briefing: Final = claim.briefing
        """All that earlier attempts, answers and reviews left; None if there is nothing."""
        self.lost: LeaseLost | None = None
        """The reason why the task is not ours any more."""
        self._losing = asyncio.Event()
        self._api = api.with_token(claim.token or "")
        self._on_close = on_close
        self._lost_while_ending: LeaseLost | None = None
        self._is_ending = False
        self._is_closed = False
        self._has_cancelled = False
        self._set_handler(handler)
        self._heartbeat = Heartbeat(api.transport, held, self._on_lease_lost)

    @property
    def is_open(self) -> bool:
        """True while it is neither ended nor lost."""
        return self.lost is None and not self._is_closed

    async def progress(self, text: str, notes: str = "", *, key: str = "") -> Task:
        """Report progress."""
        return await self._act("update", {"progress": text, "notes": notes}, key)

    async def note(self, text: str, *, key: str = "") -> Task:
        """Add a line to the work log."""
        return await self._act("note", {"text": text}, key)

    async def ask(self, text: str, *, timeout: float | None = None, key: str = "") -> str:  # noqa: ASYNC109  a limit of the answer, not of this call alone
        """Ask a question and wait for its answer; the lease is kept meanwhile.

        What was answered before is answered at once. QuestionClosed: it was withdrawn, or the task
        has gone on without an answer. TimeoutError: there was no answer within so many seconds; the
        same question again waits on. LeaseLost: the task is not ours any more.
        """
        loop = asyncio.get_running_loop()
        end = inf if timeout is None else loop.time() + timeout
        asked: AskedQuestion = await self._send("ask", {"text": text}, key, AskedQuestion)
        path = f"{task_path(self.task.id)}/questions/{asked.question}"
        while True:
            wait_ms = max(0, round(min(WAIT_MS, (end - loop.time()) * 1_000)))
            query = {"wait": wait_ms}
            request = Request("GET", path, QuestionDetail, query, wait_ms=wait_ms)
            shown: QuestionDetail = await self._unless_lost(self._api.request(request))
            if shown.state == "answered":
                return shown.answer or ""
            if shown.state != "open":
                raise QuestionClosed(_closed_detail(shown))
            if loop.time() >= end:
                raise TimeoutError(
                    f"{shown.id} of {shown.task} was not answered within {timeout:g} s: it stays "
                    "open, and the same question again waits on"
                )

    async def complete(
        self,
        notes: str = "",
        *,
        outcome: Outcome = "done",
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        """End the attempt: the work is done, or has another outcome.

        `details` are for programs; a number `cost` in them counts for the agent's budget.
        """
        return await self._report(outcome, notes, details=details, key=key)

    async def block(
        self,
        *blockers: str,
        notes: str = "",
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        """End the attempt: the work cannot go on until these are out of the way."""
        return await self._report("blocked", notes, blockers, details, key)

    async def fail(
        self, notes: str, *, details: Mapping[str, Any] | None = None, key: str = ""
    ) -> Task:
        """End the attempt as failed: another one follows after a pause, up to the task's limit."""
        return await self._report("failed", notes, details=details, key=key)

    async def release(self, reason: str = "released", *, key: str = "") -> Task:
        """Give the task back as it is, for anyone to claim. The attempt ends."""
        return await self._finish("release", {"reason": reason}, key)

    async def hand_off(
        self,
        to: str,
        title: str,
        *,
        due_by: datetime,
        key: str = "",
        **fields: Unpack[SubtaskFields],
    ) -> Task:
        """Ask another agent to do a part of this task: a new task that only it can claim.

        This work goes on; what was handed off cannot be handed off again.
        """
        if due_by.tzinfo is None:
            raise ValueError("due_by has no time zone: give one, as datetime.now(UTC) does")
        self.check()
        # One request: nobody can begin the task before its terms are there.
        part = {
            "title": title,
            "assignee": to,
            "body": fields.get("body", ""),
            "priority": fields.get("priority", "normal"),
            "due_by": due_by.isoformat(),
            "acceptance_criteria": list(fields.get("acceptance_criteria", ())),
            "expected_outputs": list(fields.get("expected_outputs", ())),
            "context_refs": list(fields.get("context_refs", ())),
            "constraints": list(fields.get("constraints", ())),
        }
        path = f"{task_path(self.task.id)}/delegate"
        return await self._api.post(path, Task, part, self._api.ensure_key(key))

    async def send(self, message: Message, *, dialect: str = "", key: str = "") -> AcceptedMessage:
        """Send a message of any dialect, as the agent that has this task."""
        self.check()
        return await self._api.send(message, dialect=dialect, key=key)

    async def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call any operation of any dialect, as the agent that has this task."""
        self.check()
        return await self._api.call(operation, arguments, key=key)

    def check(self) -> None:
        """Raise LeaseLost if the task is not ours any more."""
        if self.lost is not None:
            raise self.lost

    async def __aenter__(self) -> Self:
        if self._handler is not None:
            self._set_handler(asyncio.current_task())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.leave(error)

    async def leave(self, error: BaseException | None) -> None:
        """End the attempt when its worker leaves, with this error or none: nobody is left waiting
        for it."""
        if self._is_closed:
            return
        try:
            if self.lost is not None:
                self._raise_if_lost(error)
            elif not isinstance(error, LeaseLost):
                await self._report_leaving(error)
        finally:
            self._close()

    def _set_handler(self, handler: asyncio.Task[Any] | None) -> None:
        """Set the asyncio task that is cancelled when the lease is lost."""
        self._handler = handler
        self._cancelled_before = 0 if handler is None else handler.cancelling()

    async def _act(self, action: str, body: Mapping[str, Any], key: str) -> Task:
        return await self._send(action, body, key, Task)

    async def _send(
        self, action: str, body: Mapping[str, Any], key: str, response_type: type[T]
    ) -> T:
        self.check()
        path = task_path(self.task.id, action)
        return await self._api.post(path, response_type, {**body, "fence": self.fence}, key)

    async def _unless_lost(self, request: Coroutine[Any, Any, T]) -> T:
        """Wait for a response; LeaseLost as soon as the lease is lost, even where the worker cannot
        be cancelled."""
        waiting = asyncio.create_task(request)
        losing = asyncio.create_task(self._losing.wait())
        try:
            await asyncio.wait({waiting, losing}, return_when=asyncio.FIRST_COMPLETED)
            self.check()
            return await waiting
        finally:
            waiting.cancel()
            losing.cancel()

    async def _report(
        self,
        outcome: Outcome,
        notes: str,
        blockers: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        body = {"outcome": outcome, "notes": notes, "blockers": blockers}
        return await self._finish("report", {**body, "details": dict(details or {})}, key)

    async def _finish(self, action: str, body: Mapping[str, Any], key: str) -> Task:
        """End the attempt; a heartbeat that comes after it must not look like a lost lease."""
        self.check()
        self._is_ending = True
        try:
            ended = await self._act(action, body, key)
        except BaseException:
            self._is_ending = False
            self.lost = self._lost_while_ending
            raise
        self._close()
        return ended

    async def _report_leaving(self, error: BaseException | None) -> None:
        """Report the end of a task whose worker left without a report."""
        notes = _UNREPORTED
        if error is None:
            _log.warning("%s: %s", self.task.id, notes)
        else:
            notes = safe_text(f"{type(error).__name__}: {error}")[:MAX_REASON]
        try:
            async with asyncio.timeout(FINAL_REPORT_S):
                if error is None or isinstance(error, Exception):
                    await self._report("failed", notes)
                else:
                    await self.release("the worker was stopped")
        except LeaseLost:
            # A report whose answer was cut off was accepted, or another agent has the task.
            return
        except (DragomanError, TimeoutError) as failure:
            # Its lease expires by itself; what went wrong first is what the caller must see.
            _log.warning("%s: its final report could not be sent: %s", self.task.id, failure)

    def _on_lease_lost(self, error: LeaseLost) -> None:
        if self._is_ending:
            # The answer to the report tells the caller, if the lease is lost.
            self._lost_while_ending = error
            return
        self.lost = error
        self._losing.set()
        if self._handler is not None:
            self._has_cancelled = self._handler.cancel()

    def _raise_if_lost(self, error: BaseException | None) -> None:
        """Raise LeaseLost instead of the cancellation that a lost lease has caused."""
        handler, lost = self._handler, self.lost
        if lost is None or handler is None or handler is not asyncio.current_task():
            return
        if not self._has_cancelled:
            return
        is_ours_alone = handler.uncancel() <= self._cancelled_before
        if is_ours_alone and (error is None or isinstance(error, asyncio.CancelledError)):
            raise lost from None

    def _close(self) -> None:
        self._is_closed = True
        self._heartbeat.stop()
        self._on_close(self)
