"""`dragoman verify`: proof that nothing in the ledger was lost or changed."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
)
from dragoman.surfaces.cli.data_directory import DataDirectory, Evidence
from dragoman.surfaces.cli.render import UNSIGNED_WARNING, Progress, ProgressBars, Screen, pluralize

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.engine.verify import Finding
    from dragoman.files.projector import StaleFiles
    from dragoman.files.restore import MissingFiles
    from dragoman.ledger.checkpoint import Checkpoint

# --- findings ---------------------------------------------------------------------------------

_MAX_SHOWN = 100

_FILES_NOT_COMPARED = (
    "the files were not compared with the ledger: {why}. Move what is in the way aside, and verify "
    "again"
)

_REPAIR_FILES_HINT = (
    ": `dragoman tick` applies what was edited in task files, or says beside them why not, and "
    "writes again the files of 256 tasks and letters at a time; `dragoman rebuild-files` writes "
    "all of them at once, also after an upgrade that writes files in another way"
)

_DELETE_LINES_HINT = (
    "keep a copy of that file, delete what is named here, and run `dragoman checkpoints accept`; "
    "its other lines still count"
)

_RESTORE_FILE_HINT = (
    "bring that file back from a copy, or, if you know why it is so, move it away and run "
    "`dragoman checkpoints accept`; until then nothing is written"
)

_SURPLUS_HINT = "; surplus files are not dragoman's and are left alone: move them away"


_SCHEMA_ADVICE = (
    "the tables, indexes, views and triggers of its database are not as this version makes them: "
    "somebody has changed them. `dragoman backup FILE` and `dragoman restore FILE --data NEW` make "
    "a directory in which they are"
)

_SCHEMA_NOT_COMPARED = (
    "the schema of the database was not compared with that of this version: the role may not "
    "create a schema beside it"
)


class VerifyReport(Struct):
    """Findings of a verification: the first ones, and how many there were."""

    entries: int = 0
    streams: int = 0
    checkpoints: int = 0
    finding_count: int = 0
    findings: "list[Finding]" = []
    first_bad: int | None = None
    signed_up_to: int = 0
    """Position up to which a valid signature covers the entries."""
    invalid_checkpoints: int = 0
    """Number of findings that are invalid lines of checkpoints.jsonl."""
    removal: str = ""
    """Sentence about checkpoints that were issued and are missing; a finding, too."""
    schema_count: int = 0
    """Number of findings about tables, indexes, views and triggers."""
    is_schema_compared: bool = True
    artifacts_elsewhere: int = 0
    """Number of artifacts whose copies are not here, but may be in another directory of this
    store."""
    damage_count: int = 0
    """Number of findings that the database itself reports, below its rows."""
    file_finding_count: int = 0
    """Number of findings about files, which can be rebuilt."""
    files_complete: bool = True
    """False: the files were never written completely."""
    files_obstacle: str = ""
    """Error that prevented the comparison of the files."""
    files_missing: "MissingFiles | None" = None
    """Files that the archive did not have from which the directory was made."""
    files_behind: "StaleFiles | None" = None
    """Position of the files, if newer entries cannot be written to them."""

    @property
    def warnings(self) -> list[str]:
        """Warnings: nothing is wrong, but a person should know."""
        unsigned = [UNSIGNED_WARNING] if self.entries and not self.checkpoints else []
        not_compared = (
            [_FILES_NOT_COMPARED.format(why=self.files_obstacle)] if self.files_obstacle else []
        )
        return (
            unsigned
            + not_compared
            + ([] if self.is_schema_compared else [_SCHEMA_NOT_COMPARED])
            + ([_artifacts_elsewhere_warning(self)] if self.artifacts_elsewhere else [])
            + ([_files_behind_warning(self.files_behind)] if self.files_behind else [])
            + ([_files_missing_warning(self.files_missing)] if self.files_missing else [])
        )

    def add_findings(self, findings: "Iterable[Finding]") -> None:
        """Add findings; only the first ones are kept."""
        for finding in findings:
            self.finding_count += 1
            if finding.position and finding.position < (self.first_bad or finding.position + 1):
                self.first_bad = finding.position
            if self.finding_count <= _MAX_SHOWN:
                self.findings.append(finding)


class _Subject(Struct, frozen=True):
    """The data directory and ledger that were verified."""

    data: str
    ledger: str

    def __str__(self) -> str:
        return f"{self.data}, ledger {self.ledger}: "


# --- command ----------------------------------------------------------------------------------


def verify(
    context: CommandContext,
    hashes: Annotated[
        bool, option("--hashes", "", "Only hashes and checkpoints: neither views nor files.")
    ] = False,
) -> CommandResult:
    """Prove that nothing was lost or changed.

    Checks every hash, every checkpoint, every view against a replay, the schema of the database,
    the files against the ledger, and the kept copies of artifacts.

    Exits 1 and names the first bad position if anything was changed, removed, swapped or cut, and
    if the database says that it is damaged.

    \b
    Examples:
      dragoman verify
      dragoman verify --hashes
    """
    if hashes:
        with context.open_evidence() as evidence:
            return _make_result(
                verify_ledger(evidence, context.err.progress),
                _describe_subject(context, evidence.store),
            )
    with context.open_for_reading() as directory:
        return _make_result(
            verify_all(directory, context.err.progress),
            _describe_subject(context, directory.hub.store),
        )


def _describe_subject(context: CommandContext, store: "Store") -> _Subject:
    return _Subject(str(context.data.absolute()), store.ledger_id())


# --- checks -----------------------------------------------------------------------------------


def no_progress_bars(label: str, total: int) -> AbstractContextManager[Progress]:
    """Progress bars that show nothing."""
    del label, total
    return nullcontext(lambda _: None)


def verify_ledger(evidence: Evidence, bars: ProgressBars) -> VerifyReport:
    """Verify the ledger alone, with a progress bar."""
    report = VerifyReport()
    signed = _read_checkpoints(evidence, report)
    report.entries = evidence.store.head()
    with bars("entries", report.entries) as progress:
        report.add_findings(_check_ledger(evidence, signed, report, progress))
    return report


def _check_ledger(
    evidence: Evidence, signed: "list[Checkpoint]", report: VerifyReport, progress: Progress
) -> "Iterator[Finding]":
    from dragoman.engine.verify import check_ledger

    report.streams = yield from check_ledger(evidence.store, signed, progress)


def verify_all(directory: DataDirectory, bars: ProgressBars) -> VerifyReport:
    """Verify ledger, database, views, files and artifacts."""
    from dragoman.core.errors import StoreError
    from dragoman.engine.verify import Finding

    schema = directory.hub.store.inspect_schema()
    try:
        report = _verify_contents(directory, bars)
    except StoreError:
        if not schema.damage:
            raise
        report = VerifyReport()  # what is missing in the schema cannot be read
    report.is_schema_compared = schema.is_complete
    report.schema_count = len(schema.damage)
    report.add_findings(
        Finding(f"in the schema of the database, {problem}") for problem in schema.damage
    )
    return report


def _verify_contents(directory: DataDirectory, bars: ProgressBars) -> VerifyReport:
    from dragoman.engine.verify import check_stored_states
    from dragoman.files.restore import find_missing_files

    store = directory.hub.store
    report = verify_ledger(Evidence(store, directory.checkpoints), bars)
    with bars("database", 1) as progress:
        earlier_count = report.finding_count
        report.add_findings(_find_damage(store))
        report.damage_count = report.finding_count - earlier_count
        progress(1)
    if report.damage_count:
        # A damaged database may return less than it holds, by whichever index: it proves nothing.
        return report
    with bars("views", report.streams) as progress:
        report.add_findings(check_stored_states(store, progress))
    if not report.finding_count:
        # Files are projected from the ledger: with a broken one they cannot be compared.
        with bars("files", report.streams) as progress:
            earlier_count = report.finding_count
            try:
                report.add_findings(_find_file_differences(directory, progress))
            except OSError as error:
                report.files_obstacle = f"{error.filename}: {error.strerror}"
            report.file_finding_count = report.finding_count - earlier_count
            report.files_complete = directory.projector.has_cursor()
            report.files_behind = directory.projector.stale
        report.files_missing = find_missing_files(directory.path)
        report.add_findings(_find_artifact_problems(directory, report))
    return report


def _find_artifact_problems(directory: DataDirectory, report: VerifyReport) -> "Iterator[Finding]":
    """Check the kept copy of each artifact that a handoff needs.

    Each directory of a shared store has the copies that it has made itself.
    """
    from dragoman.engine.queries.handoffs import needed_artifact_hashes
    from dragoman.engine.verify import Finding

    store = directory.hub.store
    is_shared = len(store.issued_checkpoints()) > 1
    for sha256 in sorted(needed_artifact_hashes(store)):
        mismatch = directory.parts.verify_artifact(sha256)
        if mismatch is not None and mismatch.problem == "missing" and is_shared:
            report.artifacts_elsewhere += 1
        elif mismatch is not None:
            yield Finding(f"an artifact that a handoff needs: {mismatch.detail}")


def _artifacts_elsewhere_warning(report: VerifyReport) -> str:
    copies = pluralize(report.artifacts_elsewhere, "copy", "copies")
    return (
        f"{copies} of artifacts that handoffs need are not here; several directories have signed "
        "for this store, and one of the others may have them"
    )


def _files_behind_warning(files: "StaleFiles") -> str:
    missing = pluralize(files.head - files.position, "entry", "entries")
    return (
        f"the task files, letters and event lines show the ledger up to position {files.position}; "
        f"{missing} after it cannot be written to them now ({files.reason}). The ledger has "
        "them whole, "
        "so nothing is lost or damaged: once the directory can be written, `dragoman tick` brings "
        "the files level"
    )


def _files_missing_warning(missing: "MissingFiles") -> str:
    shown = ", ".join(missing.paths[:_MAX_SHOWN])
    more = f" (and {len(missing.paths) - _MAX_SHOWN} more)" * (len(missing.paths) > _MAX_SHOWN)
    return (
        f"the archive of {missing.made_at}, from which this directory was made, did not have "
        f"{shown}{more}: bring them back from where they were, if they are needed"
    )


def _find_damage(store: "Store") -> "Iterator[Finding]":
    from dragoman.engine.verify import Finding

    for problem in store.inspect().damage:
        yield Finding(f"the database says: {problem}")


def _find_file_differences(directory: DataDirectory, progress: Progress) -> "Iterator[Finding]":
    from dragoman.engine.verify import Finding

    for difference in directory.projector.compare(progress):
        yield Finding(f"{difference.path} is {difference.problem}")


def _read_checkpoints(evidence: Evidence, report: VerifyReport) -> "list[Checkpoint]":
    """Checkpoints that are valid."""
    from dragoman.engine.verify import Finding
    from dragoman.ledger.checkpoint import read_checkpoint_lines

    # Read before the lines: a hub that runs may add to both meanwhile.
    report.removal = evidence.checkpoints.find_removal(evidence.store.issued_checkpoints())
    signed, invalid = read_checkpoint_lines(
        evidence.checkpoints.lines(), evidence.checkpoints.public
    )
    report.add_findings(
        Finding(f"checkpoints.jsonl, line {one.line}: {one.reason}") for one in invalid
    )
    if report.removal:
        report.add_findings([Finding(report.removal)])
    report.checkpoints, report.invalid_checkpoints = len(signed), len(invalid)
    report.signed_up_to = max((checkpoint.size for checkpoint in signed), default=0)
    return signed


# --- result -----------------------------------------------------------------------------------


def _make_result(report: VerifyReport, subject: _Subject) -> CommandResult:
    data: dict[str, object] = {
        "data": subject.data,
        "ledger": subject.ledger,
        "entries": report.entries,
        "streams": report.streams,
        "checkpoints": report.checkpoints,
        "findings": [
            {"position": f.position or None, "stream": f.stream or None, "problem": f.problem}
            for f in report.findings
        ],
        "found": report.finding_count,
        "firstBadPosition": report.first_bad,
        "warnings": report.warnings,
    }
    if not report.finding_count:
        return CommandResult(data, lambda screen: _print_good(report, subject, screen))
    data |= {"code": _result_code(report), "detail": _headline(report)}
    return CommandResult(data, lambda screen: _print_findings(report, subject, screen), is_ok=False)


def _result_code(report: VerifyReport) -> str:
    """Refusal code for the kind of all findings."""
    if report.finding_count == report.file_finding_count:
        return "files_differ"
    return "store_corrupt" if report.finding_count == report.damage_count else "ledger_broken"


def summarize_counts(report: VerifyReport) -> str:
    """Number of entries, streams and checkpoints that were verified."""
    return ", ".join(
        (
            pluralize(report.entries, "entry", "entries"),
            pluralize(report.streams, "stream"),
            pluralize(report.checkpoints, "checkpoint"),
        )
    )


def _print_good(report: VerifyReport, subject: _Subject, screen: Screen) -> None:
    if not report.warnings:
        reach = f"; signatures reach to position {report.signed_up_to}"
        is_ahead = report.signed_up_to < report.entries
        screen.line(f"{subject}{summarize_counts(report)}: all good{reach * is_ahead}")
        return
    screen.line(f"{subject}{summarize_counts(report)}: every hash fits")
    for warning in report.warnings:
        screen.line(("warning: ", "yellow"), warning)


def _headline(report: VerifyReport) -> str:
    if report.damage_count:
        return f"the database is damaged, {_recovery_advice(report)}"
    if report.finding_count == report.file_finding_count and not report.files_complete:
        return (
            f"{_proven_extent(report)}, but its files were never completely written: the "
            "command that "
            "made this directory, usually a restore, was interrupted. Nothing is lost; `dragoman "
            "rebuild-files` writes them"
        )
    if report.finding_count == report.file_finding_count:
        do = "1 file does" if report.finding_count == 1 else f"{report.finding_count} files do"
        has_surplus = any(finding.problem.endswith(" is surplus") for finding in report.findings)
        return (
            f"{_proven_extent(report)}, but {do} not show it as it "
            f"is{_REPAIR_FILES_HINT}{_SURPLUS_HINT * has_surplus}"
        )
    if report.schema_count and report.finding_count == report.schema_count:
        return f"{_proven_extent(report)}, but {_SCHEMA_ADVICE}"
    is_only_removal = bool(report.removal) and report.finding_count == 1
    if not is_only_removal and report.finding_count == report.invalid_checkpoints + bool(
        report.removal
    ):
        lines = pluralize(report.invalid_checkpoints, "line")
        return (
            f"{_proven_extent(report)}, but of checkpoints.jsonl {lines} cannot be believed: "
            + (_DELETE_LINES_HINT if report.checkpoints else _RESTORE_FILE_HINT)
        )
    if is_only_removal:
        return (
            f"{_proven_extent(report)}, but checkpoints that were issued are missing: a "
            "ledger that was rewritten would look the same"
        )
    if report.first_bad is None:
        return (
            f"{_proven_extent(report)}, but not all beside it holds; findings: "
            f"{report.finding_count}"
        )
    return f"{_first_bad_text(report)}; findings: {report.finding_count}"


def _first_bad_text(report: VerifyReport) -> str:
    return f"the first bad position is {report.first_bad}"


def _proven_extent(report: VerifyReport) -> str:
    """Extent of the ledger that is proven, where no position is bad."""
    if report.signed_up_to >= report.entries:
        return "the ledger is whole"
    if report.signed_up_to:
        return (
            f"the ledger is as it was signed up to position {report.signed_up_to}, and every hash "
            "behind it fits"
        )
    return "every hash of the ledger fits, though no good signature covers it"


def _recovery_advice(report: VerifyReport) -> str:
    """Advice for a damaged database: how to make a sound directory of it."""
    if report.finding_count == report.damage_count:
        return (
            f"and {_proven_extent(report)}: keep all files as they are, and let nobody work on "
            "them. "
            "`dragoman backup FILE` and `dragoman restore FILE --data NEW` make a sound directory "
            "out of the ledger; if the backup is refused, restore an earlier one"
        )
    ledger_state = (
        "not all beside the ledger holds" if report.first_bad is None else _first_bad_text(report)
    )
    return (
        f"and {ledger_state}: keep all files as they are, and make a new directory out of an "
        "earlier "
        f"backup: `dragoman restore FILE --data NEW`; findings: {report.finding_count}"
    )


def _print_findings(report: VerifyReport, subject: _Subject, screen: Screen) -> None:
    screen.line(
        f"{subject}{summarize_counts(report)}: ", ("NOT good", "bold red"), f"; {_headline(report)}"
    )
    for finding in sorted(report.findings, key=lambda f: (f.position == 0, f.position)):
        position = f"position {finding.position}" if finding.position else "beside the ledger"
        stream = f", {finding.stream}" if finding.stream else ""
        screen.line(f"  {position}{stream}: {finding.problem}")
    if report.finding_count > len(report.findings):
        screen.line(f"  … and {report.finding_count - len(report.findings)} more")


COMMANDS = (CliCommand("verify", verify, takes_as=False),)
