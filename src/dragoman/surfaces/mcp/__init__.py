"""MCP surface for coding agents: tools and resources, on stdio and streamable HTTP."""
