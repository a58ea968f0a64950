"""Scripted agents of five dialects, each with one kind of work."""

from collections.abc import Sequence

from dragoman.core.actor import Actor
from dragoman.core.attempt import RenewLease, ReportOutcome
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import NoteTask, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.request import Accepted
from dragoman.ledger.stream_state import HandoffRow
from dragoman.protocols.agentmail import compose
from tests.simulation import messages
from tests.simulation.participant import Participant, Worker
from tests.simulation.world import (
    HOUR,
    Answer,
    World,
    command_call,
    is_accepted,
    message_call,
    operation_call,
)


class AofWorker(Worker):
    """Worker that claims the next task, reports progress and outcome, and ends its session."""

    async def work(self) -> None:
        """Work on one attempt."""
        if requested := self._requested_tasks():
            await self._answer_request(requested[0])
        claimed = await self.claim(requested[0].id if requested else "")
        if claimed is None:
            return
        actor, task, session = claimed
        ttl = self.world.profile.ttl_ms / 1_000
        for _ in range(self.rng.randrange(4)):
            await self.step(ttl / 2)
            await self._make_progress(actor, task)
        await self.step(ttl / 2)
        word, outcome = self.world.new_word(), self._outcome()
        message = messages.aof_report(self.name, task, self.now, word, outcome)
        answer = await self.call_with_retries(
            "report", message_call(message, actor), fence=self.fence(actor)
        )
        if is_accepted(answer) and self.rng.random() < 0.8:
            await self.step(ttl / 2)
            ended = operation_call("session_end", {"sessionId": session}, actor)
            await self.call_with_retries("session_end", ended)

    def _outcome(self) -> str:
        return self.rng.choice(("done", "done", "done", "blocked", "needs_review", "partial"))

    async def _make_progress(self, actor: Actor, task: str) -> None:
        word, fence, drawn = self.world.new_word(), self.fence(actor), self.rng.randrange(6)
        if drawn == 0:
            await self.call_with_retries(
                "note", command_call(actor, NoteTask(actor.task, word), key=word), fence=fence
            )
        elif drawn == 1:
            message = messages.aof_update(self.name, task, self.now, word)
            await self.call_with_retries("update", message_call(message, actor), fence=fence)
        elif drawn == 2:
            await self._delegate_part(actor, task)
        elif drawn == 3:
            files = ReserveFiles((f"src/{self.rng.randrange(4)}/",), HOUR)
            await self.call_with_retries("reserve", command_call(actor, files, key=word))
        elif drawn == 4:
            await self.call_with_retries("unreserve", command_call(actor, ReleaseReservations()))
        else:
            await self.call_with_retries(
                "beat", command_call(actor, RenewLease(*fence)), fence=fence
            )

    async def _delegate_part(self, actor: Actor, task: str) -> None:
        """Delegate a part of the task to a colleague."""
        open_ = (*self.tasks("ready"), *self.tasks("backlog"))
        parts = [one for one in open_ if not one.reserved_for and not one.parent]
        if parts:
            part, word = self.rng.choice(parts), self.world.new_word()
            due, to = self.now + self.rng.randrange(12 * HOUR), self._colleague()
            message = messages.aof_request(
                self.name, part.aof_id, task, at=self.now, due=due, word=word, to=to
            )
            await self.call_with_retries("delegate", message_call(message, actor))

    def _colleague(self) -> str:
        return self.rng.choice([name for name in AOF_WORKERS if name != self.name])

    def _requested_tasks(self) -> list[Task]:
        """Tasks that are delegated to this worker and not answered."""
        return [
            task
            for task in self.tasks("ready")
            if task.delegation is not None
            and task.delegation.to_agent == self.name
            and task.delegation.state == "requested"
        ]

    async def _answer_request(self, task: Task) -> None:
        word, agrees = self.world.new_word(), self.rng.random() < 0.8
        message = messages.aof_answer(self.name, task.aof_id, self.now, word, is_accepted=agrees)
        await self.call_with_retries("answer", message_call(message, self.actor))


