-- Every statement that the SQLite store runs on its tables. Those that write are kept short: apsw
-- finds a prepared statement by its text, once for every row.

-- Reads of a transaction

-- name: stream
SELECT * FROM stream_rows WHERE name = ?

-- name: last_stream
SELECT coalesce(max(number), 0) FROM streams

-- name: lines
SELECT e.line
FROM streams s JOIN entries e ON e.stream = s.number
WHERE s.name = ?
ORDER BY e.version

-- name: named
SELECT n.name, n.kind, s.name
FROM names n JOIN streams s ON s.number = n.stream
WHERE n.name = ?
ORDER BY n.kind

-- name: answered
SELECT scope, key, fingerprint, answer FROM answers WHERE scope = ? AND key = ?

-- name: ready
SELECT rank, since, number, name
FROM streams
WHERE queue = ? AND (rank, since, number) > (?, ?, ?)
ORDER BY rank, since, number
LIMIT ?

-- name: due
SELECT number, name, fold_version, state FROM streams WHERE due <= ? ORDER BY due, number LIMIT ?

-- name: last_number
SELECT last FROM numbers WHERE day = ?

-- name: logged_event
SELECT event_id, position, digest, masked FROM logs WHERE event_id = ?

-- name: logged_turn
SELECT task, attempt, turn_index, position, digest, masked
FROM logs
WHERE task = ? AND attempt = ? AND turn_index = ?

-- name: held_in
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.session = ? AND l.session <> ''
ORDER BY l.stream

-- The plus keeps the planner on the index of tasks in progress: an owner may have any number of tasks.
-- name: held_by
SELECT name FROM streams WHERE status = 'in-progress' AND +owner = ? ORDER BY number

-- name: on_list
SELECT s.name
FROM lists l JOIN streams s ON s.number = l.stream
WHERE l.list = ?
ORDER BY l.position

-- Writes of a transaction

-- name: shelve
UPDATE streams
SET status = ?, queue = ?, rank = ?, since = ?, due = ?, owner = ?, deadline = ?
WHERE number = ?

-- The position is the next free one: SQLite takes the highest and adds one.
-- name: append_entry
INSERT INTO entries (stream, version, event, line, previous, hash) VALUES (?, ?, ?, ?, ?, ?)

-- A row that is not at the version that its new entries follow is not written, and the writer sees
-- that from the number of rows. Setting an indexed column rewrites its index even when the value
-- stays, so there are three statements: all columns, all but owner and deadline (every owner has a
-- page of its own in that index), and only columns that are not indexed.
-- name: put_stream
INSERT INTO streams
(number, name, version, hash, fold_version, state,
status, queue, rank, since, due, owner, deadline)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (number) DO UPDATE
SET version = ?3, hash = ?4, fold_version = ?5, state = ?6,
status = ?7, queue = ?8, rank = ?9, since = ?10, due = ?11, owner = ?12, deadline = ?13
WHERE version = ?14

-- name: move_stream
UPDATE streams
SET version = ?, hash = ?, fold_version = ?, state = ?,
status = ?, queue = ?, rank = ?, since = ?, due = ?
WHERE number = ? AND version = ?

-- name: keep_stream
UPDATE streams SET version = ?, hash = ?, fold_version = ?, state = ?
WHERE number = ? AND version = ?

-- name: put_lease
INSERT INTO leases (stream, holder, fence, ttl_ms, last_heartbeat, expires_at, session, heartbeats,
started_at, progress_at, quiet_level)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (stream) DO UPDATE
SET holder = ?2, fence = ?3, ttl_ms = ?4, last_heartbeat = ?5, expires_at = ?6, session = ?7,
heartbeats = ?8, started_at = ?9, progress_at = ?10, quiet_level = ?11

-- name: end_lease
DELETE FROM leases WHERE stream = ?

-- name: bind_name
INSERT INTO names (name, kind, stream) VALUES (?, ?, ?)

-- name: put_answer
INSERT INTO answers (scope, key, fingerprint, answer) VALUES (?, ?, ?, ?)

-- name: put_number
INSERT INTO numbers (day, last) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET last = excluded.last

-- A stream without entries has no position.
-- name: list
INSERT INTO lists (list, position, stream)
SELECT ?, position, stream FROM entries WHERE stream = ? AND version = 1
ON CONFLICT (list, position) DO NOTHING

-- name: unlist
DELETE FROM lists
WHERE list = ? AND position = (SELECT position FROM entries WHERE stream = ? AND version = 1)

-- The proposed columns never change; status, verification and resolution are updated.
-- name: put_handoff
INSERT INTO handoffs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (id) DO UPDATE
SET status = ?9, verification_json = ?11, resolved_at = ?13, resolution_notes = ?14

-- name: move_handoff
UPDATE handoffs
SET status = ?, verification_json = ?, resolved_at = ?, resolution_notes = ?
WHERE id = ?

-- name: put_log
INSERT INTO logs (position, task, attempt, turn_index, event_id, digest, masked)
SELECT position, ?, ?, ?, ?, ?, ? FROM entries WHERE stream = ? AND version = ?

-- name: put_text
INSERT INTO texts (rowid, words) VALUES (?, ?)

