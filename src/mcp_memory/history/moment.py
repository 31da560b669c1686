"""A call that asks about the graph as it was: the arguments of the tool, and the moment that is meant."""

from __future__ import annotations

from typing import Any

AS_OF = "as_of"


class AsOf(tuple[Any, ...]):
    """Arguments for a graph of the past. A class of its own, so that calls about the present pay nothing."""

    moment: str

    @staticmethod
    def of(values: tuple[Any, ...], moment: str) -> AsOf:
        made = AsOf(values)
        made.moment = moment
        return made
