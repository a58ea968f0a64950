-- Letters about a bead that stand in another thread are on the list of the bead, too; and the moves
-- of a session are found by its claims, when it is over.
INSERT INTO lists (list, position, stream)
SELECT 'bead:' || l.bead, l.position, l.stream
FROM (
  SELECT substr(s.mail ->> 'bead', strpos(s.mail ->> 'bead', ':') + 1) AS bead,
         s.mail ->> 'thread' AS thread, e.position, s.number AS stream
  FROM (SELECT number,
               replace(nullif(convert_from(state, 'UTF8'), ''), '\u0000', '\ufffd')::json AS mail
        FROM streams WHERE name >= 'mail:' AND name < 'mail;') s
  JOIN entries e ON e.stream = s.number AND e.version = 1
) AS l
WHERE l.bead <> l.thread;

-- The claims of a session, which is over when its moves are asked for. No name of a session has a
-- character that either JSON or this encoding writes in another way; a conversion into text, of which
-- PostgreSQL makes no index, is not needed for it.
CREATE INDEX entries_claims
ON entries (substring(encode(line, 'escape') FROM '"session":"([^"]+)"'), position)
WHERE event = 'task.claimed';
