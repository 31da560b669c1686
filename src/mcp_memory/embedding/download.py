"""Fetch a model from the Hugging Face hub, or from a mirror of it.

The hub's own library does the fetching: it goes on where it was interrupted, shows how far it is, and honours
HF_ENDPOINT, HF_TOKEN and proxies. What arrives is used only if it hashes to what our table says."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from mcp_memory.embedding.models import File, Model, digest_of
from mcp_memory.facts import MemoryFault

HUB = "https://huggingface.co"
# What has not arrived whole, in the model's folder.
INCOMING = ".incoming"
NO_LIBRARY = "Downloading models needs more packages: pip install 'mcp-memory[models]'."
FAILED = (
    "{file} could not be fetched from {place}: {error}. Check the connection, HTTPS_PROXY, or name a mirror in "
    "HF_ENDPOINT. What has arrived is kept: run the command again to go on."
)
OTHER = (
    "{file} from {place} is not the file it should be (sha256 {found} instead of {wanted}); it was thrown away. "
    "Try again, or without HF_ENDPOINT if that names a mirror."
)
NOT_FROM_HUB = "{name} comes with a package and is not downloaded; reinstall mcp-memory to repair it."


class CannotFetch(MemoryFault):
    """A model could not be had. Nothing that was there before has changed."""


def endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def fetch(model: Model, tell: Callable[[str], None]) -> Path:
    """Bring every file of a model; those that are there and right stay."""
    folder = model.home()
    if folder is None or not model.hub:
        raise CannotFetch(NOT_FROM_HUB.format(name=model.name))
    for file in model.files:
        if file.is_right_in(folder):
            tell(f"{file.name} is there.")
        else:
            tell(f"Fetching {model.hub} {file.source} from {endpoint()} ...")
            _bring(model, file, folder)
    shutil.rmtree(folder / INCOMING, ignore_errors=True)
    return folder


def _bring(model: Model, file: File, folder: Path) -> None:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise CannotFetch(NO_LIBRARY) from error
    # It tells of each of its retries; what came of them is told here.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    place = endpoint()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        arrived = Path(
            hf_hub_download(
                model.hub, file.source, revision=model.revision, local_dir=folder / INCOMING, endpoint=place
            )
        )
    except Exception as error:  # the library's own faults, those of its HTTP client, those of the disk
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CannotFetch(FAILED.format(file=file.source, place=place, error=reason[0].rstrip("."))) from error
    _accept(file, arrived, place)
    os.replace(arrived, folder / file.name)


def _accept(file: File, arrived: Path, place: str) -> None:
    found = digest_of(arrived)
    if file.sha256 and found != file.sha256:
        arrived.unlink()
        raise CannotFetch(OTHER.format(file=file.source, place=place, found=found, wanted=file.sha256))
