"""Times as stores write them and as numbers are the same times."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.search.times import day_of, seconds_of

moments = st.datetimes(datetime(1, 1, 2), datetime(9990, 1, 1)).map(lambda when: when.replace(microsecond=0))


@given(moments)
def test_a_written_time_is_its_number_and_its_day(when: datetime) -> None:
    seconds = when.replace(tzinfo=timezone.utc).timestamp()

    assert seconds_of(when.strftime("%Y").zfill(4) + when.strftime("-%m-%d %H:%M:%S")) == seconds
    assert seconds_of(when.isoformat() + "Z") == seconds
    assert day_of(seconds) == when.date().isoformat()


@pytest.mark.parametrize("text", ["", "yesterday", "12/03/2024", "2024"])
def test_what_is_no_time_has_no_number(text: str) -> None:
    assert seconds_of(text) is None


def test_a_day_before_all_days_is_the_first() -> None:
    assert day_of(-1e15) == "0001-01-01"
