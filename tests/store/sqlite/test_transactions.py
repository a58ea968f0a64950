"""Transactions: durable, whole, fresh or known not to be; an append-only ledger; readers beside."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from dragoman.core.errors import StoreConflict, StoreLost, StoreUnavailable
from dragoman.engine.ports import Changes, Session
from tests.conformance.store.changes import a_lease, a_row, an_entry, begin_stream, everything
from tests.conformance.store.hubs import ALICE, ANN, Hubs
from tests.requirements import proves
from tests.store.sqlite.disk import Disk, failing_disk
from tests.store.sqlite.files import add_streams, connect, filled, open_store

