"""Writes the parts of the docs that are printed from tables: `uv run python docs/generate.py`."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import cleandoc, get_annotations
from pathlib import Path
from typing import Any

import msgspec

from dragoman.bootstrap.dialects import build_dialects
from dragoman.config import TABLE_SECTIONS, Settings, iter_sections
from dragoman.core.attempt_state import OUTCOME_STATUSES
from dragoman.core.authority import MAY_EDIT, MAY_MANAGE_CREDENTIALS, MAY_MOVE, MAY_REGISTER
from dragoman.core.base import Role
from dragoman.core.errors import FAULTS, REFUSALS, Refusal
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import DEFAULT_SLA_MS, HANDOFF_TRANSITIONS, LEGAL_ACTIONS
from dragoman.core.intent.state import INTENT_TRANSITIONS
from dragoman.core.notice import NEUTRAL_VALUES
from dragoman.core.reactions import REACTION_ORDER, REACTIONS, UNFOLLOWED
from dragoman.core.task_state import FINAL_STATUSES, TASK_TRANSITIONS
from dragoman.core.timestamps import format_hours
from dragoman.engine.operation import Dialect
from dragoman.engine.translation import translate
from dragoman.protocols.agentmail import MessageType, compose
from dragoman.protocols.agentmail.grammar import FORMS, VALUE_KINDS
from dragoman.protocols.agentmail.wire import MESSAGE_TYPES
from dragoman.protocols.saop import TYPES
from dragoman.surfaces.cli.typer_app import build_cli
from dragoman.surfaces.http.app import describe_api
from dragoman.surfaces.http.errors import STATUS_BY_CODE, problem
from dragoman.surfaces.mcp.tool import Tool
from dragoman.surfaces.mcp.tools import CORE_GROUP, build_tools
from dragoman.text.redact.rules import PROGRAMS, RULES

# As a script it stands beside the picture, as a module in the folder of both.
sys.path.append(str(Path(__file__).parent.parent))
from docs.dashboard_types import write_types
from docs.entropy_plot import PLOT, draw, marks, recorded
from docs.translation_examples import EXAMPLES, TASK

DOCS = Path(__file__).parent
DASHBOARD_TYPES = DOCS.parent / "ui" / "src" / "api" / "types.ts"
_BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def transitions() -> str:
    """The diagram of a task's statuses."""
    labels = {"in-progress": "claim"}
    return _diagram(TASK_TRANSITIONS, ("backlog", "ready"), FINAL_STATUSES, labels)


def transition_table() -> str:
    """The same as a table."""
    rows = (
        (f"`{a}`", ", ".join(f"`{b}`" for b in t) or "final") for a, t in TASK_TRANSITIONS.items()
    )
    return _table(("from", "to"), rows)


def reactions() -> str:
    """The concepts that follow an event of a task, in order, and the events that each may add."""
    unfollowed = sorted(EVENT_NAMES[event] for event in UNFOLLOWED)
    followed = (
        *(
            (f"`{EVENT_NAMES[event]}`", " → ".join(one.concept for one in reactions))
            for event, reactions in REACTIONS.items()
        ),
        (", ".join(f"`{name}`" for name in unfollowed), "nobody"),
    )
    added = (
        (
            one.concept,
            ", ".join(f"`{name}`" for name in sorted(EVENT_NAMES[new] for new in one.emits)),
        )
        for one in REACTION_ORDER
    )
    return (
        f"{_table(('event', 'followed by'), followed)}\n\n{_table(('concept', 'may add'), added)}"
    )


def authority() -> str:
    """Who may ask for which transition."""
    rows = (
        (
            f"{a} → {b}",
            ", ".join(who for who, moves in MAY_MOVE.items() if (a, b) in moves),
        )
        for a, targets in TASK_TRANSITIONS.items()
        for b in targets
        if b != "in-progress"
    )
    return _table(("transition", "who may ask for it"), rows)


def fields() -> str:
    """Who may give which field a new value."""
    return _table(("field", "who may change it"), _by_right(MAY_EDIT))


