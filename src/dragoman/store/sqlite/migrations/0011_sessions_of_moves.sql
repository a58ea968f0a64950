-- In agent_logs a move that ends an attempt has the session of the last claim before it, and another
-- that an event has asked for the session of that event. Only what is of no session goes by the
-- stream of its task, as every move but a claim did before.
DROP VIEW agent_logs;

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
         coalesce(body ->> '$.asked_by',
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
            WHERE a.event_id = moves.body ->> '$.asked_by'),
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
           'asked_by', body ->> '$.asked_by')) AS payload
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
                    AND m.body ->> '$.asked_by' = l.event_id)
UNION ALL
SELECT position, task_id, attempt, NULL, event_id, session_id, 'TASK_TRANSITION', 0, at,
       json_object('event_id', event_id, 'session_id', session_id, 'payload', json(payload))
FROM told;
