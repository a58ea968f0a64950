"""The table of reactions: complete, without a cycle, and in the docs."""

from typing import get_args

from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.reactions import REACTION_ORDER, REACTIONS, UNFOLLOWED
from dragoman.core.task_state import TaskEvent
from tests.requirements import proves

pytestmark = proves("CORE-REACTIONS")


def test_every_event_of_a_task_is_followed_or_listed_as_not_followed() -> None:
    events = set(get_args(TaskEvent))
    followed = events & set(REACTIONS)
    assert followed | UNFOLLOWED == events
    assert not followed & UNFOLLOWED
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
