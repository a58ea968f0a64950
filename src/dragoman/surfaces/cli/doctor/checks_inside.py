"""Doctor's checks of the store: it opens, is current, its ledger holds, and time is right."""

import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from dragoman.config.store_url import why_there
from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.core.moments import roughly, to_rfc3339
from dragoman.ledger.entry import read_line
from dragoman.surfaces.cli.doctor.checks_outside import why_unwritable
from dragoman.surfaces.cli.doctor.patient import Diagnosis, Patient, bad, ok, warning
from dragoman.surfaces.cli.words.phrases import counted

if TYPE_CHECKING:
    from dragoman.engine.ports import Store

_MEANWHILE = "; reading it and `dragoman backup` to another place work meanwhile"
_PATIENCE_S = 2.0
"""Time limit of the database's own damage check; `verify` lets it finish."""
_UNSEEN = f"; no damage seen in {_PATIENCE_S:g} s, which is not all of it: `dragoman verify`"
_SERVERS = "; its pages and indexes are the server's: pg_amcheck looks at them"
_PUT_BACK = (
    "put it back, or restore a backup into a new directory; if this one was never used, run "
    "`dragoman init`"
)
_MAGIC = b"SQLite format 3\x00"
_USER_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)
_HEADER_BYTES = 100
_MOST_LEASES = 1_000
_FEW = 3


def store(patient: Patient) -> Diagnosis | None:
    """Check that the store opens; a file that opening would change is only inspected."""
    if "keys" in patient.wrong or not patient.data.is_dir() or not patient.is_understood:
        return None
    file = patient.database
    found = _file(patient, file) if file is not None else _server(patient)
    if found is not None and found.state == "bad":
        return found
    unwritable = _unwritable(patient, file)
    if found is not None:
        return _not_yet(patient, found, unwritable)
    try:
        opened = patient.open().hub.store
    except StoreUnavailable as error:
        return bad(error.detail, unwritable.advice if unwritable else "")
    seen = _seen(opened, file, "" if patient.is_writable else _MEANWHILE)
    if seen.state == "bad":
        # A damaged database may return less than it holds: nothing else is checked.
        patient.close()
        return seen
    if unwritable is not None:
        return bad(f"{unwritable.found}{_MEANWHILE}", unwritable.advice)
    if file is not None and _is_open_to_others(file, patient.data):
        return warning(
            f"{file}: others on this machine can read it", f"chmod 600 {quote(str(file))}*"
        )
    return seen


def ledger(patient: Patient) -> Diagnosis | None:
    """Check the entries after the last checkpoint."""
    from dragoman.engine.verifying.verify import check_tail
    from dragoman.files.archives.archive_format import CHECKPOINTS

    if patient.place is None:
        return None
    reached, last = patient.place.hub.store.head(), patient.place.checkpoints.last()
    entries = counted(reached, "entry", "entries")
    if last is None:
        return (
            warning(
                f"none of {entries} is signed",
                patient.once_writable(
                    "if checkpoints.jsonl was there before, bring it back; else run `dragoman "
                    "tick`, which signs from now on"
                ),
            )
            if reached
            else ok("empty")
        )
    for finding in islice(check_tail(patient.place.hub.store, last), 1):
        return bad(
            f"position {finding.position}: {finding.problem}",
            "keep all files as they are, and run `dragoman verify`",
        )
    spoiled = patient.place.checkpoints.spoiled_at_the_end()
    if spoiled:
        return warning(
            f"the last lines of checkpoints.jsonl do not hold: {spoiled}; those before them do, up "
            f"to position {last.size}",
            "`dragoman verify` says what is wrong with each; if it finds nothing else, delete them",
        )
    unwritable = why_unwritable(patient.data / CHECKPOINTS) if patient.is_writable else None
    if unwritable is not None:
        return bad(f"{unwritable.found}: nothing more is signed", unwritable.advice)
    return ok(
        f"{entries}; {reached - last.size} after the last checkpoint are as they were written, and "
        "`dragoman verify` proves the others"
    )


