"""Scripted agents of five dialects, each with one kind of work."""

from collections.abc import Sequence

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    NoteTask,
    ReleaseReservations,
    RenewLease,
    ReportOutcome,
    ReserveFiles,
)
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import Task
from dragoman.engine.plan import Taken
from dragoman.ledger.records import HandoffRecord
from dragoman.protocols.agentmail import compose
from tests.simulation import messages
from tests.simulation.taking_part import Agent, Worker
from tests.simulation.world import HOUR, Answer, World, do, is_yes, operate, send


class AofWorker(Worker):
    """Claims what is next, tells how it goes, reports, and ends its session."""

    async def work(self) -> None:
        """One attempt."""
        if offered := self._offered():
            await self._answer(offered[0])
        begun = await self.claim(offered[0].id if offered else "")
        if begun is None:
            return
        actor, task, session = begun
        ttl = self.world.profile.ttl_ms / 1_000
        for _ in range(self.chance.randrange(4)):
            await self.step(ttl / 2)
            await self._go_on(actor, task)
        await self.step(ttl / 2)
        word, outcome = self.world.word(), self._outcome()
        said = messages.aof_report(self.name, task, self.now, word, outcome)
        answer = await self.insist("report", send(said, actor), fence=self.fence(actor))
        if is_yes(answer) and self.chance.random() < 0.8:
            await self.step(ttl / 2)
            ended = operate("session_end", {"sessionId": session}, actor)
            await self.insist("session_end", ended)

    def _outcome(self) -> str:
        return self.chance.choice(("done", "done", "done", "blocked", "needs_review", "partial"))

    async def _go_on(self, actor: Actor, task: str) -> None:
        word, fence, drawn = self.world.word(), self.fence(actor), self.chance.randrange(6)
        if drawn == 0:
            await self.insist("note", do(actor, NoteTask(actor.task, word), key=word), fence=fence)
        elif drawn == 1:
            said = messages.aof_update(self.name, task, self.now, word)
            await self.insist("update", send(said, actor), fence=fence)
        elif drawn == 2:
            await self._hand_on(actor, task)
        elif drawn == 3:
            files = ReserveFiles((f"src/{self.chance.randrange(4)}/",), HOUR, task=actor.task)
            await self.insist("reserve", do(actor, files, key=word))
        elif drawn == 4:
            await self.insist("unreserve", do(actor, ReleaseReservations()))
        else:
            await self.insist("beat", do(actor, RenewLease(*fence)), fence=fence)

    async def _hand_on(self, actor: Actor, task: str) -> None:
        """Ask a colleague for a part of it."""
        open_ = (*self.tasks("ready"), *self.tasks("backlog"))
        parts = [one for one in open_ if not one.reserved_for and not one.parent]
        if parts:
            part, word = self.chance.choice(parts), self.world.word()
            due, to = self.now + self.chance.randrange(12 * HOUR), self._colleague()
            said = messages.aof_request(
                self.name, part.aof_id, task, at=self.now, due=due, word=word, to=to
            )
            await self.insist("delegate", send(said, actor))

    def _colleague(self) -> str:
        return self.chance.choice([name for name in AOF_WORKERS if name != self.name])

    def _offered(self) -> list[Task]:
        """What somebody has asked this one to do."""
        return [
            task
            for task in self.tasks("ready")
            if task.delegation is not None
            and task.delegation.to_agent == self.name
            and task.delegation.state == "requested"
        ]

    async def _answer(self, task: Task) -> None:
        word, is_yes = self.world.word(), self.chance.random() < 0.8
        said = messages.aof_answer(self.name, task.aof_id, self.now, word, is_yes=is_yes)
        await self.insist("answer", send(said, self.actor))


