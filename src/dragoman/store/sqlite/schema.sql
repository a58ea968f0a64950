-- All tables as they are now: equal to the migrations applied in order (tested). For reading.
--
-- No foreign keys: every write goes through one writer that has just read what it refers to, and
-- `verify` must be able to read a file in which somebody has removed a row.
-- Indexes do not name `number`: SQLite ends every index entry with the row's number anyway.

CREATE TABLE meta (
  key   TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A stream: its head, its index row, and its folded state (last, because a long one continues on
-- overflow pages, which a reader of the columns before it then need not fetch).
CREATE TABLE streams (
  number       INTEGER PRIMARY KEY,
  name         TEXT    NOT NULL UNIQUE,
  version      INTEGER NOT NULL,
  hash         BLOB    NOT NULL,
  fold_version INTEGER NOT NULL,
  status       TEXT,
  queue        TEXT,
  rank         INTEGER NOT NULL,
  since        INTEGER NOT NULL,
  due          INTEGER,
  owner        TEXT,
  deadline     INTEGER,
  state        BLOB    NOT NULL
) STRICT;

CREATE INDEX streams_board ON streams (status) WHERE status IS NOT NULL;
CREATE INDEX streams_owner ON streams (owner) WHERE owner IS NOT NULL;
CREATE INDEX streams_ready ON streams (queue, rank, since) WHERE queue IS NOT NULL;
CREATE INDEX streams_due ON streams (due) WHERE due IS NOT NULL;
CREATE INDEX streams_deadline ON streams (deadline) WHERE deadline IS NOT NULL;

-- The ledger. stream, version and event are copies of what the line says.
CREATE TABLE entries (
  position INTEGER PRIMARY KEY,
  stream   INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  event    TEXT    NOT NULL,
  line     BLOB    NOT NULL,
  previous BLOB    NOT NULL,
  hash     BLOB    NOT NULL,
  UNIQUE (stream, version)
) STRICT;

-- The claims of a session, which is over when its moves are asked for.
CREATE INDEX entries_claims ON entries (CAST(line AS TEXT) ->> '$.body.session')
WHERE event = 'task.claimed';

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: an entry is never changed');
END;

CREATE TRIGGER entries_are_not_removed BEFORE DELETE ON entries
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: an entry is never removed');
END;

-- The lease of a task. A heartbeat changes this row and nothing else.
CREATE TABLE leases (
  stream         INTEGER PRIMARY KEY,
  holder         TEXT    NOT NULL,
  fence          INTEGER NOT NULL,
  session        TEXT    NOT NULL,
  ttl_ms         INTEGER NOT NULL,
  heartbeats     INTEGER NOT NULL,
  last_heartbeat INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  started_at     INTEGER NOT NULL,
  progress_at    INTEGER NOT NULL,
  quiet_level    INTEGER NOT NULL
) STRICT;

CREATE INDEX leases_expiry ON leases (expires_at);
CREATE INDEX leases_session ON leases (session) WHERE session <> '';

-- A stream with its lease, as the contract's StreamRow has them.
CREATE VIEW stream_rows AS
SELECT s.number, s.name, s.version, s.hash, s.fold_version, s.state,
       s.status, s.queue, s.rank, s.since, s.due, s.owner, s.deadline,
       l.holder, l.fence, l.ttl_ms, l.last_heartbeat, l.expires_at, l.session, l.heartbeats,
       l.started_at, l.progress_at, l.quiet_level
FROM streams s LEFT JOIN leases l ON l.stream = s.number;

-- Aliases of tasks, and the ids of requests as names of their intents.
CREATE TABLE names (
  name   TEXT    NOT NULL,
  kind   TEXT    NOT NULL,
  stream INTEGER NOT NULL,
  PRIMARY KEY (name, kind)
) STRICT, WITHOUT ROWID;

-- Stored answers of requests; scope is the number of the stream in which the key is unique.
CREATE TABLE answers (
  scope       INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  fingerprint BLOB    NOT NULL,
  answer      BLOB    NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- The last AOF number given out on a day.
CREATE TABLE numbers (
  day  TEXT    NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A list and its streams, each at the position of its first entry.
CREATE TABLE lists (
  list     TEXT    NOT NULL,
  position INTEGER NOT NULL,
  stream   INTEGER NOT NULL,
  PRIMARY KEY (list, position)
) STRICT, WITHOUT ROWID;

-- Words by the positions of the entries that hold them, and nothing else: the entry has the text.
-- They come split and folded, and this tokenizer takes them as they are. How far the ledger was
-- looked through stands in meta, under indexed.
CREATE VIRTUAL TABLE texts USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');

-- Handoffs, one row each, so that the database itself keeps a task from being handed over twice.
CREATE TABLE handoffs (
  id                 TEXT PRIMARY KEY NOT NULL,
  thread_id          TEXT NOT NULL,
  task_id            TEXT NOT NULL,
  from_agent         TEXT NOT NULL,
  to_agent           TEXT NOT NULL,
  title              TEXT NOT NULL,
  reason             TEXT NOT NULL,
  package_json       TEXT NOT NULL,
  status             TEXT NOT NULL DEFAULT 'proposed',
  provenance_json    TEXT NOT NULL,
  verification_json  TEXT NOT NULL,
  initiated_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  resolved_at        TEXT,
  resolution_notes   TEXT
) STRICT;

-- A task has at most one active handoff.
CREATE UNIQUE INDEX idx_handoffs_task_active
ON handoffs(task_id)
WHERE status IN ('proposed','validating','accepted','activated');

-- Turns and events of traces, each beside its entry, which has the text. A row has what is unique
-- about it: a turn by its task, attempt and index, an event by its id.
CREATE TABLE logs (
  position   INTEGER PRIMARY KEY,
  task       TEXT    NOT NULL,
  attempt    INTEGER NOT NULL,
  turn_index INTEGER,
  event_id   TEXT,
  digest     TEXT    NOT NULL,
  masked     INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX logs_turn ON logs (task, attempt, turn_index) WHERE turn_index IS NOT NULL;
CREATE UNIQUE INDEX logs_event ON logs (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX logs_task ON logs (task) WHERE event_id IS NOT NULL AND task <> '';

-- The same with its text, and the moves of tasks, for queries on the database itself. A move that was
-- only requested has `requested`; one that an event has requested has that event's id.
CREATE VIEW agent_logs AS
WITH moves AS NOT MATERIALIZED (
  SELECT e.position, s.name AS stream, e.event, lower(hex(e.hash)) AS hash,
         CAST(e.line AS TEXT) -> '$.body' AS body, CAST(e.line AS TEXT) ->> '$.at' AS at
  FROM streams s JOIN entries e ON e.stream = s.number
  WHERE s.name >= 'task:' AND s.name < 'task;'
    AND e.event IN ('task.claimed', 'task.transitioned', 'task.requeued', 'task.rewound')
), told AS (
  SELECT position, substr(stream, 6) AS task_id, at, coalesce(
           body ->> '$.attempt',
           (SELECT max(c.body ->> '$.attempt') FROM moves c
            WHERE c.stream = moves.stream AND c.event = 'task.claimed'
              AND c.position < moves.position AND moves.body ->> '$.from' = 'in-progress')
         ) AS attempt,
         coalesce(body ->> '$.caused_by',
                  substr(hash, 1, 8) || '-' || substr(hash, 9, 4) || '-8' || substr(hash, 14, 3)
                  || '-' || substr('89ab89ab89ab89ab',
                                   instr('0123456789abcdef', substr(hash, 17, 1)), 1)
                  || substr(hash, 18, 3) || '-' || substr(hash, 21, 12)) AS event_id,
         coalesce(
           body ->> '$.session',
           (SELECT c.body ->> '$.session' FROM moves c
            WHERE c.stream = moves.stream AND c.event = 'task.claimed'
              AND c.position < moves.position AND moves.event <> 'task.claimed'
              AND coalesce(moves.body ->> '$.from', 'in-progress') = 'in-progress'
            ORDER BY c.position DESC LIMIT 1),
           (SELECT substr(t.name, 7)
            FROM logs a JOIN entries w ON w.position = a.position
            JOIN streams t ON t.number = w.stream
            WHERE a.event_id = moves.body ->> '$.caused_by'),
           stream
         ) AS session_id,
         json_patch('{}', json_object(
           'type', 'TASK_TRANSITION', 'task_id', substr(stream, 6),
           'from_state', coalesce(body ->> '$.from', 'in-progress'),
           'to_state', coalesce(body ->> '$.to',
                                iif(event = 'task.claimed', 'in-progress', 'ready')),
           'git_hash', body ->> '$.commit',
           'timestamp', strftime('%Y-%m-%dT%H:%M:%S', at / 1000, 'unixepoch')
                        || printf('.%03dZ', at % 1000),
           'caused_by', body ->> '$.caused_by')) AS payload
  FROM moves
)
SELECT l.position AS id, l.task AS task_id, l.attempt, l.turn_index, l.event_id,
       e.body ->> '$.session' AS session_id, e.body ->> '$.type' AS type,
       l.masked, e.at AS recorded_at,
       iif(e.body ->> '$.type' IS 'TASK_TRANSITION',
           json_patch(e.body -> '$.envelope', json_object('payload', json_object(
             'git_hash', coalesce(e.body ->> '$.commit', e.body ->> '$.envelope.payload.git_hash'),
             'requested', json('true')))),
           e.body -> '$.envelope') AS envelope_json
FROM logs l JOIN (
  SELECT position, CAST(line AS TEXT) -> '$.body' AS body, CAST(line AS TEXT) ->> '$.at' AS at
  FROM entries
) e ON e.position = l.position
WHERE e.body ->> '$.type' IS NOT 'TASK_TRANSITION'
   OR NOT EXISTS (SELECT 1 FROM moves m
                  WHERE m.stream IN ('task:' || l.task,
                                     'task:' || (e.body ->> '$.envelope.payload.task_id'))
                    AND m.body ->> '$.caused_by' = l.event_id)
UNION ALL
SELECT position, task_id, attempt, NULL, event_id, session_id, 'TASK_TRANSITION', 0, at,
       json_object('event_id', event_id, 'session_id', session_id, 'payload', json(payload))
FROM told;

-- Tasks in their present state.
CREATE VIEW tasks AS
SELECT substr(name, 6) AS id, state ->> '$.aof_id' AS aof_id, state ->> '$.title' AS title, status,
       owner AS assignee, coalesce(state ->> '$.attempts', 0) AS attempts,
       state ->> '$.created_at' AS created_at, state ->> '$.updated_at' AS updated_at,
       nullif(state ->> '$.head_hash', '') AS head_hash
FROM (SELECT name, status, owner, CAST(state AS TEXT) AS state FROM streams
      WHERE name >= 'task:' AND name < 'task;');