class MailWorker(Participant):
    """Worker that claims beads and reports by letter, under letter ids of its own."""

    async def work(self) -> None:
        """Work on one bead, or read the inbox."""
        if self.rng.random() < 0.3:
            await self._read_inbox()
        beads = [one for one in self.tasks("ready") if one.reserved_for in ("", self.name)]
        beads = [one for one in beads if one.handoff is None and not one.open_blockers]
        if not beads:
            return
        task = self.rng.choice(beads)
        bead, started_at = task.id, to_rfc3339(self.now)
        await self._post(compose.draft("BEAD_ACCEPTED", bead, title="taken", started_at=started_at))
        for _ in range(self.rng.randrange(3)):
            await self.step(600)
            word = self.world.new_word()
            if self.rng.random() < 0.2:
                await self._post(
                    compose.draft(
                        "HELP_REQUEST",
                        bead,
                        issue_type="STUCK",
                        problem=word,
                        what_tried="all",
                        question="how?",
                    ),
                    word,
                )
            else:
                await self._post(
                    compose.draft("PROGRESS", bead, step=word, status="going", context_usage=50),
                    word,
                )
        await self.step(600)
        outcome = self.rng.choice(("done", "done", "done", "TESTS_FAIL", "checkpoint"))
        word = self.world.new_word()
        await self._post(messages.mail_report(bead, word, outcome), word)

    async def _post(self, draft: compose.Draft, word: str = "") -> None:
        message = messages.letter(draft, f"m-{self.world.new_number()}", to=("olga",))
        answer = await self.call_with_retries(draft.type, message_call(message, self.actor))
        if word and is_accepted(answer):
            self.world.auditor.expect_recorded(word, "mail.posted")

    async def _read_inbox(self) -> None:
        box = await self.call_with_retries(
            "inbox", operation_call("mail.inbox", {"pending": True}, self.actor)
        )
        if isinstance(box, Accepted):
            for row in box.reply["messages"][:3]:
                await self.call_with_retries(
                    "ack", operation_call("mail.ack", {"id": row["id"]}, self.actor)
                )


class Helper(MailWorker):
    """Participant that answers questions by letter, sometimes late."""

    async def work(self) -> None:
        """Answer the pending questions."""
        call = operation_call("mail.inbox", {"pending": True}, self.actor)
        box = await self.call_with_retries("inbox", call)
        if not isinstance(box, Accepted):
            return
        for row in box.reply["messages"][:5]:
            await self.step(60)
            if row["type"] == "HELP_REQUEST" and row.get("bead_id"):
                draft = compose.draft(
                    "HELP_RESPONSE", row["bead_id"], guidance=self.world.new_word()
                )
                message = messages.letter(draft, f"m-{self.world.new_number()}", to=(row["from"],))
                message["reply_to"] = row["id"]
                await self.call_with_retries("help", message_call(message, self.actor))
            else:
                await self.call_with_retries(
                    "ack", operation_call("mail.ack", {"id": row["id"]}, self.actor)
                )


class TraceWorker(Worker):
    """Worker that claims the next task, records turns in any order and thoughts, and reports."""

    async def work(self) -> None:
        """Work on one attempt."""
        claimed = await self.claim()
        if claimed is None:
            return
        actor, _, session = claimed
        ttl = self.world.profile.ttl_ms / 1_000
        turns = list(range(self.rng.randrange(5)))
        if self.world.goes_wrong(self.rng, 5):
            self.rng.shuffle(turns)
        for index in turns:
            await self.step(ttl / 2)
            word = self.world.new_word()
            message = messages.turn(self.name, actor.task, index, self.now, word)
            answer = await self.call_with_retries("turn", message_call(message, actor))
            if is_accepted(answer):
                self.world.auditor.expect_recorded(word, "turn.recorded")
            if self.rng.random() < 0.3:
                thought = messages.thought(
                    self.name, self.world.new_number(), session, self.world.new_word()
                )
                await self.call_with_retries("think", message_call(thought, actor))
        await self.step(ttl / 2)
        outcome = self.rng.choice(("done", "done", "failed", "needs_review"))
        command = ReportOutcome(actor.task, outcome, self.world.new_word(), apply=True)
        word = self.world.new_word()
        await self.call_with_retries(
            "finish", command_call(actor, command, key=word), fence=self.fence(actor)
        )


