"""Where the official profile is meant to differ from the official server: every case, with its reason.

A row that no longer differs fails its test, and a difference that is no row fails another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.official.pair import AWAITED, Pair, Said, Step, call, handshake, request, text
from tests.official.recorded import READ, add, create, entity, relate, relation
from tests.peers import Message

UNREFUSED = '"structuredContent"'


def told(_: Pair, said: Said) -> tuple[str, str]:
    return text(said.theirs), text(said.ours)


def whether_there_is_a_file(pair: Pair, _: Said) -> tuple[str, str]:
    return str(pair.their_file.exists()), str(pair.our_file.exists())


def the_files(pair: Pair, _: Said) -> tuple[str, str]:
    return pair.their_content().decode(), pair.our_content().decode()


def without_a_folder(pair: Pair) -> None:
    for file in (pair.their_file, pair.our_file):
        file.parent.rmdir()


def how_many_there_are(_: Pair, said: Said) -> tuple[str, str]:
    theirs, ours = (len(messages[-1]["result"]["structuredContent"]["entities"]) for messages in said)
    return ("all" if theirs == MANY else "some"), ("all" if ours == MANY else "some")


class Difference(NamedTuple):
    """What both are told, and what each then shows (a part of it). Before the last step both say the same."""

    name: str
    reason: str
    steps: list[Step]
    theirs: str
    ours: str
    content: bytes | None = None  # of the file, beforehand
    before: Callable[[Pair], None] | None = None
    together: tuple[Message, ...] = ()  # sent before the steps, without waiting for answers
    look: Callable[[Pair, Said], tuple[str, str]] = told


MANY = 60
LONG = "x" * 65_537
ALICE = b'{"type":"entity","name":"Alice","entityType":"person","observations":["likes tea"]}'


def raw_call(tool: str, arguments: bytes) -> bytes:
    """A call whose arguments are bytes that no JSON encoder would write."""
    params = b'{"name":"%s","arguments":%s}' % (tool.encode(), arguments)
    return b'{"jsonrpc":"2.0",%s,"method":"tools/call","params":%s}' % (AWAITED, params)


def many(count: int, item: Callable[[int], Any]) -> list[Any]:
    return [item(number) for number in range(count)]


WANTED: tuple[Difference, ...] = (
    # ── what would store the same thing twice ────────────────────────────────────────────────────────
    Difference(
        "two entities of one name in one call",
        "names are unique: the second could never be reached again, only deleted together with the first",
        [create(entity("A", "first"), entity("A", "second"))],
        theirs="second",
        ours='"entities": [{"name": "A", "entityType": "thing", "observations": ["first"]}]',
    ),
    Difference(
        "the same relation twice in one call",
        "a second one says nothing; in two calls the official server skips it as well",
        [relate(relation("A", "B"), relation("A", "B"))],
        theirs='"relationType": "knows"}, {"from"',
        ours='"relations": [{"from": "A", "to": "B", "relationType": "knows"}]',
    ),
    # ── what no store of ours can keep, or nobody can find again ─────────────────────────────────────
    Difference(
        "an entity without a name",
        "it cannot be told apart from a mistake",
        [create(entity(""))],
        theirs=UNREFUSED,
        ours="at least one character",
    ),
    Difference(
        "a relation with an end without a name",
        "as above",
        [relate(relation("A", ""))],
        theirs=UNREFUSED,
        ours="at least one character",
    ),
    Difference(
        "a name of more than 1,024 bytes",
        "the journal format has no place for it, and it is a text, not a name",
        [create(entity("ż" * 513))],
        theirs=UNREFUSED,
        ours="1026 > 1024 bytes",
    ),
    Difference(
        "a type of more than 1,024 bytes",
        "as above",
        [create(entity("A", kind="x" * 1025))],
        theirs=UNREFUSED,
        ours="1025 > 1024 bytes",
    ),
    Difference(
        "a NUL character",
        "C programs that read a database of ours would end the text there",
        [create(entity("A", "before\0after"))],
        theirs=UNREFUSED,
        ours="NUL",
    ),
    # ── limits: the official server has none ─────────────────────────────────────────────────────────
    Difference(
        "more than 1,000 entities in one call",
        "a limit, and a setting",
        [call("create_entities", entities=many(1001, lambda n: entity(f"E{n}")))],
        theirs=UNREFUSED,
        ours="1001 > 1000",
    ),
    Difference(
        "more than 1,000 relations in one call",
        "a limit, and a setting",
        [call("create_relations", relations=many(1001, lambda n: relation("A", f"B{n}")))],
        theirs=UNREFUSED,
        ours="1001 > 1000",
    ),
    Difference(
        "more than 1,000 observations of one entity in one call",
        "a limit, and a setting",
        [create(entity("A", *many(1001, str)))],
        theirs=UNREFUSED,
        ours="1001 > 1000",
    ),
    Difference(
        "more than 1,000 observations added to one entity in one call",
        "a limit, and a setting",
        [create(entity("A")), add("A", *many(1001, str))],
        theirs=UNREFUSED,
        ours="1001 > 1000",
    ),
    Difference(
        "an observation of more than 65,536 characters",
        "a limit, and a setting",
        [create(entity("A", LONG))],
        theirs=UNREFUSED,
        ours="65537 > 65536",
    ),
    Difference(
        "a query of more than 65,536 characters",
        "a limit, and a setting",
        [call("search_nodes", query=LONG)],
        theirs=UNREFUSED,
        ours="65537 > 65536",
    ),
    # ── files in trouble ─────────────────────────────────────────────────────────────────────────────
    Difference(
        "a line of the file that is no JSON",
        "one bad line takes every fact away from theirs; ours serves the rest and keeps the line aside",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":"Bo',
        theirs='"isError": true',
        ours='"name": "Alice"',
    ),
    Difference(
        "a line of the file without observations",
        "as above: an entity of which nothing is known is still an entity",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":"Bob","entityType":"person"}',
        theirs='"isError": true',
        ours='{"name": "Bob", "entityType": "person", "observations": []}',
    ),
    Difference(
        "an entity without a type in the file",
        "as above; ours is generic then, as it is where `migrate` reads such a line",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":"Bob","observations":["sings"]}',
        theirs='"isError": true',
        ours='{"name": "Bob", "entityType": "Generic", "observations": ["sings"]}',
    ),
    Difference(
        "a relation without a type in the file",
        "nothing can be said about it; ours keeps the line aside",
        [READ],
        content=ALICE + b'\n{"type":"relation","from":"Alice","to":"Alice"}',
        theirs='"isError": true',
        ours='"relations": []',
    ),
    Difference(
        "an observation of the file that is no text",
        "theirs shows nothing at all any more; ours shows the rest and keeps the line aside",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":"Bob","entityType":"person","observations":[5]}',
        theirs='"isError": true',
        ours='"name": "Alice"',
    ),
    Difference(
        "observations of the file that are null",
        "as above",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":"Bob","entityType":"person","observations":null}',
        theirs='"isError": true',
        ours='"name": "Alice"',
    ),
    Difference(
        "a name in the file that is no text",
        "as above",
        [READ],
        content=ALICE + b'\n{"type":"entity","name":5,"entityType":"person","observations":["sings"]}',
        theirs='"isError": true',
        ours='"name": "Alice"',
    ),
    Difference(
        "a line of the file that is null",
        "as above, and theirs could not write either",
        [create(entity("Bob"))],
        content=ALICE + b"\nnull",
        theirs='"isError": true',
        ours='"name": "Bob"',
    ),
    Difference(
        "half of a surrogate pair in the file",
        "theirs writes one where a call brought it; ours serves the rest of that text, with U+FFFD in its place, and "
        "keeps the line as it was aside",
        [READ],
        content=ALICE.replace(b"tea", rb"tea \ud83d"),
        theirs="likes tea \ud83d",
        ours="likes tea \ufffd",
    ),
    Difference(
        "two entities of one name in the file",
        "they are one: what is known of it is put together",
        [READ],
        content=ALICE + b"\n" + ALICE.replace(b"likes tea", b"likes coffee"),
        theirs='{"name": "Alice", "entityType": "person", "observations": ["likes coffee"]}',
        ours='{"name": "Alice", "entityType": "person", "observations": ["likes tea", "likes coffee"]}',
    ),
    Difference(
        "the same relation twice in the file",
        "a second one says nothing",
        [READ],
        content=b'{"type":"relation","from":"A","to":"B","relationType":"knows"}\n' * 2,
        theirs='"relationType": "knows"}, {"from"',
        ours='"relations": [{"from": "A", "to": "B", "relationType": "knows"}]',
    ),
    Difference(
        "a call that changes nothing, and no file yet",
        "nothing to keep needs no file",
        [create()],
        theirs="True",
        ours="False",
        look=whether_there_is_a_file,
    ),
    Difference(
        "a call that changes nothing, and a file in another form than the official one",
        "what need not be written is not written",
        [create()],
        content=ALICE + b"\n",
        theirs=ALICE.decode(),
        ours=ALICE.decode() + "\n",
        look=the_files,
    ),
    Difference(
        "a byte order mark",
        "some editors of Windows put one there; to theirs it is a bad line",
        [READ],
        content=b"\xef\xbb\xbf" + ALICE,
        theirs='"isError": true',
        ours='"name": "Alice"',
    ),
    Difference(
        "a folder that does not exist",
        "ours makes it: whoever names a file wants to have it",
        [create(entity("A"))],
        before=without_a_folder,
        theirs="ENOENT",
        ours=UNREFUSED,
    ),
    # ── calls that come before the answer to the last one ────────────────────────────────────────────
    Difference(
        "writes that come together",
        "theirs reads the file before the write ahead has ended, and then writes over it; ours loses none",
        [READ],
        together=tuple(create(entity(f"E{number}")) for number in range(MANY)),
        theirs="some",
        ours="all",
        look=how_many_there_are,
    ),
    # ── the protocol ─────────────────────────────────────────────────────────────────────────────────
    Difference(
        "half of a surrogate pair",
        "it is no text: UTF-8 has no bytes for it",
        [raw_call("create_entities", rb'{"entities":[{"name":"A","entityType":"t","observations":["\ud800"]}]}')],
        theirs=UNREFUSED,
        ours="-32700",
    ),
    Difference(
        "bytes that are not UTF-8",
        "theirs puts other characters in their place, and the fact is lost; ours says so",
        [raw_call("create_entities", b'{"entities":[{"name":"A","entityType":"t","observations":["\xff"]}]}')],
        theirs="\ufffd",
        ours="-32700",
    ),
    Difference(
        "a request without any parameters",
        "the same refusal, but ours names the parameter that is wanted",
        [request("tools/call")],
        theirs="expected object, received undefined",
        ours="expected string, received undefined",
    ),
    Difference(
        "a parameter that is null",
        "the same refusal, but to us null is the same as nothing",
        [request("resources/read", {"uri": None})],
        theirs="received null",
        ours="received undefined",
    ),
    Difference(
        "a handshake that says too little",
        "a client that leaves out what we do not need is served",
        [request("initialize", {})],
        theirs="-32603",
        ours='"protocolVersion": "2025-11-25"',
    ),
    Difference(
        "a handshake for a revision older than the first that is published",
        "nobody speaks it, and we have not tested it",
        [handshake("2024-10-07")[0]],
        theirs='"protocolVersion": "2024-10-07"',
        ours='"protocolVersion": "2025-11-25"',
    ),
    Difference(
        "a request with a key of its own beside the parameters",
        "theirs is silent, and a client would wait for ever",
        [b'{"jsonrpc":"2.0","id":1,"method":"ping","unknown":1}'],
        theirs="[]",
        ours='"result": {}',
    ),
    Difference(
        "an id that is a fraction",
        "theirs is silent, and a client would wait for ever; JSON-RPC allows it",
        [b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
        theirs="[]",
        ours='"result": {}',
    ),
    Difference(
        "a call that asks to become a task",
        "there are no tasks in either; ours answers at once",
        [request("tools/call", {"name": "read_graph", "arguments": {}, "task": {}})],
        theirs="does not support task creation",
        ours=UNREFUSED,
    ),
)
