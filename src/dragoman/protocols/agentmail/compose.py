"""Letters to write: a constructor for each type, and the subject and the body that say the same.

What was composed passes strict mode, and reading it gives the same fields back. Texts are tidied
when a letter is composed: control characters become visible, space around them goes, a field that
has one line stays on one, and names and files lose marks of code or bold around them. From there on
nothing changes: under headings `escape` keeps a text from acting, commas within a file's name are
escaped, and a labelled line has only one label.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from dragoman.protocols.agentmail import words
from dragoman.protocols.agentmail.check import NO_BEAD_NEEDED
from dragoman.protocols.agentmail.escape import escaped
from dragoman.protocols.agentmail.forms import FORMS, Label, Section
from dragoman.protocols.agentmail.lines import bulleted, joined, labelled, unmarked
from dragoman.protocols.agentmail.problems import quoted
from dragoman.protocols.agentmail.shapes import Parsed
from dragoman.protocols.agentmail.values import file_name, is_moment
from dragoman.protocols.agentmail.words import MessageType
from dragoman.text.ascii_case import upper
from dragoman.text.safe_text import safe_text

_MOST_ATTEMPTS: Final = 999_999_999
_MOST_PERCENT: Final = 100


class Draft(Struct, frozen=True):
    """A complete letter without recipients and thread."""

    type: MessageType
    parsed: Parsed

    @property
    def ack_required(self) -> bool:
        """Default of the type for requesting an acknowledgement."""
        return words.ACK_REQUIRED[self.type]


class Rendered(Struct, frozen=True):
    """Subject and body of a letter, ready to send."""

    subject: str
    body_md: str


def bead_accepted(bead: str, *, title: str, started_at: str) -> Draft:
    """Accept a bead."""
    if not is_moment(started_at):
        raise ValueError(f"started_at is {quoted(started_at)}: use a date with a time")
    return _draft(MessageType.BEAD_ACCEPTED, bead, title=_line(title), started_at=started_at)


def progress(
    bead: str, *, step: str, status: str, context_usage: int, files_touched: Iterable[str] = ()
) -> Draft:
    """Report progress on a bead."""
    return _draft(
        MessageType.PROGRESS,
        bead,
        step=_line(step),
        status=_line(status),
        context_usage=_percentage(context_usage),
        files_touched=_files(files_touched),
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
        issue_type=_one_of(words.ISSUE_TYPES, issue_type),
        problem=_text(problem),
        what_tried=_text(what_tried),
        question=_text(question),
        files_touched=_files(files_touched),
    )


def help_response(bead: str = "", *, guidance: str) -> Draft:
    """Answer a question in the same thread; without a bead only the thread links the two."""
    type, text = MessageType.HELP_RESPONSE, _text(guidance)
    first = text.partition("\n")[0]
    if not _word(bead) and labelled(first, FORMS[type].start.lookup)[0]:
        raise ValueError(
            f"guidance begins with {quoted(first)}: pass the bead, or change the first line"
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
    return _completion(MessageType.OFFERING_READY, bead, commit, files, checks, summary)


def done(bead: str, *, commit: str, files: Iterable[str], checks: Checks, summary: str) -> Draft:
    """Report the work as complete."""
    return _completion(MessageType.DONE, bead, commit, files, checks, summary)


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
    if not 0 <= internal_attempts <= _MOST_ATTEMPTS:
        raise ValueError(f"internal_attempts is {internal_attempts}: use a count from 0 on")
    return _draft(
        MessageType.FAILED,
        bead,
        status="FAILED",
        failure_type=_one_of(words.FAILURE_TYPES, failure_type),
        reason=_line(reason),
        internal_attempts=internal_attempts,
        partial_commit_sha=_word(partial[0]),
        files=_files(partial[1]),
        recommendation=_text(recommendation),
    )


def checkpoint(
    bead: str, *, reason: str, commit: str, progress: str, context_usage: int, next_steps: str
) -> Draft:
    """Stop before the work is done, with next steps for the successor."""
    return _draft(
        MessageType.CHECKPOINT,
        bead,
        checkpoint_reason=_one_of(words.CHECKPOINT_REASONS, reason),
        partial_commit_sha=_word(commit),
        progress=_line(progress),
        context_usage=_percentage(context_usage),
        next_steps=_text(next_steps),
    )


def spawn_request(issue: str, *, orchestrator: str, resume: bool, checkpoint: str = "") -> Draft:
    """Request a worker for the issue, resuming from the checkpoint's commit or starting over."""
    commit = _word(checkpoint)
    if resume and not commit:
        raise ValueError("checkpoint is empty: name the commit to resume from")
    return _draft(
        MessageType.SPAWN_REQUEST,
        issue,
        issue_id=_word(issue),
        resume=resume,
        partial_commit_sha=commit,
        orchestrator=_word(orchestrator),
    )


