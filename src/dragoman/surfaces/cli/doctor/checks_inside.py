"""Doctor's checks of the store: it opens, is current, its ledger holds, and time is right."""

import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from dragoman.config.store_url import location_hint
from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.core.moments import format_rough_duration, to_rfc3339
from dragoman.ledger.entry import read_line
from dragoman.surfaces.cli.doctor.checks_outside import check_path_writable
from dragoman.surfaces.cli.doctor.patient import CheckResult, Installation, bad, ok, warning
from dragoman.surfaces.cli.words.phrases import pluralize

if TYPE_CHECKING:
    from dragoman.engine.ports import Store

_READING_STILL_WORKS = "; reading it and `dragoman backup` to another place work meanwhile"
_INSPECT_SECONDS = 2.0
"""Time limit of the database's own damage check; `verify` lets it finish."""
_PARTIALLY_INSPECTED = (
    f"; no damage seen in {_INSPECT_SECONDS:g} s, which is not all of it: `dragoman verify`"
)
_SERVER_NOT_INSPECTED = "; its pages and indexes are the server's: pg_amcheck looks at them"
_MISSING_DATABASE_ADVICE = (
    "put it back, or restore a backup into a new directory; if this one was never used, run "
    "`dragoman init`"
)
_SQLITE_MAGIC = b"SQLite format 3\x00"
_USER_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)
_HEADER_BYTES = 100
_MAX_LEASES = 1_000
_MAX_NAMES = 3


def check_store(installation: Installation) -> CheckResult | None:
    """Check that the store opens; a file that opening would change is only inspected."""
    if (
        "keys" in installation.failed_checks
        or not installation.data.is_dir()
        or not installation.has_readable_settings
    ):
        return None
    file = installation.database_file
    schema_result = (
        _check_database_file(installation, file)
        if file is not None
        else _check_server_schema(installation)
    )
    if schema_result is not None and schema_result.state == "bad":
        return schema_result
    unwritable = _check_database_writable(installation, file)
    if schema_result is not None:
        return _store_not_opened(installation, schema_result, unwritable)
    try:
        opened = installation.open().hub.store
    except StoreUnavailable as error:
        return bad(error.detail, unwritable.advice if unwritable else "")
    inspected = _inspect_database(
        opened, file, "" if installation.is_writable else _READING_STILL_WORKS
    )
    if inspected.state == "bad":
        # A damaged database may return less than it holds: nothing else is checked.
        installation.close()
        return inspected
    if unwritable is not None:
        return bad(f"{unwritable.finding}{_READING_STILL_WORKS}", unwritable.advice)
    if file is not None and _is_readable_by_others(file, installation.data):
        return warning(
            f"{file}: others on this machine can read it", f"chmod 600 {quote(str(file))}*"
        )
    return inspected


def check_ledger_tail(installation: Installation) -> CheckResult | None:
    """Check the entries after the last checkpoint."""
    from dragoman.engine.verifying.verify import check_tail
    from dragoman.files.archives.archive_format import CHECKPOINTS

    if installation.directory is None:
        return None
    head, last = installation.directory.hub.store.head(), installation.directory.checkpoints.last()
    entries = pluralize(head, "entry", "entries")
    if last is None:
        return (
            warning(
                f"none of {entries} is signed",
                installation.when_writable(
                    "if checkpoints.jsonl was there before, bring it back; else run `dragoman "
                    "tick`, which signs from now on"
                ),
            )
            if head
            else ok("empty")
        )
    for finding in islice(check_tail(installation.directory.hub.store, last), 1):
        return bad(
            f"position {finding.position}: {finding.problem}",
            "keep all files as they are, and run `dragoman verify`",
        )
    invalid = installation.directory.checkpoints.invalid_lines_at_end()
    if invalid:
        return warning(
            f"the last lines of checkpoints.jsonl do not hold: {invalid}; those before them do, up "
            f"to position {last.size}",
            "`dragoman verify` says what is wrong with each; if it finds nothing else, delete them",
        )
    unwritable = (
        check_path_writable(installation.data / CHECKPOINTS) if installation.is_writable else None
    )
    if unwritable is not None:
        return bad(f"{unwritable.finding}: nothing more is signed", unwritable.advice)
    return ok(
        f"{entries}; {head - last.size} after the last checkpoint are as they were written, and "
        "`dragoman verify` proves the others"
    )


