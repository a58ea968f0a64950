"""Compose letters: one constructor for each type, rendered to a subject and a body.

A composed letter passes strict parsing and gives the same fields back. Texts are cleaned when the
letter is composed: control characters become visible, surrounding space is dropped, one-line fields
stay on one line, and names and files lose code or bold marks around them. Rendering changes nothing
more: text under headings is escaped, commas within a file name are escaped, and a labelled line
holds only one label.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from dragoman.protocols.agentmail import wire
from dragoman.protocols.agentmail.errors import quote
from dragoman.protocols.agentmail.grammar import (
    FORMS,
    NO_BEAD_NEEDED,
    Label,
    Section,
    ascii_upper,
    clean_file_name,
    escape_text,
    format_list_item,
    is_timestamp,
    join_list,
    parse_labelled_line,
    strip_markup,
)
from dragoman.protocols.agentmail.wire import MessageType, Parsed
from dragoman.text.safe_text import safe_text

# --- drafts -----------------------------------------------------------------------------------

_MAX_ATTEMPTS: Final = 999_999_999

_MAX_PERCENT: Final = 100


class Draft(Struct, frozen=True):
    """A complete letter without recipients and thread."""

    type: MessageType
    parsed: Parsed

    @property
    def ack_required(self) -> bool:
        """Default of the type for requesting an acknowledgement."""
        return wire.ACK_REQUIRED[self.type]


class Rendered(Struct, frozen=True):
    """Subject and body of a letter, ready to send."""

    subject: str
    body_md: str


# --- constructors -----------------------------------------------------------------------------


def bead_accepted(bead: str, *, title: str, started_at: str) -> Draft:
    """Accept a bead."""
    if not is_timestamp(started_at):
        raise ValueError(f"started_at is {quote(started_at)}: use a date with a time")
    return _draft(MessageType.BEAD_ACCEPTED, bead, title=_clean_line(title), started_at=started_at)


def progress(
    bead: str, *, step: str, status: str, context_usage: int, files_touched: Iterable[str] = ()
) -> Draft:
    """Report progress on a bead."""
    return _draft(
        MessageType.PROGRESS,
        bead,
        step=_clean_line(step),
        status=_clean_line(status),
        context_usage=_validate_percentage(context_usage),
        files_touched=_clean_files(files_touched),
    )


def help_request(
    bead: str,
    *,
    issue_type: str,
    problem: str,
    what_tried: str,
    question: str,
    files_touched: Iterable[str] = (),
) -> Draft:
    """Ask for help with a question."""
    return _draft(
        MessageType.HELP_REQUEST,
        bead,
        issue_type=_match_enum(wire.ISSUE_TYPES, issue_type),
        problem=_clean_text(problem),
        what_tried=_clean_text(what_tried),
        question=_clean_text(question),
        files_touched=_clean_files(files_touched),
    )


def help_response(bead: str = "", *, guidance: str) -> Draft:
    """Answer a question in the same thread; without a bead only the thread links the two."""
    type, text = MessageType.HELP_RESPONSE, _clean_text(guidance)
    first = text.partition("\n")[0]
    if (
        not _clean_word(bead)
        and parse_labelled_line(first, FORMS[type].head_section.fields_by_label)[0]
    ):
        raise ValueError(
            f"guidance begins with {quote(first)}: pass the bead, or change the first line"
        )
    return _draft(type, bead, guidance=text)


class Checks(Struct, frozen=True):
    """Results of the worker's own tests, lint and build."""

    tests: bool
    lint: bool
    build: bool


def offering_ready(
    bead: str, *, commit: str, files: Iterable[str], checks: Checks, summary: str
) -> Draft:
    """Report the work as complete and waiting for review."""
    return _draft_completion(MessageType.OFFERING_READY, bead, commit, files, checks, summary)


def done(bead: str, *, commit: str, files: Iterable[str], checks: Checks, summary: str) -> Draft:
    """Report the work as complete."""
    return _draft_completion(MessageType.DONE, bead, commit, files, checks, summary)


def failed(
    bead: str,
    *,
    failure_type: str,
    reason: str,
    internal_attempts: int,
    partial: tuple[str, Iterable[str]] = ("", ()),
    recommendation: str = "",
) -> Draft:
    """Report a failure; `partial` is the commit and the files of partial progress."""
    if not 0 <= internal_attempts <= _MAX_ATTEMPTS:
        raise ValueError(f"internal_attempts is {internal_attempts}: use a count from 0 on")
    return _draft(
        MessageType.FAILED,
        bead,
        status="FAILED",
        failure_type=_match_enum(wire.FAILURE_TYPES, failure_type),
        reason=_clean_line(reason),
        internal_attempts=internal_attempts,
        partial_commit_sha=_clean_word(partial[0]),
        files=_clean_files(partial[1]),
        recommendation=_clean_text(recommendation),
    )


def checkpoint(
    bead: str, *, reason: str, commit: str, progress: str, context_usage: int, next_steps: str
) -> Draft:
    """Stop before the work is done, with next steps for the successor."""
    return _draft(
        MessageType.CHECKPOINT,
        bead,
        checkpoint_reason=_match_enum(wire.CHECKPOINT_REASONS, reason),
        partial_commit_sha=_clean_word(commit),
        progress=_clean_line(progress),
        context_usage=_validate_percentage(context_usage),
        next_steps=_clean_text(next_steps),
    )


