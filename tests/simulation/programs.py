"""Programs that the dispatcher starts, played by scripts; they outlive the hub that started them.

What is known of them is what the real runner knows: a mark for each that was started, until its
attempt is settled. A hub that starts anew ends those that it finds marks of.
"""

import asyncio
from collections.abc import Awaitable, Callable

from dragoman.engine.runner import Assignment, Ended, Hear
from tests.simulation.faulty_store import HubDied

Script = Callable[[Assignment, Hear], Awaitable[str]]
"""What a program does; what was wrong with its end, for a person."""


class Program:
    """One that was started: it goes on until its script ends or somebody ends it."""

    def __init__(self, script: Awaitable[str]) -> None:
        self.ended: asyncio.Future[str] = asyncio.ensure_future(script)

    def kill(self) -> None:
        """End it here and now."""
        self.ended.cancel()

    async def wait(self) -> str:
        """What was wrong with its end."""
        await asyncio.wait((self.ended,))
        return "it was killed" if self.ended.cancelled() else self.ended.result()


class Machine:
    """Where programs run: its processes, and the marks of those that a hub has started."""

    def __init__(self) -> None:
        self.marks: dict[str, Program] = {}

    def sweep(self) -> list[str]:
        """End what an earlier hub has left; its sessions, each until it is forgotten."""
        for program in self.marks.values():
            program.kill()
        return list(self.marks)

    def forget(self, session: str) -> None:
        """Let go of the mark of a program."""
        self.marks.pop(session, None)

    @property
    def running(self) -> list[str]:
        """The sessions of programs that have not ended."""
        return [session for session, one in self.marks.items() if not one.ended.done()]


class ScriptedRunner:
    """The runner of one life of a hub."""

    def __init__(self, machine: Machine, script: Script, is_dead: Callable[[], bool]) -> None:
        self._machine = machine
        self._script = script
        self._is_dead = is_dead

    async def start(self, assignment: Assignment, hear: Hear) -> "Running":
        """Let the program begin."""
        if self._is_dead():
            raise HubDied
        assert assignment.session not in self._machine.marks, "the same session runs twice"
        program = Program(self._script(assignment, hear))
        self._machine.marks[assignment.session] = program
        return Running(self._machine, assignment.session, program, self._is_dead)


class Running:
    """A program, as the hub that started it has it."""

    is_beating = True
    said = 0

    def __init__(
        self, machine: Machine, session: str, program: Program, is_dead: Callable[[], bool]
    ) -> None:
        self._machine = machine
        self._session = session
        self._program = program
        self._is_dead = is_dead

    async def wait(self) -> Ended:
        """Until it has ended."""
        return Ended(await self._program.wait())

    async def stop(self, grace: float, why: str = "") -> None:
        """It does not listen, and is ended when the grace is over."""
        if self._is_dead():
            raise HubDied
        await asyncio.wait((self._program.ended,), timeout=grace)
        if self._is_dead():
            raise HubDied
        self._program.kill()

    def forget(self) -> None:
        """Its attempt is settled."""
        if self._is_dead():
            raise HubDied
        self._machine.marks.pop(self._session, None)
