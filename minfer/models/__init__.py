"""The architectures, one file each: the file's name is what GGUF calls the architecture, its class is ``Model``."""

from __future__ import annotations

import importlib
import pkgutil

from ..errors import MinferError
from .decoder import Decoder

_PARTS = {"decoder", "prenorm"}
"""Modules that hold what architectures share."""


def architectures() -> list[str]:
    """Names of the supported architectures, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _PARTS)


def model_class(architecture: str, path: str) -> type[Decoder]:
    """The class that runs ``architecture``. Raises MinferError naming ``path``."""
    if architecture not in architectures():
        raise MinferError(
            f"{path}: architecture {architecture[:60]!r} is not supported, expected one of {', '.join(architectures())}; "
            f"give another model"
        )
    found: type[Decoder] = importlib.import_module(f".{architecture}", __name__).Model
    return found
