-- Letters about a bead that stand in another thread are on the list of the bead, too; and the moves
-- of a session are found by its claims, when it is over.
INSERT INTO lists (list, position, stream)
SELECT 'bead:' || bead, position, stream
FROM (
  SELECT substr(mail ->> '$.bead', instr(mail ->> '$.bead', ':') + 1) AS bead,
         mail ->> '$.thread' AS thread, e.position, s.number AS stream
  FROM (SELECT number, nullif(CAST(state AS TEXT), '') AS mail
        FROM streams WHERE name >= 'mail:' AND name < 'mail;') s
  JOIN entries e ON e.stream = s.number AND e.version = 1
)
WHERE bead <> thread;

-- The claims of a session, which is over when its moves are asked for.
CREATE INDEX entries_claims ON entries (CAST(line AS TEXT) ->> '$.body.session')
WHERE event = 'task.claimed';
