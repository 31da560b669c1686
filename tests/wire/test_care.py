"""Looking after a memory, over the wire: the documented requests word for word, answered with the documented keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_memory import care
from mcp_memory.assembly import desk_for
from mcp_memory.curation import duplicates, topics
from mcp_memory.settings import Settings
from mcp_memory.wire import Offer, Session
from tests.wire.toy import SERVER, Client

ARCHITECTURE = [
    "Stack: FastMCP + SQLite",
    "MCP Memory v2",
    "La arquitectura separa el almacenamiento del servidor MCP",
    "El almacenamiento usa SQLite con WAL",
    "La arquitectura de búsqueda usa SQLite con FTS5",
    "El esquema SQLite tiene doce tablas",
    "El servidor MCP habla por stdio",
    "La arquitectura del servidor MCP tiene tres capas",
    "SQLite guarda los vectores del servidor MCP",
]
WORK = [
    "97 tests passing",
    "Query routing implementado",
    "Los tests de integración tardan 40 segundos",
    "Se añadieron tests para el detector de duplicados",
    "Implementado el scoring límbico con sus tests",
    "Implementada la detección de duplicados con tests",
    "Los tests de concurrencia usan 20 hilos",
    "Refactor de los tests del scoring implementado",
    "Faltan tests para la exportación",
]
DEPLOYMENT = [
    "Deploy: Vercel",
    "URL: cachorro.space",
    "El despliegue en Vercel es automático",
    "Vercel avisa por correo si falla el despliegue",
    "La rama main se despliega en Vercel",
    "El despliegue de Vercel tarda dos minutos",
    "Vercel guarda los registros de cada despliegue",
    "El dominio del despliegue en Vercel se renueva en mayo",
    "Cada rama tiene un despliegue de prueba en Vercel",
    "El despliegue en Vercel cuesta 20 euros al mes",
]
PROJECT = [*ARCHITECTURE, *WORK, *DEPLOYMENT]
# What a client may send before it has finished reading the documentation: a call as it stands there.
ANALYSIS = {"entity_name", "entity_type", "observation_count", "threshold", "needs_split", "topics", "split_score"}
REFLECTION = {"id", "target_type", "target_id", "author", "content", "mood", "created_at"}


class Wire(Client):
    """The real desk over a database, and calls as JSON texts."""

    def __init__(self, file: Path, **settings: Any) -> None:
        desk = desk_for(Settings(memory_file=str(file), **settings))
        self.space = desk.space
        self.offer = Offer(desk, SERVER)
        self.session = Session(self.offer, "test")
        self.sent = []
        self.worker = None
        self._last_id = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.result("initialize", **hello)

    def send(self, method: str, ident: Any = None, **params: Any) -> list[Any]:
        """Also of a call that goes to a thread, because it may take a while."""
        self.sent.clear()
        return super().send(method, ident, **params) or self.wait()

    def ask(self, tool: str, arguments: str | dict[str, Any]) -> Any:
        """The answer's object; it must stand in the text as well."""
        said = json.loads(arguments) if isinstance(arguments, str) else arguments
        result = self.call(tool, **said)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refusal(self, tool: str, **arguments: Any) -> Any:
        result = self.call(tool, **arguments)
        assert result["isError"] and "structuredContent" not in result
        return json.loads(result["content"][0]["text"])

    def create(self, name: str, entity_type: str, *observations: str) -> None:
        self.ask(
            "create_entities",
            {"entities": [{"name": name, "entityType": entity_type, "observations": list(observations)}]},
        )


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path / "memory.db")
    yield wire
    assert [finding.text for finding in wire.space.check()] == []
    wire.space.close()


def test_analyze_entity_split(wire: Wire) -> None:
    wire.create("Proyecto cachorrites", "Proyecto", *PROJECT)

    analysis = wire.ask("analyze_entity_split", '{"entity_name": "Proyecto cachorrites"}')["analysis"]

    assert analysis.keys() >= ANALYSIS
    assert (analysis["entity_name"], analysis["entity_type"]) == ("Proyecto cachorrites", "Proyecto")
    assert (analysis["observation_count"], analysis["threshold"], analysis["split_score"]) == (28, 25, 1.12)
    assert analysis["needs_split"] is True
    assert len(analysis["topics"]) >= 2
    assert all(len(texts) > 1 for texts in analysis["topics"].values())
    grouped = [text for texts in analysis["topics"].values() for text in texts]
    assert sorted(grouped + analysis["without_topic"]) == sorted(PROJECT)


