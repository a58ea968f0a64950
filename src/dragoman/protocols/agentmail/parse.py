"""Parse letters: the row, its subject, its body and the bead that it names (S-MAIL-1 to S-MAIL-4).

Lenient parsing accepts everything and lists what it could not read as problems; strict parsing
raises MailError.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.core.ids import check_task_id
from dragoman.engine.operation import candidate_messages
from dragoman.protocols.agentmail import grammar
from dragoman.protocols.agentmail.errors import MailError, make_problem, quote
from dragoman.protocols.agentmail.wire import (
    ACK_REQUIRED,
    MESSAGE_TYPES,
    SPAWNED,
    Message,
    MessageType,
    Parsed,
    Problem,
)
from dragoman.text.error_messages import describe_type
from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.strict_json import StrictJsonError, get_field, parse_json, parse_loosely

# --- rows -------------------------------------------------------------------------------------


def unwrap_letter(value: Any, body_names: tuple[str, ...] = ("body_md",)) -> Any:
    """Find the object with a subject and a body, bare or wrapped like any message, or None.

    `body_names` are the keys under which the body may stand.
    """
    for inner in candidate_messages(value):
        if isinstance(get_field(inner, "subject"), str) and any(
            name in inner for name in body_names
        ):
            return inner
    return None


RawRow = bytes | str | Mapping[str, Any]
"""A letter as it is received: JSON text, or the parsed object."""

ProblemList = list[Problem]

OptionalText = str | None

NameList = list[str] | str | None
"""A list, or one text with commas between the names."""

Flag = bool | int | str | float | None
"""A flag, or the time at which it was set, which counts as true."""

FOREIGN_FIELD_NAMES: Final[Mapping[str, str]] = {
    "body_md": "body",
    "from": "sender_name",
    "timestamp": "created_ts",
}
"""Own field name -> the name that other servers use, which counts if ours is absent or empty."""

_NO_BLIND_COPIES: Final = (
    "bcc is not supported: every reader sees all recipients of a letter; name them in cc, or send "
    "them a separate letter"
)


class LetterRow(Struct, frozen=True, kw_only=True, gc=False, rename={"sender": "from"}.get):
    """All accepted field names, our own first."""

    id: str | int | None = None
    subject: OptionalText = None
    body_md: OptionalText = None
    body: OptionalText = None
    thread_id: OptionalText = None
    sender: OptionalText = None
    sender_name: OptionalText = None
    to: NameList = None
    cc: NameList = None
    timestamp: OptionalText = None
    created_ts: OptionalText = None
    importance: OptionalText = None
    ack_required: bool | int | None = None
    acknowledged: Flag = None
    acked: Flag = None
    ack_ts: Flag = None
    read: Flag = None
    read_ts: Flag = None


EMPTY_ROW: Final = LetterRow()

_ROW_FIELDS: Final = {
    field.encode_name: (field.name, field.type) for field in msgspec.structs.fields(LetterRow)
}

_EXPECTED: Final[Mapping[Any, str]] = {
    OptionalText: "a text",
    NameList: "a list of names",
    str | int | None: "a text or a whole number",
    Flag: "true, false or a time",
    bool | int | None: "true or false",
}

_decode = msgspec.json.Decoder(LetterRow).decode

_decode_any = msgspec.json.Decoder().decode

_DECODE_ERRORS: Final = (msgspec.DecodeError, ValueError, RecursionError)


def rejection_reason(value: Any) -> str:
    """Return the reason for refusing a readable row, its `bcc`, or an empty text."""
    return _NO_BLIND_COPIES if get_field(value, "bcc") else ""


def decode_row(raw: RawRow, problems: ProblemList) -> LetterRow:
    """Decode a row without its malformed fields; never raises."""
    try:
        return _decode(raw) if isinstance(raw, bytes | str) else msgspec.convert(raw, LetterRow)
    except (*_DECODE_ERRORS, TypeError):
        return _salvage_row(raw, problems)


def decode_strict_row(raw: RawRow, problems: ProblemList) -> LetterRow:
    """Decode a row, if its JSON is unambiguous."""
    if not isinstance(raw, bytes | str):
        return decode_row(raw, problems)
    try:
        # A character takes at most four bytes; the limit of a letter's size is checked by the hub.
        value = parse_json(raw, max_bytes=4 * len(raw))
    except StrictJsonError as error:
        problems.append(make_problem("not_a_row", error.path, right=error.reason))
        return EMPTY_ROW
    if isinstance(value, str):  # a JSON string is not parsed a second time
        problems.append(make_problem("not_a_row", right="this is a text"))
        return EMPTY_ROW
    return decode_row(value, problems)


def _salvage_row(raw: Any, problems: ProblemList) -> LetterRow:
    """Recover every readable field of a row, each on its own."""
    if isinstance(raw, bytes | str):
        try:
            raw = _decode_any(raw)
        except _DECODE_ERRORS as error:
            problems.append(make_problem("not_a_row", right=f"this is not JSON: {error}"))
            raw = parse_loosely(raw)
            if raw is None:
                return EMPTY_ROW
    if not isinstance(raw, Mapping):
        problems.append(make_problem("not_a_row", right=f"this is {describe_type(raw)}"))
        return EMPTY_ROW
    return LetterRow(**_convert_fields(cast(Mapping[Any, Any], raw), problems))


def _convert_fields(row: Mapping[Any, Any], problems: ProblemList) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for key, (name, shape) in _ROW_FIELDS.items():
        value = row.get(key)
        try:
            converted[name] = msgspec.convert(value, shape)
        except (msgspec.ValidationError, ValueError, TypeError, RecursionError):
            problems.append(make_problem("bad_envelope", key, right=_EXPECTED[shape]))
    return converted


def split_names(names: NameList) -> tuple[str, ...]:
    """Return the names from a list or a text with commas."""
    if not names:
        return ()
    return grammar.split_list(names) if isinstance(names, str) else tuple(names)


def first_flag(*flags: Flag) -> bool | None:
    """Return the first flag that is present, or None."""
    for flag in flags:
        if flag is not None:
            return bool(flag)
    return None


# --- subjects ---------------------------------------------------------------------------------

IsKnown = Callable[[str], bool]
"""Tells whether a word names a task."""

_REPLY_PREFIX: Final = lazy_regex(r"(?:(?:[Rr][Ee]|[Ff][Ww][Dd]?)\s*+:\s*+)++")

_REPLY_STARTS: Final = frozenset("rRfF")

_ID_SEPARATOR: Final = lazy_regex(r"[:\s]*+")

_LEADING_WORD: Final = lazy_regex(r"\w++(?![-.]\w)")
"""A whole word; `DONE-ish` does not begin with the word DONE."""

_CAPITALIZED_TYPE: Final = lazy_regex(
    rf"(?<!\w)(?<!\w[-.])(?:{'|'.join(MESSAGE_TYPES)})(?!\w|[-.]\w)"
)
"""A message type as a whole word in capitals."""

_ID_CHARACTERS: Final = frozenset("0123456789-.")
"""A word before a colon without any of these is an id only if it names a task."""

_MAX_ID_CHARS: Final = 128


class Subject(Struct, frozen=True, gc=False):
    """Parsed subject."""

    type: MessageType
    bead_id: str
    other_types: tuple[MessageType, ...] = ()
    """Further types that the subject names; strict parsing refuses them."""


def no_known_tasks(_: str) -> bool:
    """Default of `is_known`, where no tasks are known."""
    return False


def parse_subject(subject: str, is_known: IsKnown = no_known_tasks) -> Subject:
    """Parse the type, in its place or else the first in capitals, and the id before it."""
    whole = MESSAGE_TYPES.get(subject)
    if whole is not None:
        return Subject(whole, "")
    text = subject.strip()
    bead_id, rest = _split_id(_strip_reply_prefix(text), is_known)
    if bead_id and rest in MESSAGE_TYPES:
        return Subject(MESSAGE_TYPES[rest], bead_id)
    leading = _leading_type(rest)
    matches = _CAPITALIZED_TYPE.finditer(text)
    capitals = [MESSAGE_TYPES[word[0]] for word in matches if _is_word_end(text, word.end())]
    types = dict.fromkeys(([leading] if leading else []) + capitals)
    first, *others = types or (MessageType.UNKNOWN,)
    return Subject(first, bead_id, tuple(others))


def is_reply(subject: str) -> bool:
    """Tell whether a subject begins with `Re:` or `Fwd:`, possibly after the id."""
    text = subject.strip()
    if text.startswith("["):
        text = _strip_id_separator(text.partition("]")[2])
    return _REPLY_PREFIX.match(text) is not None


def _strip_reply_prefix(text: str) -> str:
    if text[:1] not in _REPLY_STARTS:
        return text
    prefix = _REPLY_PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def _strip_id_separator(rest: str) -> str:
    """Strip blanks and colons behind a bracket."""
    return _ID_SEPARATOR.sub("", rest, count=1)


def _split_id(text: str, is_known: IsKnown) -> tuple[str, str]:
    """Split `[id] rest` or `id: rest`; a text without an id is all rest."""
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        inner = grammar.strip_markup(inner.strip())
        if closed and grammar.ascii_upper(inner) not in MESSAGE_TYPES and len(inner.split()) <= 1:
            return inner, _strip_reply_prefix(_strip_id_separator(rest))
        return "", text
    word, colon, rest = text.partition(":")
    word = grammar.strip_markup(word.rstrip())
    if colon and _is_bead_id(word, is_known) and (rest[:1].strip() == "" or _leading_type(rest)):
        return word, rest.strip()
    return "", text


def _is_bead_id(word: str, is_known: IsKnown) -> bool:
    if (
        len(word) > _MAX_ID_CHARS
        or grammar.ascii_upper(word) in MESSAGE_TYPES
        or check_task_id(word) is not None
    ):
        return False
    return not _ID_CHARACTERS.isdisjoint(word) or is_known(word)


def _leading_type(text: str) -> MessageType | None:
    """Return the type with which a text begins, in any case, or None."""
    found = _LEADING_WORD.match(text)
    if found is None or not _is_word_end(text, found.end()):
        return None
    return MESSAGE_TYPES.get(grammar.ascii_upper(found[0]))


def _is_word_end(text: str, end: int) -> bool:
    """Tell whether a word ends here; a combining accent belongs to the letter before it."""
    return not unicodedata.category(text[end : end + 1] or " ").startswith("M")


# --- bodies -----------------------------------------------------------------------------------

RawValue = str | tuple[str, ...]

_MARKUP_STARTS: Final = frozenset("#`~ \t")
"""A line that begins with anything else is neither a heading nor a fence."""

_LIST_FIELDS: Final = frozenset({"files", "files_touched"})

_NO_LABELS: Final[grammar.FieldsByLabel] = {}


class ParsedBody(Struct, frozen=True, gc=False):
    """Fields of a body as they were written; of repeated fields the first that is not empty."""

    values: dict[str, RawValue]
    line_numbers: dict[str, int]
    """Line number of each field, also of a label without a value."""
    heading_lines: dict[str, int]
    """Line number of each section's heading, by its title."""
    misplaced_lines: dict[str, int]
    """Line number of each field whose label stands outside its section and is therefore ignored."""


