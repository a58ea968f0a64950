"""A hub with a manual clock, for people who test their agents, and the conformance of a dialect.

from dragoman.testing import hand_hub

with hand_hub() as hub:
    task = hub.create("Fix the login")
    work = hub.claim(task, agent="ada")
    hub.advance(minutes=6)
    hub.tick()
    assert hub.task(task).status == "ready"
"""

from dragoman.core.errors import Refused
from dragoman.testing.dialect_conformance import Call, DialectConformance, Do
from dragoman.testing.hand_hub import START, HandHub, Work, hand_hub

__all__ = [
    "START",
    "Call",
    "DialectConformance",
    "Do",
    "HandHub",
    "Refused",
    "Work",
    "hand_hub",
]
