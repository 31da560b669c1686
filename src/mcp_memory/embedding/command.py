"""`mcp-memory model`: which models there are, which one is used, fetch one, and check files against their hashes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcp_memory.embedding.engine import chosen, engine, has_runtime, why_not
from mcp_memory.embedding.models import DOWNLOADABLE, MODELS, Model
from mcp_memory.facts import MemoryFault
from mcp_memory.settings import BadSetting

if TYPE_CHECKING:
    from mcp_memory.settings import Request


def model(request: Request, action: str = "list", name: str = "") -> int:
    """Do what the word after `model` says."""
    do = ACTIONS.get(action)
    if do is None:
        raise BadSetting(f"model cannot do {action!r}. It is one of {', '.join(ACTIONS)}.")
    if name and name not in MODELS:
        raise BadSetting(f"There is no model {name!r}. The models are {', '.join(MODELS)}.")
    try:
        return do(request, name)
    except MemoryFault as fault:
        print(f"mcp-memory: {fault}", file=sys.stderr)
        return 1


def _list(request: Request, name: str) -> int:
    used = chosen(request.settings.model)
    for each in [MODELS[name]] if name else MODELS.values():
        print(f"{each.name}{'  (in use)' if used is not None and each.name == used.name else ''}")
        print(f"  {each.languages}; {each.dimension} numbers a text; licence {each.licence}")
        print(f"  {_state(each)}")
        print(f"  {each.origin}")
    return 0


def _state(each: Model) -> str:
    folder = each.folder()
    size = f", {each.size / 1e6:,.0f} MB" if all(file.size for file in each.needed) else ""
    if folder is None:
        return f"not here{size}; mcp-memory model download {each.name}"
    return f"in {folder}{size}" + ("" if has_runtime(each) else "; needs pip install 'mcp-memory[models]'")


def _which(request: Request, name: str) -> int:
    choice = name or request.settings.model
    missing = why_not(choice)
    if missing is not None:
        print(missing)
        return 1
    found, model = engine(choice), chosen(choice)
    assert found is not None and model is not None
    print(f"{found.model}, from {model.folder()}")
    return 0


def _download(request: Request, name: str) -> int:
    from mcp_memory.embedding.download import fetch

    wanted = MODELS[name] if name else DOWNLOADABLE
    folder = fetch(wanted, lambda said: print(said, flush=True))
    print(f"{wanted.name} is in {folder}.")
    if not has_runtime(wanted):
        print("It needs more packages: pip install 'mcp-memory[models]'.")
    elif chosen(request.settings.model) != wanted:
        print(f"To use it: --model {wanted.name}")
    return 0


def _verify(request: Request, name: str) -> int:
    wrong = 0
    here = [each for each in ([MODELS[name]] if name else MODELS.values()) if name or each.folder() is not None]
    for each in here:
        folder = each.home()
        for file in each.needed:
            is_right = folder is not None and file.is_right_in(folder)
            wrong += not is_right
            print(f"{'right' if is_right else 'WRONG'}: {each.name} {file.name}")
    if wrong:
        print("mcp-memory model download fetches what is wrong or missing anew.")
    return 1 if wrong else 0


ACTIONS: dict[str, Callable[[Request, str], int]] = {
    "list": _list,
    "download": _download,
    "which": _which,
    "verify": _verify,
}