def check_clock(installation: Installation) -> CheckResult | None:
    """Check that the hub's clock is not behind the newest entry."""
    if installation.directory is None:
        return None
    now, head = installation.directory.hub.clock.now(), installation.directory.hub.store.head()
    for entry in installation.directory.hub.store.entries(max(head - 1, 0), 1):
        newest = read_line(entry.line).at
        if newest > now:
            return warning(
                f"the clock says {to_rfc3339(now)}, which is "
                f"{format_rough_duration(newest - now)} before the "
                "newest entry",
                "set the machine's clock, unless a command was given another time with --now",
            )
    return ok(to_rfc3339(now))


def check_leases(installation: Installation) -> CheckResult | None:
    """Check that no expired lease waits for recovery."""
    if installation.directory is None:
        return None
    ended = installation.directory.hub.store.expired_leases(
        installation.directory.hub.clock.now(), _MAX_LEASES
    )
    if ended:
        advice = installation.when_writable("run `dragoman tick`")
        return warning(f"leases that have ended: {len(ended)}", advice)
    return ok("none has ended without recovery")


def check_files(installation: Installation) -> CheckResult | None:
    """Check that the projected files are up to date."""
    from dragoman.files.layout import PROJECTION_LOCK

    if installation.directory is None:
        return None
    lock = installation.data / PROJECTION_LOCK
    if lock.exists() and not lock.is_file():
        return bad(f"{lock} is no file, so that no files can be written", "move it away")
    occupied = ", ".join(installation.directory.projector.list_blocked_paths())
    if occupied:
        return warning(
            f"where dragoman keeps its files stands something else: {occupied}",
            installation.when_writable("`dragoman tick` puts it aside, under a name with `-found`"),
        )
    leftovers = ", ".join(installation.directory.projector.list_discarded())
    if leftovers:
        return warning(
            f"files that were about to be removed when dragoman was ended: {leftovers}",
            installation.when_writable(
                "`dragoman tick` removes them, and takes over or keeps what was written into them"
            ),
        )
    missing_entries, unwritten = installation.directory.projector.lag()
    if unwritten:
        hidden = len(unwritten) - _MAX_NAMES
        return warning(
            f"files that could not be written: those of {', '.join(unwritten[:_MAX_NAMES])}"
            f"{f' and of {hidden} more' if hidden > 0 else ''}",
            "`dragoman tick` says what is in the way, and writes them when it is gone",
        )
    if missing_entries:
        return warning(
            f"entries that are not in the files yet: {missing_entries}", "run `dragoman tick`"
        )
    changed = ", ".join(installation.directory.projector.list_changed_logs())
    if changed:
        return warning(
            f"changed by somebody else, cut off or removed: {changed}",
            "`dragoman tick` completes what is missing, `dragoman verify` compares all of it",
        )
    return ok("every entry is in the files; `dragoman verify` compares them")


def check_notify(installation: Installation) -> CheckResult | None:
    """Check that notices are delivered."""
    if installation.directory is None:
        return None
    states = installation.directory.delivery_states()
    troubles = [trouble for standing in states if (trouble := standing.problem)]
    losses = [loss for standing in states if (loss := standing.loss)]
    if troubles:
        return warning(
            "; ".join(troubles + losses),
            f"mend it; {installation.when_writable('`dragoman tick` then delivers what waits')}",
        )
    if losses:
        return warning(
            "; ".join(losses),
            "they are in notify.failed.jsonl: read it, tell whom it concerns, and move it away",
        )
    targets = ", ".join(standing.target for standing in states)
    return ok(
        f"delivered without trouble: {targets}"
        if targets
        else "no notification target is configured"
    )


def _check_database_writable(installation: Installation, file: Path | None) -> CheckResult | None:
    """Check that commands can write to the database; the directory has its own check."""
    if not installation.is_writable:
        return None
    if file is None:
        return _check_server_writable(installation.store_url)
    beside = (file.with_name(file.name + end) for end in ("-wal", "-shm"))
    needed = (file.parent, file, *(path for path in beside if path.exists()))
    return next(filter(None, map(check_path_writable, needed)), None)


def _store_not_opened(
    installation: Installation, result: CheckResult, unwritable: CheckResult | None
) -> CheckResult:
    """Result for a store that a command has to write to before it can be read."""
    if unwritable is None:
        return warning(result.finding, installation.when_writable(result.advice))
    return bad(
        f"{result.finding}; {unwritable.finding}", f"{unwritable.advice}; then {result.advice}"
    )