_BYTE_ORDER_MARK: Final = "\ufeff"


def parse_body(body: str, form: grammar.Form) -> ParsedBody:
    """Collect all fields of the form that a body has, in one pass (S-MAIL-3).

    Nearly every line is written exactly as the form prints it, so each line is first looked up as
    it is; only a line that is not found that way is analysed.
    """
    parser = _BodyParser(grammar.split_lines(body.removeprefix(_BYTE_ORDER_MARK)), form)
    return parser.parse()


def section_text(lines: list[str]) -> str:
    """Text of a section, unescaped."""
    text = "\n".join(lines).strip()
    return grammar.unescape_text(text) if "\\" in text else text


class _BodyParser:
    """One-pass parser of a body: the current section and fence, and the fields found so far."""

    __slots__ = (
        "_fence",
        "_form",
        "_headings",
        "_labels",
        "_level",
        "_lines",
        "_misplaced",
        "_places",
        "_section",
        "_start",
        "_text_end",
        "_words",
    )

    def __init__(self, lines: list[str], form: grammar.Form) -> None:
        self._words: dict[str, RawValue] = {}
        self._places: dict[str, int] = {}
        self._headings: dict[str, int] = {}
        self._misplaced: dict[str, int] = {}
        self._lines = lines
        self._form = form
        self._section = form.head_section
        self._labels = form.head_section.fields_by_label
        """Labels that count in the current section; none in free text or in code."""
        self._level = 0
        self._start = 0
        self._text_end = 0
        """All lines before this one continue the text of a label."""
        self._fence = ""

    def parse(self) -> ParsedBody:
        words, places = self._words, self._places
        for index, line in enumerate(self._lines):
            if not line or (line[0] in _MARKUP_STARTS and self._consume_markup(index, line)):
                continue
            labels = self._labels
            if not labels or ":" not in line or index < self._text_end:
                continue
            head, _, value = line.partition(":")
            field = labels.get(head)
            if field is None or field in words or not (value := value.strip()):
                self._parse_irregular_line(index, line)
            else:
                words[field] = self._collect_value(index, field, value)
                places[field] = index + 1
        self._finish_section(len(self._lines))
        if self._form.is_guidance:
            self._parse_guidance()
        return ParsedBody(words, places, self._headings, self._misplaced)

    # --- headings and fences

    def _consume_markup(self, index: int, line: str) -> bool:
        if self._fence:
            if grammar.closes_fence(line, self._fence):
                self._fence = ""
                self._labels = self._section.fields_by_label
            return True
        section = self._form.sections_by_exact_heading.get(line)
        if section is not None:
            self._enter_section(index, 2, section)
        elif heading := grammar.parse_heading(line):
            self._enter_section(index, heading[0], self._form.sections_by_heading.get(heading[1]))
        elif fence := grammar.parse_opening_fence(line):
            self._fence = fence
            self._labels = _NO_LABELS
        else:
            return False
        return True

    def _enter_section(self, index: int, level: int, section: grammar.Section | None) -> None:
        """Start a section, unless the heading is part of the current one.

        A deeper heading belongs to a free text; elsewhere an unknown deeper heading is ignored.
        """
        if level > self._level > 0 and (section is None or self._section.kind == "text"):
            return
        self._finish_section(index)
        self._start = index + 1
        if section is None:
            self._section, self._level = self._form.head_section, 0
        else:
            self._section, self._level = section, level
            self._headings.setdefault(section.title, index + 1)
        self._labels = self._section.fields_by_label

    def _finish_section(self, end: int) -> None:
        """Close the section, and collect its content if it is a text or a list."""
        section = self._section
        if section.kind == "labels" or section.field in self._words:
            return
        lines = self._lines[self._start : end]
        value = grammar.parse_list_section(lines) if section.kind == "list" else section_text(lines)
        if value:
            self._words[section.field] = value
            self._places[section.field] = self._start

    # --- fields

    def _parse_irregular_line(self, index: int, line: str) -> None:
        """Parse a line in an unusual spelling, with a list below it, or without a field."""
        words, places = self._words, self._places
        field, value = grammar.parse_labelled_line(line, self._form.all_fields_by_label)
        if not field or field in words:
            return
        if field not in self._section.fields:
            if value:
                self._misplaced.setdefault(field, index + 1)
            return
        collected = self._collect_value(index, field, value)
        if collected:
            words[field] = collected
            places[field] = index + 1
        else:
            places.setdefault(field, index + 1)

    def _collect_value(self, index: int, field: str, value: str) -> RawValue:
        """Return the value of a labelled line, with the lines below that continue it."""
        if field in _LIST_FIELDS:
            return value or grammar.parse_list_below(self._lines, index + 1, self._labels)
        if field not in self._form.multiline_fields:
            return value
        continuation = tuple(
            grammar.continuation_lines(self._lines, index, self._form.all_fields_by_label)
        )
        self._text_end = index + 1 + len(continuation)
        return "\n".join(filter(None, (value, *continuation)))

    def _parse_guidance(self) -> None:
        """Take the whole body as guidance, without a first line that names the bead."""
        lines = self._lines
        first = next((index for index, line in enumerate(lines) if line.strip()), 0)
        if grammar.parse_labelled_line(lines[first], self._form.head_section.fields_by_label)[0]:
            first += 1
        elif self._words.pop("bead_id", ""):
            del self._places["bead_id"]  # a label amid the advice names some other bead
        guidance = "\n".join(lines[first:]).strip()
        if guidance:
            self._words["guidance"] = guidance
            self._places["guidance"] = first + 1


