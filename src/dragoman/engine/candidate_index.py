"""Index of agents for a goal: in memory, updated from the ledger.

Every reader of candidates shares it; a lock guards its update.
"""

import threading
from collections.abc import Collection, Mapping
from typing import Final, cast

from dragoman.core.agent import AgentRecord, Reputation
from dragoman.core.errors import LedgerError
from dragoman.core.ids import agent_stream, reputation_stream
from dragoman.core.intent.candidate import Candidate, Policy, Requirements
from dragoman.core.intent.governance import find_vetoes
from dragoman.core.intent.scoring import AgentRanker
from dragoman.core.limits import MAX_CANDIDATES
from dragoman.engine.ports import ListQuery, Store, StreamRow
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import stream_state, walk_list

# --- candidates -------------------------------------------------------------------------------

_ROSTER_PAGE: Final = 1_000

MAX_FOLLOWED: Final = 1_000
"""Up to so many new entries are searched for changes; if there are more, all reputations are
compared."""

_REBUILD_AFTER_MS: Final = 3_600_000
"""Evidence decays over weeks: scores are computed anew after an hour."""

_NO_POLICY: Final = Policy()

_NO_CAPACITIES: Final[Mapping[str, int]] = {}

_REPUTATION_PREFIX: Final = reputation_stream("")

_AGENT_PREFIX: Final = agent_stream("")

_MAX_ELIGIBLE: Final = MAX_CANDIDATES // 2
"""Number of eligible candidates on a shortlist, and of vetoed ones, so that the reasons are
recorded."""


class CandidateIndex:
    """The registry in memory at any moment; only changed reputations are read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._reputations: dict[str, Reputation] = {}
        self._heads: dict[str, bytes] = {}
        """Name -> the hash of the stream as of which its reputation was read."""
        self._records: dict[str, AgentRecord | None] = {}
        """Name -> its agent record, as far as it was asked for."""
        self._seen_position: int = -1
        self._roster: AgentRanker | None = None
        self._built_at = 0

    def rank(
        self, wish: Requirements, now: int, policy: Policy = _NO_POLICY, named: str = ""
    ) -> tuple[Candidate, ...]:
        def is_eligible(candidate: Candidate) -> bool:
            is_meant = named in ("", candidate.agent)
            return is_meant and not self._vetoes(candidate, wish, policy, now)

        with self._lock:
            return self._current_roster(now).rank(wish, is_eligible)

    def shortlist(
        self,
        wish: Requirements,
        policy: Policy,
        now: int,
        capacities: Mapping[str, int] = _NO_CAPACITIES,
    ) -> tuple[Candidate, ...]:
        eligible: list[Candidate] = []
        slots: list[Candidate | None] = []
        """Vetoed candidates at their place in the order; None: an eligible one."""
        for candidate in self.rank(wish, now, policy):
            if len(eligible) == _MAX_ELIGIBLE:
                break
            if not self.vetoes(candidate, wish, policy, now):
                eligible.append(candidate)
                slots.append(None)
            elif len(slots) - len(eligible) < MAX_CANDIDATES - _MAX_ELIGIBLE:
                slots.append(candidate)
        in_order = iter(sorted(eligible, key=lambda one: self._is_busy(one.agent, capacities)))
        return tuple(vetoed or next(in_order) for vetoed in slots)

    def _is_busy(self, agent: str, capacities: Mapping[str, int]) -> bool:
        with self._lock:
            known = self._reputations.get(agent)
        return known is not None and known.is_at_capacity(capacities.get(agent, 0))

    def vetoes(
        self, candidate: Candidate, wish: Requirements, policy: Policy, now: int
    ) -> tuple[str, ...]:
        with self._lock:
            return self._vetoes(candidate, wish, policy, now)

    def reputation(self, name: str, now: int) -> Reputation | None:
        with self._lock:
            self._current_roster(now)
            return self._reputations.get(name)

    def _vetoes(
        self, candidate: Candidate, wish: Requirements, policy: Policy, now: int
    ) -> tuple[str, ...]:
        reputation, record = self._reputations.get(candidate.agent), self._record(candidate.agent)
        return find_vetoes(candidate, reputation, record, wish, policy, now)

    def _record(self, name: str) -> AgentRecord | None:
        if name not in self._records:
            self._records[name] = find_agent(self._store, name)
        return self._records[name]

    def _current_roster(self, now: int) -> AgentRanker:
        changed = self._catch_up()
        is_old = not 0 <= now - self._built_at < _REBUILD_AFTER_MS
        if self._roster is None or changed is None or is_old:
            self._roster = AgentRanker(self._reputations.values(), now)
            self._built_at = now
        else:
            for name in changed:
                self._roster.update(self._reputations[name], now)
        return self._roster

    def _catch_up(self) -> Collection[str] | None:
        """Apply what was committed since the last call; returns the changed names, None: all."""
        head = self._store.head()
        if head == self._seen_position:
            return ()
        # Nothing is applied before all of it was read: a failure is repaired by the next call.
        if self._seen_position < 0 or not 0 <= head - self._seen_position <= MAX_FOLLOWED:
            return self._reload_changed(head)
        new = self._store.entries(self._seen_position, MAX_FOLLOWED, until=head)
        streams = {entry.stream for entry in new}
        changed = [stream for stream in streams if stream.startswith(_REPUTATION_PREFIX)]
        read = dict(map(self._read_reputation, filter(None, map(self._store.stream, changed))))
        for stream in streams:
            self._records.pop(stream.removeprefix(_AGENT_PREFIX), None)
        self._seen_position = head
        return self._apply(read)

    def _reload_changed(self, head: int) -> Collection[str] | None:
        """Reload after many changes: the reputations whose streams have another hash."""
        listed = walk_list(self._store, ListQuery("roster", limit=_ROSTER_PAGE), _ROSTER_PAGE)
        rows = {one.row.name.removeprefix(_REPUTATION_PREFIX): one.row for one in listed}
        new = [row for name, row in rows.items() if self._heads.get(name) != row.hash]
        read = dict(map(self._read_reputation, new))
        # A reputation that could not be read is tried again.
        heads = {name: row.hash for name, row in rows.items() if read.get(name, True)}
        is_first = self._seen_position < 0
        self._heads, self._records, self._seen_position = heads, {}, head
        changed = self._apply(read)
        return None if is_first else changed

    def _apply(self, read: Mapping[str, Reputation | None]) -> Collection[str] | None:
        """Apply reputations; returns the changed names, None: a candidate has vanished."""
        for name, known in read.items():
            if known is None:
                self._reputations.pop(name, None)
            else:
                self._reputations[name] = known
        return read if all(read.values()) else None

    def _read_reputation(self, row: StreamRow) -> tuple[str, Reputation | None]:
        """A name and its reputation; None: it cannot be read, so that it is no candidate."""
        name = row.name.removeprefix(_REPUTATION_PREFIX)
        try:
            return name, cast(Reputation, stream_state(self._store, row))
        except LedgerError:
            return name, None  # `verify` reports it
