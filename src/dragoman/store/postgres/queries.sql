-- Every statement that the PostgreSQL store runs on its tables. Each is prepared once a connection.

-- Transactions

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- Fails, and with it everything that was sent after it, if the schema version has changed: an
-- impossible cast is the one error that a statement can raise by itself. A migration locks all of
-- meta first, and so waits for transactions that have read it here, or they wait for it.
-- name: check_version
SELECT CASE value WHEN $1 THEN 0 ELSE ('schema ' || value)::integer END
FROM meta WHERE key = 'schema'

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- Reads of a transaction

-- In the order of their numbers, so that two writers cannot deadlock.
-- name: lock_streams
SELECT number, name, version, hash, fold_version, state,
       status, queue, rank, since, due, owner, deadline
FROM streams
WHERE name = ANY ($1::text[])
ORDER BY number
FOR UPDATE

-- A separate statement after the one above: a join there would return the new row of a stream that
-- we had to wait for, together with the old row of its lease.
-- name: leases_of
SELECT l.stream, l.holder, l.fence, l.ttl_ms, l.last_heartbeat, l.expires_at, l.session,
       l.heartbeats, l.started_at, l.progress_at, l.quiet_level
FROM streams s JOIN leases l ON l.stream = s.number
WHERE s.name = ANY ($1::text[])

-- name: aliases
SELECT n.name, n.kind, s.name
FROM names n JOIN streams s ON s.number = n.stream
WHERE n.name = ANY ($1::text[])
ORDER BY n.name, n.kind

-- name: lock_versions
SELECT number, version FROM streams WHERE number = ANY ($1::bigint[]) ORDER BY number FOR UPDATE

-- name: lines
SELECT line
FROM entries
WHERE stream = (SELECT number FROM streams WHERE name = $1)
ORDER BY version

-- name: reserve_numbers
SELECT nextval('stream_numbers')

-- name: answered
SELECT a.scope, a.key, a.fingerprint, a.answer
FROM unnest($1::bigint[], $2::text[]) AS asked (scope, key)
JOIN answers a ON a.scope = asked.scope AND a.key = asked.key

-- Skips from one queue to the next, however many tasks are in each.
-- name: queues
WITH RECURSIVE queues (name) AS (
  (SELECT queue FROM streams WHERE queue IS NOT NULL ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (SELECT queue FROM streams WHERE queue > queues.name ORDER BY queue LIMIT 1)
  FROM queues
  WHERE queues.name IS NOT NULL
)
SELECT name FROM queues WHERE name IS NOT NULL LIMIT $1

-- name: ready
SELECT rank, since, number, name
FROM streams
WHERE queue = $1 AND (rank, since, number) > ($2, $3, $4)
ORDER BY rank, since, number
LIMIT $5
FOR UPDATE SKIP LOCKED

-- name: due
SELECT number, name, fold_version, state
FROM streams
WHERE due <= $1
ORDER BY due, number
LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: open_day
INSERT INTO numbers (day, last) VALUES ($1, 0) ON CONFLICT (day) DO NOTHING

-- name: last_number
SELECT last FROM numbers WHERE day = $1 FOR UPDATE

-- name: logged_events
SELECT event_id, position, digest, masked FROM logs WHERE event_id = ANY ($1::text[])

-- name: logged_turns
SELECT l.task, l.attempt, l.turn_index, l.position, l.digest, l.masked
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS asked (task, attempt, turn_index)
JOIN logs l ON l.task = asked.task AND l.attempt = asked.attempt
  AND l.turn_index = asked.turn_index

-- name: held_in
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.session = $1 AND l.session <> ''
ORDER BY l.stream

-- name: held_by
SELECT name FROM streams WHERE status = 'in-progress' AND owner = $1 ORDER BY number

-- name: on_list
SELECT s.name
FROM lists l JOIN streams s ON s.number = l.stream
WHERE l.list = $1
ORDER BY l.position

-- Writes of a transaction

-- name: shelve
UPDATE streams s
SET status = new.status, queue = new.queue, rank = new.rank, since = new.since, due = new.due,
    owner = new.owner, deadline = new.deadline
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::text[], $8::bigint[])
  AS new (number, status, queue, rank, since, due, owner, deadline)
WHERE s.number = new.number

