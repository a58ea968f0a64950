// The hub's JSON as it is shown: no text in it steers a terminal, turns the direction of others' text, or hides.

/** Sequences of terminals, as the hub's `safe_text` takes them out. */
const SEQUENCE =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\0-\u001f\u007f-\u009f]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b[PX^_]|[\u0090\u0098\u009e\u009f])[^\0-\u001f\u007f-\u009f]*(?:\u001b\\|\u009c)|\u001b[ -/]+[0-~]|\u001b[0-OQ-WYZ\\`-~]/gu;
/** Other characters that steer or hide, as there. */
const HARMFUL =
  /[\0-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const MAY_HARM = new RegExp(`\\\\u|${HARMFUL.source}`, "u");

const clean = (text: string): string => text.replace(SEQUENCE, "").replaceAll("\r\n", "\n").replace(HARMFUL, "\ufffd");

/** What a JSON text says, with every text in it made harmless. */
export function parseShown(json: string): unknown {
  return MAY_HARM.test(json) ? JSON.parse(json, cleanValue) : JSON.parse(json);
}

function cleanValue(_key: string, value: unknown): unknown {
  if (typeof value === "string") return clean(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [clean(key), one]));
}
