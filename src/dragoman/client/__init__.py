"""SDK for agents: get work from a hub and report its outcome.

from dragoman.client import connect

async with connect() as hub:
    async for work in hub.work(agent="swe-backend"):
        async with work:
            await work.progress("reading the tests")
            await work.complete("fixed, with a test")
"""

from dragoman.client.errors import (
    BadAnswer,
    HubUnreachable,
    LeaseLost,
    QuestionClosed,
    Unauthenticated,
)
from dragoman.client.hub import Hub, Works, connect
from dragoman.client.models import Briefing, Event, Problem, RejectedMessage, Task
from dragoman.client.requests import Message
from dragoman.client.signing import Signer
from dragoman.client.sync import SyncHub, SyncWork, connect_sync
from dragoman.client.work import Work
from dragoman.core.errors import DragomanError, Refused, SettingsError
from dragoman.engine.ports import Gap
from dragoman.engine.schemas.accepted_message import AcceptedMessage
from dragoman.engine.schemas.tasks import TaskSummary

__all__ = [
    "AcceptedMessage",
    "BadAnswer",
    "Briefing",
    "DragomanError",
    "Event",
    "Gap",
    "Hub",
    "HubUnreachable",
    "LeaseLost",
    "Message",
    "Problem",
    "QuestionClosed",
    "Refused",
    "RejectedMessage",
    "SettingsError",
    "Signer",
    "SyncHub",
    "SyncWork",
    "Task",
    "TaskSummary",
    "Unauthenticated",
    "Work",
    "Works",
    "connect",
    "connect_sync",
]
