"""`uv run python -m bench`: measures everything in one run; a table, or `--json` for scripts."""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import (
    agents,
    aof,
    dashboard,
    delegation,
    files,
    handoffs,
    http,
    hub,
    letters,
    lifecycle,
    mail,
    peers,
    postgres,
    redaction,
    scale,
    starts,
    streams,
    traces,
    translation,
)
from bench.http_client import Readings

_CALLERS = 64


class _Sizes(Struct, frozen=True):
    few: int
    """Tasks of a small store."""
    many: int
    """Tasks of a large store."""
    in_files: int
    """Tasks that have files."""
    letters: int
    """Letters in a full box."""
    handoffs: int
    """Handoffs to one recipient."""
    actions: int
    """Actions of a long intent."""
    board: int
    """Tasks on a very large board."""
    long_intent: int
    """Tasks in progress in a long ledger, of ten entries each."""
    stalled: int
    """Readers of a stream that read nothing."""
    events: int
    """Events of a stream in a second."""
    cards: int
    """Tasks on the dashboard."""
    page_events: int
    """Events to the page of a task in a second."""


_FULL = _Sizes(
    few=1_000,
    many=100_000,
    in_files=300,
    letters=1_000_000,
    handoffs=1_000_000,
    actions=10_000,
    board=1_000_000,
    long_intent=100_000,
    stalled=2_000,
    events=streams.RATE,
    cards=10_000,
    page_events=dashboard.RATE,
)
_QUICK = _Sizes(
    few=100,
    many=1_000,
    in_files=20,
    letters=2_000,
    handoffs=1_000,
    actions=100,
    board=1_000,
    long_intent=100,
    stalled=200,
    events=1_000,
    cards=1_000,
    page_events=100,
)

Measure = Callable[[Path, float], float]
"""Takes an empty folder and a length in seconds; a rate per second."""


class _Row(Struct, frozen=True):
    name: str
    beside: str
    """Name of the baseline."""
    base: Measure
    ours: Measure


class _Result(Struct, frozen=True):
    name: str
    beside: str
    base_per_second: float
    dragoman_per_second: float
    ratio: float


def main() -> None:
    """Measure in rounds, so that a drifting disk meets both sides, and print medians."""
    options = _options()
    results = [
        _measured(row, options.rounds, options.seconds)
        for name, rows in _PARTS.items()
        if options.only in ("", name)
        for row in rows(_QUICK if options.quick else _FULL)
    ]
    if options.json:
        print(json.dumps(msgspec.to_builtins(results), indent=2))
    else:
        _print_table(results)


def _lifecycles(_: _Sizes) -> Iterator[_Row]:
    yield _Row(
        f"lifecycle, {_CALLERS} callers",
        "raw loop",
        lambda folder, s: lifecycle.raw_with_callers(folder, _CALLERS, s),
        lambda folder, s: lifecycle.engine_with_callers(_store(folder), _CALLERS, s),
    )
    yield _Row(
        "the same under random keys, as UUIDv4",
        "raw loop",
        lambda folder, s: lifecycle.raw_with_callers(folder, _CALLERS, s),
        lambda folder, s: lifecycle.engine_with_callers(
            _store(folder), _CALLERS, s, lifecycle.random_key
        ),
    )
    yield _Row(
        "lifecycle, one caller, handle_now",
        "raw loop",
        lifecycle.raw_alone,
        lambda folder, s: lifecycle.engine_alone(_store(folder), s),
    )
    yield _Row(
        "lifecycle, one caller, handle",
        "raw loop",
        lifecycle.raw_alone,
        lambda folder, s: lifecycle.engine_with_callers(_store(folder), 1, s),
    )


