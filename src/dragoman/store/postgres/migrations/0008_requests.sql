-- From here on the id of a request is a name of its intent, so that no other request gets it.
INSERT INTO names (name, kind, stream)
SELECT convert_from(line, 'UTF8')::json -> 'body' ->> 'request_id', 'request id', stream
FROM entries WHERE event = 'intent.dispatched' ORDER BY position
ON CONFLICT (name, kind) DO NOTHING;
