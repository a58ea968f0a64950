"""Who comes into question for something: the registry in memory, kept level with the ledger."""

import threading
from typing import Final, cast

from dragoman.core.errors import LedgerError
from dragoman.core.governance import vetoes
from dragoman.core.ids import standing_stream
from dragoman.core.limits import CANDIDATES
from dragoman.core.offers import Candidate, Policy, Wish
from dragoman.core.scoring import Roster
from dragoman.core.standing import Standing
from dragoman.engine.ask import find_agent, state_of
from dragoman.engine.ports import ListQuery, Row, Store

_PAGE: Final = 1_000
FOLLOWED: Final = 1_000
"""So many new entries are looked through for what has changed; more, and all is read anew."""
_LASTS_MS: Final = 60_000
"""Evidence grows old by the week: what was reckoned stands for a minute."""
_KIND: Final = standing_stream("")
_PASSED: Final = CANDIDATES // 2
"""So many who may have it are handed on, and as many who may not, so that the reasons are told."""


class Rosters:
    """The registry at any moment; only what has changed is read again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = threading.Lock()
        self._standings: dict[str, Standing] = {}
        self._seen = -1
        self._roster: Roster | None = None
        self._made_at = 0

    def rank(self, wish: Wish, now: int) -> tuple[Candidate, ...]:
        """Everyone in the registry, the most likely first."""
        return self._present(now).rank(wish)

    def shortlist(self, wish: Wish, policy: Policy, now: int) -> tuple[Candidate, ...]:
        """Those whom an intent is offered to, in their order, and some whom it is not, and why."""
        passed, vetoed = 0, 0
        chosen: list[Candidate] = []
        for candidate in self.rank(wish, now):
            if passed == _PASSED:
                break
            if self.vetoes(candidate, wish, policy, now):
                vetoed += 1
                if vetoed > CANDIDATES - _PASSED:
                    continue
            else:
                passed += 1
            chosen.append(candidate)
        return tuple(chosen)

    def vetoes(self, candidate: Candidate, wish: Wish, policy: Policy, now: int) -> tuple[str, ...]:
        """Why a candidate may not have it as things are; none: it may."""
        standing = self._standings.get(candidate.agent)
        record = find_agent(self._store, candidate.agent)
        return vetoes(candidate, standing, record, wish, policy, now)

    def standing(self, name: str, now: int) -> Standing | None:
        """What is known of one of them."""
        self._present(now)
        return self._standings.get(name)

    def _present(self, now: int) -> Roster:
        with self._reading:
            changed = self._follow()
            is_old = not 0 <= now - self._made_at < _LASTS_MS
            if self._roster is None or changed or is_old:
                self._roster = Roster(self._standings.values(), now)
                self._made_at = now
            return self._roster

    def _follow(self) -> bool:
        """Take over what was committed since the last time; whether anything concerns us."""
        head = self._store.head()
        if head == self._seen:
            return False
        if self._seen < 0 or not 0 <= head - self._seen <= FOLLOWED:
            self._standings = self._all()
            self._seen = head
            return True
        changed = {
            entry.stream
            for entry in self._store.entries(self._seen, FOLLOWED, until=head)
            if entry.stream.startswith(_KIND)
        }
        for row in filter(None, map(self._store.stream, changed)):
            self._take(row)
        self._seen = head
        return bool(changed)

    def _all(self) -> dict[str, Standing]:
        self._standings = {}
        after = 0
        while page := self._store.listed(ListQuery("roster", after, limit=_PAGE)):
            for place in page:
                self._take(place.row)
            after = page[-1].position
        return self._standings

    def _take(self, row: Row) -> None:
        try:
            state = state_of(self._store, row)
        except LedgerError:
            # One that cannot be read is no candidate; `verify` tells of it.
            self._standings.pop(row.name.removeprefix(_KIND), None)
            return
        self._standings[row.name.removeprefix(_KIND)] = cast(Standing, state)
