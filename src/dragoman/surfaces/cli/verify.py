"""`dragoman verify`: proof that nothing in the ledger was lost or changed."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.chain import check_file
from dragoman.surfaces.cli.place import Evidence, Place
from dragoman.surfaces.cli.screen import Bars, Progress, Screen
from dragoman.surfaces.cli.verb import Verb
from dragoman.surfaces.cli.words.phrases import UNSIGNED, counted

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.engine.verifying.verify import Finding
    from dragoman.files.projector import Behind
    from dragoman.ledger.checkpoint import Checkpoint

_MOST_SHOWN = 100
_FOREIGN = (
    "a forger could have replaced the hub's public key and signed again: compare keys/ledger.pub "
    "with an earlier copy of it. {doubt}"
)
_UNSEEN = (
    "the files were not compared with the ledger: {why}. Move what is in the way aside, and verify "
    "again"
)
_REWRITE = (
    ": `dragoman tick` applies what was edited in task files, or says beside them why not; after "
    "any other change, also an upgrade that writes files in another way, `dragoman rebuild-files` "
    "writes all of them again"
)
_DELETE = "keep a copy of that file and delete what is named here; its other lines still count"
_BRING_BACK = (
    "bring that file back from a copy, or move it away if you know why it is so; until then "
    "nothing is written"
)
_SURPLUS = "; surplus files are not dragoman's and are left alone: move them away"


class Verdict(Struct):
    """Findings of a verification: the first ones, and how many there were."""

    entries: int = 0
    streams: int = 0
    checkpoints: int = 0
    found: int = 0
    findings: "list[Finding]" = []
    first_bad: int | None = None
    signed: int = 0
    """Position up to which a valid signature covers the entries."""
    spoiled: int = 0
    """Number of findings that are invalid lines of checkpoints.jsonl."""
    damage: int = 0
    """Number of findings that the database itself reports, below its rows."""
    files: int = 0
    """Number of findings about files, which can be rebuilt."""
    doubt: str = ""
    """Reason why the key that checked them is not known to be the hub's; empty: it is."""
    has_files: bool = True
    """False: the files were never written completely."""
    unseen: str = ""
    """Error that prevented the comparison of the files."""
    behind: "Behind | None" = None
    """Position of the files, if newer entries cannot be written to them."""

    @property
    def warnings(self) -> list[str]:
        """Warnings: nothing is wrong, but a person should know."""
        unsigned = [UNSIGNED] if self.entries and not self.checkpoints else []
        foreign = [_FOREIGN.format(doubt=self.doubt)] if self.checkpoints and self.doubt else []
        unseen = [_UNSEEN.format(why=self.unseen)] if self.unseen else []
        return unsigned + foreign + unseen + ([_behind(self.behind)] if self.behind else [])

    def note(self, findings: "Iterable[Finding]") -> None:
        """Add findings; only the first ones are kept."""
        for finding in findings:
            self.found += 1
            if finding.position and finding.position < (self.first_bad or finding.position + 1):
                self.first_bad = finding.position
            if self.found <= _MOST_SHOWN:
                self.findings.append(finding)


class _Where(Struct, frozen=True):
    """The data directory and ledger that were verified."""

    data: str
    ledger: str

    def __str__(self) -> str:
        return f"{self.data}, ledger {self.ledger}: "


def verify(
    call: Call,
    hashes: Annotated[
        bool, typer.Option("--hashes", help="Only hashes and checkpoints: neither views nor files.")
    ] = False,
    chain: Annotated[
        Path | None,
        typer.Option(
            "--chain",
            metavar="FILE",
            show_default=False,
            help="Only this file of `why --export`; no data directory is needed.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            show_default=False,
            help="With --chain: the hub's keys/ledger.pub, by which it must be signed.",
        ),
    ] = None,
    allow_tail: Annotated[
        bool,
        typer.Option(
            "--allow-tail", help="With --key: entries may follow those that it has signed."
        ),
    ] = False,
) -> Answer:
    """Prove that nothing was lost or changed.

    Checks every hash, every checkpoint, every view against a replay, and the files against the
    ledger.

    Exits 1 and names the first bad position if anything was changed, removed, swapped or cut, and
    if the database says that it is damaged.

    \b
    Examples:
      dragoman verify
      dragoman verify --chain intent.chain --key ledger.pub
    """
    if chain is not None:
        return check_file(chain, key, allow_tail=allow_tail)
    if key is not None:
        wrong_usage("--key is for --chain: the ledger is checked by its own key")
    if hashes:
        with call.proving() as evidence:
            return _answer(prove(evidence, call.err.progress), _where(call, evidence.store))
    with call.reading() as place:
        return _answer(examine(place, call.err.progress), _where(call, place.hub.store))


