"""What becomes of the keys of an agent, in words for a person."""

from typing import TYPE_CHECKING

from dragoman.core.moments import duration, to_rfc3339

if TYPE_CHECKING:
    from dragoman.core.states.agent import AgentRecord, FormerKey


def fates_of_keys(
    before: "AgentRecord | None", after: "AgentRecord", now: int, overlap: int
) -> tuple[str, ...]:
    """Describe the effect of a key change: one sentence per formerly good key, or for the first
    key."""
    if before is None or not before.key:
        return ("its key is registered: what it signs is accepted from now on",)
    when = f"in {duration(overlap)}" if overlap else "from now on"
    former = before.overlapping(now)
    if before.key == after.key:
        return _same_key(former, after.overlapping(now), when)
    replaced = f"its old key is replaced: what that one signs is refused {when}"
    if former is None or former.key in after.good_keys(now):
        return (replaced,)
    was = to_rfc3339(former.until)
    return replaced, f"the key before that was good until {was}, and is refused from now on"


def ended_keys(name: str, count: int) -> str:
    """Tell that the agent's signing keys have ended, and how it can sign again."""
    keys = "its signing key has" if count == 1 else f"its {count} signing keys have"
    return (
        f"{keys} ended too: what it signs is refused from now on; "
        f"`dragoman agent add {name} --key FILE` makes a key good"
    )


def _same_key(
    former: "FormerKey | None", lasting: "FormerKey | None", when: str
) -> tuple[str, ...]:
    if former is None:
        return ("it has this key already, and no other one is good",)
    if lasting is None or lasting.until < former.until:
        return (f"its old key ends sooner: what that one signs is refused {when}",)
    until = to_rfc3339(lasting.until)
    return (f"its old key is good until {until}, as before: an overlap cannot be extended",)