-- name: put_streams
INSERT INTO streams
  (number, name, version, hash, fold_version, state,
   status, queue, rank, since, due, owner, deadline)
SELECT *
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[],
            $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[],
            $13::bigint[])
ON CONFLICT (number) DO UPDATE
SET version = excluded.version, hash = excluded.hash, fold_version = excluded.fold_version,
    state = excluded.state,
    status = excluded.status, queue = excluded.queue, rank = excluded.rank, since = excluded.since,
    due = excluded.due, owner = excluded.owner, deadline = excluded.deadline

-- name: put_leases
INSERT INTO leases (stream, holder, fence, ttl_ms, last_heartbeat, expires_at, session, heartbeats,
                    started_at, progress_at, quiet_level)
SELECT *
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
ON CONFLICT (stream) DO UPDATE
SET holder = excluded.holder, fence = excluded.fence, ttl_ms = excluded.ttl_ms,
    last_heartbeat = excluded.last_heartbeat, expires_at = excluded.expires_at,
    session = excluded.session, heartbeats = excluded.heartbeats,
    started_at = excluded.started_at, progress_at = excluded.progress_at,
    quiet_level = excluded.quiet_level

-- name: end_leases
DELETE FROM leases WHERE stream = ANY ($1::bigint[])

-- name: bind_names
INSERT INTO names (name, kind, stream) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])

-- name: put_answers
INSERT INTO answers (scope, key, fingerprint, answer)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[])

-- name: put_numbers
INSERT INTO numbers (day, last) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (day) DO UPDATE SET last = excluded.last

-- The proposed columns never change; status, verification and resolution are updated.
-- name: put_handoffs
INSERT INTO handoffs
SELECT *
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
            $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
            $14::text[])
ON CONFLICT (id) DO UPDATE
SET status = excluded.status, verification_json = excluded.verification_json,
    resolved_at = excluded.resolved_at, resolution_notes = excluded.resolution_notes

-- name: move_handoffs
UPDATE handoffs h
SET status = new.status, verification_json = new.verification_json,
    resolved_at = new.resolved_at, resolution_notes = new.resolution_notes
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
  AS new (status, verification_json, resolved_at, resolution_notes, id)
WHERE h.id = new.id

-- One index lookup each, as with `list`.
-- name: unlist
DELETE FROM lists
WHERE ctid = ANY (ARRAY (
  SELECT existing.ctid
  FROM unnest($1::text[], $2::bigint[]) AS old (list, stream)
  CROSS JOIN LATERAL (
    SELECT position FROM entries WHERE stream = old.stream AND version = 1 LIMIT 1
  ) AS first
  CROSS JOIN LATERAL (
    SELECT ctid FROM lists WHERE list = old.list AND position = first.position LIMIT 1
  ) AS existing
))

-- Takes the lock that orders all writers, so no statement after it may have to wait.
-- Without the row in head the positions are NULL, and the table refuses them.
-- name: append_entries
WITH moved AS (
  UPDATE head
  SET position = position + cardinality($1::bigint[])
  RETURNING position - cardinality($1::bigint[]) AS last
), put AS (
  INSERT INTO entries (position, stream, version, event, line, previous, hash)
  SELECT (SELECT last FROM moved) + new.place,
         new.stream, new.version, new.event, new.line, new.previous, new.hash
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[])
    WITH ORDINALITY AS new (stream, version, event, line, previous, hash, place)
)
SELECT last + 1 FROM moved

-- Fails, as check_version does, if the entries that were just appended do not follow the last one:
-- a counter that was changed by hand must not leave a gap. A separate statement, because it must see
-- what was committed while the one before it waited for the counter.
-- name: check_head
SELECT CASE WHEN position = $1
              OR EXISTS (SELECT FROM entries WHERE entries.position = head.position - $1) THEN 0
       ELSE ('head ' || position - $1)::integer END
FROM head

-- After the entries too, for the same reason.
-- name: put_logs
INSERT INTO logs (position, task, attempt, turn_index, event_id, digest, masked)
SELECT at.position, new.task, new.attempt, new.turn_index, new.event_id, new.digest, new.masked <> 0
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[],
            $7::text[], $8::bigint[])
  AS new (stream, version, task, attempt, turn_index, event_id, digest, masked)
CROSS JOIN LATERAL (
  SELECT position FROM entries WHERE stream = new.stream AND version = new.version LIMIT 1
) AS at

