"""Who comes into question for something: the registry in memory, kept level with the ledger."""

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Final, cast

from dragoman.core.errors import LedgerError
from dragoman.core.ids import agent_stream, standing_stream
from dragoman.core.limits import CANDIDATES
from dragoman.core.offers import Candidate, Policy, Wish
from dragoman.core.rules.governance import vetoes
from dragoman.core.rules.scoring import Roster
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.standing import Standing
from dragoman.engine.ports import ListQuery, Row, Store
from dragoman.engine.reads.ask import find_agent, state_of

_PAGE: Final = 1_000
FOLLOWED: Final = 1_000
"""Up to so many new entries are searched for changes; if there are more, all standings are
compared."""
_LASTS_MS: Final = 3_600_000
"""Evidence decays over weeks: scores are computed anew after an hour."""
_ANY: Final = Policy()
_ANY_NUMBER: Final[Mapping[str, int]] = {}
_KIND: Final = standing_stream("")
_AGENT: Final = agent_stream("")
_PASSED: Final = CANDIDATES // 2
"""Number of eligible candidates on a shortlist, and of vetoed ones, so that the reasons are
recorded."""


class Rosters:
    """The registry in memory at any moment; only changed standings are read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = threading.Lock()
        self._standings: dict[str, Standing] = {}
        self._heads: dict[str, bytes] = {}
        """Name -> the hash of the stream as of which its standing was read."""
        self._records: dict[str, AgentRecord | None] = {}
        """Name -> its agent record, as far as it was asked for."""
        self._seen: int = -1
        self._roster: Roster | None = None
        self._made_at = 0

    def rank(
        self, wish: Wish, now: int, policy: Policy = _ANY, named: str = ""
    ) -> tuple[Candidate, ...]:
        """All candidates in the registry, the most likely first, ranked by who may have it.

        Where one is named, nobody else may: then others do not take its place in the rotation.
        """

        def may_have_it(candidate: Candidate) -> bool:
            is_meant = named in ("", candidate.agent)
            return is_meant and not self._vetoes(candidate, wish, policy, now)

        with self._reading:
            return self._present(now).rank(wish, may_have_it)

    def shortlist(
        self, wish: Wish, policy: Policy, now: int, hands: Mapping[str, int] = _ANY_NUMBER
    ) -> tuple[Candidate, ...]:
        """Candidates to whom an intent is offered, in their order, and some vetoed ones with
        reasons.

        `capacities` is how many tasks some of them work on at a time: those with a free slot come
        first.
        """
        able: list[Candidate] = []
        places: list[Candidate | None] = []
        """Vetoed candidates at their place in the order; None: an eligible one."""
        for candidate in self.rank(wish, now, policy):
            if len(able) == _PASSED:
                break
            if not self.vetoes(candidate, wish, policy, now):
                able.append(candidate)
                places.append(None)
            elif len(places) - len(able) < CANDIDATES - _PASSED:
                places.append(candidate)
        in_order = iter(sorted(able, key=lambda one: self._is_busy(one.agent, hands)))
        return tuple(vetoed or next(in_order) for vetoed in places)

    def _is_busy(self, agent: str, hands: Mapping[str, int]) -> bool:
        with self._reading:
            known = self._standings.get(agent)
        return known is not None and known.has_its_hands_full(hands.get(agent, 0))

    def vetoes(self, candidate: Candidate, wish: Wish, policy: Policy, now: int) -> tuple[str, ...]:
        """The reasons why a candidate may not have it now; none: it may."""
        with self._reading:
            return self._vetoes(candidate, wish, policy, now)

    def standing(self, name: str, now: int) -> Standing | None:
        """The registry's record of one candidate."""
        with self._reading:
            self._present(now)
            return self._standings.get(name)

    def _vetoes(
        self, candidate: Candidate, wish: Wish, policy: Policy, now: int
    ) -> tuple[str, ...]:
        standing, record = self._standings.get(candidate.agent), self._record(candidate.agent)
        return vetoes(candidate, standing, record, wish, policy, now)

    def _record(self, name: str) -> AgentRecord | None:
        if name not in self._records:
            self._records[name] = find_agent(self._store, name)
        return self._records[name]

    def _present(self, now: int) -> Roster:
        changed = self._follow()
        is_old = not 0 <= now - self._made_at < _LASTS_MS
        if self._roster is None or changed is None or is_old:
            self._roster = Roster(self._standings.values(), now)
            self._made_at = now
        else:
            for name in changed:
                self._roster.put(self._standings[name], now)
        return self._roster

    def _follow(self) -> Collection[str] | None:
        """Apply what was committed since the last call; returns the changed names, None: all."""
        head = self._store.head()
        if head == self._seen:
            return ()
        # Nothing is applied before all of it was read: a failure is repaired by the next call.
        if self._seen < 0 or not 0 <= head - self._seen <= FOLLOWED:
            return self._compare(head)
        new = self._store.entries(self._seen, FOLLOWED, until=head)
        streams = {entry.stream for entry in new}
        changed = [stream for stream in streams if stream.startswith(_KIND)]
        read = dict(map(self._read, filter(None, map(self._store.stream, changed))))
        for stream in streams:
            self._records.pop(stream.removeprefix(_AGENT), None)
        self._seen = head
        return self._take_over(read)

    def _compare(self, head: int) -> Collection[str] | None:
        """Reload after many changes: the standings whose streams have another hash."""
        rows = {row.name.removeprefix(_KIND): row for row in self._rows()}
        new = [row for name, row in rows.items() if self._heads.get(name) != row.hash]
        read = dict(map(self._read, new))
        # A standing that could not be read is tried again.
        heads = {name: row.hash for name, row in rows.items() if read.get(name, True)}
        is_first = self._seen < 0
        self._heads, self._records, self._seen = heads, {}, head
        changed = self._take_over(read)
        return None if is_first else changed

    def _take_over(self, read: Mapping[str, Standing | None]) -> Collection[str] | None:
        """Apply standings; returns the changed names, None: a candidate has vanished."""
        for name, known in read.items():
            if known is None:
                self._standings.pop(name, None)
            else:
                self._standings[name] = known
        return read if all(read.values()) else None

    def _rows(self) -> Iterator[Row]:
        after = 0
        while page := self._store.listed(ListQuery("roster", after, limit=_PAGE)):
            for place in page:
                yield place.row
            after = page[-1].position

    def _read(self, row: Row) -> tuple[str, Standing | None]:
        """A name and its standing; None: it cannot be read, so that it is no candidate."""
        name = row.name.removeprefix(_KIND)
        try:
            return name, cast(Standing, state_of(self._store, row))
        except LedgerError:
            return name, None  # `verify` reports it
