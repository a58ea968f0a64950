"""The command line as typer sees it: for help, completion, and what is no plain call.

Typer gives every value to pydantic, whose import takes long; here our own parsers get them.
"""

import inspect
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import dragoman
from dragoman.surfaces.cli.caller import require_own_process
from dragoman.surfaces.cli.command import (
    ROOT_OPTIONS,
    Parameter,
    make_parameter,
    shared_options,
    with_wait_times,
)
from dragoman.surfaces.cli.commands import (
    GROUPS,
    TOP_LEVEL,
    CommandGroup,
    check_runs_here,
    load_commands,
    modules_by_command,
)
from dragoman.surfaces.cli.context import CommandContext, UsageError


def run_typer(context: CommandContext, args: Sequence[str]) -> int:
    """Run a command line; its exit code."""
    try:
        code = build_cli().main(
            args=list(args), prog_name=UsageError.path, standalone_mode=False, obj=context
        )
    except typer.TyperException as error:
        # Typer lists choices on lines of their own; the sentence is to be one line.
        usage_error = UsageError(" ".join(error.format_message().split()))
        where = getattr(error, "ctx", None)
        usage_error.path = UsageError.path if where is None else where.command_path
        raise usage_error from None
    return code if isinstance(code, int) else 0


# --- values -----------------------------------------------------------------------------------


class _Command(TyperCommand):
    parameters: Mapping[str, Parameter] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_wait_times(args))

    def get_params(self, ctx: Any) -> list[Any]:
        return _with_our_parsers(super().get_params(ctx), self.parameters)


class _Group(TyperGroup):
    parameters: Mapping[str, Parameter] = {}

    def get_params(self, ctx: Any) -> list[Any]:
        return _with_our_parsers(super().get_params(ctx), self.parameters)


def _with_our_parsers(typed: Iterable[Any], parameters: Mapping[str, Parameter]) -> list[Any]:
    """Parameters of typer, each with our parser; typer's own options need none."""
    typed = list(typed)
    for one in typed:
        ours = parameters.get(one.name)
        coerce = partial(_parse_value, _keep if ours is None else ours.parse)
        # Typer's own hook, which would build the slow parser on its first call.
        vars(one)["get_runtime_param"] = partial(SimpleNamespace, coerce=coerce)
    return typed


def _keep(value: Any) -> Any:
    return value


def _parse_value(parse: Callable[[Any], Any], value: Any, param: Any, ctx: Any) -> Any:
    """Parse a value or a list of values; an absent one stays absent."""
    is_list = param.multiple or param.nargs == -1
    if value is None:
        return () if is_list else None
    try:
        return [parse(word) for word in value] if is_list else parse(value)
    except ValueError as error:
        raise typer.BadParameter(f"{error}", ctx=ctx, param=param) from error


def _signature(parameters: Iterable[inspect.Parameter]) -> inspect.Signature:
    """Signature for typer: the context, and each parameter with an option or argument of typer."""
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    return inspect.Signature([context, *map(_typer_parameter, parameters)])


def _typer_parameter(one: inspect.Parameter) -> inspect.Parameter:
    shape, declared = get_args(one.annotation)
    more: dict[str, Any] = {
        "help": declared.text,
        "metavar": declared.metavar or None,
        "parser": declared.parser,
        "min": declared.min,
        "max": declared.max,
        "show_default": declared.show_default,
        "hidden": declared.hidden,
        "envvar": declared.variable or None,
    }
    made = typer.Option(*declared.flags, **more) if declared.flags else typer.Argument(**more)
    return one.replace(annotation=Annotated[shape, made])


# --- commands and groups ----------------------------------------------------------------------


class _LazyCommands(UserDict[str, Any]):
    """Commands by name, each built when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name]()


def _build_group(group: CommandGroup) -> TyperGroup:
    app = typer.Typer(help=group.help, cls=_Group, add_completion=False, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(_print_help_without_subcommand)
    return _with_commands(app, _command_factories(group.modules))


def _with_commands(app: typer.Typer, factories: Mapping[str, Callable[[], Any]]) -> _Group:
    group = get_command(app)
    assert isinstance(group, _Group)
    group.commands = _LazyCommands(factories)
    return group


def _command_factories(modules: Mapping[str, tuple[str, ...]]) -> dict[str, Callable[[], Any]]:
    return {
        name: cache(partial(_build_command, module, name))
        for name, module in modules_by_command(modules).items()
    }


def _build_command(module: str, name: str) -> Any:
    command = load_commands(module)[name]

    def entry(ctx: typer.Context, **typed: Any) -> None:
        check_runs_here(module)
        raise typer.Exit(command.call(ctx.obj, typed, ctx.command_path))

    entry.__doc__ = command.run.__doc__
    entry.__dict__["__signature__"] = _signature(command.signature())
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=_Command)(entry)
    built = get_command(app)
    assert isinstance(built, _Command)
    built.parameters = command.parameters()
    return built


def _print_help_without_subcommand(ctx: typer.Context) -> None:
    """Print the help of a group that was called without a command; exit code 2."""
    if ctx.invoked_subcommand is None:
        require_own_process()
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


# --- root -------------------------------------------------------------------------------------

_EPILOG = "Exit codes: 0 done, 1 refused or failed, 2 not understood."


@cache
def build_cli() -> TyperGroup:
    """Build the root command with everything below it."""
    # Plain help, because drawing boxes would take longer than printing it.
    app = typer.Typer(
        name=UsageError.path, cls=_Group, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    _root.__dict__["__signature__"] = _root_signature()
    app.callback(invoke_without_command=True, epilog=_EPILOG)(_root)
    groups = {name: cache(partial(_build_group, group)) for name, group in GROUPS.items()}
    root = _with_commands(app, {**_command_factories(TOP_LEVEL), **groups})
    root.parameters = {
        name: make_parameter(name, *declared) for name, declared in ROOT_OPTIONS.items()
    }
    return root


def _root(ctx: typer.Context, **typed: Any) -> None:
    """A durable hub where software agents hand work to one another.

    These options may also stand after a command and its arguments.

    \b
    Begin here:
      dragoman demo                         see one task go through five dialects
      dragoman init                         make a data directory in this folder
      dragoman up                           start the hub, for agents to call
      dragoman task create "First" --ready  make a task
      dragoman task claim --agent ada       let an agent take the next one
      dragoman task list                    see all tasks and their statuses
    """
    _print_help_without_subcommand(ctx)
    ctx.obj = ctx.obj.with_options(shared_options(typed))


def _root_signature() -> inspect.Signature:
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = _signature(
        inspect.Parameter(name, keyword, default=default, annotation=annotation)
        for name, (annotation, default) in ROOT_OPTIONS.items()
    )
    version = typer.Option(
        "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
    )
    last = inspect.Parameter("version", keyword, default=False, annotation=Annotated[bool, version])
    return signature.replace(parameters=[*signature.parameters.values(), last])


def _print_version(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        ctx.obj.out.line(f"{UsageError.path} {dragoman.__version__}")
        raise typer.Exit