-- After the entries, which have their positions only now; a stream without entries has no position.
-- The limit makes PostgreSQL use one index lookup each, whatever size it expects of the table.
-- name: list
INSERT INTO lists (list, position, stream)
SELECT new.list, first.position, new.stream
FROM unnest($1::text[], $2::bigint[]) AS new (list, stream)
CROSS JOIN LATERAL (
  SELECT position FROM entries WHERE stream = new.stream AND version = 1 LIMIT 1
) AS first
ON CONFLICT (list, position) DO NOTHING

-- Both in one statement, so that it is atomic outside of a writer's transaction.
-- name: index
WITH put AS (
  INSERT INTO texts (position, words)
  SELECT new.position, new.words::tsvector
  FROM unnest($1::bigint[], $2::text[]) AS new (position, words)
  ON CONFLICT (position) DO NOTHING
)
INSERT INTO meta (key, value) VALUES ('indexed', $3::bigint::text)
ON CONFLICT (key) DO UPDATE
SET value = greatest(meta.value::bigint, excluded.value::bigint)::text

-- Reads outside of a transaction

-- name: ledger_id
SELECT value FROM meta WHERE key = 'ledger_id'

-- name: secret_fingerprint
SELECT value FROM meta WHERE key = 'secret_fingerprint'

-- If two processes insert at the same time, the first one counts for both.
-- name: keep_secret_fingerprint
INSERT INTO meta (key, value) VALUES ('secret_fingerprint', $1) ON CONFLICT (key) DO NOTHING

-- name: overwrite_secret_fingerprint
INSERT INTO meta (key, value) VALUES ('secret_fingerprint', $1)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: issued_checkpoints
SELECT substr(key, 8), value FROM meta WHERE key LIKE 'issued/%'

-- name: keep_issued_checkpoints
INSERT INTO meta (key, value) VALUES ('issued/' || $1, $2)
ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: head
SELECT coalesce(max(position), 0) FROM entries

-- Both as they were at one moment.
-- name: both_heads
SELECT (SELECT position FROM head), (SELECT coalesce(max(position), 0) FROM entries)

-- A stream that is missing leaves its entries without a name, for verify to find.
-- name: entries
SELECT e.position, coalesce(s.name, ''), e.version, e.event, e.line, e.previous, e.hash
FROM entries e LEFT JOIN streams s ON s.number = e.stream
WHERE e.position > $1 AND e.position <= $2
ORDER BY e.position
LIMIT $3

-- name: history
SELECT position, $1::text, version, event, line, previous, hash
FROM entries
WHERE stream = (SELECT number FROM streams WHERE name = $1) AND version > $2 AND position <= $3
ORDER BY version
LIMIT $4

-- name: stream
SELECT * FROM stream_rows WHERE name = $1

-- name: rows
SELECT * FROM stream_rows WHERE number > $1 ORDER BY number LIMIT $2

-- name: heads
SELECT number, name, version, hash FROM streams WHERE number > $1 ORDER BY number LIMIT $2

-- name: kind
SELECT * FROM stream_rows WHERE name > $1 AND name < $2 ORDER BY name LIMIT $3

-- name: names
SELECT n.name, n.kind, coalesce(s.name, '')
FROM names n LEFT JOIN streams s ON s.number = n.stream
WHERE (n.name, n.kind) > ($1, $2)
ORDER BY n.name, n.kind
LIMIT $3

-- name: named
SELECT n.kind, s.name
FROM names n JOIN streams s ON s.number = n.stream
WHERE n.name = $1
ORDER BY n.kind

-- name: board
SELECT * FROM stream_rows
WHERE number < $1 AND status IS NOT NULL
ORDER BY number DESC LIMIT $2

-- name: board_of_status
SELECT * FROM stream_rows
WHERE number < $1 AND status = $3
ORDER BY number DESC LIMIT $2

-- name: board_of_owner
SELECT * FROM stream_rows
WHERE number < $1 AND status IS NOT NULL AND owner = $3
ORDER BY number DESC LIMIT $2

-- name: board_of_status_and_owner
SELECT * FROM stream_rows
WHERE number < $1 AND status = $3 AND owner = $4
ORDER BY number DESC LIMIT $2

-- name: counts
SELECT status, count(*) FROM streams WHERE status IS NOT NULL GROUP BY status

