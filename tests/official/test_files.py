"""Files that are not as either server writes them, and that both read alike and write alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.official.differences import ALICE
from tests.official.pair import Pair, call, handshake
from tests.official.recorded import READ, create, entity

FILES = {
    "a key twice": b'{"type":"entity","name":"B","name":"C","entityType":"t","observations":["z"]}',
    "values that are no objects": b'5\n"s"\n[1]',
    "a line of nothing but a no-break space": b"\xc2\xa0\n",
    "a line of control characters": b"\x0b\x0c\n",
    "no UTF-8": b'{"type":"entity","name":"B\xff\xe2\x82","entityType":"","observations":["\xed\xa0\xbd"]}',
    "letters whose case is new": '{"type":"entity","name":"𐐀 Ა Ⱟ ꟼ","entityType":"t","observations":["z"]}'.encode(),
    "an observation twice": b'{"type":"entity","name":"B","entityType":"t","observations":["z","z"]}',
    "the kind of the line at its end": b'{"name":"B","entityType":"t","observations":["z"],"type":"entity"}',
    "a relation with a name": b'{"type":"relation","name":"B","from":"a","to":"b","relationType":"r"}',
}


@pytest.mark.parametrize("line", FILES.values(), ids=FILES)
def test_both_servers_take_a_file_for_the_same(line: bytes, tmp_path: Path) -> None:
    asked = [call("search_nodes", query="𐐨 ა ⱟ ꟼ"), call("open_nodes", names=["B", "C"])]
    with Pair(tmp_path, ALICE + b"\n" + line) as pair:
        pair.same([*handshake(), READ, *asked, create(entity("New")), READ])
