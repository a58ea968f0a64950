-- Letters about a task that stand in another thread are found by its name, too; and the moves of a
-- session by its claims, when it is over.
INSERT INTO lists (list, position, stream)
SELECT 'elsewhere:' || (s.mail ->> 'bead'), e.position, s.number
FROM (SELECT number,
             replace(nullif(convert_from(state, 'UTF8'), ''), '\u0000', '\ufffd')::json AS mail
      FROM streams WHERE name >= 'mail:' AND name < 'mail;') s
JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.mail ->> 'bead' <> s.mail ->> 'thread';

-- The claims of a session, which is over when its moves are asked for. No name of a session has a
-- character that either JSON or this encoding writes in another way; a conversion into text, of which
-- PostgreSQL makes no index, is not needed for it.
CREATE INDEX entries_claims
ON entries (substring(encode(line, 'escape') FROM '"session":"([^"]+)"'), position)
WHERE event = 'task.claimed';
