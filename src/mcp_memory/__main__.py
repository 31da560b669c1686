"""`python -m mcp_memory` is the `mcp-memory` command."""

from mcp_memory.server import main

raise SystemExit(main())
