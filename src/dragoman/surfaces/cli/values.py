"""How the words of a command line become values, in our own sentences and without delay.

Typer hands every value to pydantic, whose import takes longer than most of our commands. Ours are
texts, whole numbers, choices, paths and what a parser makes of a text; they are read here.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from dragoman.config.store_url import check_url
from dragoman.core.errors import SettingsError
from dragoman.core.moments import parse_duration, parse_rfc3339
from dragoman.text.nearest import meant

_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_MOST_DIGITS = 18

Read = Callable[[Any], Any]


def read_text(given: str) -> str:
    """Parse a text that can be stored; arguments that are not UTF-8 arrive with surrogates."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{given!a} is not valid UTF-8") from None
    return given


def read_moment(given: str) -> int:
    """Parse an RFC 3339 timestamp; in milliseconds."""
    return parse_rfc3339(given)


def read_clock(given: str) -> int:
    """Parse a timestamp that the hub's clock may show; in milliseconds."""
    moment = parse_rfc3339(given)
    if moment < 0:
        raise ValueError(f"{given!a} is before 1970, where the hub's clock begins")
    return moment


def read_duration(given: str) -> int:
    """Parse a duration, in seconds or with a unit; in milliseconds."""
    return parse_duration(given)


def read_store(given: str) -> str:
    """Parse the URL of a supported store."""
    try:
        check_url(given)
    except SettingsError as error:
        raise ValueError(error.detail) from None
    return read_text(given)


class QuickCommand(TyperCommand):
    """A typer command whose values are parsed here."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_quickened(parameter) for parameter in super().get_params(ctx)]


class QuickGroup(TyperGroup):
    """A typer group whose values are parsed here."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_quickened(parameter) for parameter in super().get_params(ctx)]


def _quickened(parameter: Any) -> Any:
    if isinstance(parameter, TyperOption | TyperArgument):
        coerce = partial(_value_of, _reader(parameter))
        # Typer's own hook, which would build the slow parser on its first call.
        vars(parameter)["get_runtime_param"] = partial(SimpleNamespace, coerce=coerce)
    return parameter


def _value_of(read: Read, value: Any, param: Any, ctx: Any) -> Any:
    """Parse a value or a list of values; an absent one stays absent."""
    many = param.multiple or param.nargs == -1
    if value is None:
        return () if many else None
    try:
        return [read(word) for word in value] if many else read(value)
    except ValueError as error:
        raise typer.BadParameter(f"{error}", ctx=ctx, param=param) from error


def _reader(parameter: TyperOption | TyperArgument) -> Read:
    wanted = parameter.type_descriptor
    if wanted.parameter_info.parser is not None:
        return _given(wanted.parameter_info.parser)
    if wanted.choices is not None:
        return lambda word: _choice(word, wanted.choices or ())
    if wanted.annotation is int:
        return lambda word: _whole(word, parameter.min, parameter.max)
    return _READERS.get(wanted.annotation, _given(read_text))


def _given(read: Callable[[str], Any]) -> Read:
    """Parse strings; a default is a value already."""
    return lambda word: read(word) if isinstance(word, str) else word


_READERS: dict[object, Read] = {Path: Path, bool: bool}


def _choice(word: str, known: Iterable[str]) -> str:
    known = list(known)
    if word in known:
        return word
    raise ValueError(f"{word!a} is not one of {', '.join(known)}{meant(word, known)}")


def _whole(word: str | int, least: float | None, most: float | None) -> int:
    if isinstance(word, str) and not _WHOLE.fullmatch(word):
        raise ValueError(f"{word!a} is not a whole number")
    if isinstance(word, str) and len(word.lstrip("-0")) > _MOST_DIGITS:
        raise ValueError(f"{word} has more digits than a number may have here, {_MOST_DIGITS}")
    number = int(word)
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"{least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{number} is out of range: {bounds}{' or more' if most is None else ''}")
    return number
