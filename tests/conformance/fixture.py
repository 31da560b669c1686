"""What the official conformance suite wants of a server under test, on our own wire: tools, prompts, resources.

Only the content is made for the suite; sessions, streams, questions and their sealed state are those that a
memory is served with. Run as a program it listens like the real server, with the same options."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from mcp_memory.desk import Blocks, Desk
from mcp_memory.errand import Errand
from mcp_memory.facts import Limits
from mcp_memory.graph import Graph
from mcp_memory.space import Space
from mcp_memory.tools.registry import Tool
from mcp_memory.wire import Offer
from mcp_memory.wire.asking import Dialogue, Question
from mcp_memory.wire.prompts import Argument, Prompt, Render
from mcp_memory.wire.resources import Resources
from tests.wire.toy import ListStore

STEP_SECONDS = 0.05
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
PICTURE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
OFFERS: list[Offer] = []  # the one that serves; the tools that change lists need it


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def embedded(uri: str, mime: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": said}}


# ── tools that answer ────────────────────────────────────────────────────────────────────────────


def test_simple_text(graph: Graph) -> Blocks:
    """Answer with text."""
    return Blocks([text("This is a simple text response for testing.")])


def test_image_content(graph: Graph) -> Blocks:
    """Answer with an image."""
    return Blocks([PICTURE])


def test_audio_content(graph: Graph) -> Blocks:
    """Answer with a sound."""
    return Blocks([{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])


def test_embedded_resource(graph: Graph) -> Blocks:
    """Answer with a resource."""
    return Blocks([embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")])


def test_multiple_content_types(graph: Graph) -> Blocks:
    """Answer with text, an image and a resource."""
    inside = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return Blocks([text("Multiple content types test:"), PICTURE, inside])


def test_error_handling(graph: Graph) -> Blocks:
    """Answer with an error."""
    return Blocks([text("This tool intentionally returns an error for testing")], is_error=True)


def test_tool_with_logging(errand: Errand) -> Blocks:
    """Say something three times before the answer."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        errand.log("info", said)
        time.sleep(STEP_SECONDS)
    return Blocks([text("done")])


def test_logging_tool(errand: Errand) -> Blocks:
    """Say something to a client that wants to hear it."""
    errand.log("info", "working")
    return Blocks([text("done")])


def test_tool_with_progress(errand: Errand) -> Blocks:
    """Tell how far it is, three times."""
    for done in (0, 50, 100):
        errand.progress(done, 100)
        time.sleep(STEP_SECONDS)
    return Blocks([text("done")])


def test_trigger_tool_change(graph: Graph) -> Blocks:
    """Say that the list of tools has changed."""
    OFFERS[0].change_lists("tools")
    return Blocks([text("changed")])


def test_trigger_prompt_change(graph: Graph) -> Blocks:
    """Say that the list of prompts has changed."""
    OFFERS[0].change_lists("prompts")
    return Blocks([text("changed")])


# ── tools that ask ───────────────────────────────────────────────────────────────────────────────


def dialogue_of(errand: Errand) -> Dialogue:
    assert isinstance(errand.client, Dialogue)
    return errand.client


def form(message: str, properties: dict[str, Any], required: list[str] | None = None) -> Question:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return Question("elicitation/create", {"message": message, "requestedSchema": schema})


def sampling(prompt: str, most: int = 100) -> Question:
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return Question("sampling/createMessage", {"messages": [message], "maxTokens": most})


TEXT = {"type": "string"}
NAME = form("What is your name?", {"name": TEXT})
AGREE = form("Please confirm", {"ok": {"type": "boolean"}})
ROOTS = Question("roots/list")


def test_sampling(errand: Errand, prompt: str) -> Blocks:
    """Have the client's model say something."""
    answer = dialogue_of(errand).ask({"it": sampling(prompt)})["it"]
    return Blocks([text(f"LLM response: {answer['content']['text']}")])


def test_elicitation(errand: Errand, message: str) -> Blocks:
    """Ask the user for a name and an address."""
    asked = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = dialogue_of(errand).ask({"it": form(message, asked)})["it"]
    return Blocks([text(f"User response: {json.dumps(answer)}")])


