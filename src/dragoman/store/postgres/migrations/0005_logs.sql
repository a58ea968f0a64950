-- Logs of agents: their turns, and what happened in their sessions.

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

-- The same with its text, for whoever asks the database itself. PostgreSQL cannot take apart what
-- has the character U+0000 in it, so that is shown as U+FFFD.
CREATE VIEW agent_logs AS
SELECT l.position AS id, l.task AS task_id, l.attempt, l.turn_index, l.event_id,
       e.line -> 'body' ->> 'session' AS session_id, e.line -> 'body' ->> 'type' AS type,
       l.masked, (e.line ->> 'at')::bigint AS recorded_at,
       (e.line -> 'body' -> 'envelope')::text AS envelope_json
FROM logs l CROSS JOIN LATERAL (
  SELECT replace(convert_from(line, 'UTF8'), '\u0000', '\ufffd')::json AS line
  FROM entries WHERE position = l.position
) AS e;

-- Tasks as they stand now.
CREATE VIEW tasks AS
SELECT substr(s.name, 6) AS id, s.state ->> 'aof_id' AS aof_id, s.state ->> 'title' AS title,
       s.status, s.owner AS assignee, coalesce((s.state ->> 'attempts')::bigint, 0) AS attempts,
       (s.state ->> 'created_at')::bigint AS created_at,
       (s.state ->> 'updated_at')::bigint AS updated_at,
       coalesce(s.state ->> 'head_hash', '') AS head_hash
FROM (SELECT name, status, owner,
             replace(convert_from(state, 'UTF8'), '\u0000', '\ufffd')::json AS state
      FROM streams WHERE name >= 'task:' AND name < 'task;') AS s;