def _postgres(_: _Sizes) -> Iterator[_Row]:
    with postgres.server() as url:
        yield _Row(
            f"lifecycle on PostgreSQL, {_CALLERS} callers",
            "batched SQL",
            lambda _, s: postgres.batched(url, _CALLERS, s),
            lambda _, s: postgres.engine(url, _CALLERS, s),
        )
        for callers in (_CALLERS, postgres.CONNECTIONS):
            yield _Row(
                f"the same, {callers} callers",
                f"{postgres.CONNECTIONS} connections",
                lambda _, s: postgres.one_by_one(url, s),
                lambda _, s, callers=callers: postgres.engine(url, callers, s),
            )


def _reports(sizes: _Sizes) -> Iterator[_Row]:
    few, many = f"{sizes.few:,} tasks", f"{sizes.many:,} tasks"
    with (
        _folder() as place,
        _folder() as large_place,
        aof.open_reporters(place, sizes.few) as small,
        aof.open_reporters(large_place, sizes.many) as large,
    ):
        yield _Row(
            f"completion report, {_CALLERS} callers",
            "raw append",
            lambda folder, s: aof.raw_append(folder, _CALLERS, s),
            lambda _, s: small.busy.reports_per_second(_CALLERS, s),
        )
        yield _Row(
            f"completion report, {many}",
            few,
            lambda _, s: small.busy.reports_per_second(_CALLERS, s),
            lambda _, s: large.busy.reports_per_second(_CALLERS, s),
        )
        yield _Row(
            f"completion report, to all {many}",
            few,
            lambda _, s: small.everywhere.reports_per_second(_CALLERS, s),
            lambda _, s: large.everywhere.reports_per_second(_CALLERS, s),
        )


def _files(sizes: _Sizes) -> Iterator[_Row]:
    yield _Row(
        "files that follow reports",
        "atomic write",
        files.raw_writes,
        lambda folder, s: files.following(folder, sizes.in_files, s),
    )
    yield _Row(
        f"files rebuilt, {sizes.in_files:,} tasks",
        "atomic write",
        files.raw_writes,
        lambda folder, _: files.rebuilding(folder, sizes.in_files),
    )


def _agents(_: _Sizes) -> Iterator[_Row]:
    yield _Row(
        "agent started, slowest of 100",
        "bare process",
        agents.bare_p99,
        agents.dispatched_p99,
    )
    yield _Row(
        "agent started by a whole hub, slowest of 100",
        "bare process",
        agents.bare_p99,
        agents.hub_p99,
    )


def _idle(_: _Sizes) -> Iterator[_Row]:
    yield _Row(
        "idle hub, seconds for one of a core's",
        f"{hub.IDLE_SHARE:.0%} of a core",
        lambda _, __: 1 / hub.IDLE_SHARE,
        hub.idle_seconds,
    )
    yield _Row(
        "idle hubs in a gigabyte",
        f"{hub.IDLE_BYTES // 1_000_000} MB",
        lambda _, __: 1e9 / hub.IDLE_BYTES,
        hub.idle_in_a_gigabyte,
    )


def _http(sizes: _Sizes) -> Iterator[_Row]:
    yield _Row(
        f"POST of a report, {_CALLERS} connections",
        "bare Starlette",
        lambda folder, s: http.bare_posts(folder, _CALLERS, s),
        lambda folder, s: http.posts(folder, _CALLERS, s),
    )
    yield _Row(
        f"the same beside {sizes.stalled:,} stalled readers",
        "one reader",
        lambda folder, s: http.posts_beside_readers(folder, _CALLERS, s, 0),
        lambda folder, s: http.posts_beside_readers(folder, _CALLERS, s, sizes.stalled),
    )
    with _folder() as place, aof.open_reporters(place, sizes.few) as reporters:
        yield _Row(
            "reports in batches over HTTP",
            "in process",
            lambda _, s: reporters.busy.reports_per_second(_CALLERS, s),
            http.batches,
        )


