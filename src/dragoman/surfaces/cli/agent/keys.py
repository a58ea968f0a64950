"""What becomes of the keys of an agent, in words for a person."""

from typing import TYPE_CHECKING

from dragoman.core.moments import format_duration, to_rfc3339

if TYPE_CHECKING:
    from dragoman.core.states.agent import AgentRecord, PreviousKey


def describe_key_changes(
    before: "AgentRecord | None", after: "AgentRecord", now: int, overlap: int
) -> tuple[str, ...]:
    """Describe the effect of a key change: one sentence per formerly good key, or for the first
    key."""
    if before is None or not before.key:
        return ("its key is registered: what it signs is accepted from now on",)
    effective = f"in {format_duration(overlap)}" if overlap else "from now on"
    former = before.valid_previous_key(now)
    if before.key == after.key:
        return _describe_same_key(former, after.valid_previous_key(now), effective)
    replaced = f"its old key is replaced: what that one signs is refused {effective}"
    if former is None or former.key in after.valid_keys(now):
        return (replaced,)
    former_until = to_rfc3339(former.until)
    return (
        replaced,
        f"the key before that was good until {former_until}, and is refused from now on",
    )


def describe_ended_keys(name: str, count: int) -> str:
    """Tell that the agent's signing keys have ended, and how it can sign again."""
    keys = "its signing key has" if count == 1 else f"its {count} signing keys have"
    return (
        f"{keys} ended too: what it signs is refused from now on; "
        f"`dragoman agent add {name} --key FILE` makes a key good"
    )


def _describe_same_key(
    former: "PreviousKey | None", remaining: "PreviousKey | None", effective: str
) -> tuple[str, ...]:
    if former is None:
        return ("it has this key already, and no other one is good",)
    if remaining is None or remaining.until < former.until:
        return (f"its old key ends sooner: what that one signs is refused {effective}",)
    until = to_rfc3339(remaining.until)
    return (f"its old key is good until {until}, as before: an overlap cannot be extended",)
