"""The door for coding agents: tools and resources over MCP, on stdio and streamable HTTP."""