def _streams(sizes: _Sizes) -> Iterator[_Row]:
    def per_second(measure: Callable[[Path, int, int, float], Readings]) -> Measure:
        return lambda folder, s: 1e3 / measure(folder, streams.READERS, sizes.events, s).p99_ms

    name = f"{sizes.events:,} events/s sent to {streams.READERS}, slowest of 100"
    yield _Row(name, "bare Starlette", per_second(streams.bare), per_second(streams.ours))
    wanted = streams.WANTED_SECONDS
    yield _Row(name, f"{wanted * 1e3:.0f} ms", lambda _, __: 1 / wanted, per_second(streams.ours))


def _mail(_: _Sizes) -> Iterator[_Row]:
    yield _Row("letters read, ten types", "json.loads", mail.decoded, mail.parsed)


def _letters(sizes: _Sizes) -> Iterator[_Row]:
    for senders in (1, 8, _CALLERS):
        yield _Row(
            f"letters sent, {senders} at a time",
            "raw append",
            lambda folder, s, senders=senders: letters.raw_append(folder, senders, s),
            lambda folder, s, senders=senders: letters.sent(folder, senders, s),
        )
    with (
        _folder() as place,
        _folder() as large_place,
        letters.open_box(place, sizes.few) as small,
        letters.open_box(large_place, sizes.letters) as large,
    ):
        yield _Row(
            f"page of a box of {sizes.letters:,}",
            f"of {sizes.few:,}",
            lambda _, s: small.pages_per_second(s),
            lambda _, s: large.pages_per_second(s),
        )


def _handoffs(sizes: _Sizes) -> Iterator[_Row]:
    yield _Row(
        f"handoff with an artifact, {_CALLERS} callers",
        "raw loop",
        lambda folder, s: handoffs.raw_lives(folder, _CALLERS, s),
        lambda folder, s: handoffs.lives(folder, _CALLERS, s),
    )
    yield _Row(
        "the same, each with a new artifact",
        "raw loop",
        lambda folder, s: handoffs.raw_lives(folder, _CALLERS, s),
        lambda folder, s: handoffs.lives(folder, _CALLERS, s, own_artifact=True),
    )
    yield _Row("new artifacts kept, 16 MB", "hashlib", handoffs.hashed, handoffs.kept)
    yield _Row("kept artifacts verified, 16 MB", "hashlib", handoffs.hashed, handoffs.verified)
    with (
        _folder() as place,
        _folder() as large_place,
        handoffs.open_handoffs(place, sizes.few) as small,
        handoffs.open_handoffs(large_place, sizes.handoffs) as large,
    ):
        yield _Row(
            f"page of {sizes.handoffs:,} handoffs",
            f"of {sizes.few:,}",
            lambda _, s: small.pages_per_second(s),
            lambda _, s: large.pages_per_second(s),
        )


def _delegation(sizes: _Sizes) -> Iterator[_Row]:
    for agents_ in (100, 1_000):
        yield _Row(
            f"ranking of {agents_:,} agents",
            "of 10",
            lambda _, s: delegation.ranked(10, s),
            lambda _, s, agents_=agents_: delegation.ranked(agents_, s),
        )
    yield _Row(
        f"delegated, done, fed back, {_CALLERS} callers",
        "raw entries",
        lambda folder, s: delegation.raw_entries(folder, _CALLERS, s),
        lambda folder, s: delegation.there_and_back(folder, _CALLERS, s),
    )
    with _folder() as place, delegation.open_long_intent(place, sizes.actions) as long_intent:
        yield _Row(
            f"why, {sizes.actions:,} Actions",
            "reading them",
            lambda _, s: long_intent.read_per_second(s),
            lambda _, s: long_intent.explained_per_second(s),
        )


def _translation(_: _Sizes) -> Iterator[_Row]:
    for source, target in translation.PAIRS:
        yield _Row(
            f"600 bytes, {source} to {target}",
            "msgspec, in and out",
            lambda _, s, source=source: translation.recoded(source, s),
            lambda _, s, pair=(source, target): translation.translated(*pair, s),
        )
    yield _Row(
        "delivered, translated", "posted as they are", translation.posted, translation.delivered
    )