def clock(patient: Patient) -> Diagnosis | None:
    """Check that the hub's clock is not behind the newest entry."""
    if patient.place is None:
        return None
    now, reached = patient.place.hub.clock.now(), patient.place.hub.store.head()
    for entry in patient.place.hub.store.entries(max(reached - 1, 0), 1):
        newest = read_line(entry.line).at
        if newest > now:
            return warning(
                f"the clock says {to_rfc3339(now)}, which is {roughly(newest - now)} before the "
                "newest entry",
                "set the machine's clock, unless a command was given another time with --now",
            )
    return ok(to_rfc3339(now))


def leases(patient: Patient) -> Diagnosis | None:
    """Check that no expired lease waits for recovery."""
    if patient.place is None:
        return None
    ended = patient.place.hub.store.expired(patient.place.hub.clock.now(), _MOST_LEASES)
    if ended:
        advice = patient.once_writable("run `dragoman tick`")
        return warning(f"leases that have ended: {len(ended)}", advice)
    return ok("none has ended without recovery")


def files(patient: Patient) -> Diagnosis | None:
    """Check that the projected files are up to date."""
    from dragoman.files.layout import LOCK

    if patient.place is None:
        return None
    lock = patient.data / LOCK
    if lock.exists() and not lock.is_file():
        return bad(f"{lock} is no file, so that no files can be written", "move it away")
    taken = ", ".join(patient.place.projector.taken_places())
    if taken:
        return warning(
            f"where dragoman keeps its files stands something else: {taken}",
            patient.once_writable("`dragoman tick` puts it aside, under a name with `-found`"),
        )
    left = ", ".join(patient.place.projector.leftovers())
    if left:
        return warning(
            f"files that were about to be removed when dragoman was ended: {left}",
            patient.once_writable(
                "`dragoman tick` removes them, and takes over or keeps what was written into them"
            ),
        )
    late, behind = patient.place.projector.lag()
    if behind:
        return warning(
            f"files that could not be written: those of {', '.join(behind[:_FEW])}"
            f"{f' and of {len(behind) - _FEW} more' if len(behind) > _FEW else ''}",
            "`dragoman tick` says what is in the way, and writes them when it is gone",
        )
    if late:
        return warning(f"entries that are not in the files yet: {late}", "run `dragoman tick`")
    changed = ", ".join(patient.place.projector.changed_logs())
    if changed:
        return warning(
            f"changed by somebody else, cut off or removed: {changed}",
            "`dragoman tick` completes what is missing, `dragoman verify` compares all of it",
        )
    return ok("every entry is in the files; `dragoman verify` compares them")


def notify(patient: Patient) -> Diagnosis | None:
    """Check that notices are delivered."""
    if patient.place is None:
        return None
    standings = patient.place.standings()
    troubles = [trouble for standing in standings if (trouble := standing.trouble)]
    losses = [loss for standing in standings if (loss := standing.loss)]
    if troubles:
        return warning(
            "; ".join(troubles + losses),
            f"mend it; {patient.once_writable('`dragoman tick` then delivers what waits')}",
        )
    if losses:
        return warning(
            "; ".join(losses),
            "they are in notify.failed.jsonl: read it, tell whom it concerns, and move it away",
        )
    targets = ", ".join(standing.target for standing in standings)
    return ok(
        f"delivered without trouble: {targets}"
        if targets
        else "no notification target is configured"
    )


def _unwritable(patient: Patient, file: Path | None) -> Diagnosis | None:
    """Check that commands can write to the database; the directory has its own check."""
    if not patient.is_writable:
        return None
    if file is None:
        return _server_unwritable(patient.url)
    beside = (file.with_name(file.name + end) for end in ("-wal", "-shm"))
    needed = (file.parent, file, *(path for path in beside if path.exists()))
    return next(filter(None, map(why_unwritable, needed)), None)


def _not_yet(patient: Patient, found: Diagnosis, unwritable: Diagnosis | None) -> Diagnosis:
    """Result for a store that a command has to write to before it can be read."""
    if unwritable is None:
        return warning(found.found, patient.once_writable(found.advice))
    return bad(f"{found.found}; {unwritable.found}", f"{unwritable.advice}; then {found.advice}")


