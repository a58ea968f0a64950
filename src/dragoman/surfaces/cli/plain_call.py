"""Plain calls: command lines that are understood without typer, which takes longer to load than
most commands to run.

Whatever is not plain (help, completion, a mistake) is left to typer, which answers it.
"""

import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dragoman.config import environment
from dragoman.surfaces.cli.command import (
    ROOT_OPTIONS,
    CliCommand,
    Parameter,
    make_parameter,
    shared_options,
    with_wait_times,
)
from dragoman.surfaces.cli.commands import (
    GROUPS,
    TOP_LEVEL,
    check_runs_here,
    load_commands,
    modules_by_command,
)
from dragoman.surfaces.cli.context import CommandContext, SharedOptions, UsageError


class PlainCall(Struct, frozen=True):
    """A command with what was typed for it."""

    module: str
    command: CliCommand
    path: str
    """Words of the command."""
    before: SharedOptions
    """Options that stand before the command."""
    typed: Mapping[str, Any]

    def run(self, context: CommandContext) -> int:
        """Run the command; its exit code."""
        context = context.with_options(self.before)
        check_runs_here(self.module)
        return self.command.call(context, self.typed, self.path)


class _NotPlain(ValueError):
    """The arguments are left to typer."""


def parse_plain_call(args: Sequence[str]) -> PlainCall | None:
    """Parse the arguments of the program; None if they are not plain."""
    try:
        return _parse(args)
    except ValueError:
        return None


def _parse(args: Sequence[str]) -> PlainCall:
    root = {name: make_parameter(name, *declared) for name, declared in ROOT_OPTIONS.items()}
    given, words = _split_options(root, args, until_word=True)
    path, modules = [UsageError.path], TOP_LEVEL
    if words[:1] and words[0] in GROUPS:
        path.append(words[0])
        modules, words = GROUPS[words[0]].modules, words[1:]
    module = modules_by_command(modules).get(words[0]) if words else None
    if module is None:
        raise _NotPlain
    path.append(words[0])
    command = load_commands(module)[words[0]]
    before = shared_options(_parse_values(root, given))
    parameters = command.parameters()
    given, words = _split_options(parameters, with_wait_times(words[1:]))
    _add_arguments(given, parameters.values(), words)
    return PlainCall(module, command, " ".join(path), before, _parse_values(parameters, given))


_Given = dict[str, list[Any]]
"""Parameter -> the values given for it."""


def _split_options(
    parameters: Mapping[str, Parameter], args: Iterable[str], *, until_word: bool = False
) -> tuple[_Given, list[str]]:
    """Values given for each option, and the other words: with `until_word` the first one and all
    that follow."""
    spellings = {
        flag: (one, number == 0)
        for one in parameters.values()
        for spelling in one.declared.flags
        for number, flag in enumerate(spelling.split("/"))
    }
    given: _Given = defaultdict(list)
    words, rest = list[str](), list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return given, words + rest
        if word == "-" or not word.startswith("-"):
            words.append(word)
            if until_word:
                return given, words + rest
            continue
        flag, sign, value = word.partition("=")
        if flag not in spellings:
            raise _NotPlain
        one, is_on = spellings[flag]
        if one.shape is bool:
            if sign:
                raise _NotPlain
            given[one.name].append(is_on)
            continue
        if not sign:
            if not rest or (rest[0].startswith("-") and rest[0] != "-"):
                raise _NotPlain
            value = rest.pop(0)
        given[one.name].append(value)
    return given, words


def _add_arguments(given: _Given, parameters: Iterable[Parameter], words: list[str]) -> None:
    """Add the words as positional arguments; a list takes what those behind it leave."""
    arguments = [one for one in parameters if not one.declared.flags]
    for number, one in enumerate(arguments, start=1):
        size = max(0, len(words) - (len(arguments) - number)) if one.is_list else 1
        if words[:size]:
            given[one.name] = words[:size]
        words = words[size:]
    if words:
        raise _NotPlain


def _parse_values(parameters: Mapping[str, Parameter], given: _Given) -> dict[str, Any]:
    """Parse what was given, or the default, for each parameter."""
    return {name: _parse_value(one, given.get(name)) for name, one in parameters.items()}


def _parse_value(one: Parameter, given: list[Any] | None) -> Any:
    if given is not None:
        values = [one.parse(word) for word in given]
        return values if one.is_list else values[-1]
    default = environment().get(one.declared.variable) or one.default
    if default is inspect.Parameter.empty:
        raise _NotPlain
    if default is None:
        return () if one.is_list else None
    return one.parse(default)
