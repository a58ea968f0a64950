"""The hook for a model: a program of the operator's choice that puts a thread into words."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from dragoman.config import Settings, environment
from dragoman.notify.command import PASSED_ON
from dragoman.protocols.agentmail import InWords, Model
from dragoman.system.spawn import Patience, run

_SECONDS: Final = 30.0


def open_model(settings: Settings, data: Path) -> Model:
    """Summarizer that runs the program of the settings in the data directory.

    One run at a time: a model is slow, and must not take the threads that others wait for.
    """
    return partial(_put_into_words, settings.agentmail.summarize_command, data, Lock())


def _put_into_words(words: Sequence[str], data: Path, turn: Lock, thread: bytes) -> InWords:
    if not turn.acquire(blocking=False):
        return InWords(trouble=f"{words[0]} is busy with another thread: try again")
    said = environment()
    variables = {name: said[name] for name in PASSED_ON if name in said}
    try:
        code, text = run(words, thread, variables, data, Patience(_SECONDS))
    except (OSError, ValueError) as error:
        return InWords(trouble=f"{words[0]!a}: {error}")
    finally:
        turn.release()
    if code:
        return InWords(trouble=f"{words[0]} ended with {code}")
    return InWords(text.decode(errors="replace").strip())