def _dashboard(sizes: _Sizes) -> Iterator[_Row]:
    with _folder() as place:
        dashboard.make_tasks(place, sizes.cards)
        yield _Row(
            f"status of {dashboard.AGENTS} agents and {sizes.cards:,} tasks, core",
            "50 ms",
            lambda _, __: 1 / dashboard.STATUS_SECONDS,
            lambda _, s: dashboard.statuses(place, s),
        )
        yield _Row(
            f"board of {sizes.cards:,} tasks first seen",
            "1 s",
            lambda _, __: 1 / dashboard.PAINT_SECONDS,
            lambda _, s: dashboard.boards_per_second(place, s),
        )
    yield _Row(
        f"task page at {sizes.page_events:,} events/s, 1 / busy",
        "half busy",
        lambda _, __: 1 / dashboard.BUSY_SHARE,
        lambda folder, s: dashboard.idle_share_under_load(folder, sizes.page_events, s),
    )
    yield _Row(
        "idle hub with an open page",
        "without",
        dashboard.idle_without_page,
        dashboard.idle_with_page,
    )
    for name, limit, measure in (
        ("dashboard, first load", dashboard.FIRST_LOAD_BYTES, dashboard.first_load_bytes),
        ("dashboard, all of it", dashboard.ALL_BYTES, dashboard.all_bytes),
        ("wheels", dashboard.WHEEL_BYTES, dashboard.wheel_bytes),
    ):
        yield _Row(
            f"{name} in {limit // 1_000:,} KB",
            f"{limit // 1_000:,} KB",
            lambda _, __: 1.0,
            lambda _, __, limit=limit, measure=measure: limit / measure(),
        )


def _redaction(_: _Sizes) -> Iterator[_Row]:
    for rules, goal in redaction.GOALS.items():
        yield _Row(
            f"log text redacted, {rules} rules, MB",
            f"{goal:.0f} MB",
            lambda _, __, goal=goal: goal,
            lambda _, s, rules=rules: redaction.megabytes(rules, s),
        )
    for name, goal, found in (
        ("known values found, of 100", 100.0, redaction.known_found),
        ("credentials found, of 100", 99.0, redaction.prefixed_found),
        ("named secrets found, of 100", 90.0, redaction.generic_found),
        ("masked lines that held a secret, of 100", 95.0, redaction.rightly_masked),
    ):
        yield _Row(name, f"{goal:.0f}", lambda _, __, goal=goal: goal, found)


def _traces(sizes: _Sizes) -> Iterator[_Row]:
    # A quick run asks nobody outside for anything.
    if sizes is not _QUICK:
        yield from _beside_zod()
    for where, end in traces.ENDS.items():
        yield _Row(
            f"thoughts sent to {traces.READERS}, cut {where}",
            "raw rows",
            lambda folder, s: traces.raw_rows(folder, _CALLERS, s),
            lambda folder, s, end=end: traces.ingested(folder, _CALLERS, s, end),
        )


def _beside_zod() -> Iterator[_Row]:
    with _folder() as place:
        zod = traces.Zod(place)
        if zod.trouble:
            traces.tell(zod.trouble)
            return
        for name in traces.MESSAGES:
            yield _Row(
                f"{name} checked",
                "zod 4 on Node",
                lambda _, s, name=name: zod.checked(name, s),
                lambda _, s, name=name: traces.checked(name, s),
            )


