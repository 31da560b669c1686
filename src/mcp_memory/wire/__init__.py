"""How clients reach a space: the Model Context Protocol as bytes in and bytes out, and its transports.

Only a transport knows a file descriptor, a socket or a thread; everything else can be replayed from bytes."""

from mcp_memory.wire.offer import Offer
from mcp_memory.wire.session import Session

__all__ = ["Offer", "Session"]