class MailWorker(Agent):
    """Takes beads, and tells by letter how it goes; letters have ids of their own."""

    async def work(self) -> None:
        """One bead, or the letters in the box."""
        if self.chance.random() < 0.3:
            await self._look_into_box()
        beads = [one for one in self.tasks("ready") if one.reserved_for in ("", self.name)]
        beads = [one for one in beads if one.handoff is None and not one.open_blockers]
        if not beads:
            return
        task = self.chance.choice(beads)
        bead, begun = task.id, to_rfc3339(self.now)
        await self._write(compose.bead_accepted(bead, title="taken", started_at=begun))
        for _ in range(self.chance.randrange(3)):
            await self.step(600)
            word = self.world.word()
            if self.chance.random() < 0.2:
                await self._write(
                    compose.help_request(
                        bead,
                        issue_type="STUCK",
                        problem=word,
                        what_tried="all",
                        question="how?",
                    ),
                    word,
                )
            else:
                await self._write(
                    compose.progress(bead, step=word, status="going", context_usage=50), word
                )
        await self.step(600)
        outcome = self.chance.choice(("done", "done", "done", "TESTS_FAIL", "checkpoint"))
        word = self.world.word()
        await self._write(messages.mail_report(bead, word, outcome), word)

    async def _write(self, draft: compose.Draft, word: str = "") -> None:
        said = messages.letter(draft, f"m-{self.world.number()}", to=("olga",))
        answer = await self.insist(draft.type, send(said, self.actor))
        if word and is_yes(answer):
            self.world.auditor.promised(word, "mail.posted")

    async def _look_into_box(self) -> None:
        box = await self.insist("inbox", operate("mail.inbox", {"pending": True}, self.actor))
        if isinstance(box, Taken):
            for row in box.reply["messages"][:3]:
                await self.insist("ack", operate("mail.ack", {"id": row["id"]}, self.actor))


class Helper(MailWorker):
    """Answers questions that come by letter, late at times."""

    async def work(self) -> None:
        """All questions that wait."""
        asked = operate("mail.inbox", {"pending": True}, self.actor)
        box = await self.insist("inbox", asked)
        if not isinstance(box, Taken):
            return
        for row in box.reply["messages"][:5]:
            await self.step(60)
            if row["type"] == "HELP_REQUEST" and row.get("bead_id"):
                draft = compose.help_response(row["bead_id"], guidance=self.world.word())
                said = messages.letter(draft, f"m-{self.world.number()}", to=(row["from"],))
                said["reply_to"] = row["id"]
                await self.insist("help", send(said, self.actor))
            else:
                await self.insist("ack", operate("mail.ack", {"id": row["id"]}, self.actor))


class TraceWorker(Worker):
    """Claims what is next, shows its turns in any order, thinks aloud, and reports."""

    async def work(self) -> None:
        """One attempt."""
        begun = await self.claim()
        if begun is None:
            return
        actor, _, session = begun
        ttl = self.world.profile.ttl_ms / 1_000
        turns = list(range(self.chance.randrange(5)))
        if self.world.slip(self.chance, 5):
            self.chance.shuffle(turns)
        for index in turns:
            await self.step(ttl / 2)
            word = self.world.word()
            said = messages.turn(self.name, actor.task, index, self.now, word)
            answer = await self.insist("turn", send(said, actor))
            if is_yes(answer):
                self.world.auditor.promised(word, "turn.recorded")
            if self.chance.random() < 0.3:
                heard = messages.thought(self.name, self.world.number(), session, self.world.word())
                await self.insist("think", send(heard, actor))
        await self.step(ttl / 2)
        outcome = self.chance.choice(("done", "done", "failed", "needs_review"))
        command = ReportOutcome(actor.task, outcome, self.world.word(), apply=True)
        word = self.world.word()
        await self.insist("finish", do(actor, command, key=word), fence=self.fence(actor))