def _is_open_to_others(file: Path, data: Path) -> bool:
    """Tell whether others can read a file that the data directory does not protect."""
    return not _is_within(file, data) and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _is_within(file: Path, data: Path) -> bool:
    return file.resolve().is_relative_to(data.resolve())


def _seen(opened: "Store", file: Path | None, meanwhile: str) -> Diagnosis:
    """Let the database check itself, within the time limit."""
    seen = opened.inspect(_PATIENCE_S)
    if seen.damage:
        return bad(
            f"{file or 'PostgreSQL'} is damaged: {seen.damage[0]}",
            "keep all files as they are, let nobody work on them, and run `dragoman verify`: it "
            "says what is left, and how a sound directory is made of it",
        )
    unseen = "" if seen.is_whole else _UNSEEN if file else _SERVERS
    try:
        return ok(f"{file or 'PostgreSQL'}, ledger {opened.ledger_id()}{unseen}{meanwhile}")
    except StoreCorrupt as error:
        return bad(error.detail)


def _file(patient: Patient, file: Path) -> Diagnosis | None:
    """Check the header of a database file before it is opened; None: open it."""
    from dragoman.files.archives.archive_format import CHECKPOINTS
    from dragoman.store.sqlite.length import has_log
    from dragoman.store.sqlite.migrate import APPLICATION_ID, MIGRATIONS
    from dragoman.store.sqlite.snapshot import schema_version

    if not file.exists():
        return bad(
            f"there is no database at {file}{why_there(patient.url, patient.data)}", _PUT_BACK
        )
    if not file.is_file():
        what = "a directory" if file.is_dir() else "a pipe or a device"
        return bad(f"{file} is {what}, and no database", f"move it away, and {_PUT_BACK}")
    with file.open("rb") as opened:
        header = opened.read(_HEADER_BYTES)
    if not header and (patient.data / CHECKPOINTS).exists():
        return bad(f"{file} is empty, and {CHECKPOINTS} has signed what it held", _PUT_BACK)
    if not header:
        return warning(f"{file} is empty", "run `dragoman init`, which makes its tables")
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        return bad(
            f"{file} is not a SQLite database",
            "keep the file as it is, and restore a backup beside it",
        )
    if header[_APPLICATION_ID] != APPLICATION_ID.to_bytes(4, "big"):
        return None
    version = int.from_bytes(header[_USER_VERSION], "big")
    if has_log(file):
        # The last writes may be in the log only; if it cannot be read, the header's version counts.
        with suppress(StoreUnavailable):
            version = schema_version(file)
    copied = (patient.data,) if _is_within(file, patient.data) else (patient.data, file)
    copy = f"copy {' and '.join(quote(str(path)) for path in copied)} while nothing works there"
    return _behind(patient, str(file), (version, len(MIGRATIONS)), copy)


def _server(patient: Patient) -> Diagnosis | None:
    """Check the schema version of a database server before it is opened; None: open it."""
    from dragoman.store.postgres.migrate import MIGRATIONS
    from dragoman.store.postgres.staging import version_at

    version = version_at(patient.url) or len(MIGRATIONS)
    return _behind(patient, "PostgreSQL", (version, len(MIGRATIONS)), "take one with pg_dump")


def _server_unwritable(url: str) -> Diagnosis | None:
    from dragoman.store.postgres.staging import check_writable

    try:
        check_writable(url)
    except StoreUnavailable as error:
        return bad(error.detail, "let this user write there")
    return None


def _behind(patient: Patient, where: str, schemas: tuple[int, int], copy: str) -> Diagnosis | None:
    """Advice for a store with an older schema; None: it is current."""
    version, newest = schemas
    if version >= newest:
        return None
    stop = "stop the hub; " if patient.works else ""
    # Any command of this version, `backup` too, migrates the store before reading it.
    return warning(
        f"{where} has schema {version}, this dragoman has {newest}",
        f"{stop}make a backup with the dragoman that you had before, or {copy}: there is no other "
        "way back. Then any command of this one brings it up to date, e.g. `dragoman verify`",
    )