-- name: put_indexed
INSERT INTO meta (key, value) VALUES ('indexed', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- Reads outside of a transaction

-- name: ledger_id
SELECT value FROM meta WHERE key = 'ledger_id'

-- name: secret_fingerprint
SELECT value FROM meta WHERE key = 'secret_fingerprint'

-- If two processes insert at the same time, the first one counts for both.
-- name: keep_secret_fingerprint
INSERT INTO meta (key, value) VALUES ('secret_fingerprint', ?) ON CONFLICT (key) DO NOTHING

-- name: overwrite_secret_fingerprint
INSERT INTO meta (key, value) VALUES ('secret_fingerprint', ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: issued_checkpoints
SELECT substr(key, 8), value FROM meta WHERE key >= 'issued/' AND key < 'issued0'

-- name: keep_issued_checkpoints
INSERT INTO meta (key, value) VALUES ('issued/' || ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: head
SELECT coalesce(max(position), 0) FROM entries

-- A stream that is missing leaves its entries without a name, for verify to find.
-- name: entries
SELECT e.position, coalesce(s.name, ''), e.version, e.event, e.line, e.previous, e.hash
FROM entries e LEFT JOIN streams s ON s.number = e.stream
WHERE e.position > ? AND e.position <= ?
ORDER BY e.position
LIMIT ?

-- name: history
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM streams s JOIN entries e ON e.stream = s.number
WHERE s.name = ? AND e.version > ? AND e.position <= ?
ORDER BY e.version
LIMIT ?

-- name: rows
SELECT * FROM stream_rows WHERE number > ? ORDER BY number LIMIT ?

-- name: heads
SELECT number, name, version, hash FROM streams WHERE number > ? ORDER BY number LIMIT ?

-- name: kind
SELECT * FROM stream_rows WHERE name > ? AND name < ? ORDER BY name LIMIT ?

-- name: names
SELECT n.name, n.kind, coalesce(s.name, '')
FROM names n LEFT JOIN streams s ON s.number = n.stream
WHERE (n.name, n.kind) > (?, ?)
ORDER BY n.name, n.kind
LIMIT ?

-- name: board
SELECT * FROM stream_rows
WHERE number < :before AND status IS NOT NULL
ORDER BY number DESC LIMIT :limit

-- name: board_of_status
SELECT * FROM stream_rows
WHERE number < :before AND status = :status
ORDER BY number DESC LIMIT :limit

-- name: board_of_owner
SELECT * FROM stream_rows
WHERE number < :before AND status IS NOT NULL AND owner = :owner
ORDER BY number DESC LIMIT :limit

-- The plus keeps the planner on the index of owners, whose tasks are fewer than those of a status.
-- name: board_of_status_and_owner
SELECT * FROM stream_rows
WHERE number < :before AND +status = :status AND owner = :owner
ORDER BY number DESC LIMIT :limit

-- name: counts
SELECT status, count(*) FROM streams WHERE status IS NOT NULL GROUP BY status

-- name: queue_counts
SELECT queue, count(*) FROM streams WHERE queue IS NOT NULL GROUP BY queue

-- name: expired
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.expires_at <= ?
ORDER BY l.expires_at, l.stream
LIMIT ?

-- name: overdue
SELECT name FROM streams WHERE deadline <= ? ORDER BY deadline, number LIMIT ?

-- The comparison with '' is needed for the partial index on sessions.
-- name: sessions
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.session = ? AND l.session <> ''
ORDER BY l.stream

-- The condition and the expression are those of the index on claims.
-- name: claims
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM entries e JOIN streams s ON s.number = e.stream
WHERE e.event = 'task.claimed' AND CAST(e.line AS TEXT) ->> '$.body.session' = ? AND e.position > ?
ORDER BY e.position
LIMIT ?

-- name: claims_back
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM entries e JOIN streams s ON s.number = e.stream
WHERE e.event = 'task.claimed' AND CAST(e.line AS TEXT) ->> '$.body.session' = ? AND e.position < ?
ORDER BY e.position DESC
LIMIT ?

-- name: listed
SELECT l.position, s.*
FROM lists l JOIN stream_rows s ON s.number = l.stream
WHERE l.list = ? AND l.position > ?
ORDER BY l.position
LIMIT ?

-- name: listed_back
SELECT l.position, s.*
FROM lists l JOIN stream_rows s ON s.number = l.stream
WHERE l.list = ? AND l.position > ? AND l.position < ?
ORDER BY l.position DESC
LIMIT ?

-- name: places
SELECT l.list, l.position, coalesce(s.name, '')
FROM lists l LEFT JOIN streams s ON s.number = l.stream
WHERE (l.list, l.position) > (?, ?)
ORDER BY l.list, l.position
LIMIT ?

-- name: handoffs
SELECT * FROM handoffs WHERE id > ? ORDER BY id LIMIT ?

-- name: turns
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = ? AND l.attempt = ? AND l.turn_index > ?
ORDER BY l.turn_index
LIMIT ?

-- name: turns_back
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = ? AND l.attempt = ? AND l.turn_index IS NOT NULL
ORDER BY l.turn_index DESC
LIMIT ?

-- The comparisons are needed for the partial index on tasks.
-- name: traces
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = ? AND l.task <> '' AND l.event_id IS NOT NULL AND l.position > ?
ORDER BY l.position
LIMIT ?

-- name: trace
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.event_id = ?

-- name: logs
SELECT position, task, attempt, turn_index, event_id, digest, masked
FROM logs
WHERE position > ? AND position <= ?
ORDER BY position

-- name: held
SELECT s.*
FROM leases l JOIN stream_rows s ON s.number = l.stream
WHERE l.stream > ?
ORDER BY l.stream
LIMIT ?

-- name: answers
SELECT s.name, a.scope, a.key, a.fingerprint, a.answer
FROM answers a JOIN streams s ON s.number = a.scope
WHERE (a.scope, a.key) > (?, ?)
ORDER BY a.scope, a.key
LIMIT ?

-- name: indexed
SELECT value FROM meta WHERE key = 'indexed'

-- name: search
SELECT t.rowid, s.*
FROM texts t JOIN entries e ON e.position = t.rowid JOIN stream_rows s ON s.number = e.stream
WHERE t.texts MATCH ? AND t.rowid < ?
ORDER BY t.rowid DESC
LIMIT ?
