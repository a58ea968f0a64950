"""The hook for a model: a program of the operator's choice that puts a thread into words."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from dragoman.config import Settings, environment
from dragoman.notify.command import INHERITED_VARIABLES
from dragoman.protocols.agentmail import Model, ModelSummary
from dragoman.system.spawn import Timeouts, run_program

_SUMMARY_SECONDS: Final = 30.0


def open_summary_model(settings: Settings, data: Path) -> Model:
    """Summarizer that runs the program of the settings in the data directory.

    One run at a time: a model is slow, and must not take the threads that others wait for.
    """
    return partial(_summarize, settings.agentmail.summarize_command, data, Lock())


def _summarize(command: Sequence[str], data: Path, lock: Lock, thread: bytes) -> ModelSummary:
    if not lock.acquire(blocking=False):
        return ModelSummary(trouble=f"{command[0]} is busy with another thread: try again")
    environ = environment()
    variables = {name: environ[name] for name in INHERITED_VARIABLES if name in environ}
    try:
        code, text = run_program(command, thread, variables, data, Timeouts(_SUMMARY_SECONDS))
    except (OSError, ValueError) as error:
        return ModelSummary(trouble=f"{command[0]!a}: {error}")
    finally:
        lock.release()
    if code:
        return ModelSummary(trouble=f"{command[0]} ended with {code}")
    return ModelSummary(text.decode(errors="replace").strip())
