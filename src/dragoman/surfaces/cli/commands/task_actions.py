"""`dragoman task ACTION`: the rows of the table of task actions, as commands.

A row here says how the arguments of an action are typed and what is printed; what an action does
stands in `engine/task_actions.py`. Most take several tasks: each is done or refused for itself, and
the exit code is 1 if any was refused.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Struct, to_builtins

from dragoman.core.base import Priority, Status
from dragoman.core.errors import DragomanError, NotAnswered, Refusal, Refused
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.questions import QuestionView, find_question
from dragoman.engine.schemas.tasks import question_detail
from dragoman.engine.sentences import fill
from dragoman.engine.task_actions import (
    TASK_ACTIONS,
    ActionSettings,
    ReportedOutcome,
    TaskAction,
    summarize,
)
from dragoman.surfaces.cli.command import (
    AgentOption,
    CliCommand,
    FenceOption,
    ReasonOption,
    TaskArgument,
    WaitOption,
    argument,
    option,
    parse_clock,
)
from dragoman.surfaces.cli.commands.task_read import load_task, task_to_dict
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    describe_error,
    raise_usage_error,
)
from dragoman.surfaces.cli.data_directory import DataDirectory, ReadOnlyDirectory
from dragoman.surfaces.cli.generated import Field, Typed, parameter_of, put
from dragoman.surfaces.cli.suggestions import suggesting_task, warn_of_unknown_agent
from dragoman.text.error_messages import shape_fault

# --- table ------------------------------------------------------------------------------------


class ActionCommand(Struct, frozen=True):
    """An action as a command."""

    action: str
    examples: tuple[str, ...]
    """Without `dragoman task`."""
    fields: tuple[Field, ...] = ()
    """Its arguments, in the order of typing; those of one task come after it."""
    takes_several: bool = True
    """Takes several tasks; else one, which further arguments may follow."""
    needs_agent: bool = False
    """It is something that only an agent does."""
    needs_any: str = ""
    """Sentence on what is missing when no field is given; empty: nothing need be."""
    done: str = "{id} is {status}|, and waits for {waitsFor}"
    """Template of the line about a task afterwards."""


_REASON: Final = Field("reason", "--reason", "TEXT", "The reason, recorded in the ledger.")

_NOTES: Final = Field(
    "notes", "--notes", "TEXT", "What was done, how it was checked, what is left."
)


def _parse_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ValueError(f"{text[:60]!a} is not a JSON object: {error}") from None


_DETAILS: Final = Field(
    "details",
    "--details",
    "JSON",
    "Details for programs; a number `cost` counts for the agent's budget.",
    parse=_parse_object,
)


def _parse_deadline(text: str) -> str:
    return to_rfc3339(parse_clock(text))


def _blockers(text: str, *, required: bool = False) -> Field:
    return Field("blockers", "--blocker", "TEXT", text, many=True, required=required)


ACTIONS: Final = (
    ActionCommand(
        "complete",
        (
            'complete TASK-2026-02-09-001 --agent ada --notes "all tests pass"',
            'complete TASK-2026-02-09-001 --agent ada --outcome needs_review --notes "a draft"',
        ),
        (
            _NOTES,
            Field("outcome", "--outcome", "", "How it went.", choices=get_args(ReportedOutcome)),
            _blockers("What it waits for, if the outcome is blocked; repeatable."),
            _DETAILS,
            Field("until", "--until", "TIME", "If limited: its end, RFC 3339; else unknown."),
        ),
        needs_agent=True,
        done="{id} is {status}|{?status=review}{!checks}: a person or an orchestrator approves it"
        "|{?status=review}{?report.outcome=done,needs_review}{?checks}{!proven}"
        ": the hub runs its checks",
    ),
    ActionCommand(
        "fail",
        ('fail TASK-2026-02-09-001 --agent ada --notes "the compiler is missing"',),
        (Field("notes", "--notes", "TEXT", "What went wrong."), _DETAILS),
        needs_agent=True,
        done="{id} is {status}|: {failures} of at most {maxAttempts} failures in a row"
        "|, not before {notBefore}",
    ),
    ActionCommand(
        "block",
        ('block TASK-2026-02-09-001 --agent ada --blocker "no access to the test server"',),
        (_blockers("What it waits for; repeatable.", required=True), _NOTES, _DETAILS),
    ),
    ActionCommand(
        "release",
        ('release TASK-2026-02-09-001 --agent ada --reason "needs a compiler"',),
        (_REASON,),
        needs_agent=True,
    ),
    ActionCommand(
        "limit",
        ("limit TASK-2026-02-09-001 --agent ada --until 2026-02-09T15:00:00Z",),
        (
            Field("until", "--until", "TIME", "The end of the limit, RFC 3339; else unknown."),
            _REASON,
        ),
        needs_agent=True,
    ),
    ActionCommand(
        "update",
        (
            'update TASK-2026-02-09-001 --agent ada --progress "half of the tests pass"',
            "update TASK-2026-02-09-001 --agent ada --to review",
        ),
        (
            Field("to", "--to", "", "Move it to this status.", choices=get_args(Status)),
            Field("progress", "--progress", "TEXT", "How far it is, for the work log."),
            _NOTES,
            _blockers("What it waits for, if it is blocked; repeatable."),
        ),
        needs_any="say what is new: --to, --progress, --notes or --blocker",
    ),
    ActionCommand(
        "move",
        (
            'move TASK-2026-02-09-001 done --reason "reviewed"',
            "move TASK-2026-02-09-001 review --as ada --fence 1",
        ),
        (
            Field("to", "", "STATUS", "Where to.", choices=get_args(Status), required=True),
            _REASON,
        ),
        takes_several=False,
    ),
    ActionCommand(
        "approve",
        ("approve TASK-2026-02-09-001 TASK-2026-02-09-002",),
        (_REASON,),
    ),
    ActionCommand(
        "send-back",
        ('send-back TASK-2026-02-09-001 --reason "the tests are missing"',),
        (
            Field(
                "reason",
                "--reason",
                "TEXT",
                "What is wrong with the work; its agent is shown it.",
                required=True,
            ),
        ),
        done="{id} is {status} again|, for {assignee}",
    ),
    ActionCommand("retry", ("retry TASK-2026-02-09-001 TASK-2026-02-09-002",), (_REASON,)),
    ActionCommand(
        "reopen",
        ('reopen TASK-2026-02-09-001 --reason "it fails on Windows"',),
        (_REASON,),
    ),
    ActionCommand(
        "answer",
        (
            'answer TASK-2026-02-09-001 "Use UTC."',
            'answer TASK-2026-02-09-001 "Yes." --question q2',
        ),
        (
            Field("text", "", "TEXT", "The answer.", required=True),
            Field("question", "--question", "ID", "The question, such as q2, if several are open."),
        ),
        takes_several=False,
        done="{question} is answered, {id} is {status}|, and waits for {waitsFor}",
    ),
    ActionCommand(
        "withdraw",
        ("withdraw TASK-2026-02-09-001 q2 --as ada",),
        (Field("question", "", "QUESTION", "The question, such as q2.", required=True),),
        takes_several=False,
        done="{question} of {id} needs no answer any more",
    ),
    ActionCommand(
        "edit",
        (
            'edit TASK-2026-02-09-001 --title "Write the parser" --priority high',
            "edit TASK-2026-02-09-001 TASK-2026-02-09-002 --blocked-by TASK-2026-02-09-003",
        ),
        (
            Field("title", "--title", "TEXT", "What to do."),
            Field("body", "--text --body", "TEXT", "The whole description."),
            Field("priority", "--priority", "", "Its priority.", choices=get_args(Priority)),
            Field(
                "deadline",
                "--deadline",
                "RFC3339",
                "By when it should have ended.",
                parse=_parse_deadline,
            ),
            Field("", "--no-deadline", "", "It has no deadline any more."),
            Field(
                "checks",
                "--check",
                "COMMAND",
                "The hub runs this before a completion counts, instead of all others; repeatable.",
                many=True,
            ),
            Field("", "--no-checks", "", "A completion counts without checks."),
            Field("blocked_by", "--blocked-by", "ID", "It waits for that task, too.", many=True),
            Field(
                "not_blocked_by",
                "--not-blocked-by",
                "ID",
                "It waits for that task no more.",
                many=True,
            ),
        ),
        needs_any="say what to change: --title, --text, --priority, --deadline, --no-deadline, "
        "--check, --no-checks, --blocked-by or --not-blocked-by",
        done="{id} is {status}, {priority}|, due by {deadline}|, and waits for {waitsFor}"
        "|: {title}",
    ),
    ActionCommand(
        "link",
        (
            "link TASK-2026-02-09-002 --blocked-by TASK-2026-02-09-001",
            "link TASK-2026-02-09-002 --alias bead:ol-527.1",
        ),
        (
            Field(
                "blocked_by",
                "--blocked-by",
                "ID",
                "Not claimable before that task has ended; repeatable.",
                many=True,
            ),
            Field("parent", "--parent", "ID", "The task that it is a part of."),
            Field(
                "discovered_from",
                "--discovered-from",
                "ID",
                "The task during which it was found.",
            ),
            Field(
                "aliases",
                "--alias",
                "KIND:NAME",
                "One more name, e.g. bead:ol-527.1; repeatable.",
                many=True,
            ),
        ),
        takes_several=False,
        needs_any="say to what: --blocked-by, --parent, --discovered-from or --alias",
    ),
)
"""Actions whose command is made of a row; `assign` and `ask` follow below, `task log` notes. What
`report` does, `complete` does with its outcome."""


# --- commands ---------------------------------------------------------------------------------


def make_action_command(row: ActionCommand) -> CliCommand:
    shape = TASK_ACTIONS[row.action]

    def run(context: CommandContext, **typed: Any) -> int:
        names = typed.pop("task")
        return run_action(context, row, (names,) if isinstance(names, str) else names, typed)

    run.__doc__ = _help(row, shape)
    run.__dict__["__signature__"] = inspect.Signature(list(_parameters(row)))
    return CliCommand(row.action, run)


def _help(row: ActionCommand, shape: type[TaskAction]) -> str:
    """Help: the docstring of the action, its first clause as a sentence of its own."""
    summary = summarize(shape)
    more = " ".join((shape.__doc__ or "").split()).removeprefix(summary).lstrip(".;: ")
    examples = "\n".join(f"  dragoman task {one}" for one in row.examples)
    heading = "Examples" if len(row.examples) > 1 else "Example"
    text = f"{summary}.\n\n{more[:1].upper()}{more[1:]}".rstrip()
    return f"{text}\n\n\b\n{heading}:\n{examples}"


def _parameters(row: ActionCommand) -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    yield parameter_of(_TASKS if row.takes_several else _TASK)
    yield from map(parameter_of, row.fields)
    yield _option("agent", AgentOption, "")
    yield _option("fence", FenceOption, None)


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


_TASK: Final = Field(
    "task", "", "ID", "Any name of the task: its id, its AOF id, an alias.", required=True
)

_TASKS: Final = Field(
    "task", "", "ID", "Any names of the tasks: ids, AOF ids, aliases.", many=True, required=True
)


# --- running ----------------------------------------------------------------------------------


def run_action(
    context: CommandContext, row: ActionCommand, names: Sequence[str], typed: Typed
) -> int:
    """Run an action on each of these tasks, and print a line for each; exit code 1 if any was
    refused."""
    arguments = _arguments(row, typed)
    named = typed["agent"]
    agent = context.required_agent(named) if row.needs_agent else context.acting_agent(named)
    action = parse_action(row.action, arguments)
    with context.open_for_writing() as directory:
        return run_on_each(
            context,
            names,
            lambda name: _result(row.done, apply_action(context, directory, name, action, agent)),
        )


def run_on_each(
    context: CommandContext, names: Sequence[str], act: Callable[[str], CommandResult]
) -> int:
    """Act on each of these tasks, and print each result at once; exit code 1 if any was refused.

    A refusal of one leaves the others as they are; after any other failure no more are tried.
    """
    is_ok, fault = True, ""
    several = len(names) > 1
    for name in dict.fromkeys(names):
        try:
            if fault:
                context.print_failure(fault, "not tried after that", about=name)
                continue
            context.print_result(act(name))
        except (DragomanError, OSError) as error:
            is_ok = False
            code, detail = describe_error(error)
            context.print_failure(code, detail, about=name if several else "")
            fault = "" if isinstance(error, Refused) else code
    return 0 if is_ok else 1


def _arguments(row: ActionCommand, typed: Typed) -> dict[str, Any]:
    """Arguments of the action, out of what was typed for it."""
    arguments: dict[str, Any] = {}
    for field in row.fields:
        value = typed[field.name]
        if field.path and value not in (None, (), []):
            put(arguments, field.path, list(value) if field.many else value)
    if typed.get("no_deadline"):
        if "deadline" in arguments:
            raise_usage_error("--deadline and --no-deadline exclude each other: give one of them")
        arguments["deadline"] = None
    if typed.get("no_checks"):
        if "checks" in arguments:
            raise_usage_error("--check and --no-checks exclude each other: give one of them")
        arguments["checks"] = []
    if row.needs_any and not arguments:
        raise_usage_error(row.needs_any)
    if typed["fence"] is not None:
        arguments["fence"] = typed["fence"]
    return arguments


def parse_action(name: str, arguments: Mapping[str, Any]) -> TaskAction:
    """Parse the arguments of an action; one that it cannot take is Refused."""
    shape = TASK_ACTIONS[name]
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        raise Refused(Refusal("invalid_field", f"{fault}", path=fault.path)) from None


def apply_action(
    context: CommandContext, directory: DataDirectory, name: str, action: TaskAction, agent: str
) -> dict[str, object]:
    """Apply an action to a task; the task afterwards, and the question that it was about."""
    actor = context.actor(directory, agent)
    known = directory.settings
    settings = ActionSettings(known.retry, known.attempts.pauses_limited)
    commands = action.commands(name, actor, settings)
    with suggesting_task(directory.hub.store, name):
        receipts = directory.hub.submit(actor, *commands).receipts
    directory.warnings.extend(one.warning for one in receipts if one.warning)
    receipt = receipts[-1]
    task = task_to_dict(load_task(directory.hub, receipt.task))
    return {**task, "question": receipt.question} if receipt.question else task


def _result(done: str, task: dict[str, object]) -> CommandResult:
    return CommandResult(task, lambda screen: screen.line(fill(done, task)))


# --- assign -----------------------------------------------------------------------------------


def assign(
    context: CommandContext,
    tasks: Annotated[list[str] | None, argument("ID", "Any names of the tasks.")] = None,
    agent: Annotated[str, argument("AGENT", "Who is to take them.")] = "",
    *,
    anyone: Annotated[bool, option("--anyone", "", "Name no agent: anyone may take them.")] = False,
    take: Annotated[
        bool, option("--take", "", "End the attempt of an agent that holds one.")
    ] = False,
    reason: ReasonOption = "",
    fence: FenceOption = None,
) -> int:
    """Assign tasks to an agent, who alone may take them.

    Held work is refused without --take.

    \b
    Examples:
      dragoman task assign TASK-2026-02-09-001 TASK-2026-02-09-002 ada
      dragoman task assign TASK-2026-02-09-001 ben --take --reason "ada is away"
      dragoman task assign TASK-2026-02-09-001 --anyone
    """
    # With --anyone the last word is a task, too.
    names, to = ([*(tasks or ()), agent], "") if anyone else (tasks, agent)
    if not names or not names[-1]:
        raise_usage_error("name a task and then its agent, or tasks and --anyone")
    action = parse_action("assign", {"to": to, "take": take, "reason": reason, "fence": fence})
    with context.open_for_writing() as directory:
        speaker = context.acting_agent()

        def act(name: str) -> CommandResult:
            return _result(_ASSIGNED, apply_action(context, directory, name, action, speaker))

        warn_of_unknown_agent(directory, to)
        return run_on_each(context, names, act)


_ASSIGNED: Final = "{id} is {status}|, for {assignee}|{!assignee}, for anyone"


# --- ask --------------------------------------------------------------------------------------


def ask(
    context: CommandContext,
    task: TaskArgument,
    text: Annotated[str, argument("TEXT", "The question, with the choices that you see.")],
    agent: AgentOption = "",
    wait: WaitOption = None,
    fence: FenceOption = None,
) -> CommandResult:
    """Ask a question about a task; --wait waits for the answer.

    The answer is kept with the task, and sent by letter, too. With --wait it is all that is
    printed; the same question again waits on. Waiting renews no lease: send heartbeats.

    \b
    Examples:
      dragoman task ask TASK-2026-02-09-001 "UTC or local time?" --agent ada
      dragoman task ask TASK-2026-02-09-001 "UTC or local time?" --agent ada --wait 10m
    """
    speaker = context.acting_agent(agent)
    action = parse_action("ask", {"text": text, "fence": fence})
    if wait is not None:
        context.prepare_to_wait()
    with context.open_for_writing() as directory:
        asked = apply_action(context, directory, task, action, speaker)
    if wait is None:
        return _result("{question} of {id} waits for an answer", asked)
    id, question = str(asked["id"]), str(asked["question"])

    def find(directory: ReadOnlyDirectory) -> QuestionView | None:
        view = find_question(directory.store, id, question)
        if isinstance(view, Refusal):
            raise Refused(view)
        return view if view.state != "open" else None

    view = context.wait_for(wait, find)
    if view is None:
        raise NotAnswered(f"{question} of {id} has no answer yet: ask the same again to wait on")
    if view.state != "answered":
        raise NotAnswered(f"{question} of {id} is {view.state}: it gets no answer")
    return CommandResult(
        to_builtins(question_detail(view)), lambda screen: screen.block(view.question.answer, "")
    )


COMMANDS = (
    *map(make_action_command, ACTIONS),
    CliCommand("assign", assign),
    CliCommand("ask", ask),
)