@pytest.mark.parametrize("tool", ["propose_entity_split", "propose_entity_split_tool"])
def test_propose_entity_split(wire: Wire, tool: str) -> None:
    wire.create("Proyecto cachorritos", "Proyecto", *PROJECT)

    proposal = wire.ask(tool, '{"entity_name": "Proyecto cachorritos"}')["proposal"]

    assert proposal["original_entity"] == {"name": "Proyecto cachorritos", "entity_type": "Proyecto"}
    names = [split["name"] for split in proposal["suggested_splits"]]
    assert all(name.startswith("Proyecto cachorritos - ") for name in names)
    assert all(split.keys() == {"name", "entity_type", "observations"} for split in proposal["suggested_splits"])
    assert proposal["relations_to_create"] == [
        relation
        for name in names
        for relation in (
            {"from": "Proyecto cachorritos", "to": name, "type": "contiene"},
            {"from": name, "to": "Proyecto cachorritos", "type": "parte_de"},
        )
    ]
    assert proposal["analysis"] == {
        "observation_count": 28,
        "threshold": 25,
        "split_score": 1.12,
        "num_topics": len(names),
    }


def test_a_proposal_can_be_executed_as_it_is(wire: Wire) -> None:
    wire.create("Proyecto cachorritos", "Proyecto", *PROJECT)
    proposal = wire.ask("propose_entity_split", {"entity_name": "Proyecto cachorritos"})["proposal"]

    result = wire.ask(
        "execute_entity_split_tool",
        {"entity_name": "Proyecto cachorritos", "approved_splits": proposal["suggested_splits"]},
    )["result"]

    assert result["new_entities"] == [split["name"] for split in proposal["suggested_splits"]]
    assert result["relations_created"] == len(proposal["relations_to_create"])
    assert result["original_observations_remaining"] == len(proposal["remaining"])
    relations = wire.ask("open_nodes", {"names": ["Proyecto cachorritos"]})["relations"]
    assert {(r["from"], r["relationType"], r["to"]) for r in relations} == {
        (r["from"], r["type"], r["to"]) for r in proposal["relations_to_create"]
    }


def test_execute_entity_split(wire: Wire) -> None:
    wire.create("Proyecto cachorritos", "Proyecto", *PROJECT)
    request = """{
        "entity_name": "Proyecto cachorritos",
        "approved_splits": [
            {
                "name": "Proyecto cachorritos - Arquitectura",
                "entity_type": "Proyecto",
                "observations": ["Stack: FastMCP + SQLite", "MCP Memory v2"]
            }
        ]
    }"""

    assert wire.ask("execute_entity_split", request) == {
        "result": {
            "new_entities": ["Proyecto cachorritos - Arquitectura"],
            "moved_observations": 2,
            "relations_created": 2,
            "original_observations_remaining": 26,
        }
    }


def test_find_split_candidates(wire: Wire) -> None:
    assert wire.ask("find_split_candidates", "{}") == {"candidates": []}
    wire.create("Proyecto cachorritos", "Proyecto", *PROJECT)
    wire.create("Sesión 2026-03-31", "Sesion", *ARCHITECTURE, *DEPLOYMENT[:-1])
    wire.create("Pequeña", "Sesion", *WORK)

    candidates = wire.ask("find_split_candidates", "{}")["candidates"]

    assert [one["entity_name"] for one in candidates] == ["Proyecto cachorritos", "Sesión 2026-03-31"]
    assert [(one["observation_count"], one["threshold"], one["split_score"]) for one in candidates] == [
        (28, 25, 1.12),
        (18, 15, 1.2),
    ]
    assert all(one.keys() >= ANALYSIS and one["needs_split"] is True for one in candidates)