def spawn_ack(issue: str, *, status: str, session: str = "") -> Draft:
    """Report that a worker was spawned, with its session, or that spawning failed."""
    said, name = _one_of(words.SPAWN_STATUSES, status), _word(session)
    if said == words.SPAWNED and not name:
        raise ValueError("session is empty: name the session that was spawned")
    return _draft(MessageType.SPAWN_ACK, issue, issue_id=_word(issue), status=said, session=name)


def _completion(
    type: MessageType, bead: str, commit: str, files: Iterable[str], checks: Checks, summary: str
) -> Draft:
    return _draft(
        type,
        bead,
        status="DONE",
        commit_sha=_word(commit),
        files=_files(files),
        tests_pass=checks.tests,
        lint_pass=checks.lint,
        build_pass=checks.build,
        summary=_text(summary),
    )


def _draft(type: MessageType, bead: str, **fields: Any) -> Draft:
    parsed = Parsed(bead_id=_word(bead), **fields)
    named = () if type in NO_BEAD_NEEDED else ("bead_id",)
    required = (*named, *(field for field, _ in FORMS[type].required))
    for field in required:
        if getattr(parsed, field) in ("", (), None):
            raise ValueError(f"{field} is empty: a {type} requires it")
    return Draft(type, parsed)


def _text(text: str) -> str:
    return safe_text(text).strip()


def _line(text: str) -> str:
    return safe_text(_text(text), one_line=True)


def _word(text: str) -> str:
    return unmarked(_line(text))


def _files(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(file_name(name) for path in paths if (name := _line(path)))


def _percentage(number: int) -> int:
    if not 0 <= number <= _MOST_PERCENT:
        raise ValueError(f"context_usage is {number}: use a percentage from 0 to 100")
    return number


def _one_of(allowed: tuple[str, ...], word: str) -> str:
    """Return the member of the enumeration in its own spelling, matched in any case."""
    for one in allowed:
        if one.lower() == word.lower():
            return one
    raise ValueError(f"{quoted(word)} is none of {', '.join(allowed)}")


def render(draft: Draft) -> Rendered:
    """Render the subject and the body of a letter."""
    bead_id = draft.parsed.bead_id
    form = FORMS[draft.type]
    blocks = ["\n".join(_labelled(form.head, draft.parsed, ""))]
    if form.guidance:
        named = [f"Bead: {bead_id}"] if bead_id else []
        blocks = [*named, draft.parsed.guidance]
    blocks += filter(None, (_section(section, draft.parsed) for section in form.sections))
    return Rendered(_subject(bead_id, draft.type), "\n\n".join(blocks) + "\n")


def _subject(bead_id: str, type: MessageType) -> str:
    """Put the bead in brackets before the type, if it can be parsed back from there."""
    is_plain = len(bead_id.split()) == 1 and "]" not in bead_id
    return f"[{bead_id}] {type}" if is_plain and upper(bead_id) not in words.TYPES else str(type)


def _section(section: Section, parsed: Parsed) -> str:
    if section.kind == "labels":
        inner = "\n".join(_labelled(section.labels, parsed, section.bullet))
    elif section.kind == "list":
        inner = "\n".join(map(bulleted, getattr(parsed, section.field)))
    else:
        inner = escaped(getattr(parsed, section.field))
    return f"## {section.title}\n{inner}" if inner else ""


def _labelled(labels: tuple[Label, ...], parsed: Parsed, bullet: str) -> Iterator[str]:
    for label in labels:
        value = getattr(parsed, label.field)
        if value not in ("", (), None):
            yield f"{bullet}{label.word}: {_WRITTEN.get(label.field, _plain)(value)}"


def _plain(value: Any) -> str:
    return str(value)


def _verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def _yes_or_no(yes: bool) -> str:
    return "true" if yes else "false"


_WRITTEN: Final = {
    "context_usage": "{}%".format,
    "files": joined,
    "files_touched": joined,
    "tests_pass": _verdict,
    "lint_pass": _verdict,
    "build_pass": _verdict,
    "resume": _yes_or_no,
}
"""Field -> formatter of its value; others are written as they are."""