class HandoffWorker(Worker):
    """Worker that offers tasks to colleagues, and accepts, does and rejects what they offer."""

    async def work(self) -> None:
        """Take one step of a handoff."""
        records = self.world.auditor.store.handoffs("", 1_000)
        received = [one for one in records if one.to_agent == self.name and one.is_active]
        sent = [one for one in records if one.from_agent == self.name]
        ended = [one for one in sent if one.status in ("completed", "rejected")]
        if ended and self.rng.random() < 0.5:
            await self._act("close", self.rng.choice(ended).id, closure_notes="thanks")
        elif received:
            await self._handle_handoff(self.rng.choice(received))
        elif own := self._returned_tasks():
            await self._do_task(own[0])
        elif not self.world.is_calm:
            await self._offer()

    def _returned_tasks(self) -> list[Task]:
        """Own tasks whose offer has ended without a recipient."""
        own = [one for one in self.tasks("ready") if one.reserved_for == self.name]
        return [one for one in own if one.handoff is None]

    async def _do_task(self, task: Task) -> None:
        claimed = await self.claim(task.id)
        if claimed is not None:
            await self.step(600)
            done = ReportOutcome(task.id, "done", self.world.new_word(), apply=True)
            await self.call_with_retries(
                "finish", command_call(claimed[0], done, key=self.world.new_word())
            )

    async def _handle_handoff(self, record: HandoffRow) -> None:
        id, drawn = record.id, self.rng.random()
        if drawn < 0.15 and not self.world.is_calm:
            await self._act("reject", id, reason="capacity_unavailable", detail="no time")
        elif record.status == "proposed":
            await self._act("accept", id)
        elif record.status == "accepted":
            await self._act("activate", id)
        else:
            # A recipient whose lease has expired has to activate the handoff again first.
            for _ in range(self.rng.randrange(3)):
                await self.step(600)
                await self.call_with_retries(
                    "beat", command_call(self.actor, RenewLease(record.task_id))
                )
            reply = await self._act("complete", id, completion_notes="it works")
            if not is_accepted(reply):
                await self._act("activate", id)
                await self.step(600)
                await self._act("complete", id, completion_notes="it works at last")

    async def _offer(self) -> None:
        number = self.world.new_number()
        id, task, item = f"h-{number}", f"acp-{number}", f"item-{number}"
        if self.rng.random() < 0.5:
            added = operation_call("workq.create", {"item_id": item, "title": "part"}, self.actor)
            await self.call_with_retries("item", added)
            await self.call_with_retries(
                "own", operation_call("workq.claim", {"item_id": item}, self.actor)
            )
        else:
            item = ""
        to = self.rng.choice([name for name in HANDOFF_WORKERS if name != self.name])
        message = messages.handoff(id, task, to, item)
        answer = await self.call_with_retries(
            "offer", operation_call("acp_handoff", message, self.actor)
        )
        if is_accepted(answer):
            self.world.proposed_handoffs.append(id)

    async def _act(self, action: str, id: str, **more: str) -> Answer:
        message = {"action": action, "handoff_id": id, **more}
        return await self.call_with_retries(
            action, operation_call("acp_handoff", message, self.actor)
        )


class IntentWorker(Worker):
    """Worker that answers requests of intents."""

    async def work(self) -> None:
        """Work on one request."""
        found = await self.call_with_retries(
            "requests", operation_call("ccos.requests", {}, self.actor)
        )
        if not isinstance(found, Accepted) or not found.reply["requests"]:
            await self._claim_reserved()
            return
        request = self.rng.choice(found.reply["requests"])
        message = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
        if self.rng.random() < 0.5:
            await self.step(1_200)
            update = {**message, "progress": 0.5, "message": self.world.new_word(), "sequence": 1}
            await self.call_with_retries(
                "intent_update", operation_call("ccos.update", update, self.actor)
            )
        await self.step(1_200)
        is_fine = self.rng.random() < 0.7
        word = self.world.new_word()
        result = {
            **message,
            "success": is_fine,
            **({"output": word} if is_fine else {"error": word}),
        }
        await self.expect_recorded(
            "result", operation_call("ccos.result", result, self.actor), word, "intent.completed"
        )

    async def _claim_reserved(self) -> None:
        """Claim a task reserved for this worker without a request (its intent was rejected)."""
        own = [one for one in self.tasks("ready") if one.reserved_for == self.name]
        if own and (claimed := await self.claim(own[0].id)) is not None:
            await self.step(600)
            done = ReportOutcome(claimed[0].task, "done", self.world.new_word(), apply=True)
            await self.call_with_retries(
                "finish", command_call(claimed[0], done, key=self.world.new_word())
            )


AOF_WORKERS = tuple(f"aof-{number}" for number in range(1, 7))
MAIL_WORKERS = tuple(f"mail-{number}" for number in range(1, 6))
TRACE_WORKERS = ("developer", "reviewer", "researcher")
HANDOFF_WORKERS = tuple(f"acp-{number}" for number in range(1, 5))
DELEGATES = tuple(f"ccos-{number}" for number in range(1, 5))
PROGRAMS = ("prog-1", "prog-2")

AGENT_KINDS: Sequence[tuple[type[Participant], tuple[str, ...]]] = (
    (AofWorker, AOF_WORKERS),
    (MailWorker, MAIL_WORKERS),
    (Helper, ("chiron",)),
    (TraceWorker, TRACE_WORKERS),
    (HandoffWorker, HANDOFF_WORKERS),
    (IntentWorker, DELEGATES),
)
"""Class of participant -> its names."""


def create_agents(world: World) -> list[Participant]:
    """Create all scripted agents."""
    return [kind(world, name) for kind, names in AGENT_KINDS for name in names]
