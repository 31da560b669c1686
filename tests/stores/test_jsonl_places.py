"""Where a memory file stands: behind a link, with rights of its own. Windows has neither as a rule."""

from __future__ import annotations

import os
from pathlib import Path

from tests.stores.asking import Asked, entity_line

if os.name != "nt":

    def test_behind_a_link_the_target_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        real, link = tmp_path / "real" / "memory.jsonl", tmp_path / "link.jsonl"
        link.symlink_to(real)
        through, direct = Asked(link), Asked(real)
        through.create("Ada")
        direct.create("Bob")
        through.create("Eve")

        assert link.is_symlink()
        assert direct.names() == ["Ada", "Bob", "Eve"]
        assert {file.name for file in (tmp_path / "real").iterdir()} == {"memory.jsonl", "memory.jsonl.lock"}

    def test_a_link_that_was_pointed_elsewhere_is_followed_there(tmp_path: Path) -> None:
        one, other, link = tmp_path / "one.jsonl", tmp_path / "other.jsonl", tmp_path / "link.jsonl"
        one.write_bytes(entity_line("Ada"))
        other.write_bytes(entity_line("Bob"))
        link.symlink_to(one)
        memory = Asked(link)
        assert memory.names() == ["Ada"]

        link.unlink()
        link.symlink_to(other)
        memory.create("Eve")
        assert one.read_bytes() == entity_line("Ada")
        assert other.read_bytes() == entity_line("Bob") + b"\n" + entity_line("Eve")

    def test_the_rights_of_the_file_are_kept(tmp_path: Path) -> None:
        path = tmp_path / "memory.jsonl"
        path.touch(0o600)
        path.chmod(0o666)
        Asked(path).create("Ada")

        assert path.stat().st_mode & 0o777 == 0o666