def _where(call: Call, store: "Store") -> _Where:
    return _Where(str(call.data.absolute()), store.ledger_id())


def no_bars(what: str, total: int) -> AbstractContextManager[Progress]:
    """Progress bars that show nothing."""
    del what, total
    return nullcontext(lambda _: None)


def prove(evidence: Evidence, bars: Bars) -> Verdict:
    """Verify the ledger alone, with a progress bar."""
    verdict = Verdict()
    signed = _signed(evidence, verdict)
    verdict.entries = evidence.store.head()
    with bars("entries", verdict.entries) as progress:
        verdict.note(_check_ledger(evidence, signed, verdict, progress))
    return verdict


def _check_ledger(
    evidence: Evidence, signed: "list[Checkpoint]", verdict: Verdict, progress: Progress
) -> "Iterator[Finding]":
    from dragoman.engine.verifying.verify import check_ledger

    verdict.streams = yield from check_ledger(evidence.store, signed, progress, evidence.slices)


def examine(place: Place, bars: Bars) -> Verdict:
    """Verify ledger, database, views and files."""
    from dragoman.engine.verifying.verify import check_views

    store = place.hub.store
    verdict = prove(Evidence(store, place.checkpoints, place.slices), bars)
    with bars("database", 1) as progress:
        sound = verdict.found
        verdict.note(_damage(store))
        verdict.damage = verdict.found - sound
        progress(1)
    if verdict.damage:
        # A damaged database may return less than it holds, by whichever index: it proves nothing.
        return verdict
    with bars("views", verdict.streams) as progress:
        verdict.note(check_views(store, progress))
    if not verdict.found:
        # Files are projected from the ledger: with a broken one they cannot be compared.
        with bars("files", verdict.streams) as progress:
            sound = verdict.found
            try:
                verdict.note(_check_files(place, progress))
            except OSError as error:
                verdict.unseen = f"{error.filename}: {error.strerror}"
            verdict.files = verdict.found - sound
            verdict.has_files = place.projector.has_begun()
            verdict.behind = place.projector.behind
    return verdict


def _behind(files: "Behind") -> str:
    late = counted(files.head - files.position, "entry", "entries")
    return (
        f"the task files, letters and event lines show the ledger up to position {files.position}; "
        f"{late} after it cannot be written to them now ({files.why}). The ledger has them whole, "
        "so nothing is lost or damaged: once the directory can be written, `dragoman tick` brings "
        "the files level"
    )


def _damage(store: "Store") -> "Iterator[Finding]":
    from dragoman.engine.verifying.verify import Finding

    for told in store.inspect().damage:
        yield Finding(f"the database says: {told}")


def _check_files(place: Place, progress: Progress) -> "Iterator[Finding]":
    from dragoman.engine.verifying.verify import Finding

    for difference in place.projector.compare(progress):
        yield Finding(f"{difference.path} is {difference.problem}")


def _signed(evidence: Evidence, verdict: Verdict) -> "list[Checkpoint]":
    """Checkpoints that are valid."""
    from dragoman.engine.verifying.verify import Finding
    from dragoman.ledger.checkpoint import read_lines

    signed, spoiled = read_lines(evidence.checkpoints.lines(), evidence.checkpoints.public)
    verdict.note(Finding(f"checkpoints.jsonl, line {one.line}: {one.why}") for one in spoiled)
    verdict.checkpoints, verdict.spoiled = len(signed), len(spoiled)
    verdict.doubt = evidence.checkpoints.doubt
    verdict.signed = max((checkpoint.size for checkpoint in signed), default=0)
    return signed


def _answer(verdict: Verdict, where: _Where) -> Answer:
    data: dict[str, object] = {
        "data": where.data,
        "ledger": where.ledger,
        "entries": verdict.entries,
        "streams": verdict.streams,
        "checkpoints": verdict.checkpoints,
        "findings": [
            {"position": f.position or None, "stream": f.stream or None, "problem": f.problem}
            for f in verdict.findings
        ],
        "found": verdict.found,
        "firstBadPosition": verdict.first_bad,
        "warnings": verdict.warnings,
    }
    if not verdict.found:
        return Answer(data, lambda screen: _print_good(verdict, where, screen))
    data |= {"code": _code(verdict), "detail": _headline(verdict)}
    return Answer(data, lambda screen: _print_findings(verdict, where, screen), is_ok=False)


