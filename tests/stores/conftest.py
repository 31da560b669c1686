"""What every test of a store ends with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.asking import closing_all


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    with closing_all():
        yield
