"""Conversations in which the official server and ours must not differ: each feature, each edge."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.official.pair import Step, call, handshake, request
from tests.peers import Message

RESOURCE = "memory://knowledge-graph"


def entity(name: str, *observations: str, kind: str = "thing") -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, target: str, kind: str = "knows") -> dict[str, Any]:
    return {"from": source, "to": target, "relationType": kind}


def create(*entities: dict[str, Any]) -> Message:
    return call("create_entities", entities=list(entities))


def relate(*relations: dict[str, Any]) -> Message:
    return call("create_relations", relations=list(relations))


def add(name: str, *contents: str) -> Message:
    return call("add_observations", observations=[{"entityName": name, "contents": list(contents)}])


def forget(name: str, *observations: str) -> Message:
    return call("delete_observations", deletions=[{"entityName": name, "observations": list(observations)}])


READ = call("read_graph")
ODD_NAMES = (
    "Żółć",
    "żółć",
    "ΟΔΟΣ",
    "İstanbul",
    "straße",
    "emoji 😀 👩‍👩‍👧",
    'quotes " and \\ slashes / </script>',
    "lines\nand\r\ntabs\t\u2028\u2029",
    "\x01\x1f\x7f\x80\ufeff\ufffe",
    "__proto__",
    "constructor",
    "1",
    " ",
    " blank ",
    "e\u0301",
    "\u00e9",
    "null",
    "\U0010ffff",
)
QUERIES = (
    *("", "a", "A", "Ó", "żÓŁĆ", "οδος", "ΟΔΟΣ", "οδοσ", "ΟΔΟ", "i̇", "İ", "STRASSE", "SS", "ß", "😀", "\u200d", "👩"),
    *('"', "\\", "/", "\n", "\r\n", "\t", "\u2028", "\x7f", "__proto__", "é", "e\u0301", "\u0301", " ", "  ", "%", "_"),
    *(".*", "thing", "THING", "knows", "e\u0301\u0301"),
)
JUNK: tuple[Any, ...] = (None, True, 0, 1.5, 1e300, "x", [], {}, ["x"], {"0": "x"}, [None], [[]], [{}])
NO_TOOL: tuple[Any, ...] = ({}, {"name": 5}, {"name": []}, {"arguments": {}})
NO_URI: tuple[Any, ...] = ({}, {"uri": 5}, {"uri": {}})
NO_ARGUMENTS: tuple[Any, ...] = (None, True, 0, 1.5, "x", [], ["x"])
WITH_URI = ("read", "subscribe", "unsubscribe")
LINES = (
    *(b"", b" ", b"{no json", b"[]", b"5", b'"x"', b"null", b"{}", b"\xff\xfe", b"\x00"),
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":5}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    b'  {"jsonrpc":"2.0","id":1,"method":"ping"}\r',
    b'{"jsonrpc":"2.0","id":"","method":"ping"}',
    b'{"jsonrpc":"2.0","id":0,"method":"ping","params":{"unknown":[1,{}]}}',
    b'{"jsonrpc":"2.0","id":-5,"method":"server/discover","params":{}}',
    b'{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{"name":"search_nodes","arguments":{"query":1e400}}}',
    b'{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{"name":"open_nodes","arguments":{"names":[-1e400]}}}',
    b'{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{"name":"search_nodes","arguments":{"query":"a","query":"b"}}}',
    b'{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{"name":"read_graph","_meta":{"progressToken":"t"}}}',
)
ARGUMENTS = {
    "create_entities": {"entities": [entity("A", "o")]},
    "create_relations": {"relations": [relation("A", "B")]},
    "add_observations": {"observations": [{"entityName": "A", "contents": ["o"]}]},
    "delete_entities": {"entityNames": ["A"]},
    "delete_observations": {"deletions": [{"entityName": "A", "observations": ["o"]}]},
    "delete_relations": {"relations": [relation("A", "B")]},
    "read_graph": {},
    "search_nodes": {"query": "A"},
    "open_nodes": {"names": ["A"]},
}


def replaced(value: Any, junk: Any) -> list[Any]:
    """The same value with each of its parts, one at a time, replaced by junk, left out, or joined by more."""
    if isinstance(value, dict):
        changed: list[Any] = [{**value, "unknown": junk}]
        for key, part in value.items():
            changed.append({other: it for other, it in value.items() if other != key})
            changed += [{**value, key: it} for it in (junk, *replaced(part, junk))]
        return changed
    if isinstance(value, list):
        changed = [[*value, junk], [junk, *value], []]
        for index, part in enumerate(value):
            changed += [[*value[:index], it, *value[index + 1 :]] for it in replaced(part, junk)]
        return changed
    return []


def _wrong_arguments() -> list[Step]:
    """Every tool with every argument wrong in every way. Writers are followed by what empties the graph."""
    steps: list[Step] = []
    clean = [call("delete_entities", entityNames=["A", "B", "x", ""])]
    for tool, arguments in ARGUMENTS.items():
        steps.append({"method": "tools/call", "params": {"name": tool}})
        for junk in JUNK:
            for wrong in replaced(arguments, junk):
                if not _wanted_to_differ(wrong):
                    steps += [call(tool, **wrong), *clean]
    return steps


def _wanted_to_differ(arguments: dict[str, Any]) -> bool:
    """Two of the same in one call, or no name at all: rows of the table of differences."""
    for items in arguments.values():
        if not isinstance(items, list):
            continue
        names = [tuple(it.get(key) for key in ("name", "from", "to")) for it in items if isinstance(it, dict)]
        if len(set(map(repr, names))) < len(names):
            return True
    return False


CONVERSATIONS: dict[str, list[Step]] = {
    "an empty memory": [
        *handshake(),
        READ,
        call("search_nodes", query=""),
        call("open_nodes", names=[]),
        call("open_nodes", names=["A"]),
        call("delete_entities", entityNames=["A"]),
        call("delete_entities", entityNames=[]),
        call("delete_relations", relations=[relation("A", "B")]),
        call("delete_relations", relations=[]),
        call("delete_observations", deletions=[]),
        forget("A", "o"),
        add("A", "o"),
        call("add_observations", observations=[]),
        create(),
        relate(),
        READ,
    ],
    "entities": [
        *handshake(),
        create(entity("A", "one", "two"), entity("B"), entity("C", "", kind="")),
        create(entity("A", "other", kind="changed")),
        create(entity("B"), entity("D", "o", "o", "p", "o"), entity("A")),
        create(entity("a", "case counts")),
        create({"observations": ["keys in another order"], "extra": {"is": "dropped"}, "entityType": "t", "name": "E"}),
        READ,
        call("open_nodes", names=["D", "A", "nobody", "A"]),
        call("delete_entities", entityNames=["B", "nobody", "B", "A"]),
        READ,
        create(entity("A", "back, and last in the file")),
        READ,
    ],
    "observations": [
        *handshake(),
        create(entity("A", "one"), entity("B")),
        add("A", "one", "two", "two"),
        add("A", "two"),
        add("A"),
        call("add_observations", observations=[{"entityName": "A", "contents": ["three"]}] * 2),
        call(
            "add_observations",
            observations=[
                {"entityName": "B", "contents": ["lost with the batch"]},
                {"entityName": "nobody", "contents": []},
                {"entityName": "nobody else", "contents": ["x"]},
            ],
        ),
        READ,
        forget("A", "two", "never said"),
        forget("nobody", "two"),
        call("delete_observations", deletions=[{"entityName": "A", "observations": [it]} for it in ("one", "one")]),
        forget("B", "one"),
        READ,
        add("A", "one"),
        READ,
    ],
    "relations": [
        *handshake(),
        create(entity("A"), entity("B"), entity("C")),
        relate(relation("A", "B"), relation("B", "A"), relation("A", "A"), relation("A", "B", "likes")),
        relate(relation("A", "B")),
        relate(relation("A", "B"), relation("B", "C"), relation("A", "B", "")),
        READ,
        call("open_nodes", names=["C"]),
        call("open_nodes", names=["B", "A"]),
        call("search_nodes", query="c"),
        call("search_nodes", query="likes"),
        call("delete_relations", relations=[relation("A", "B"), relation("B", "B"), relation("nobody", "A")]),
        READ,
        relate(relation("A", "B")),
        READ,
        call("delete_entities", entityNames=["A"]),
        READ,
    ],
    "relations whose ends are not created yet": [
        *handshake(),
        create(entity("A")),
        relate(relation("A", "ghost"), relation("ghost", "other ghost"), relation("ghost", "ghost")),
        relate(relation("A", "ghost")),
        READ,
        call("search_nodes", query=""),
        call("search_nodes", query="ghost"),
        call("open_nodes", names=["ghost"]),
        call("open_nodes", names=["A"]),
        add("ghost", "boo"),
        forget("ghost", "boo"),
        create(entity("B"), entity("ghost", "boo")),
        create(entity("ghost", "again")),
        READ,
        call("open_nodes", names=["ghost"]),
        call("delete_entities", entityNames=["other ghost"]),
        READ,
        call("delete_relations", relations=[relation("A", "ghost")]),
        READ,
        relate(relation("never", "ever")),
        call("delete_relations", relations=[relation("never", "ever")]),
        relate(relation("never", "ever")),
        call("delete_entities", entityNames=["never", "ever"]),
        create(entity("ever")),
        relate(relation("ever", "phantom"), relation("phantom", "shade")),
        call("delete_entities", entityNames=["ever"]),
        call("delete_entities", entityNames=["shade"]),
        READ,
    ],
    "texts in every script": [
        *handshake(),
        create(*(entity(name, f"about {name}", name.upper(), kind=name) for name in ODD_NAMES)),
        relate(*(relation(name, other, name) for name, other in pairwise(ODD_NAMES))),
        READ,
        *(call("open_nodes", names=[name]) for name in ODD_NAMES),
        *(call("search_nodes", query=query) for query in QUERIES),
        *(add(name, name, f"about {name}", f"{name}\n{name}") for name in ODD_NAMES),
        *(forget(name, f"about {name}") for name in ODD_NAMES),
        READ,
        *(call("delete_entities", entityNames=[name]) for name in ODD_NAMES[::2]),
        READ,
    ],
    "what a search finds": [
        *handshake(),
        create(
            entity("Alice", "likes tea", "works at Acme", kind="person"),
            entity("Bob", "likes green_tea 100%", kind="person"),
            entity("Acme", "makes rockets", kind="company"),
        ),
        relate(relation("Alice", "Acme", "works_at"), relation("Bob", "Alice", "likes tea")),
        *(
            call("search_nodes", query=query)
            for query in (
                *("likes tea", "tea likes", "Alice Acme", "ACME", "person", "pers", "son", "works_at", "green tea"),
                *("n_t", "100%", "%", "_", "tea ", " tea", "LIKES", "alice\n", "o", "nothing of the kind"),
            )
        ),
        call("search_nodes", query="tea", limit=1, entityType="person", semantic=True),
    ],
    "arguments of the wrong kind": [*handshake(), *_wrong_arguments(), READ],
    "tools and methods that there are not": [
        *handshake(),
        request("ping"),
        call("no_such_tool"),
        call("no_such_tool", entities=[]),
        {"method": "tools/call", "params": {"name": ""}},
        {"method": "tools/call", "params": {"name": "search_semantic", "arguments": {"query": "x"}}},
        request("prompts/list"),
        request("prompts/list", {}),
        request("prompts/get", {"name": "x"}),
        request("completion/complete", {}),
        request("logging/setLevel", {"level": "debug"}),
        request("tasks/list"),
        request("roots/list"),
        request("no/such/method", {}),
        request("notifications/no_such_notification"),
        request("notifications/cancelled", {"requestId": 1, "reason": "too late"}),
        request("tools/list"),
    ],
    "requests without what they need": [
        *handshake(),
        *(request("tools/call", params) for params in NO_TOOL),
        *(request("tools/call", {"name": "read_graph", "arguments": junk}) for junk in NO_ARGUMENTS),
        *(request("tools/call", {"name": "no_such_tool", "arguments": junk}) for junk in NO_ARGUMENTS),
        *(request(f"resources/{what}", params) for what in WITH_URI for params in NO_URI),
        READ,
    ],
    "lines that are no requests": [
        *handshake(),
        *LINES,
        *handshake(),
        READ,
    ],
    "calls before the handshake": [READ, create(entity("A")), request("tools/list"), *handshake(), READ],
    "the resource": [
        *handshake(),
        request("resources/list"),
        request("resources/list", {}),
        request("resources/templates/list"),
        request("resources/read", {"uri": RESOURCE}),
        create(entity("A", "żółć")),
        request("resources/read", {"uri": RESOURCE}),
        request("resources/read", {"uri": "memory://nope"}),
        request("resources/subscribe", {"uri": "memory://nope"}),
        create(entity("B")),
        request("resources/subscribe", {"uri": RESOURCE}),
        create(entity("C")),
        create(entity("C")),
        create(),
        call("create_entities"),
        relate(relation("A", "C")),
        add("A", "told"),
        add("nobody", "told"),
        call("search_nodes", query="told"),
        forget("A", "told"),
        call("delete_relations", relations=[]),
        call("delete_entities", entityNames=["C"]),
        call("no_such_tool"),
        request("resources/subscribe", {"uri": RESOURCE}),
        create(entity("D")),
        request("resources/unsubscribe", {"uri": "memory://nope"}),
        create(entity("E")),
        request("resources/unsubscribe", {"uri": RESOURCE}),
        create(entity("F")),
        request("resources/unsubscribe", {"uri": RESOURCE}),
    ],
    **{
        f"a handshake for {version or 'no version'}": [
            *handshake(version),
            request("ping"),
            request("tools/list"),
            create(entity("A")),
            READ,
        ]
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01", "")
    },
}


ADA = '{"type":"entity","name":"Ada","entityType":"person","observations":["żółć"]}'
BOB = '{"type":"entity","name":"Bob","entityType":"person","observations":[]}'
KNOWS = '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}'
# Files that others wrote: by hand, by a script, by an older server.
FILES = {
    "nothing": "",
    "the official form": f"{ADA}\n{BOB}\n{KNOWS}",
    "a line end at the end": f"{ADA}\n{BOB}\n",
    "blank lines": f"\n\n{ADA}\n  \n{BOB}\n\n",
    "line ends of Windows": f"{ADA}\r\n{BOB}\r\n{KNOWS}\r\n",
    "relations first": f"{KNOWS}\n{BOB}\n{ADA}",
    "a relation between nobody": KNOWS,
    "keys of its own": f'{ADA[:-1]},"id":7,"tags":["x"]}}\n{BOB}\n{KNOWS[:-1]},"since":1843}}',
    "keys in another order": '{"observations":["o"],"entityType":"t","name":"A","type":"entity"}',
    "lines of another kind": f'{ADA}\n{{"type":"note","text":"x"}}\n{{"name":"no type"}}\n{BOB}',
    "escapes where none are needed": ADA.replace("żółć", "\\u017c\\u00f3\\u0142\\u0107\\ud83d\\ude00\\u2028\\/"),
    "blanks between": ADA.replace(":", " : ").replace(",", " , "),
    "line ends of other scripts": ADA.replace("żółć", "\u2028\u2029\x85\x0c".replace("\x0c", "\\f")),
}
CONTINUED: list[Step] = [
    READ,
    call("search_nodes", query=""),
    call("open_nodes", names=["Bob", "Ada", "A"]),
    create(entity("New", "from here on", kind="person")),
    READ,
]