def _code(verdict: Verdict) -> str:
    """Refusal code for the kind of all findings."""
    if verdict.found == verdict.files:
        return "files_differ"
    return "store_corrupt" if verdict.found == verdict.damage else "ledger_broken"


def counts(verdict: Verdict) -> str:
    """Number of entries, streams and checkpoints that were verified."""
    return ", ".join(
        (
            counted(verdict.entries, "entry", "entries"),
            counted(verdict.streams, "stream"),
            counted(verdict.checkpoints, "checkpoint"),
        )
    )


def _print_good(verdict: Verdict, where: _Where, screen: Screen) -> None:
    if not verdict.warnings:
        reach = f"; signatures reach to position {verdict.signed}"
        is_ahead = verdict.signed < verdict.entries
        screen.line(f"{where}{counts(verdict)}: all good{reach * is_ahead}")
        return
    screen.line(f"{where}{counts(verdict)}: every hash fits")
    for warning in verdict.warnings:
        screen.line(("warning: ", "yellow"), warning)


def _headline(verdict: Verdict) -> str:
    if verdict.damage:
        return f"the database is damaged, {_what_is_left(verdict)}"
    if verdict.found == verdict.files and not verdict.has_files:
        return (
            f"{_extent(verdict)}, but its files were never completely written: the command that "
            "made this directory, usually a restore, was interrupted. Nothing is lost; `dragoman "
            "rebuild-files` writes them"
        )
    if verdict.found == verdict.files:
        do = "1 file does" if verdict.found == 1 else f"{verdict.found} files do"
        has_surplus = any(finding.problem.endswith(" is surplus") for finding in verdict.findings)
        return (
            f"{_extent(verdict)}, but {do} not show it as it is{_REWRITE}{_SURPLUS * has_surplus}"
        )
    if verdict.found == verdict.spoiled:
        lines = counted(verdict.spoiled, "line")
        return f"{_extent(verdict)}, but of checkpoints.jsonl {lines} cannot be believed: " + (
            _DELETE if verdict.checkpoints else _BRING_BACK
        )
    if verdict.first_bad is None:
        return f"{_extent(verdict)}, but not all beside it holds; findings: {verdict.found}"
    return f"{_first_bad(verdict)}; findings: {verdict.found}"


def _first_bad(verdict: Verdict) -> str:
    return f"the first bad position is {verdict.first_bad}"


def _extent(verdict: Verdict) -> str:
    """Extent of the ledger that is proven, where no position is bad."""
    if verdict.signed >= verdict.entries:
        return "the ledger is whole"
    if verdict.signed:
        return (
            f"the ledger is as it was signed up to position {verdict.signed}, and every hash "
            "behind it fits"
        )
    return "every hash of the ledger fits, though no good signature covers it"


def _what_is_left(verdict: Verdict) -> str:
    """Advice for a damaged database: how to make a sound directory of it."""
    if verdict.found == verdict.damage:
        return (
            f"and {_extent(verdict)}: keep all files as they are, and let nobody work on them. "
            "`dragoman backup FILE` and `dragoman restore FILE --data NEW` make a sound directory "
            "out of the ledger; if the backup is refused, restore an earlier one"
        )
    found = "not all beside the ledger holds" if verdict.first_bad is None else _first_bad(verdict)
    return (
        f"and {found}: keep all files as they are, and make a new directory out of an earlier "
        f"backup: `dragoman restore FILE --data NEW`; findings: {verdict.found}"
    )


def _print_findings(verdict: Verdict, where: _Where, screen: Screen) -> None:
    screen.line(f"{where}{counts(verdict)}: ", ("NOT good", "bold red"), f"; {_headline(verdict)}")
    for finding in sorted(verdict.findings, key=lambda f: (f.position == 0, f.position)):
        place = f"position {finding.position}" if finding.position else "beside the ledger"
        stream = f", {finding.stream}" if finding.stream else ""
        screen.line(f"  {place}{stream}: {finding.problem}")
    if verdict.found > len(verdict.findings):
        screen.line(f"  … and {verdict.found - len(verdict.findings)} more")


VERBS = (Verb("verify", verify, speaks=False),)