def test_find_duplicate_observations(wire: Wire) -> None:
    wire.create(
        "My Project",
        "Project",
        "Deployed on Vercel with custom domain",
        "Deployment: Vercel, custom domain configured",
        "Stack: FastMCP + SQLite + ONNX Runtime for embeddings",
        "FastMCP",
        "The team meets on Tuesdays",
    )

    answer = wire.ask("find_duplicate_observations", '{"entity_name": "My Project", "threshold": 0.85}')

    assert (answer["entity_name"], answer["total_observations"]) == ("My Project", 5)
    found = {(pair["obs_text_a"], pair["obs_text_b"]): pair for pair in answer["duplicate_pairs"]}
    cosine = found["Deployed on Vercel with custom domain", "Deployment: Vercel, custom domain configured"]
    contained = found["Stack: FastMCP + SQLite + ONNX Runtime for embeddings", "FastMCP"]
    assert (cosine["match_type"], contained["match_type"]) == ("cosine", "containment")
    assert 0.85 <= cosine["similarity_score"] <= 1
    assert 0.7 <= contained["similarity_score"] <= 1
    assert [cluster["size"] for cluster in answer["clusters"]] == [2, 2]


def test_consolidation_report(wire: Wire) -> None:
    wire.create("Sesión 2026-03-31", "Sesion", *ARCHITECTURE, *DEPLOYMENT[:-1])
    wire.create("Monotonous", "Generic", *(f"value {n}" for n in range(21)))

    report = wire.ask("consolidation_report", '{"stale_days": 90}')

    assert report["summary"].keys() >= {
        "total_entities",
        "total_observations",
        "split_candidates_count",
        "flagged_observations_count",
        "stale_entities_count",
        "large_entities_count",
    }
    assert (report["summary"]["total_entities"], report["summary"]["total_observations"]) == (2, 39)
    (candidate,) = report["split_candidates"]
    assert (
        candidate.items()
        >= {
            "entity_name": "Sesión 2026-03-31",
            "entity_type": "Sesion",
            "observation_count": 18,
            "threshold": 15,
            "split_score": 1.2,
        }.items()
    )
    (large,) = report["large_entities"]
    assert large.items() >= {"entity_name": "Monotonous", "entity_type": "Generic", "observation_count": 21}.items()
    assert report["stale_entities"] == []


def test_consolidation_report_lists_what_is_flagged_and_what_is_stale(wire: Wire) -> None:
    today = wire.space.clock
    wire.space.clock = lambda: "2020-01-01 00:00:00"
    wire.create("Old Experiment", "Generic", "one", "two", "three")
    wire.space.clock = today
    wire.create(
        "My Project", "Generic", "Deployed on Vercel since March, under a domain of its own", "Deployed on Vercel"
    )
    assert wire.space.caretaker is not None and wire.space.caretaker.hurry(60)

    report = wire.ask("consolidation_report", '{"stale_days": 90}')

    (flagged,) = report["flagged_observations"]
    documented = {"entity_name": "My Project", "observation_text": "Deployed on Vercel", "similarity_flag": 1}
    assert flagged.items() >= documented.items()
    (stale,) = report["stale_entities"]
    assert stale.items() >= {"entity_name": "Old Experiment", "entity_type": "Generic", "observation_count": 3}.items()
    assert stale.keys() >= {"last_accessed_days_ago", "access_count"}
    assert (report["summary"]["flagged_observations_count"], report["summary"]["stale_entities_count"]) == (1, 1)


def test_end_relation(wire: Wire) -> None:
    for number in range(43):
        wire.create(f"E{number}", "Thing")
    wire.ask(
        "create_relations",
        {"relations": [{"from": f"E{n}", "to": f"E{n + 1}", "relationType": "knows"} for n in range(42)]},
    )

    assert wire.ask("end_relation", '{"relation_id": 42}') == {"result": "Relation 42 expired successfully"}
    assert "already ended" in wire.ask("end_relation", '{"relation_id": 42}')["result"]
    assert "id=99" in wire.refusal("end_relation", relation_id=99)["error"]


CONTENT = "This entity represents the core architectural decision that shaped the entire project."
ADDING = f"""{{
    "target_type": "entity",
    "target_id": 15,
    "content": "{CONTENT}",
    "author": "nolan",
    "mood": "insight"
}}"""
ASKING = '{"query": "architecture decisions that shaped the project", "author": "nolan", "limit": 5}'


def test_add_reflection_and_search_reflections(wire: Wire) -> None:
    for number in range(1, 16):
        wire.create(f"E{number}", "Thing")
    for _ in range(4):
        wire.ask("add_reflection", {"target_type": "global", "content": "Gardens need rain"})

    result = wire.ask("add_reflection", ADDING)["result"]

    assert result.keys() >= REFLECTION
    assert (
        result.items()
        >= {
            "id": 5,
            "target_type": "entity",
            "target_id": 15,
            "author": "nolan",
            "content": CONTENT,
            "mood": "insight",
        }.items()
    )
    (found,) = wire.ask("search_reflections", ASKING)["results"]
    assert found.keys() >= REFLECTION | {"score"}
    assert {key: found[key] for key in REFLECTION} == {key: result[key] for key in REFLECTION}
    assert 0.5 < found["score"] <= 1