-- name: queue_counts
SELECT queue, count(*) FROM streams WHERE queue IS NOT NULL GROUP BY queue

-- name: expired
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.expires_at <= $1
ORDER BY l.expires_at, l.stream
LIMIT $2

-- name: overdue
SELECT name FROM streams WHERE deadline <= $1 ORDER BY deadline, number LIMIT $2

-- The comparison with '' is needed for the partial index on sessions.
-- name: sessions
SELECT s.name
FROM leases l JOIN streams s ON s.number = l.stream
WHERE l.session = $1 AND l.session <> ''
ORDER BY l.stream

-- The condition and the expression are those of the index on claims.
-- name: claims
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM entries e JOIN streams s ON s.number = e.stream
WHERE e.event = 'task.claimed' AND substring(encode(e.line, 'escape') FROM '"session":"([^"]+)"') = $1 AND e.position > $2
ORDER BY e.position
LIMIT $3

-- name: claims_back
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM entries e JOIN streams s ON s.number = e.stream
WHERE e.event = 'task.claimed' AND substring(encode(e.line, 'escape') FROM '"session":"([^"]+)"') = $1 AND e.position < $2
ORDER BY e.position DESC
LIMIT $3

-- The limit of one makes PostgreSQL use one index lookup for each row, however many it expects.
-- name: listed
SELECT l.position, s.*
FROM lists l CROSS JOIN LATERAL (
  SELECT * FROM stream_rows WHERE number = l.stream LIMIT 1
) AS s
WHERE l.list = $1 AND l.position > $2
ORDER BY l.position
LIMIT $3

-- name: listed_back
SELECT l.position, s.*
FROM lists l CROSS JOIN LATERAL (
  SELECT * FROM stream_rows WHERE number = l.stream LIMIT 1
) AS s
WHERE l.list = $1 AND l.position > $2 AND l.position < $3
ORDER BY l.position DESC
LIMIT $4

-- name: places
SELECT list, position, coalesce((SELECT name FROM streams WHERE number = lists.stream), '')
FROM lists
WHERE (list, position) > ($1, $2)
ORDER BY list, position
LIMIT $3

-- name: handoffs
SELECT * FROM handoffs WHERE id > $1 ORDER BY id LIMIT $2

-- name: turns
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = $1 AND l.attempt = $2 AND l.turn_index > $3
ORDER BY l.turn_index
LIMIT $4

-- name: turns_back
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = $1 AND l.attempt = $2 AND l.turn_index IS NOT NULL
ORDER BY l.turn_index DESC
LIMIT $3

-- The comparisons are needed for the partial index on tasks.
-- name: traces
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.task = $1 AND l.task <> '' AND l.event_id IS NOT NULL AND l.position > $2
ORDER BY l.position
LIMIT $3

-- name: trace
SELECT e.position, s.name, e.version, e.event, e.line, e.previous, e.hash
FROM logs l JOIN entries e ON e.position = l.position JOIN streams s ON s.number = e.stream
WHERE l.event_id = $1

-- name: logs
SELECT position, task, attempt, turn_index, event_id, digest, masked
FROM logs
WHERE position > $1 AND position <= $2
ORDER BY position

-- name: held
SELECT s.*
FROM leases l JOIN stream_rows s ON s.number = l.stream
WHERE l.stream > $1
ORDER BY l.stream
LIMIT $2

-- name: answers
SELECT s.name, a.scope, a.key, a.fingerprint, a.answer
FROM answers a JOIN streams s ON s.number = a.scope
WHERE (a.scope, a.key) > ($1, $2)
ORDER BY a.scope, a.key
LIMIT $3

-- name: indexed
SELECT value FROM meta WHERE key = 'indexed'

-- The plus keeps the planner on the word index: by positions it would read every text.
-- name: search
SELECT t.position, s.*
FROM (
  SELECT position FROM texts
  WHERE words @@ $1::text::tsquery AND position + 0 < $2
  ORDER BY position + 0 DESC
  LIMIT $3
) AS t
CROSS JOIN LATERAL (SELECT stream FROM entries WHERE position = t.position LIMIT 1) AS e
CROSS JOIN LATERAL (SELECT * FROM stream_rows WHERE number = e.stream LIMIT 1) AS s
ORDER BY t.position DESC
