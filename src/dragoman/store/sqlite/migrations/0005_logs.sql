-- Logs of agents: their turns, and what happened in their sessions.

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

-- The same with its text, for whoever asks the database itself.
CREATE VIEW agent_logs AS
SELECT l.position AS id, l.task AS task_id, l.attempt, l.turn_index, l.event_id,
       e.body ->> '$.session' AS session_id, e.body ->> '$.type' AS type,
       l.masked, e.at AS recorded_at,
       e.body -> '$.envelope' AS envelope_json
FROM logs l JOIN (
  SELECT position, CAST(line AS TEXT) -> '$.body' AS body, CAST(line AS TEXT) ->> '$.at' AS at
  FROM entries
) e ON e.position = l.position;

-- Tasks as they stand now.
CREATE VIEW tasks AS
SELECT substr(name, 6) AS id, state ->> '$.aof_id' AS aof_id, state ->> '$.title' AS title, status,
       owner AS assignee, coalesce(state ->> '$.attempts', 0) AS attempts,
       state ->> '$.created_at' AS created_at, state ->> '$.updated_at' AS updated_at,
       coalesce(state ->> '$.head_hash', '') AS head_hash
FROM (SELECT name, status, owner, CAST(state AS TEXT) AS state FROM streams
      WHERE name >= 'task:' AND name < 'task;');