def roles() -> str:
    """Who may give which role."""
    return _table(("role", "who may give it"), _by_right(MAY_REGISTER))


def credentials() -> str:
    """Who may give and take whose credentials."""
    return _table(
        ("credentials of", "who may give and take them"), _by_right(MAY_MANAGE_CREDENTIALS)
    )


def _by_right(table: Mapping[Role, Collection[str]]) -> Iterator[tuple[str, str]]:
    """What is allowed -> who may do it, of a table that says what each one may do."""
    rights = dict.fromkeys(right for allowed in table.values() for right in sorted(allowed))
    for right in rights:
        yield f"`{right}`", ", ".join(who for who, allowed in table.items() if right in allowed)


def mail_fields() -> str:
    """What `mail send --type` is told by `--field`."""

    def told(type: MessageType, names: Iterable[str]) -> str:
        allowed = {name: kind.allowed for name, kind in VALUE_KINDS[type].items() if kind.allowed}
        return ", ".join(f"`{n}`" + (f" ({allowed[n]})" if n in allowed else "") for n in names)

    def row(type: MessageType) -> tuple[str, str, str]:
        names, optional = compose.draft_fields(type), FORMS[type].optional
        needed = (name for name in names if name not in optional)
        return f"`{type}`", told(type, needed), told(type, (n for n in names if n in optional))

    return _table(("type", "must have", "may have"), map(row, MESSAGE_TYPES.values()))


def outcomes() -> str:
    """Where a report takes a task."""
    rows = ((f"`{outcome}`", " → ".join(steps)) for outcome, steps in OUTCOME_STATUSES.items())
    return _table(("outcome", "then"), rows)


def refusals() -> str:
    """The codes of refusals."""
    return _table(("code", "meaning"), ((f"`{code}`", text) for code, text in REFUSALS.items()))


def faults() -> str:
    """The codes of exceptions."""
    return _table(("code", "meaning"), ((f"`{code}`", text) for code, text in FAULTS.items()))


def problems() -> str:
    """The codes of problem documents and their statuses."""
    rows = (
        (f"{status}", f"`{code}`", problem(code, "").title)
        for code, status in STATUS_BY_CODE.items()
    )
    return _table(("status", "code", "meaning"), rows)


def trace_types() -> str:
    """The types of event that SAOP has."""
    rows = (
        (
            f"`{name}`",
            cleandoc(shape.__doc__ or ""),
            ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(shape)),
        )
        for name, shape in TYPES.by_name.items()
    )
    return _table(("type", "meaning", "fields"), rows)


def entropy() -> str:
    """What the entropy detector told about the recorded example; the picture is drawn as well."""
    turns = recorded()
    rows = ((f"{mark.turn}", mark.text.replace("|", "/")) for mark in marks(turns))
    return _table(("after turn", "told"), rows)


def events() -> str:
    """The events of the ledger."""
    rows = ((f"`{name}`", cleandoc(t.__doc__ or "")) for t, name in EVENT_NAMES.items())
    return _table(("event", "meaning"), rows)


def settings() -> str:
    """Every setting, its default, and its variable."""
    rows = (
        (
            f"`[{section}] {key.name}`",
            f"`{msgspec.json.encode(key.default).decode()}`",
            f"`DRAGOMAN_{section}_{key.name}`".replace(".", "_").upper()
            if section.islower()
            else "",
            _comment(struct, key.name),
        )
        for section, struct in _sections()
        for key in msgspec.structs.fields(struct)
        if f"{section}.{key.name}" not in dict(iter_sections())
    )
    return _table(("setting", "default", "variable", "meaning"), rows)


def commands() -> str:
    """The help of every command, as it prints it."""
    root = build_cli()
    sections = [f"## `{path}`\n\n```\n{text}\n```" for path, text in _helps(root, "dragoman")]
    return "\n\n".join(sections)


def mcp_tools() -> str:
    """The tools that every model is shown."""
    return _tool_table(lambda tool: tool.is_listed and tool.group == CORE_GROUP)