def test_elicitation_sep1034_defaults(errand: Errand) -> Blocks:
    """Ask the user with a default for each kind of value."""
    asked = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return completed(dialogue_of(errand).ask({"it": form("Please review", asked, [])})["it"])


def test_elicitation_sep1330_enums(errand: Errand) -> Blocks:
    """Ask the user to choose, in each way there is."""
    values = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    options = ["option1", "option2", "option3"]
    asked = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": values},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": values}},
    }
    return completed(dialogue_of(errand).ask({"it": form("Please choose", asked, [])})["it"])


def completed(answer: Any) -> Blocks:
    said = f"action={answer.get('action')}, content={json.dumps(answer.get('content', {}))}"
    return Blocks([text(f"Elicitation completed: {said}")])


def test_missing_capability(errand: Errand) -> Blocks:
    """Need a capability that the client must have declared."""
    dialogue_of(errand).ask({"it": sampling("hello")})
    return Blocks([text("it was declared")])


def test_streaming_elicitation(errand: Errand) -> Blocks:
    """Tell how far it is, and then ask."""
    errand.progress(1, 2)
    dialogue_of(errand).ask({"user_name": NAME})
    return Blocks([text("done")])


def test_input_required_result_elicitation(errand: Errand) -> Blocks:
    """Ask for a name."""
    answer = dialogue_of(errand).ask({"user_name": NAME})["user_name"]
    return Blocks([text(f"Hello, {(answer.get('content') or {}).get('name', 'stranger')}!")])


def test_input_required_result_sampling(errand: Errand) -> Blocks:
    """Ask the client's model."""
    question = sampling("What is the capital of France?")
    answer = dialogue_of(errand).ask({"capital_question": question})["capital_question"]
    return Blocks([text(json.dumps(answer.get("content")))])


def test_input_required_result_list_roots(errand: Errand) -> Blocks:
    """Ask for the client's roots."""
    answer = dialogue_of(errand).ask({"client_roots": ROOTS})["client_roots"]
    return Blocks([text(json.dumps(answer.get("roots")))])


def test_input_required_result_request_state(errand: Errand) -> Blocks:
    """Ask, and accept no answer without the state that went with the question."""
    dialogue_of(errand).ask({"confirm": AGREE}, "asked", sealed=True)
    brought = dialogue_of(errand).brought()
    return Blocks([text("state-ok" if brought and brought["state"] == "asked" else "no state")])


def test_input_required_result_multiple_inputs(errand: Errand) -> Blocks:
    """Ask three things at once."""
    questions = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    return Blocks([text(json.dumps(dialogue_of(errand).ask(questions, sealed=True)))])


def test_input_required_result_multi_round(errand: Errand) -> Blocks:
    """Ask one thing, and then another."""
    dialogue = dialogue_of(errand)
    first = dialogue.ask({"step1": form("Step 1: What is your name?", {"name": TEXT})}, 1)["step1"]
    second = dialogue.ask({"step2": form("Step 2: What is your favorite color?", {"color": TEXT})}, 2)["step2"]
    return Blocks([text(json.dumps([first, second]))])


def test_input_required_result_tampered_state(errand: Errand) -> Blocks:
    """Ask, and see whether what comes back is what went out."""
    dialogue_of(errand).ask({"confirm": AGREE}, sealed=True)
    return Blocks([text("confirmed")])


def test_input_required_result_capabilities(errand: Errand) -> Blocks:
    """Ask only what the client can answer."""
    wanted = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    dialogue = dialogue_of(errand)
    return Blocks([text(json.dumps(dialogue.ask({k: q for k, q in wanted.items() if dialogue.can_ask(q.method)})))])


