-- The ledger, and all tables that are folded from it or kept beside it.
--
-- The tables are those of the SQLite store. No foreign keys: a writer has just read and locked what
-- it refers to, and `verify` must be able to read tables from which somebody has removed a row.
-- Text is collated "C": its order is that of the bytes, the same in every store and on every server.

CREATE TABLE meta (
  key   text COLLATE "C" PRIMARY KEY,
  value text COLLATE "C" NOT NULL
);

-- A stream: its head, its index row, and its folded state.
CREATE TABLE streams (
  number       bigint PRIMARY KEY,
  name         text   COLLATE "C" NOT NULL UNIQUE,
  version      bigint NOT NULL,
  hash         bytea  NOT NULL,
  fold_version bigint NOT NULL,
  status       text   COLLATE "C",
  queue        text   COLLATE "C",
  rank         bigint NOT NULL,
  since        bigint NOT NULL,
  due          bigint,
  owner        text   COLLATE "C",
  deadline     bigint,
  state        bytea  NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX streams_board ON streams (status, number) WHERE status IS NOT NULL;
CREATE INDEX streams_owner ON streams (owner, number) WHERE owner IS NOT NULL;
CREATE INDEX streams_ready ON streams (queue, rank, since, number) WHERE queue IS NOT NULL;
CREATE INDEX streams_due ON streams (due, number) WHERE due IS NOT NULL;
CREATE INDEX streams_deadline ON streams (deadline, number) WHERE deadline IS NOT NULL;

-- Each value is the first of a hundred stream numbers that one hub then gives out by itself.
CREATE SEQUENCE stream_numbers INCREMENT BY 100;

-- The ledger. stream, version and event are copies of what the line says.
CREATE TABLE entries (
  position bigint PRIMARY KEY,
  stream   bigint NOT NULL,
  version  bigint NOT NULL,
  event    text COLLATE "C" NOT NULL,
  line     bytea  NOT NULL,
  previous bytea  NOT NULL,
  hash     bytea  NOT NULL,
  UNIQUE (stream, version)
);

-- The claims of a session, which is over when its moves are asked for. No name of a session has a
-- character that either JSON or this encoding writes in another way; a conversion into text, of which
-- PostgreSQL makes no index, is not needed for it.
CREATE INDEX entries_claims
ON entries (substring(encode(line, 'escape') FROM '"session":"([^"]+)"'), position)
WHERE event = 'task.claimed';

CREATE FUNCTION forbid_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is append-only: an entry is never changed and never removed';
END
$$;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
FOR EACH ROW EXECUTE FUNCTION forbid_change();

CREATE TRIGGER entries_are_not_removed BEFORE DELETE ON entries
FOR EACH ROW EXECUTE FUNCTION forbid_change();

CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON entries
FOR EACH STATEMENT EXECUTE FUNCTION forbid_change();

-- The last position. A writer locks this one row until its commit, so that positions have no gap and
-- become visible in their order.
CREATE TABLE head (
  position bigint NOT NULL
);

CREATE UNIQUE INDEX head_is_one ON head ((true));

INSERT INTO head (position) VALUES (0);

-- The lease of a task. A heartbeat changes this row and nothing else.
CREATE TABLE leases (
  stream         bigint PRIMARY KEY,
  holder         text   COLLATE "C" NOT NULL,
  fence          bigint NOT NULL,
  session        text   COLLATE "C" NOT NULL,
  ttl_ms         bigint NOT NULL,
  heartbeats     bigint NOT NULL,
  last_heartbeat bigint NOT NULL,
  expires_at     bigint NOT NULL,
  started_at     bigint NOT NULL,
  progress_at    bigint NOT NULL,
  quiet_level    bigint NOT NULL
);

CREATE INDEX leases_expiry ON leases (expires_at, stream);
CREATE INDEX leases_session ON leases (session, stream) WHERE session <> '';

-- A stream with its lease, as the contract's StreamRow has them.
CREATE VIEW stream_rows AS
SELECT s.number, s.name, s.version, s.hash, s.fold_version, s.state,
       s.status, s.queue, s.rank, s.since, s.due, s.owner, s.deadline,
       l.holder, l.fence, l.ttl_ms, l.last_heartbeat, l.expires_at, l.session, l.heartbeats,
       l.started_at, l.progress_at, l.quiet_level
FROM streams s LEFT JOIN leases l ON l.stream = s.number;

-- Aliases of tasks, and the ids of requests as names of their intents.
CREATE TABLE names (
  name   text COLLATE "C" NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  stream bigint NOT NULL,
  PRIMARY KEY (name, kind)
);

-- Stored answers of requests; scope is the number of the stream in which the key is unique.
CREATE TABLE answers (
  scope       bigint NOT NULL,
  key         text COLLATE "C" NOT NULL,
  fingerprint bytea  NOT NULL,
  answer      bytea  NOT NULL,
  PRIMARY KEY (scope, key)
);

-- The last AOF number given out on a day.
CREATE TABLE numbers (
  day  text COLLATE "C" PRIMARY KEY,
  last bigint NOT NULL
);

-- A list and its streams, each at the position of its first entry.
CREATE TABLE lists (
  list     text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  stream   bigint NOT NULL,
  PRIMARY KEY (list, position)
);

-- Words by the positions of the entries that hold them. How far the ledger was looked through is in
-- meta, under indexed.
CREATE TABLE texts (
  position bigint PRIMARY KEY,
  words    tsvector NOT NULL
);

CREATE INDEX texts_words ON texts USING gin (words);

-- Handoffs, one row each, so that the database itself keeps a task from being handed over twice.
CREATE TABLE handoffs (
  id                 text COLLATE "C" PRIMARY KEY,
  thread_id          text NOT NULL,
  task_id            text NOT NULL,
  from_agent         text NOT NULL,
  to_agent           text NOT NULL,
  title              text NOT NULL,
  reason             text NOT NULL,
  package_json       text NOT NULL,
  status             text NOT NULL DEFAULT 'proposed',
  provenance_json    text NOT NULL,
  verification_json  text NOT NULL,
  initiated_at       text NOT NULL
    DEFAULT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  resolved_at        text,
  resolution_notes   text
);

-- A task has at most one active handoff.
CREATE UNIQUE INDEX idx_handoffs_task_active
ON handoffs(task_id)
WHERE status IN ('proposed','validating','accepted','activated');

-- Turns and events of traces, each beside its entry, which has the text. A row has what is unique
-- about it: a turn by its task, attempt and index, an event by its id.
CREATE TABLE logs (
  position   bigint PRIMARY KEY,
  task       text COLLATE "C" NOT NULL,
  attempt    bigint NOT NULL,
  turn_index bigint,
  event_id   text COLLATE "C",
  digest     text COLLATE "C" NOT NULL,
  masked     boolean NOT NULL
);

CREATE UNIQUE INDEX logs_turn ON logs (task, attempt, turn_index) WHERE turn_index IS NOT NULL;
CREATE UNIQUE INDEX logs_event ON logs (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX logs_task ON logs (task, position) WHERE event_id IS NOT NULL AND task <> '';

-- The same with its text, and the moves of tasks, for queries on the database itself. A move that was
-- only requested has `requested`; one that an event has requested has that event's id.
-- PostgreSQL cannot parse JSON with the character U+0000 in it, so that is shown as U+FFFD.
CREATE VIEW agent_logs AS
WITH moves AS NOT MATERIALIZED (
  SELECT e.position, s.name AS stream, e.event, encode(e.hash, 'hex') AS hash,
         j.line -> 'body' AS body, (j.line ->> 'at')::bigint AS at
  FROM streams s JOIN entries e ON e.stream = s.number CROSS JOIN LATERAL (
    SELECT replace(convert_from(e.line, 'UTF8'), '\u0000', '\ufffd')::json AS line
  ) AS j
  WHERE s.name >= 'task:' AND s.name < 'task;'
    AND e.event IN ('task.claimed', 'task.transitioned', 'task.requeued', 'task.rewound')
), told AS (
  SELECT position, substr(stream, 6) AS task_id, at, coalesce(
           (body ->> 'attempt')::bigint,
           (SELECT max((c.body ->> 'attempt')::bigint) FROM moves c
            WHERE c.stream = moves.stream AND c.event = 'task.claimed'
              AND c.position < moves.position AND moves.body ->> 'from' = 'in-progress')
         ) AS attempt,
         coalesce(body ->> 'caused_by',
                  substr(hash, 1, 8) || '-' || substr(hash, 9, 4) || '-8' || substr(hash, 14, 3)
                  || '-' || substr('89ab89ab89ab89ab',
                                   strpos('0123456789abcdef', substr(hash, 17, 1)), 1)
                  || substr(hash, 18, 3) || '-' || substr(hash, 21, 12)) AS event_id,
         coalesce(
           body ->> 'session',
           (SELECT c.body ->> 'session' FROM moves c
            WHERE c.stream = moves.stream AND c.event = 'task.claimed'
              AND c.position < moves.position AND moves.event <> 'task.claimed'
              AND coalesce(moves.body ->> 'from', 'in-progress') = 'in-progress'
            ORDER BY c.position DESC LIMIT 1),
           (SELECT substr(t.name, 7)
            FROM logs a JOIN entries w ON w.position = a.position
            JOIN streams t ON t.number = w.stream
            WHERE a.event_id = moves.body ->> 'caused_by'),
           stream
         ) AS session_id,
         json_strip_nulls(json_build_object(
           'type', 'TASK_TRANSITION', 'task_id', substr(stream, 6),
           'from_state', coalesce(body ->> 'from', 'in-progress'),
           'to_state', coalesce(body ->> 'to', CASE event WHEN 'task.claimed' THEN 'in-progress'
                                                          ELSE 'ready' END),
           'git_hash', body ->> 'commit',
           'timestamp', to_char(to_timestamp(at / 1000) AT TIME ZONE 'UTC',
                                'YYYY-MM-DD"T"HH24:MI:SS')
                        || '.' || lpad((at % 1000)::text, 3, '0') || 'Z',
           'caused_by', body ->> 'caused_by')) AS payload
  FROM moves
)
SELECT l.position AS id, l.task AS task_id, l.attempt, l.turn_index, l.event_id,
       e.line -> 'body' ->> 'session' AS session_id, e.line -> 'body' ->> 'type' AS type,
       l.masked, (e.line ->> 'at')::bigint AS recorded_at,
       CASE e.line -> 'body' ->> 'type'
         WHEN 'TASK_TRANSITION' THEN jsonb_set(
           (e.line -> 'body' -> 'envelope')::jsonb, '{payload}',
           (e.line -> 'body' -> 'envelope' -> 'payload')::jsonb
           || jsonb_strip_nulls(jsonb_build_object('git_hash', e.line -> 'body' ->> 'commit'))
           || '{"requested": true}')::text
         ELSE (e.line -> 'body' -> 'envelope')::text
       END AS envelope_json
FROM logs l CROSS JOIN LATERAL (
  SELECT replace(convert_from(line, 'UTF8'), '\u0000', '\ufffd')::json AS line
  FROM entries WHERE position = l.position
) AS e
WHERE e.line -> 'body' ->> 'type' IS DISTINCT FROM 'TASK_TRANSITION'
   OR NOT EXISTS (SELECT 1 FROM moves m
                  WHERE m.stream IN ('task:' || l.task, 'task:' || (
                          e.line -> 'body' -> 'envelope' -> 'payload' ->> 'task_id'))
                    AND m.body ->> 'caused_by' = l.event_id)
UNION ALL
SELECT position, task_id, attempt, NULL, event_id, session_id, 'TASK_TRANSITION', false, at,
       json_build_object('event_id', event_id, 'session_id', session_id, 'payload', payload)::text
FROM told;

-- Tasks in their present state.
CREATE VIEW tasks AS
SELECT substr(s.name, 6) AS id, s.state ->> 'aof_id' AS aof_id, s.state ->> 'title' AS title,
       s.status, s.owner AS assignee, coalesce((s.state ->> 'attempts')::bigint, 0) AS attempts,
       (s.state ->> 'created_at')::bigint AS created_at,
       (s.state ->> 'updated_at')::bigint AS updated_at,
       nullif(s.state ->> 'head_hash', '') AS head_hash
FROM (SELECT name, status, owner,
             replace(convert_from(state, 'UTF8'), '\u0000', '\ufffd')::json AS state
      FROM streams WHERE name >= 'task:' AND name < 'task;') AS s;
