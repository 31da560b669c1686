"""Where models of one's own lie, remembered for this user beside the models that were downloaded.

A memory knows a model by its name and the hash of its weights, and while it changes over to another one the former
model is still needed. The law: no memory file chooses which files of this computer are read. So the folders stand
here and not in it, and one counts only while the weights in it have the hash that the name ends with."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from mcp_memory.embedding.models import Model, model_in

log = logging.getLogger("mcp_memory")

PLACES = "~/.cache/mcp-memory-v2/places"


def remember(model: Model) -> None:
    """Where this one lies, if it is somebody's own. A home that cannot be written costs only the convenience."""
    if not model.place:
        return
    note = _note_of(model.name)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(model.place, encoding="utf-8")
    except (OSError, UnicodeError) as fault:
        log.debug("the folder of %s is not remembered: %s", model.name, fault)


def recall(name: str) -> Model | None:
    """The model of this name, if its folder is known and its weights are the same still."""
    try:
        model = model_in(_note_of(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeError, ValueError, RuntimeError):
        return None
    return model if model.name == name else None


def _note_of(name: str) -> Path:
    """Any name at all makes a harmless file name so."""
    return Path(PLACES).expanduser() / hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