def _is_readable_by_others(file: Path, data: Path) -> bool:
    """Tell whether others can read a file that the data directory does not protect."""
    return not _is_within(file, data) and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _is_within(file: Path, data: Path) -> bool:
    return file.resolve().is_relative_to(data.resolve())


def _inspect_database(opened: "Store", file: Path | None, read_only_note: str) -> CheckResult:
    """Let the database check itself, within the time limit."""
    inspection = opened.inspect(_INSPECT_SECONDS)
    if inspection.damage:
        return bad(
            f"{file or 'PostgreSQL'} is damaged: {inspection.damage[0]}",
            "keep all files as they are, let nobody work on them, and run `dragoman verify`: it "
            "says what is left, and how a sound directory is made of it",
        )
    unseen = (
        "" if inspection.is_complete else _PARTIALLY_INSPECTED if file else _SERVER_NOT_INSPECTED
    )
    try:
        return ok(f"{file or 'PostgreSQL'}, ledger {opened.ledger_id()}{unseen}{read_only_note}")
    except StoreCorrupt as error:
        return bad(error.detail)


def _check_database_file(installation: Installation, file: Path) -> CheckResult | None:
    """Check the header of a database file before it is opened; None: open it."""
    from dragoman.files.archives.archive_format import CHECKPOINTS
    from dragoman.store.sqlite.length import has_journal
    from dragoman.store.sqlite.migrate import APPLICATION_ID, MIGRATIONS
    from dragoman.store.sqlite.snapshot import schema_version

    if not file.exists():
        return bad(
            "there is no database at "
            f"{file}{location_hint(installation.store_url, installation.data)}",
            _MISSING_DATABASE_ADVICE,
        )
    if not file.is_file():
        what = "a directory" if file.is_dir() else "a pipe or a device"
        return bad(
            f"{file} is {what}, and no database", f"move it away, and {_MISSING_DATABASE_ADVICE}"
        )
    with file.open("rb") as opened:
        header = opened.read(_HEADER_BYTES)
    if not header and (installation.data / CHECKPOINTS).exists():
        return bad(
            f"{file} is empty, and {CHECKPOINTS} has signed what it held", _MISSING_DATABASE_ADVICE
        )
    if not header:
        return warning(f"{file} is empty", "run `dragoman init`, which makes its tables")
    if not header.startswith(_SQLITE_MAGIC) or len(header) < _HEADER_BYTES:
        return bad(
            f"{file} is not a SQLite database",
            "keep the file as it is, and restore a backup beside it",
        )
    if header[_APPLICATION_ID] != APPLICATION_ID.to_bytes(4, "big"):
        return None
    version = int.from_bytes(header[_USER_VERSION], "big")
    if has_journal(file):
        # The last writes may be in the log only; if it cannot be read, the header's version counts.
        with suppress(StoreUnavailable):
            version = schema_version(file)
    copied = (
        (installation.data,) if _is_within(file, installation.data) else (installation.data, file)
    )
    copy = f"copy {' and '.join(quote(str(path)) for path in copied)} while nothing works there"
    return _check_schema_version(installation, str(file), (version, len(MIGRATIONS)), copy)


def _check_server_schema(installation: Installation) -> CheckResult | None:
    """Check the schema version of a database server before it is opened; None: open it."""
    from dragoman.store.postgres.migrate import MIGRATIONS
    from dragoman.store.postgres.staging import schema_version_at

    version = schema_version_at(installation.store_url) or len(MIGRATIONS)
    return _check_schema_version(
        installation, "PostgreSQL", (version, len(MIGRATIONS)), "take one with pg_dump"
    )


def _check_server_writable(url: str) -> CheckResult | None:
    from dragoman.store.postgres.staging import check_writable

    try:
        check_writable(url)
    except StoreUnavailable as error:
        return bad(error.detail, "let this user write there")
    return None


def _check_schema_version(
    installation: Installation, database: str, schemas: tuple[int, int], copy_advice: str
) -> CheckResult | None:
    """Advice for a store with an older schema; None: it is current."""
    version, newest = schemas
    if version >= newest:
        return None
    stop = "stop the hub; " if installation.running_hub else ""
    # Any command of this version, `backup` too, migrates the store before reading it.
    return warning(
        f"{database} has schema {version}, this dragoman has {newest}",
        f"{stop}make a backup with the dragoman that you had before, or {copy_advice}: there is "
        "no other "
        "way back. Then any command of this one brings it up to date, e.g. `dragoman verify`",
    )