def mcp_dialect_tools() -> str:
    """The tools of the dialects."""
    return _tool_table(lambda tool: tool.group != CORE_GROUP)


def mcp_actions() -> str:
    """The tools that are called by name only: the actions on tasks."""
    return _tool_table(lambda tool: not tool.is_listed)


def _tool_table(matches: Callable[[Tool], bool]) -> str:
    """Tools with their arguments; those in bold must be given."""
    rows = (
        (
            f"`{tool.name}`",
            ", ".join(
                f"**{name}**" if name in tool.schema.get("required", ()) else name
                for name in tool.schema["properties"]
            ),
            tool.description,
        )
        for tool in build_tools(build_dialects()).values()
        if matches(tool)
    )
    return _table(("tool", "arguments", "for"), rows)


def handoff_states() -> str:
    """The diagram of a handoff's states."""
    ends = {state for state, targets in HANDOFF_TRANSITIONS.items() if not targets}
    return _diagram(HANDOFF_TRANSITIONS, ("draft",), ends)


def intent_states() -> str:
    """The diagram of an intent's states."""
    return _diagram(INTENT_TRANSITIONS, ("New",), ())


def handoff_table() -> str:
    """From each state of a handoff, where it can go, by which actions, and within which time."""
    rows = (
        (
            f"`{state}`",
            ", ".join(f"`{to}`" for to in targets) or "final",
            ", ".join(f"`{action}`" for action in LEGAL_ACTIONS[state]),
            format_hours(DEFAULT_SLA_MS[state]) if state in DEFAULT_SLA_MS else "",
        )
        for state, targets in HANDOFF_TRANSITIONS.items()
    )
    return _table(("state", "to", "actions", "told after"), rows)


def redaction_rules() -> str:
    """The formats of credentials, how each begins, and who describes it."""
    rows = (
        (
            f"`{rule.kind}`",
            " ".join(f"`{start.decode()}`" for start in rule.prefixes) or "told by its inside",
            _source(rule.source),
        )
        for rule in RULES
    )
    return _table(("kind", "begins with", "source"), rows)


def redaction_programs() -> str:
    """The programs that take a password on their command line, and who describes it."""
    rows = (
        (" ".join(f"`{name}`" for name in one.names), f"`{one.option_text}`", _source(one.source))
        for one in PROGRAMS
    )
    return _table(("program", "option", "source"), rows)


def neutral_values() -> str:
    """The values that say nothing, for required fields that a source lacks."""
    rows = ((f"`{name}`", f"`{json.dumps(value)}`") for name, value in NEUTRAL_VALUES.items())
    return _table(("required field", "neutral value"), rows)


def translations() -> str:
    """What becomes of each message in each other dialect."""
    dialects = {one.name: one for one in build_dialects() if one.name in EXAMPLES}
    tables: list[str] = []
    for name, examples in EXAMPLES.items():
        others = [one for one in dialects if one != name]
        rows = (
            (
                f"`{said}`",
                *(_translated(message, dialects[name], dialects[other]) for other in others),
            )
            for said, message in examples.items()
        )
        tables.append(_table((f"from {name}", *(f"to {other}" for other in others)), rows))
    return "\n\n".join(tables)


def _translated(message: dict[str, Any], source: Dialect, target: Dialect) -> str:
    made = translate(message, source, target)
    if isinstance(made, Refusal):
        return "not expressible"
    words = [_message_name(made.message), *(("as a notice",) if made.is_notice else ())]
    for label, parts in (("loses", made.losses), ("filled", made.filled)):
        names = ", ".join(dict.fromkeys(part.field for part in parts))
        words += [f"{label}: {names}"] if names else []
    return "; ".join(words)


def _message_name(message: dict[str, Any]) -> str:
    """The type of a message, as the dialect writes it."""
    if "subject" in message:
        return f"`{message['subject'].removeprefix(f'[{TASK}] ')}`"
    if "success" in message:
        return "`TaskResult`"
    if "intent_id" in message:
        return "`TaskRequest`" if "goal" in message else "`TaskUpdate`"
    kind = message.get("type") or message.get("action") or message.get("payload", {}).get("type")
    return f"`{kind or 'turn'}`"


