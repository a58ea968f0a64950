// Turns and events checked with zod, as the specification writes its shapes: JSON bytes -> validated object.
// Usage: node zod.mjs SHAPE SECONDS < message.json; prints how many a second.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.argv[4]);
const { z } = require("zod");

const part = z.enum(["researcher", "architect", "developer", "reviewer"]);
const time = z.iso.datetime();
const turn = z.object({
  turn_index: z.number().int().nonnegative(),
  agent_id: part,
  role: part,
  content: z.object({ thought: z.string(), action: z.string(), observation: z.string() }),
  metadata: z.object({
    version: z.literal("1.0.0"),
    task_id: z.string(),
    timestamp: time,
    confidence: z.number().min(0).max(1),
    estimated_complexity: z.enum(["low", "medium", "high"]),
  }),
});
const payload = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("THOUGHT_STREAM"), agent_id: part,
    turn_index: z.number().int().nonnegative(), chunk: z.string(), is_final: z.boolean(),
  }),
  z.object({
    type: z.literal("TOOL_LIFECYCLE_INVOKED"), call_id: z.string(), tool: z.string(),
    arguments: z.record(z.string(), z.unknown()), timestamp: time,
  }),
  z.object({
    type: z.literal("TOOL_LIFECYCLE_COMPLETED"), call_id: z.string(), tool: z.string(),
    status: z.enum(["success", "failure", "timeout"]), duration_ms: z.number().nonnegative(),
    timestamp: time,
  }),
  z.object({
    type: z.literal("TASK_TRANSITION"), task_id: z.string(), from_state: z.string(),
    to_state: z.string(), git_hash: z.string().optional(), timestamp: time,
  }),
  z.object({
    type: z.literal("SANDBOX_PULSE"), line: z.string(), masked: z.boolean(), timestamp: time,
  }),
]);
const event = z.object({ event_id: z.uuid(), session_id: z.string(), payload });

const shape = { turn, event }[process.argv[2]];
const message = readFileSync(0);
const milliseconds = Number(process.argv[3]) * 1000;
const check = () => shape.parse(JSON.parse(message.toString("utf8")));
for (let i = 0; i < 5000; i++) check();
let done = 0;
const start = performance.now();
while (performance.now() - start < milliseconds) {
  for (let i = 0; i < 100; i++) check();
  done += 100;
}
console.log((done * 1000) / (performance.now() - start));
