"""What stands beside /mcp: is it alive, is it ready, what has it counted, and whose tokens it takes.

Alive and ready are open to whoever may call us by name, and who asks for no more proves nothing: where places are
short, others have his. What was counted is for those with a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_memory.wire.http import JSON, Reply
from mcp_memory.wire.oauth import METADATA, metadata_url

if TYPE_CHECKING:
    from mcp_memory.space import Space
    from mcp_memory.wire.http import HttpConnection, Request
    from mcp_memory.wire.serving import Service
    from mcp_memory.wire.streamable import Endpoint

    Page = Callable[[Request, HttpConnection], Reply]

TEXT = b"content-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\n"
READY = Reply(200, b"ready\n", TEXT)
PROMETHEUS = b"content-type: text/plain; version=0.0.4; charset=utf-8\r\ncache-control: no-store\r\n"


def pages(endpoint: Endpoint) -> dict[bytes, Page]:
    """The pages, by their path."""
    service = endpoint.service

    def healthz(request: Request, connection: HttpConnection) -> Reply:
        return Reply(200, b"alive\n", TEXT)

    def readyz(request: Request, connection: HttpConnection) -> Reply:
        why = unready(service)
        return Reply(503, f"not ready: {why}\n".encode(), TEXT + b"retry-after: 1\r\n") if why else READY

    def metrics(request: Request, connection: HttpConnection) -> Reply:
        wrong = endpoint.gate.check_sender(request, connection)
        return wrong or Reply(200, service.meters.text(gauges(service, len(endpoint.clients))), PROMETHEUS)

    found: dict[bytes, Page] = {b"/healthz": healthz, b"/readyz": readyz, b"/metrics": metrics}
    oauth = service.access.oauth
    if oauth is not None:
        said = Reply(200, oauth.metadata(service.resource), JSON + b"cache-control: max-age=3600\r\n")
        path = "/" + metadata_url(service.resource).partition("://")[2].partition("/")[2]
        found[METADATA.encode()] = found[path.encode()] = lambda *_: said
    return found


def unready(service: Service) -> str:
    """Why it would be better to ask another server, if it would."""
    oauth = service.access.oauth
    if service.is_ending:
        return "the server is ending"
    if oauth is not None and not oauth.is_ready:
        return oauth.trouble
    return "" if service.is_prepared else "the memory is being loaded"


def _unflagged(space: Space) -> int:
    graph, _ = space.resident
    caretaker = space.caretaker
    return 0 if graph is None or caretaker is None else max(graph.next_observation - 1 - caretaker.last, 0)


def gauges(service: Service, clients: int) -> dict[str, tuple[str, float]]:
    """Measures of this moment, without waiting for anything."""
    space = service.offer.desk.space
    graph, pending = space.resident
    connections = list(service.connections)
    embedded, texts = space.meaning.progress()
    unsent = sum(each.transport.get_write_buffer_size() for each in connections if not each.is_gone)
    return {
        "entities": ("Entities in the graph.", 0 if graph is None else graph.entity_count),
        "observations": ("Active observations in the graph.", 0 if graph is None else graph.observation_count),
        "relations": ("Active relations in the graph.", 0 if graph is None else graph.relation_count),
        "feed_sequence": ("The last entry of the feed that the graph has taken in.", graph.seq if graph else 0),
        "graph_lag": ("Committed entries that the graph has yet to take in.", pending),
        "feed_lag": ("Entries of the feed that tables and full text lag behind.", space.store.behind()),
        "embedding_queue": ("Texts that have yet to get a vector.", texts - embedded),
        "flag_queue": ("Observations that have yet to be compared with those before them.", _unflagged(space)),
        "connections": ("Open connections.", len(connections)),
        "sessions": ("Clients that shook hands over HTTP.", clients),
        "listeners": ("Connections that want to know when somebody writes.", len(service.hearers)),
        "worker_queue": ("Calls that wait for a worker.", service.workers.waiting),
        "workers_busy": ("Workers with a call.", service.workers.busy),
        "unsent_bytes": ("Bytes that clients have yet to read.", unsent),
        "uptime_seconds": ("Since the server began to listen.", service.loop.time() - service.began),
    }