def _scale(sizes: _Sizes) -> Iterator[_Row]:
    few, many = f"{sizes.few:,} tasks", f"{sizes.board:,} tasks, half at rest"
    with _folder() as place, _folder() as large_place:
        with (
            scale.open_board(place, sizes.few) as small,
            scale.open_board(large_place, sizes.board) as large,
        ):
            yield _Row(
                f"claimed and given back, {many}",
                few,
                lambda _, s: small.claims_per_second(s),
                lambda _, s: large.claims_per_second(s),
            )
            yield _Row(
                f"page of {many}",
                few,
                lambda _, s: small.pages_per_second(s),
                lambda _, s: large.pages_per_second(s),
            )
        yield _Row(
            f"hubs in a gigabyte, {many}",
            f"{scale.MOST_BYTES // 1_000_000} MB",
            lambda _, __: 1e9 / scale.MOST_BYTES,
            lambda _, __: scale.in_a_gigabyte(large_place),
        )
    with _folder() as place:
        scale.make_story(place, sizes.long_intent)
        yield _Row(
            f"starts of a hub, {sizes.long_intent:,} in progress",
            f"{scale.READY_SECONDS:.0f} s",
            lambda _, __: 1 / scale.READY_SECONDS,
            lambda _, __: scale.starts_per_second(place),
        )
        yield _Row(
            f"{sizes.long_intent * 10:,} entries, verify --hashes",
            "SHA-256 alone",
            lambda _, __: scale.hashed_per_second(place),
            lambda _, __: scale.verified_per_second(place),
        )


def _peers(sizes: _Sizes) -> Iterator[_Row]:
    # A quick run asks nobody outside for anything.
    for peer in peers.PEERS if sizes is not _QUICK else ():
        yield _Row(
            "made, claimed, done, one caller",
            peer.package,
            peer.per_second,
            lambda folder, s: peers.ours_per_second(_store(folder), s),
        )


def _starts(_: _Sizes) -> Iterator[_Row]:
    for command, measure in (("--version", starts.version), ("task list", starts.listed)):
        yield _Row(
            f"dragoman {command}, in a second of a core", "Python with typer", starts.bare, measure
        )
    for words in starts.LOOPED:
        yield _Row(
            f"dragoman {' '.join(words[:2]).partition(' --')[0]} through a hub, "
            "in a second of a core",
            "Python with nothing to do",
            starts.python,
            starts.through_hub(words),
        )


_PARTS: dict[str, Callable[[_Sizes], Iterator[_Row]]] = {
    "lifecycle": _lifecycles,
    "postgres": _postgres,
    "reports": _reports,
    "files": _files,
    "agents": _agents,
    "idle": _idle,
    "http": _http,
    "streams": _streams,
    "mail": _mail,
    "letters": _letters,
    "handoffs": _handoffs,
    "delegation": _delegation,
    "translation": _translation,
    "redaction": _redaction,
    "traces": _traces,
    "scale": _scale,
    "dashboard": _dashboard,
    "peers": _peers,
    "starts": _starts,
}


def _store(folder: Path) -> lifecycle.Store:
    return lifecycle.sqlite_store(folder / "dragoman.db")


def _measured(row: _Row, rounds: int, seconds: float) -> _Result:
    base, ours = list[float](), list[float]()
    for _ in range(rounds):
        base.append(_in_fresh_folder(row.base, seconds))
        ours.append(_in_fresh_folder(row.ours, seconds))
    ratios = [mine / limit for mine, limit in zip(ours, base, strict=True)]
    return _Result(row.name, row.beside, *map(statistics.median, (base, ours, ratios)))


def _in_fresh_folder(measure: Measure, seconds: float) -> float:
    with _folder() as folder:
        return measure(folder, seconds)


@contextmanager
def _folder() -> Generator[Path]:
    # Beside the sources and not in /tmp, which may be memory and would make fsync free.
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        yield Path(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each pair (default 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each (default 3)")
    parser.add_argument("--quick", action="store_true", help="with fewer tasks; to try it out")
    parser.add_argument("--only", default="", choices=_PARTS, help="one part of it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _print_table(results: list[_Result]) -> None:
    print(f"{'durable, per second':44} {'beside':>14} {'base':>8} {'dragoman':>10} {'ratio':>7}")
    for row in results:
        print(
            f"{row.name:44} {row.beside:>14} {row.base_per_second:8.0f} "
            f"{row.dragoman_per_second:10.0f} {row.ratio:7.0%}"
        )


if __name__ == "__main__":
    main()