# --- missing and misplaced fields -------------------------------------------------------------

_EMPTY_VALUES: Final = ("", None, ())

_BEAD_FIELDS: Final = frozenset({"bead_id", "issue_id"})


def find_missing_fields(type: MessageType, parsed: Parsed, body: ParsedBody) -> Iterator[Problem]:
    """Yield a problem for each required field that is absent, at its empty label or its heading."""
    if not parsed.bead_id and type not in grammar.NO_BEAD_NEEDED:
        line = body.line_numbers.get("bead_id") or body.line_numbers.get("issue_id", 0)
        yield make_problem("missing_bead_id", "bead_id", line)
    required = grammar.FORMS[type].required + conditional_fields(type, parsed)
    for field, title in required:
        if field in _BEAD_FIELDS or field in body.values:
            continue
        line = body.line_numbers.get(field) or body.heading_lines.get(title, 0)
        yield make_problem("missing_field", field, line, right=_FIELD_HINTS[type][field])


def find_misplaced_fields(type: MessageType, parsed: Parsed, body: ParsedBody) -> Iterator[Problem]:
    """Yield a problem for each field that stands only where its label does not count (S-MAIL-3).

    Strict parsing refuses nothing for it: a required field is reported as missing, and others are
    optional.
    """
    for field, line in body.misplaced_lines.items():
        if getattr(parsed, field) in _EMPTY_VALUES:
            yield make_problem("misplaced_field", field, line, right=_FIELD_HINTS[type][field])


