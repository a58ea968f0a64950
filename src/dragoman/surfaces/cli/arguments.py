"""Parsing of command-line values, in our own sentences and without pydantic.

Typer hands every value to pydantic, whose import takes longer than most of our commands run. Ours
are texts, whole numbers, choices, paths and what a parser makes of a text; they are parsed here.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from dragoman.config.store_url import check_store_url
from dragoman.core.errors import SettingsError
from dragoman.core.timestamps import parse_duration, parse_rfc3339
from dragoman.text.suggest import suggest

# --- parsers ----------------------------------------------------------------------------------

Parse = Callable[[Any], Any]

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)

_MAX_DIGITS = 18


def parse_text(text: str) -> str:
    """Parse a text that can be stored; arguments that are not UTF-8 arrive with surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!a} is not valid UTF-8") from None
    return text


def parse_timestamp(text: str) -> int:
    """Parse an RFC 3339 timestamp; in milliseconds."""
    return parse_rfc3339(text)


def parse_clock(text: str) -> int:
    """Parse a timestamp that the hub's clock may show; in milliseconds."""
    timestamp = parse_rfc3339(text)
    if timestamp < 0:
        raise ValueError(f"{text!a} is before 1970, where the hub's clock begins")
    return timestamp


def parse_time_span(text: str) -> int:
    """Parse a duration, in seconds or with a unit; in milliseconds."""
    return parse_duration(text)


def parse_store_url(text: str) -> str:
    """Parse the URL of a supported store."""
    try:
        check_store_url(text)
    except SettingsError as error:
        raise ValueError(error.detail) from None
    return parse_text(text)


# --- typer commands with fast parsing ---------------------------------------------------------


class FastCommand(TyperCommand):
    """A typer command whose values are parsed here."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_with_fast_parser(parameter) for parameter in super().get_params(ctx)]


class FastGroup(TyperGroup):
    """A typer group whose values are parsed here."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters, each with our parser."""
        return [_with_fast_parser(parameter) for parameter in super().get_params(ctx)]


def _with_fast_parser(parameter: Any) -> Any:
    if isinstance(parameter, TyperOption | TyperArgument):
        coerce = partial(_parse_value, _select_parser(parameter))
        # Typer's own hook, which would build the slow parser on its first call.
        vars(parameter)["get_runtime_param"] = partial(SimpleNamespace, coerce=coerce)
    return parameter


def _parse_value(parse: Parse, value: Any, param: Any, ctx: Any) -> Any:
    """Parse a value or a list of values; an absent one stays absent."""
    is_list = param.multiple or param.nargs == -1
    if value is None:
        return () if is_list else None
    try:
        return [parse(word) for word in value] if is_list else parse(value)
    except ValueError as error:
        raise typer.BadParameter(f"{error}", ctx=ctx, param=param) from error


def _select_parser(parameter: TyperOption | TyperArgument) -> Parse:
    descriptor = parameter.type_descriptor
    if descriptor.parameter_info.parser is not None:
        return _parse_unless_default(descriptor.parameter_info.parser)
    if descriptor.choices is not None:
        return lambda word: _parse_choice(word, descriptor.choices or ())
    if descriptor.annotation is int:
        return lambda word: _parse_integer(word, parameter.min, parameter.max)
    return _PARSERS.get(descriptor.annotation, _parse_unless_default(parse_text))


def _parse_unless_default(parse: Callable[[str], Any]) -> Parse:
    """Parse strings; a default is a value already."""
    return lambda word: parse(word) if isinstance(word, str) else word


_PARSERS: dict[object, Parse] = {Path: Path, bool: bool}


def _parse_choice(word: str, choices: Iterable[str]) -> str:
    choices = list(choices)
    if word in choices:
        return word
    raise ValueError(f"{word!a} is not one of {', '.join(choices)}{suggest(word, choices)}")


def _parse_integer(word: str | int, minimum: float | None, maximum: float | None) -> int:
    if isinstance(word, str) and not _INTEGER.fullmatch(word):
        raise ValueError(f"{word!a} is not a whole number")
    if isinstance(word, str) and len(word.lstrip("-0")) > _MAX_DIGITS:
        raise ValueError(f"{word} has more digits than a number may have here, {_MAX_DIGITS}")
    number = int(word)
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        bounds = f"{minimum}" if maximum is None else f"{minimum} to {maximum}"
        raise ValueError(
            f"{number} is out of range: {bounds}{' or more' if maximum is None else ''}"
        )
    return number