# ── one heavy call at a time ─────────────────────────────────────────────────────────────────────


def test_a_heavy_call_that_does_not_get_its_turn_is_told_so_as_documented(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "memory.db", heavy_tool_acquire_timeout_seconds=0.05)
    wire.create("Ada", "Person", "poet")
    heavy = [tool for tool in wire.offer.desk.tools.values() if tool.is_heavy]
    assert {tool.name for tool in heavy} == {
        "analyze_entity_split",
        "propose_entity_split",
        "execute_entity_split",
        "find_split_candidates",
        "find_duplicate_observations",
        "consolidation_report",
    }

    with wire.space.heavy:
        assert wire.refusal("consolidation_report") == {
            "error": "server_busy",
            "code": "heavy_tool_backpressure",
            "message": "Too many heavy maintenance operations are running (limit=1). Retry later.",
            "retryable": True,
        }
        assert wire.ask("get_entity", {"name": "Ada"})["observations"] == ["poet"]

    assert wire.ask("consolidation_report", {})["summary"]["total_entities"] == 1
    wire.space.close()


def test_a_heavy_call_waits_a_while_for_its_turn(wire: Wire) -> None:
    wire.create("Ada", "Person", "poet")
    wire.space.heavy.__enter__()
    threading.Timer(0.1, wire.space.heavy.__exit__).start()

    assert wire.ask("consolidation_report", {})["summary"]["total_entities"] == 1


# ── how far it is ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def grown(wire: Wire) -> Wire:
    for number in range(30):
        wire.create(f"Sesión {number}", "Sesion", *(f"{text} ({number})" for text in (*ARCHITECTURE, *DEPLOYMENT)))
    return wire


@pytest.mark.parametrize("tool", ["consolidation_report", "find_split_candidates"])
def test_a_long_look_tells_how_far_it_is(grown: Wire, tool: str) -> None:
    *notes, reply = grown.send("tools/call", name=tool, arguments={}, _meta={"progressToken": "p"})

    told = [note["params"] for note in notes]
    assert {note["method"] for note in notes} == {"notifications/progress"}
    assert len(told) > 10
    assert {one["progressToken"] for one in told} == {"p"}
    progress = [one["progress"] for one in told]
    assert progress == sorted(set(progress))
    assert all(one["progress"] <= one.get("total", 0) and one["message"] for one in told)
    assert not reply["result"].get("isError")


def test_a_long_look_can_be_called_off_and_keeps_no_ping_waiting(grown: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    really = topics.topics_of

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return really(*arguments)

    monkeypatch.setattr(topics, "topics_of", slow)
    grown.sent.clear()
    assert Client.send(grown, "tools/call", "long", name="consolidation_report", arguments={}) == []
    assert begun.wait(60)

    assert Client.send(grown, "ping", 7) == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    grown.notify("notifications/cancelled", requestId="long")
    go_on.set()

    assert grown.wait() == []
    assert grown.ask("consolidation_report", {})["summary"]["total_entities"] == 30  # its turn was given back


def test_a_report_that_waits_for_flags_keeps_no_ping_waiting(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("Ada", "Person", "likes tea", "writes programs")
    caretaker = wire.space.caretaker
    assert caretaker is not None and caretaker.hurry(60)
    begun, go_on = threading.Event(), threading.Event()
    really = duplicates.Said.alike

    def slow(*arguments: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return really(*arguments, **more)

    monkeypatch.setattr(duplicates.Said, "alike", slow)
    monkeypatch.setattr(care, "REPORT_SECONDS", 60)
    wire.ask("add_observations", {"name": "Ada", "observations": ["Ada likes tea"]})
    wire.sent.clear()
    assert Client.send(wire, "tools/call", "long", name="consolidation_report", arguments={}) == []
    assert begun.wait(60)

    assert Client.send(wire, "ping", 7) == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    go_on.set()
    (reply,) = wire.wait()
    assert reply["result"]["structuredContent"]["summary"]["flagged_observations_count"] == 1