BLOCKS: dict[str, Callable[[], str]] = {
    "transitions": transitions,
    "transition-table": transition_table,
    "reactions": reactions,
    "authority": authority,
    "fields": fields,
    "roles": roles,
    "credentials": credentials,
    "mail-fields": mail_fields,
    "outcomes": outcomes,
    "refusals": refusals,
    "faults": faults,
    "problems": problems,
    "events": events,
    "trace-types": trace_types,
    "entropy": entropy,
    "settings": settings,
    "commands": commands,
    "mcp-tools": mcp_tools,
    "mcp-dialect-tools": mcp_dialect_tools,
    "mcp-actions": mcp_actions,
    "handoff-states": handoff_states,
    "intent-states": intent_states,
    "handoff-table": handoff_table,
    "neutral-values": neutral_values,
    "translations": translations,
    "redaction-rules": redaction_rules,
    "redaction-programs": redaction_programs,
}


def generated(text: str) -> str:
    """The text of a page with its generated parts as the tables give them now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def main() -> None:
    """Write every page that has changed."""
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = generated(old)
        if new != old:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"wrote {page.relative_to(DOCS)}\n")
    PLOT.write_text(draw(recorded()), encoding="utf-8")
    dialects = build_dialects()
    types = write_types(describe_api(dialects), [dialect.name for dialect in dialects])
    DASHBOARD_TYPES.write_text(types, encoding="utf-8")


def _sections() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Every section with its keys; of those that there are any number of, one for all."""
    inner = dict(iter_sections())
    for section in msgspec.structs.fields(Settings):
        table = TABLE_SECTIONS.get(section.name)
        yield (f"{section.name}.NAME", table) if table else (section.name, section.type)
        for name, struct in inner.items():
            if name.startswith(f"{section.name}."):
                yield name, struct


def _helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    # As wide as a page of the docs, whatever terminal this runs in.
    context = command.make_context(path, ["--help"], resilient_parsing=True, max_content_width=80)
    context.terminal_width = 80
    yield path, command.get_help(context)
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:  # another name of something that has its page
            yield from _helps(below, f"{path} {name}")


def _source(page: str) -> str:
    """A link that shows whose page it is."""
    host = page.partition("://")[2].partition("/")[0]
    return f"[{host or page}]({page.removeprefix('docs/')})"


def _diagram(
    table: Mapping[Any, tuple[str, ...]],
    starts: Iterable[str],
    ends: Collection[str],
    labels: Mapping[str, str] = {},
) -> str:
    """The diagram of a transition table."""

    def node(state: str) -> str:
        return state.replace("-", "_")

    def label(state: str) -> str:
        return f" : {labels[state]}" if state in labels else ""

    lines = ["```mermaid", "stateDiagram-v2", *(f"    [*] --> {node(start)}" for start in starts)]
    lines += [
        f"    {node(a)} --> {node(b)}{label(b)}" for a, targets in table.items() for b in targets
    ]
    lines += [f"    {node(state)} --> [*]" for state in table if state in ends]
    return "\n".join([*lines, "```"])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    # A cell is one line: what has paragraphs would end the table.
    return "\n".join(
        f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |" for cells in lines
    )


def _comment(struct: type, field: str) -> str:
    """The sentence that stands below a field in its source, because it is not kept at run time."""
    # A section may have its fields from a struct of the core.
    owner = next(one for one in struct.__mro__ if field in get_annotations(one))
    source = Path(sys.modules[owner.__module__].__file__ or "").read_text(encoding="utf-8")
    body = source[source.index(f"class {owner.__name__}(") :]
    found = re.search(rf'\n    {field}: [^\n]*\n    """(.*?)"""', body, re.DOTALL)
    return " ".join(found[1].split()) if found else ""


if __name__ == "__main__":
    main()
