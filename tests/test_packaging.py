"""The wheel carries every package of the engine: setuptools takes only what pyproject.toml lists."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_package_of_the_engine_is_listed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "minfer").rglob("__init__.py")}
    assert folders <= set(listed)
    assert {name for name in listed if name != "minfer.kernel_sources"} == folders