def conditional_fields(type: MessageType, parsed: Parsed) -> tuple[tuple[str, str], ...]:
    """Fields that are required only because of the value of another field."""
    if type is MessageType.SPAWN_REQUEST and parsed.resume:
        return (("partial_commit_sha", ""),)
    if type is MessageType.SPAWN_ACK and grammar.ascii_lower(parsed.status) == SPAWNED:
        return (("session", ""),)
    return ()


def _describe_fields(form: grammar.Form) -> dict[str, str]:
    """Describe the spelling of each field of a form."""
    hints = {label.field: f"a line {label.word}: with its value" for label in form.head}
    for section in form.sections:
        location = f"under a heading ## {section.title}"
        inner = {label.field: f"a line {label.word}: {location}" for label in section.labels}
        hints |= inner or {section.field: f"it {location}"}
    return hints | {"guidance": "the answer as the body"}


_FIELD_HINTS: Final = {type: _describe_fields(form) for type, form in grammar.FORMS.items()}


# --- letters ----------------------------------------------------------------------------------

_decode_rows = msgspec.json.Decoder(list[Any]).decode

_UNKNOWN: Final = MessageType.UNKNOWN

_FAILED: Final = MessageType.FAILED


class Parser:
    """Parser of letters, each independent of the others."""

    def __init__(self, *, strict: bool = False, is_known: IsKnown = no_known_tasks) -> None:
        """With `is_known`, a plain word before a colon is an id when it names a task."""
        self.strict = strict
        self._is_known = is_known

    def parse(self, raw: RawRow, kind: MessageType | None = None) -> Message:
        """Parse a row or its JSON text; strict parsing raises MailError for any problem.

        With `kind` the letter is of that type, whatever its subject names.
        """
        problems: ProblemList = []
        row = decode_strict_row(raw, problems) if self.strict else decode_row(raw, problems)
        title, body = row.subject or "", row.body_md or row.body or ""
        subject = parse_subject(title, self._is_known)
        if kind is not None:
            subject = Subject(kind, subject.bead_id)
        kind = subject.type
        parsed_body = parse_body(body, grammar.FORMS[kind])
        parsed = _parse_fields(subject, parsed_body, problems)
        timestamp = row.timestamp or row.created_ts or ""
        if row is not EMPTY_ROW:
            _check_envelope(subject, title, timestamp, problems)
        if self.strict:
            problems += find_missing_fields(kind, parsed, parsed_body)
            if problems:
                raise MailError(tuple(problems))
        if parsed_body.misplaced_lines:
            problems += find_misplaced_fields(kind, parsed, parsed_body)
        return Message(
            type=kind,
            id=row.id,
            thread_id=row.thread_id or "",
            sender=row.sender or row.sender_name or "",
            to=split_names(row.to),
            cc=split_names(row.cc),
            subject=title,
            body=body,
            timestamp=timestamp,
            importance=row.importance or "normal",
            ack_required=wants_ack(row.ack_required, kind),
            acknowledged=first_flag(row.acknowledged, row.acked, row.ack_ts),
            read=first_flag(row.read, row.read_ts),
            parsed=parsed,
            problems=tuple(problems),
        )

    def parse_many(self, raws: bytes | str | Iterable[RawRow]) -> list[Message]:
        """Parse many rows; a text holds them as a JSON array or as JSON Lines."""
        if isinstance(raws, bytes | str):
            raws = _split_rows(raws)
        return [self.parse(raw) for raw in raws]


