"""A library whose structures are laid out otherwise is refused before anything is handed to it."""

from types import SimpleNamespace

import pytest

from benchmarks.peers import llama_library
from benchmarks.peers.llama_library import ContextParameters, PeerUnavailableError


def defaults(**changed) -> ContextParameters:
    parameters = ContextParameters()
    for name, value in {**llama_library._CONTEXT_DEFAULTS, **changed}.items():
        setattr(parameters, name, value)
    return parameters


def test_the_documented_defaults_pass():
    llama_library._check_layout(SimpleNamespace(llama_context_default_params=defaults))


@pytest.mark.parametrize("field", ["n_ctx", "flash_attn_type", "type_v"])
def test_a_moved_field_is_named(field):
    lib = SimpleNamespace(llama_context_default_params=lambda: defaults(**{field: 77}))
    with pytest.raises(PeerUnavailableError, match=rf"llama_context_params\.{field} reads 77"):
        llama_library._check_layout(lib)


def test_a_folder_without_the_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    with pytest.raises(PeerUnavailableError, match=r"no libllama\.so in that folder"):
        llama_library.library_candidates()


def test_nothing_installed_says_what_to_install(monkeypatch):
    monkeypatch.delenv("LLAMA_CPP_LIB_PATH", raising=False)
    monkeypatch.setattr(llama_library.importlib.util, "find_spec", lambda name: None)
    llama_library.load_library.cache_clear()
    with pytest.raises(PeerUnavailableError, match="install xllamacpp"):
        llama_library.load_library()
