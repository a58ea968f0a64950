"""Reference model of handoffs, written from the semantics and as simple as possible."""

from dataclasses import dataclass, field

ACTIVE = ("proposed", "validating", "accepted", "activated")
COORDINATORS = ("cora", "hera")

Answer = str
"""Empty if accepted; else the code, and the kind of a conflict after a space."""


@dataclass
class ModelHandoff:
    task: str
    sender: str
    recipient: str
    owner: str
    chain: list[str]
    status: str = "proposed"
    is_replaced: bool = False
    is_redelegation: bool = False
    """True for an offer that replaces an activated handoff of its sender, or another such offer."""
    was_rejected: bool = False

    @property
    def is_active(self) -> bool:
        """True while the offer is open or the recipient works by it."""
        return self.status in ACTIVE


@dataclass
class OfferedTask:
    """Task that is handed off."""

    status: str = "ready"
    owner: str = ""
    reserved: str = ""
    holder: str = ""
    chain: list[str] = field(default_factory=list[str])
    active: str = ""
    was_unowned: bool = False
    """True if the task had no owner before the offer and has not been begun since."""


@dataclass
class HandoffModel:
    """Tasks and handoffs, and the effect of each request on them."""

    tasks: dict[str, OfferedTask]
    handoffs: dict[str, ModelHandoff] = field(default_factory=dict[str, ModelHandoff])

    def offer(self, actor: str, new: str, name: str, recipient: str, supersedes: str) -> Answer:
        """Offer a task, perhaps superseding another offer."""
        task = self.tasks[name]
        old = self.handoffs.get(supersedes)
        if old is not None and old.task != name:
            return "invalid_field"
        refusal = self._offer_refusal(actor, task, old)
        if refusal:
            return refusal
        owner = task.owner or actor
        before = task.chain[: task.chain.index(owner)] if owner in task.chain else task.chain
        chain = [*before, owner]
        is_redelegation = old is not None and old.sender == owner and old.is_redelegation
        is_return = is_redelegation and old is not None and old.was_rejected
        if recipient in chain and not (is_return and chain[-2:-1] == [recipient]):
            return "ownership_conflict cycle"
        if old is not None:
            is_redelegation = (
                is_return or old.status == "activated" or (is_redelegation and old.is_active)
            )
            self._replace(old)
        self._begin(
            new, ModelHandoff(name, actor, recipient, owner, chain, is_redelegation=is_redelegation)
        )
        return ""

    def _offer_refusal(self, actor: str, task: OfferedTask, old: ModelHandoff | None) -> Answer:
        """Code that refuses the offer; empty if it is allowed."""
        if task.status in ("done", "cancelled"):
            return "invalid_transition"
        if task.active:
            if old is None or old is not self.handoffs[task.active]:
                return "ownership_conflict active_handoff"
            is_recipient = actor == old.recipient and old.status in ("accepted", "activated")
            is_sender = actor == old.sender and old.status != "activated"
            if not is_recipient and not is_sender:
                return "ownership_conflict not_owner"
        elif task.owner not in ("", actor):
            return "ownership_conflict not_owner"
        return "invalid_field" if old is not None and old.is_replaced else ""

    def _replace(self, old: ModelHandoff) -> None:
        old.is_replaced = True
        if old.is_active:
            was_begun = old.status == "activated"
            old.status, old.was_rejected = "completed" if was_begun else "rejected", not was_begun

    def accept(self, actor: str, id: str, is_fine: bool) -> Answer:
        """Accept or, if the checks fail, reject."""
        handoff = self.handoffs[id]
        if handoff.status not in ("proposed", "validating"):
            return "invalid_transition"
        if actor != handoff.recipient:
            return "not_authorized"
        if is_fine:
            handoff.status = "accepted"
        else:
            self._reject(handoff)
        return ""

    def activate(self, actor: str, id: str) -> Answer:
        """Activate: the recipient becomes the owner."""
        handoff = self.handoffs[id]
        task = self.tasks[handoff.task]
        is_adrift = handoff.status == "activated" and not task.holder
        if handoff.status != "accepted" and not is_adrift:
            return "invalid_transition"
        if actor != handoff.recipient:
            return "not_authorized"
        handoff.status, task.status, task.was_unowned = "activated", "in-progress", False
        task.owner = task.reserved = task.holder = handoff.recipient
        before = handoff.recipient in handoff.chain
        length = handoff.chain.index(handoff.recipient) if before else len(handoff.chain)
        task.chain = [*handoff.chain[:length], handoff.recipient]
        return ""

    def complete(self, actor: str, id: str) -> Answer:
        """Complete: the recipient reports the work done."""
        handoff = self.handoffs[id]
        if handoff.status != "activated":
            return "invalid_transition"
        if actor != handoff.recipient:
            return "not_authorized"
        task = self.tasks[handoff.task]
        if task.holder != actor:
            return "lease_lost"
        handoff.status = "completed"
        task.status, task.holder, task.active = "review", "", ""
        return ""

    def close(self, actor: str, id: str) -> Answer:
        handoff = self.handoffs[id]
        if handoff.status not in ("rejected", "completed"):
            return "invalid_transition"
        if actor not in (handoff.sender, *COORDINATORS):
            return "not_authorized"
        handoff.status = "closed"
        return ""

    def reject(self, actor: str, id: str) -> Answer:
        """Reject the offer, or give the task back."""
        handoff = self.handoffs[id]
        if handoff.status not in ACTIVE:
            return "invalid_transition"
        if actor not in (handoff.recipient, *COORDINATORS):
            return "not_authorized"
        self._reject(handoff)
        return ""

    def withdraw(self, actor: str, id: str) -> Answer:
        handoff = self.handoffs[id]
        if handoff.status not in ("proposed", "validating", "accepted"):
            return "invalid_transition"
        if actor != handoff.sender:
            return "not_authorized"
        self._reject(handoff)
        return ""

    def reassign(self, actor: str, id: str, new: str, recipient: str) -> Answer:
        """Offer the same package to another recipient."""
        handoff = self.handoffs[id]
        if handoff.status not in ACTIVE:
            return "invalid_transition"
        if actor not in COORDINATORS:
            return "not_authorized"
        if recipient in handoff.chain:
            return "ownership_conflict cycle"
        if recipient == handoff.recipient:
            return "invalid_field"
        self._reject(handoff)
        handoff.is_replaced = True
        owner = self.tasks[handoff.task].owner or handoff.sender
        reassigned = ModelHandoff(
            handoff.task,
            handoff.sender,
            recipient,
            owner,
            handoff.chain,
            is_redelegation=handoff.is_redelegation,
        )
        self._begin(new, reassigned)
        return ""

    def claim(self, actor: str, name: str) -> bool:
        """Claim the task; true if it is allowed."""
        task = self.tasks[name]
        if task.holder or task.status not in ("ready", "review"):
            return False
        if task.status == "review" and task.owner != actor:
            return False
        if task.active and actor != self._reserved_for(task):
            return False
        if task.reserved not in ("", actor):
            return False
        task.status, task.owner, task.holder = "in-progress", actor, actor
        task.was_unowned = False
        return True

    def report(self, actor: str, name: str) -> bool:
        """Report the task done; true if it is allowed."""
        task = self.tasks[name]
        if task.status in ("review", "done"):
            return True
        if task.holder != actor:
            return False
        task.status, task.holder = "review", ""
        self._follow(task)
        return True

    def end(self, name: str, status: str) -> bool:
        """End the task as a human; true if it is allowed."""
        task = self.tasks[name]
        if task.status == status:
            return True
        if task.status in ("done", "cancelled") or (status == "done" and task.status != "review"):
            return False
        task.status, task.holder = status, ""
        self._follow(task)
        return True

    def assign(self, name: str, to: str) -> bool:
        """Assign the task as a human, without a handoff; true if it is allowed."""
        task = self.tasks[name]
        if task.owner == to and (task.status == "in-progress" or task.reserved == to):
            return True
        if task.active or task.holder:
            return False
        task.owner = task.reserved = to
        return True

    def expire(self) -> None:
        """Expire all leases."""
        for task in self.tasks.values():
            if task.holder:
                task.status, task.owner, task.holder = "ready", task.reserved, ""

    def _reserved_for(self, task: OfferedTask) -> str:
        handoff = self.handoffs[task.active]
        return handoff.recipient if handoff.status == "activated" else handoff.owner

    def _follow(self, task: OfferedTask) -> None:
        """Complete or close the handoff of a task whose work has ended."""
        if not task.active:
            return
        handoff = self.handoffs[task.active]
        is_done = handoff.status == "activated" and task.status == "review"
        handoff.status = "completed" if is_done else "closed"
        handoff.was_rejected = not is_done
        task.active = ""

    def _begin(self, id: str, handoff: ModelHandoff) -> None:
        task = self.tasks[handoff.task]
        self.handoffs[id] = handoff
        task.was_unowned = task.was_unowned or not task.owner
        task.owner = task.reserved = handoff.owner
        task.chain = handoff.chain
        task.active = id

    def _reject(self, handoff: ModelHandoff) -> None:
        task = self.tasks[handoff.task]
        if handoff.status == "activated":
            task.status, task.holder = "ready", ""
            task.owner = task.reserved = handoff.owner
            task.chain = handoff.chain
        elif task.was_unowned:
            task.owner = task.reserved = ""
        handoff.status, handoff.was_rejected = "rejected", True
        task.active, task.was_unowned = "", False
