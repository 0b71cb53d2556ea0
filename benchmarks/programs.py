"""Programs of others that the suite runs where a user has them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(variable: str, name: str, refusal: type[Exception]) -> Path | None:
    """The program that the environment ``variable`` names, else ``name`` on the PATH, None where there is neither. Raises
    ``refusal`` where the user's own is not there."""
    named = os.environ.get(variable)
    if named:
        if not os.access(named, os.X_OK):
            raise refusal(f"{variable}={named}: no such program; name {name} itself")
        return Path(named)
    found = shutil.which(name)
    return Path(found) if found else None