class HandoffWorker(Worker):
    """Offers work to colleagues, and takes, does and gives back what is offered to it."""

    async def work(self) -> None:
        """One step of a handoff."""
        records = self.world.auditor.store.handoffs("", 1_000)
        mine = [one for one in records if one.to_agent == self.name and one.is_active]
        given = [one for one in records if one.from_agent == self.name]
        ended = [one for one in given if one.status in ("completed", "rejected")]
        if ended and self.chance.random() < 0.5:
            await self._act("close", self.chance.choice(ended).id, closure_notes="thanks")
        elif mine:
            await self._serve(self.chance.choice(mine))
        elif own := self._given_back():
            await self._do_it_oneself(own[0])
        elif not self.world.is_calm:
            await self._offer()

    def _given_back(self) -> list[Task]:
        """What was this one's own, and nobody else took."""
        own = [one for one in self.tasks("ready") if one.reserved_for == self.name]
        return [one for one in own if one.handoff is None]

    async def _do_it_oneself(self, task: Task) -> None:
        begun = await self.claim(task.id)
        if begun is not None:
            await self.step(600)
            done = ReportOutcome(task.id, "done", self.world.word(), apply=True)
            await self.insist("finish", do(begun[0], done, key=self.world.word()))

    async def _serve(self, record: HandoffRecord) -> None:
        id, drawn = record.id, self.chance.random()
        if drawn < 0.15 and not self.world.is_calm:
            await self._act("reject", id, reason="capacity_unavailable", detail="no time")
        elif record.status == "proposed":
            await self._act("accept", id)
        elif record.status == "accepted":
            await self._act("activate", id)
        else:
            # Whoever was silent for too long has to take it up again first.
            for _ in range(self.chance.randrange(3)):
                await self.step(600)
                await self.insist("beat", do(self.actor, RenewLease(record.task_id)))
            reply = await self._act("complete", id, completion_notes="it works")
            if not is_yes(reply):
                await self._act("activate", id)
                await self.step(600)
                await self._act("complete", id, completion_notes="it works at last")

    async def _offer(self) -> None:
        number = self.world.number()
        id, task, item = f"h-{number}", f"acp-{number}", f"item-{number}"
        if self.chance.random() < 0.5:
            added = operate("workq.create", {"item_id": item, "title": "part"}, self.actor)
            await self.insist("item", added)
            await self.insist("own", operate("workq.claim", {"item_id": item}, self.actor))
        else:
            item = ""
        to = self.chance.choice([name for name in HANDOFF_WORKERS if name != self.name])
        said = messages.handoff(id, task, to, item)
        answer = await self.insist("offer", operate("acp_handoff", said, self.actor))
        if is_yes(answer):
            self.world.handed_over.append(id)

    async def _act(self, action: str, id: str, **more: str) -> Answer:
        said = {"action": action, "handoff_id": id, **more}
        return await self.insist(action, operate("acp_handoff", said, self.actor))


class Delegate(Worker):
    """Does what intents ask it for, and hands in results."""

    async def work(self) -> None:
        """One request."""
        found = await self.insist("requests", operate("ccos.requests", {}, self.actor))
        if not isinstance(found, Taken) or not found.reply["requests"]:
            await self._take_up()
            return
        request = self.chance.choice(found.reply["requests"])
        said = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
        if self.chance.random() < 0.5:
            await self.step(1_200)
            update = {**said, "progress": 0.5, "message": self.world.word(), "sequence": 1}
            await self.insist("intent_update", operate("ccos.update", update, self.actor))
        await self.step(1_200)
        is_fine = self.chance.random() < 0.7
        word = self.world.word()
        result = {**said, "success": is_fine, **({"output": word} if is_fine else {"error": word})}
        await self.promised(
            "result", operate("ccos.result", result, self.actor), word, "intent.completed"
        )

    async def _take_up(self) -> None:
        """What is reserved for it without a request: an intent that had come to nothing."""
        own = [one for one in self.tasks("ready") if one.reserved_for == self.name]
        if own and (begun := await self.claim(own[0].id)) is not None:
            await self.step(600)
            done = ReportOutcome(begun[0].task, "done", self.world.word(), apply=True)
            await self.insist("finish", do(begun[0], done, key=self.world.word()))


AOF_WORKERS = tuple(f"aof-{number}" for number in range(1, 7))
MAIL_WORKERS = tuple(f"mail-{number}" for number in range(1, 6))
TRACE_WORKERS = ("developer", "reviewer", "researcher")
HANDOFF_WORKERS = tuple(f"acp-{number}" for number in range(1, 5))
DELEGATES = tuple(f"ccos-{number}" for number in range(1, 5))
PROGRAMS = ("prog-1", "prog-2")

CAST: Sequence[tuple[type[Agent], tuple[str, ...]]] = (
    (AofWorker, AOF_WORKERS),
    (MailWorker, MAIL_WORKERS),
    (Helper, ("chiron",)),
    (TraceWorker, TRACE_WORKERS),
    (HandoffWorker, HANDOFF_WORKERS),
    (Delegate, DELEGATES),
)
"""Who takes part, by the dialect that they speak."""


def cast_of(world: World) -> list[Agent]:
    """All of them."""
    return [kind(world, name) for kind, names in CAST for name in names]
