"""What all commands have in common."""

from msgspec import Struct

DEFAULT_LEASE_MS = 300_000
"""A lease without a heartbeat expires after five minutes (S-RUN)."""
DEFAULT_MAX_ATTEMPTS = 5
"""After this many failures in a row a task goes to the deadletter (S-RUN)."""


class Command(Struct, frozen=True, omit_defaults=True):
    """Root of all commands. A request is a tuple of them, all or none. The tag is the name."""

    @property
    def target_task(self) -> str:
        """Task that it is about, by any of its names; empty when there is none yet."""
        return ""

    @property
    def heartbeat_task(self) -> str:
        """Task whose lease is renewed if its holder sends this; empty: none."""
        return ""

    @property
    def named_fence(self) -> int | None:
        """Fencing token that it names; None: whichever its sender holds."""
        return getattr(self, "fence", None)


class TaskCommand(Command, frozen=True):
    """A command about one existing task, by any of its names."""

    task: str

    @property
    def target_task(self) -> str:
        return self.task

    @property
    def heartbeat_task(self) -> str:
        return self.task
