-- In agent_logs a move that ends an attempt has the session of the last claim before it, and another
-- that an event has asked for the session of that event. Only what is of no session goes by the
-- stream of its task, as every move but a claim did before.
DROP VIEW agent_logs;

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
         coalesce(body ->> 'asked_by',
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
            WHERE a.event_id = moves.body ->> 'asked_by'),
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
           'asked_by', body ->> 'asked_by')) AS payload
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
                    AND m.body ->> 'asked_by' = l.event_id)
UNION ALL
SELECT position, task_id, attempt, NULL, event_id, session_id, 'TASK_TRANSITION', false, at,
       json_build_object('event_id', event_id, 'session_id', session_id, 'payload', payload)::text
FROM told;
