-- Letters about a task that stand in another thread are found by its name, too; and the moves of a
-- session by its claims, when it is over.
INSERT INTO lists (list, position, stream)
SELECT 'elsewhere:' || (s.mail ->> '$.bead'), e.position, s.number
FROM (SELECT number, nullif(CAST(state AS TEXT), '') AS mail
      FROM streams WHERE name >= 'mail:' AND name < 'mail;') s
JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.mail ->> '$.bead' <> s.mail ->> '$.thread';

-- The claims of a session, which is over when its moves are asked for.
CREATE INDEX entries_claims ON entries (CAST(line AS TEXT) ->> '$.body.session')
WHERE event = 'task.claimed';
