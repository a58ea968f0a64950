"""Scripted programs that the dispatcher starts; they outlive the hub that started them.

They are known by what the real runner knows: a mark for each program, until its attempt is settled.
A new hub ends the programs whose marks it finds.
"""

import asyncio
from collections.abc import Awaitable, Callable

from dragoman.engine.ports import Assignment, OnMessage, RunExit
from tests.simulation.faulty_store import HubDied

Script = Callable[[Assignment, OnMessage], Awaitable[str]]
"""Behaviour of a program; returns the problem that ended it, or nothing."""


class Program:
    """Started program: it runs until its script ends or it is killed."""

    def __init__(self, script: Awaitable[str]) -> None:
        self.ended: asyncio.Future[str] = asyncio.ensure_future(script)

    def kill(self) -> None:
        self.ended.cancel()

    async def wait(self) -> str:
        """Wait for the end; return the problem that ended it."""
        await asyncio.wait((self.ended,))
        return "it was killed" if self.ended.cancelled() else self.ended.result()


class Machine:
    """Machine with running programs and the marks of those that a hub has started."""

    def __init__(self) -> None:
        self.marks: dict[str, Program] = {}

    def sweep(self) -> list[str]:
        """Kill the programs of an earlier hub; return their sessions."""
        for program in self.marks.values():
            program.kill()
        return list(self.marks)

    def forget(self, session: str) -> None:
        """Remove the mark of a program."""
        self.marks.pop(session, None)

    @property
    def running(self) -> list[str]:
        """Sessions of programs that have not ended."""
        return [session for session, one in self.marks.items() if not one.ended.done()]


class ScriptedRunner:
    """Runner of one process of the hub."""

    def __init__(self, machine: Machine, script: Script, is_dead: Callable[[], bool]) -> None:
        self._machine = machine
        self._script = script
        self._is_dead = is_dead

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "Running":
        """Start a program."""
        if self._is_dead():
            raise HubDied
        assert assignment.session not in self._machine.marks, "the same session runs twice"
        program = Program(self._script(assignment, on_message))
        self._machine.marks[assignment.session] = program
        return Running(self._machine, assignment.session, program, self._is_dead)


class Running:
    """Handle of a program for the hub that started it."""

    renews_lease = True
    output_bytes = 0

    def __init__(
        self, machine: Machine, session: str, program: Program, is_dead: Callable[[], bool]
    ) -> None:
        self._machine = machine
        self._session = session
        self._program = program
        self._is_dead = is_dead

    async def wait(self) -> RunExit:
        return RunExit(await self._program.wait())

    async def stop(self, grace: float, reason: str = "") -> None:
        """Wait for the grace period, since the program ignores the request, then kill it."""
        if self._is_dead():
            raise HubDied
        await asyncio.wait((self._program.ended,), timeout=grace)
        if self._is_dead():
            raise HubDied
        self._program.kill()

    def forget(self) -> None:
        """Remove the mark: the attempt is settled."""
        if self._is_dead():
            raise HubDied
        self._machine.marks.pop(self._session, None)
