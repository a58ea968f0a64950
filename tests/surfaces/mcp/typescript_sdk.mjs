// The usual loop with the TypeScript SDK, over the server that `dragoman connect claude-code` has written here.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.CODING_AGENTS}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const { command, args } = JSON.parse(readFileSync(".mcp.json")).mcpServers.dragoman;
const client = new Client({ name: "script", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const call = async (name, more = {}) => (await client.callTool({ name, arguments: more })).structuredContent;
const { task, fence } = await call("claim");
await call("update", { task, fence, progress: "half" });
const { answer } = await call("ask", { task, fence, question: "Which one?", wait: 50 });
await call("complete", { task, fence, notes: `took ${answer}` });
await client.close();
