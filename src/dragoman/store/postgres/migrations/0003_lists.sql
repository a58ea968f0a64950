-- Lists on which streams stand, such as boxes and threads; and words that can be searched for.

-- A list, and the streams that stand on it, each at the position of its first entry.
CREATE TABLE lists (
  list     text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  stream   bigint NOT NULL,
  PRIMARY KEY (list, position)
);

-- What was there before: everyone in its role, and offers that nobody has answered yet.
INSERT INTO lists (list, position, stream)
SELECT 'role:' || (convert_from(s.state, 'UTF8')::json ->> 'role'), e.position, s.number
FROM streams s JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.name >= 'agent:' AND s.name < 'agent;';

INSERT INTO lists (list, position, stream)
SELECT 'offered:' || (s.delegation ->> 'to_agent'), e.position, s.number
FROM (SELECT number, convert_from(state, 'UTF8')::json -> 'delegation' AS delegation
      FROM streams WHERE status NOT IN ('done', 'cancelled')) s
JOIN entries e ON e.stream = s.number AND e.version = 1
WHERE s.delegation ->> 'to_agent' IS NOT NULL
  AND coalesce(s.delegation ->> 'state', 'requested') = 'requested';

-- Words by the positions of the entries that hold them. How far the ledger was looked through is in
-- meta, under indexed.
CREATE TABLE texts (
  position bigint PRIMARY KEY,
  words    tsvector NOT NULL
);

CREATE INDEX texts_words ON texts USING gin (words);