def spawn_request(issue: str, *, orchestrator: str, resume: bool, checkpoint: str = "") -> Draft:
    """Request a worker for the issue, resuming from the checkpoint's commit or starting over."""
    commit = _clean_word(checkpoint)
    if resume and not commit:
        raise ValueError("checkpoint is empty: name the commit to resume from")
    return _draft(
        MessageType.SPAWN_REQUEST,
        issue,
        issue_id=_clean_word(issue),
        resume=resume,
        partial_commit_sha=commit,
        orchestrator=_clean_word(orchestrator),
    )


def spawn_ack(issue: str, *, status: str, session: str = "") -> Draft:
    """Report that a worker was spawned, with its session, or that spawning failed."""
    spawn_status, name = _match_enum(wire.SPAWN_STATUSES, status), _clean_word(session)
    if spawn_status == wire.SPAWNED and not name:
        raise ValueError("session is empty: name the session that was spawned")
    return _draft(
        MessageType.SPAWN_ACK, issue, issue_id=_clean_word(issue), status=spawn_status, session=name
    )


def _draft_completion(
    type: MessageType, bead: str, commit: str, files: Iterable[str], checks: Checks, summary: str
) -> Draft:
    return _draft(
        type,
        bead,
        status="DONE",
        commit_sha=_clean_word(commit),
        files=_clean_files(files),
        tests_pass=checks.tests,
        lint_pass=checks.lint,
        build_pass=checks.build,
        summary=_clean_text(summary),
    )


# --- cleaning and checks of fields ------------------------------------------------------------


def _draft(type: MessageType, bead: str, **fields: Any) -> Draft:
    parsed = Parsed(bead_id=_clean_word(bead), **fields)
    bead_field = () if type in NO_BEAD_NEEDED else ("bead_id",)
    required = (*bead_field, *(field for field, _ in FORMS[type].required))
    for field in required:
        if getattr(parsed, field) in ("", (), None):
            raise ValueError(f"{field} is empty: a {type} requires it")
    return Draft(type, parsed)


def _clean_text(text: str) -> str:
    return safe_text(text).strip()


def _clean_line(text: str) -> str:
    return safe_text(_clean_text(text), one_line=True)


def _clean_word(text: str) -> str:
    return strip_markup(_clean_line(text))


def _clean_files(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(clean_file_name(name) for path in paths if (name := _clean_line(path)))


def _validate_percentage(number: int) -> int:
    if not 0 <= number <= _MAX_PERCENT:
        raise ValueError(f"context_usage is {number}: use a percentage from 0 to 100")
    return number


def _match_enum(allowed: tuple[str, ...], word: str) -> str:
    """Return the member of the enumeration in its own spelling, matched in any case."""
    for member in allowed:
        if member.lower() == word.lower():
            return member
    raise ValueError(f"{quote(word)} is none of {', '.join(allowed)}")


# --- rendering --------------------------------------------------------------------------------


def render(draft: Draft) -> Rendered:
    """Render the subject and the body of a letter."""
    bead_id = draft.parsed.bead_id
    form = FORMS[draft.type]
    blocks = ["\n".join(_render_labels(form.head, draft.parsed, ""))]
    if form.is_guidance:
        bead_line = [f"Bead: {bead_id}"] if bead_id else []
        blocks = [*bead_line, draft.parsed.guidance]
    blocks += filter(None, (_render_section(section, draft.parsed) for section in form.sections))
    return Rendered(_render_subject(bead_id, draft.type), "\n\n".join(blocks) + "\n")


def _render_subject(bead_id: str, type: MessageType) -> str:
    """Put the bead in brackets before the type, if it can be parsed back from there."""
    is_plain = len(bead_id.split()) == 1 and "]" not in bead_id
    return (
        f"[{bead_id}] {type}"
        if is_plain and ascii_upper(bead_id) not in wire.MESSAGE_TYPES
        else str(type)
    )


def _render_section(section: Section, parsed: Parsed) -> str:
    if section.kind == "labels":
        inner = "\n".join(_render_labels(section.labels, parsed, section.bullet))
    elif section.kind == "list":
        inner = "\n".join(map(format_list_item, getattr(parsed, section.field)))
    else:
        inner = escape_text(getattr(parsed, section.field))
    return f"## {section.title}\n{inner}" if inner else ""


def _render_labels(labels: tuple[Label, ...], parsed: Parsed, bullet: str) -> Iterator[str]:
    for label in labels:
        value = getattr(parsed, label.field)
        if value not in ("", (), None):
            yield f"{bullet}{label.word}: {_FORMATTERS.get(label.field, _format_plain)(value)}"


def _format_plain(value: Any) -> str:
    return str(value)


def _format_verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def _format_bool(yes: bool) -> str:
    return "true" if yes else "false"


_FORMATTERS: Final = {
    "context_usage": "{}%".format,
    "files": join_list,
    "files_touched": join_list,
    "tests_pass": _format_verdict,
    "lint_pass": _format_verdict,
    "build_pass": _format_verdict,
    "resume": _format_bool,
}
"""Field -> formatter of its value; others are written as they are."""