def _split_rows(text: bytes | str) -> Iterable[RawRow]:
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if data.lstrip()[:1] == b"[":
        try:
            return _decode_rows(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return (data,)  # `parse` reports the JSON error
    return [line for line in data.split(b"\n") if line.strip()]


def _parse_fields(subject: Subject, body: ParsedBody, problems: ProblemList) -> Parsed:
    values: dict[str, Any] = body.values.copy()
    kinds = grammar.VALUE_KINDS[subject.type]
    for field, raw in body.values.items():
        kind = kinds.get(field)
        if kind is not None:
            values[field], problem_name = kind.parse(raw)
            if problem_name:
                line = body.line_numbers[field]
                problems.append(
                    make_problem(problem_name, field, line, shown=str(raw), right=kind.allowed)
                )
    if subject.type is _FAILED:
        values["status"] = "FAILED"
    _resolve_bead(subject, body, values, problems)
    return Parsed(**values)


def _resolve_bead(
    subject: Subject, body: ParsedBody, values: dict[str, Any], problems: ProblemList
) -> None:
    """Resolve the bead: the body takes precedence over the subject (S-MAIL-2)."""
    is_spawning = subject.type in grammar.SPAWN_TYPES
    field = "issue_id" if is_spawning and "issue_id" in values else "bead_id"
    in_body = values.get(field, "")
    bead_id = in_body or subject.bead_id
    if bead_id:
        values["bead_id"] = bead_id
        if is_spawning:
            values["issue_id"] = bead_id
        if subject.bead_id not in ("", bead_id):
            line = body.line_numbers[field]
            about = {"shown": subject.bead_id, "right": quote(in_body)}
            problems.append(make_problem("bead_mismatch", "bead_id", line, **about))


def _check_envelope(subject: Subject, title: str, timestamp: str, problems: ProblemList) -> None:
    if subject.type is _UNKNOWN:
        problems.append(make_problem("unknown_type", "subject", shown=title))
    elif subject.other_types:
        others = ", ".join(subject.other_types)
        problems.append(make_problem("two_types", "subject", shown=others, right=subject.type))
    if timestamp and not grammar.is_timestamp(timestamp):
        problems.append(make_problem("bad_timestamp", "timestamp", shown=timestamp))


def wants_ack(stated: bool | int | None, kind: MessageType) -> bool:
    """Tell whether a letter wants an acknowledgement: as it states, or by its type (S-MAIL-7)."""
    return ACK_REQUIRED[kind] if stated is None else bool(stated)
