"""`dragoman verify`: proof that nothing in the ledger was lost or changed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct

from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import UNSIGNED_WARNING, Progress, ProgressBars, Screen, pluralize

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.engine.verify import Finding
    from dragoman.ledger.checkpoint import Checkpoint

# --- findings ---------------------------------------------------------------------------------

_MAX_SHOWN = 100

FindingKind = Literal["ledger", "checkpoints", "database", "schema", "views", "files", "artifacts"]

_REPAIR_FILES_HINT = (
    ": `dragoman tick` applies what was edited in task files, or says beside them why not; "
    "`dragoman rebuild-files` writes all files anew, also after an upgrade that writes them in "
    "another way"
)

_SURPLUS_HINT = "; surplus files are not dragoman's and are left alone: move them away"

_DELETE_LINES_HINT = (
    "keep a copy of that file, delete what is named here, and run `dragoman checkpoints accept`; "
    "its other lines still count"
)

_RESTORE_FILE_HINT = (
    "bring that file back from a copy, or, if you know why it is so, move it away and run "
    "`dragoman checkpoints accept`; until then nothing is written"
)

_SCHEMA_ADVICE = (
    "the tables, indexes, views and triggers of its database are not as this version makes them: "
    "somebody has changed them. `dragoman backup FILE` and `dragoman restore FILE --data NEW` make "
    "a directory in which they are"
)

_DAMAGE_ADVICE = (
    "keep all files as they are, and let nobody work on them. `dragoman backup FILE` and `dragoman "
    "restore FILE --data NEW` make a sound directory out of the ledger; if the backup is refused, "
    "restore an earlier one"
)


class VerifyReport(Struct):
    """Findings of a verification: the first ones, and how many there were of each kind."""

    entries: int = 0
    streams: int = 0
    checkpoints: int = 0
    counts: dict[FindingKind, int] = {}
    findings: "list[Finding]" = []
    first_bad: int | None = None
    signed_up_to: int = 0
    """Position up to which a valid signature covers the entries."""
    removal: str = ""
    """Sentence about checkpoints that were issued and are missing; a finding, too."""
    warnings: list[str] = []
    """Nothing is wrong, but a person should know."""

    @property
    def finding_count(self) -> int:
        """Number of findings of all kinds."""
        return sum(self.counts.values())

    def add_findings(self, kind: FindingKind, findings: "Iterable[Finding]") -> None:
        """Add findings; only the first ones are kept."""
        for finding in findings:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if finding.position and finding.position < (self.first_bad or finding.position + 1):
                self.first_bad = finding.position
            if len(self.findings) < _MAX_SHOWN:
                self.findings.append(finding)


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
    with context.open_for_reading() as directory:
        report = (verify_ledger if hashes else verify_all)(directory, context.err.progress)
        ledger = directory.hub.store.ledger_id()
    return _make_result(report, f"{context.data.absolute()}", ledger)


# --- checks -----------------------------------------------------------------------------------


def no_progress_bars(label: str, total: int) -> AbstractContextManager[Progress]:
    """Progress bars that show nothing."""
    del label, total
    return nullcontext(lambda _: None)


def verify_ledger(directory: DataDirectory, bars: ProgressBars) -> VerifyReport:
    """Verify the ledger alone, with a progress bar."""
    report, store = VerifyReport(), directory.hub.store
    signed = _read_checkpoints(directory, report)
    report.entries = store.head()
    with bars("entries", report.entries) as progress:
        report.add_findings("ledger", _check_ledger(store, signed, report, progress))
    if report.entries and not signed:
        report.warnings.append(UNSIGNED_WARNING)
    return report


def _check_ledger(
    store: "Store", signed: "list[Checkpoint]", report: VerifyReport, progress: Progress
) -> "Iterator[Finding]":
    from dragoman.engine.verify import check_ledger

    report.streams = yield from check_ledger(store, signed, progress)


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
    if not schema.is_complete:
        report.warnings.append(
            "the schema of the database was not compared with that of this version: the role may "
            "not create a schema beside it"
        )
    report.add_findings(
        "schema", (Finding(f"in the schema of the database, {one}") for one in schema.damage)
    )
    return report


def _verify_contents(directory: DataDirectory, bars: ProgressBars) -> VerifyReport:
    from dragoman.engine.verify import Finding, check_stored_states

    store = directory.hub.store
    report = verify_ledger(directory, bars)
    with bars("database", 1) as progress:
        report.add_findings(
            "database", (Finding(f"the database says: {one}") for one in store.inspect().damage)
        )
        progress(1)
    if "database" in report.counts:
        # A damaged database may return less than it holds, by whichever index: it proves nothing.
        return report
    with bars("views", report.streams) as progress:
        report.add_findings("views", check_stored_states(store, progress))
    if not report.counts:
        # Files are projected from the ledger: with a broken one they cannot be compared.
        with bars("files", report.streams) as progress:
            try:
                differences = directory.projector.compare(progress)
                report.add_findings(
                    "files", (Finding(f"{one.path} is {one.problem}") for one in differences)
                )
            except OSError as error:
                report.warnings.append(
                    "the files were not compared with the ledger: "
                    f"{error.filename}: {error.strerror}. Move what is in the way aside, or make "
                    "the directory writable, and verify again"
                )
        report.add_findings("artifacts", _find_artifact_problems(directory, report))
    return report


def _find_artifact_problems(directory: DataDirectory, report: VerifyReport) -> "Iterator[Finding]":
    """Check the kept copy of each artifact that a handoff needs.

    Each directory of a shared store has the copies that it has made itself.
    """
    from dragoman.engine.queries.handoffs import needed_artifact_hashes
    from dragoman.engine.verify import Finding

    store, elsewhere = directory.hub.store, 0
    is_shared = len(store.issued_checkpoints()) > 1
    for sha256 in sorted(needed_artifact_hashes(store)):
        mismatch = directory.parts.verify_artifact(sha256)
        if mismatch is not None and mismatch.problem == "missing" and is_shared:
            elsewhere += 1
        elif mismatch is not None:
            yield Finding(f"an artifact that a handoff needs: {mismatch.detail}")
    if elsewhere:
        copies = pluralize(elsewhere, "copy", "copies")
        report.warnings.append(
            f"{copies} of artifacts that handoffs need are not here; several directories have "
            "signed for this store, and one of the others may have them"
        )


def _read_checkpoints(directory: DataDirectory, report: VerifyReport) -> "list[Checkpoint]":
    """Checkpoints that are valid."""
    from dragoman.engine.verify import Finding
    from dragoman.ledger.checkpoint import read_checkpoint_lines

    # Read before the lines: a hub that runs may add to both meanwhile.
    checkpoints = directory.checkpoints
    report.removal = checkpoints.find_removal(directory.hub.store.issued_checkpoints())
    signed, invalid = read_checkpoint_lines(checkpoints.lines(), checkpoints.public)
    report.add_findings(
        "checkpoints",
        (Finding(f"checkpoints.jsonl, line {one.line}: {one.reason}") for one in invalid),
    )
    if report.removal:
        report.add_findings("checkpoints", [Finding(report.removal)])
    report.checkpoints = len(signed)
    report.signed_up_to = max((checkpoint.size for checkpoint in signed), default=0)
    return signed


# --- result -----------------------------------------------------------------------------------


def _make_result(report: VerifyReport, data_path: str, ledger: str) -> CommandResult:
    subject = f"{data_path}, ledger {ledger}: "
    data: dict[str, object] = {
        "data": data_path,
        "ledger": ledger,
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
    codes: dict[tuple[FindingKind, ...], str] = {
        ("files",): "files_differ",
        ("database",): "store_corrupt",
    }
    return codes.get(tuple(report.counts), "ledger_broken")


def summarize_counts(report: VerifyReport) -> str:
    """Number of entries, streams and checkpoints that were verified."""
    return ", ".join(
        (
            pluralize(report.entries, "entry", "entries"),
            pluralize(report.streams, "stream"),
            pluralize(report.checkpoints, "checkpoint"),
        )
    )


def _print_good(report: VerifyReport, subject: str, screen: Screen) -> None:
    if not report.warnings:
        reach = f"; signatures reach to position {report.signed_up_to}"
        is_ahead = report.signed_up_to < report.entries
        screen.line(f"{subject}{summarize_counts(report)}: all good{reach * is_ahead}")
        return
    screen.line(f"{subject}{summarize_counts(report)}: every hash fits")
    for warning in report.warnings:
        screen.line(("warning: ", "yellow"), warning)


def _headline(report: VerifyReport) -> str:
    count = f"findings: {report.finding_count}"
    bad = f"the first bad position is {report.first_bad}" if report.first_bad else ""
    if "database" in report.counts:
        proven = bad or _proven_extent(report)
        return f"the database is damaged, and {proven}: {_DAMAGE_ADVICE}; {count}"
    if bad:
        return f"{bad}; {count}"
    kinds = tuple(report.counts)
    advice = _ADVICE[kinds[0]](report) if len(kinds) == 1 and kinds[0] in _ADVICE else ""
    return f"{_proven_extent(report)}, but {advice or f'not all beside it holds; {count}'}"


def _files_advice(report: VerifyReport) -> str:
    do = "1 file does" if report.finding_count == 1 else f"{report.finding_count} files do"
    has_surplus = any(finding.problem.endswith(" is surplus") for finding in report.findings)
    return f"{do} not show it as it is{_REPAIR_FILES_HINT}{_SURPLUS_HINT * has_surplus}"


def _checkpoints_advice(report: VerifyReport) -> str:
    invalid = report.finding_count - bool(report.removal)
    if not invalid:
        return (
            "checkpoints that were issued are missing: a ledger that was rewritten would look the "
            "same"
        )
    hint = _DELETE_LINES_HINT if report.checkpoints else _RESTORE_FILE_HINT
    return f"of checkpoints.jsonl {pluralize(invalid, 'line')} cannot be believed: {hint}"


_ADVICE: dict[FindingKind, Callable[[VerifyReport], str]] = {
    "files": _files_advice,
    "checkpoints": _checkpoints_advice,
    "schema": lambda _: _SCHEMA_ADVICE,
}
"""Kind of all findings -> what a person does about them."""


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


def _print_findings(report: VerifyReport, subject: str, screen: Screen) -> None:
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
