"""Servers under fire: `mcp-memory torture`, and what the tests of crashes are made of.

Real server processes are asked for many writes at once while they are killed, their disk is full, slow or
broken, their clock jumps and the power fails. The law: an answer that reached us is a promise, and every
promise is looked for afterwards. Nothing here is imported by a server; faults come from a wrapper around
it (`victim`), and a server that was not started by that wrapper knows nothing of them."""
