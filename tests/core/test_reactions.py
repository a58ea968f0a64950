"""The table of reactions: complete, without a cycle, and in the docs."""

from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.reactions import REACTION_ORDER, REACTIONS, UNFOLLOWED
from tests.requirements import proves

pytestmark = proves("CORE-REACTIONS")


NOT_FOLLOWED = {
    "attempt.escalated",
    "attempt.quiet",
    "delegation.accepted",
    "delegation.escalated",
    "delegation.rejected",
    "question.answered",
    "question.asked",
    "question.withdrawn",
    "task.aliased",
    "task.backlinked",
    "task.checked",
    "task.created",
    "task.handoff_changed",
    "task.noted",
    "task.unbacklinked",
    "task.warned",
}
"""Events of a task that need no reaction: a new one belongs here, or into the table."""


def test_every_event_of_a_task_is_followed_or_listed_as_not_followed() -> None:
    assert {EVENT_NAMES[event] for event in UNFOLLOWED} == NOT_FOLLOWED
    assert set(REACTIONS) <= set(EVENT_NAMES)


def test_reactions_of_every_event_are_in_the_one_order() -> None:
    for event, reactions in REACTIONS.items():
        assert reactions, event
        assert [one for one in REACTION_ORDER if one in reactions] == list(reactions)


def test_no_reaction_is_followed_by_an_earlier_one() -> None:
    for place, reaction in enumerate(REACTION_ORDER):
        assert reaction.emits <= set(EVENT_NAMES)
        followers = {one for event in reaction.emits for one in REACTIONS.get(event, ())}
        assert not followers & set(REACTION_ORDER[:place]), reaction.concept