class SchemaTool(Tool):
    """A tool whose schema uses what JSON Schema 2020-12 has to offer."""

    def wire(self) -> dict[str, Any]:
        address = {"type": "object", "properties": {"street": TEXT, "city": TEXT}}
        by_phone = {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", **address}},
            "properties": {
                "name": TEXT,
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": TEXT,
                "email": TEXT,
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": by_phone,
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        }
        return {"name": self.name, "description": "Tool with JSON Schema 2020-12 features", "inputSchema": schema}


def json_schema_2020_12_tool(graph: Graph, name: str = "") -> Blocks:
    """Answer with its argument."""
    return Blocks([text(name)])


def mirrored_argument(graph: Graph, region: str = "") -> Blocks:
    """Answer with an argument that a header says again."""
    return Blocks([text(region)])


def tools() -> dict[str, Tool]:
    functions = [made for name, made in globals().items() if name.startswith("test_") and callable(made)]
    offered = {function.__name__: Tool(function) for function in functions}
    offered["json_schema_2020_12_tool"] = SchemaTool(json_schema_2020_12_tool)
    offered["mirrored_argument"] = Tool(mirrored_argument, headers={"region": "Region"})
    return offered


# ── resources and prompts ────────────────────────────────────────────────────────────────────────


def listed(uri: str, mime: str) -> dict[str, Any]:
    return {"uri": uri, "name": uri.rpartition("/")[2], "description": "For the suite", "mimeType": mime}


class FixtureResources(Resources):
    names = ("test://static-text", "test://static-binary")

    def listed(self) -> list[dict[str, Any]]:
        return [listed("test://static-text", "text/plain"), listed("test://static-binary", "image/png")]

    def templates(self) -> list[dict[str, Any]]:
        data = listed("test://template/{id}/data", "application/json")
        return [{"uriTemplate": data.pop("uri"), **data}]

    def read(self, uri: str, space: Space, at_once: bool = False) -> dict[str, Any] | None:
        if uri == "test://static-text":
            said = "This is the content of the static text resource."
            return {"uri": uri, "mimeType": "text/plain", "text": said}
        if uri == "test://static-binary":
            return {"uri": uri, "mimeType": "image/png", "blob": PIXEL}
        if uri.startswith("test://template/") and uri.endswith("/data"):
            ident = uri.removeprefix("test://template/").removesuffix("/data")
            data = {"id": ident, "templateTest": True, "data": f"Data for ID: {ident}"}
            return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
        return None

    def can_change(self, uri: str) -> bool:
        return uri.startswith("test://")


def user(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": block} for block in blocks]


def ask_first(desk: Desk, arguments: dict[str, str], dialogue: Dialogue) -> list[dict[str, Any]]:
    question = form("What context should the prompt use?", {"context": TEXT})
    answer = dialogue.ask({"user_context": question})["user_context"]
    return user(text(f"Use this context: {(answer.get('content') or {}).get('context')}"))


def prompts() -> dict[str, Prompt]:
    def fixed(*blocks: dict[str, Any]) -> Render:
        return lambda desk, arguments, dialogue: user(*blocks)

    def with_arguments(desk: Desk, given: dict[str, str], dialogue: Dialogue) -> list[dict[str, Any]]:
        return user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))

    def with_resource(desk: Desk, given: dict[str, str], dialogue: Dialogue) -> list[dict[str, Any]]:
        said = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return user(said, text("Please process the embedded resource above."))

    two = (Argument("arg1", "First test argument", True), Argument("arg2", "Second test argument", True))
    uri = (Argument("resourceUri", "URI of the resource to embed", True),)
    made: list[tuple[str, Callable[..., Any], tuple[Argument, ...]]] = [
        ("test_simple_prompt", fixed(text("This is a simple prompt for testing.")), ()),
        ("test_prompt_with_arguments", with_arguments, two),
        ("test_prompt_with_embedded_resource", with_resource, uri),
        ("test_prompt_with_image", fixed(PICTURE, text("Please analyze the image above.")), ()),
        ("test_input_required_result_prompt", ask_first, ()),
    ]
    return {name: Prompt(name, name, "For the suite", render, arguments) for name, render, arguments in made}


def serve() -> int:
    """This file as a server; its arguments are settings."""
    from mcp_memory.settings import read
    from mcp_memory.wire.serving import listen

    settings = read(["--transport", "http", *sys.argv[1:]]).settings
    space = Space(ListStore())
    offer = Offer(lambda: Desk(space, tools(), Limits()), {"name": "fixture", "version": "1"}, "For the suite.")
    offer.resources, offer.prompts = FixtureResources(), prompts()
    OFFERS.append(offer)
    return listen(offer, settings, space.close)


if __name__ == "__main__":
    sys.exit(serve())
