"""llama.cpp's C interface through ctypes: any libllama that exports its symbols, found or named by the user.

Where the library comes from, first found wins:

1. ``LLAMA_CPP_LIB_PATH``: a folder that holds libllama.so (llama-cpp-python's own variable);
2. an installed ``llama_cpp`` package (llama-cpp-python), which brings its libraries along;
3. an installed ``xllamacpp`` wheel, whose extension module exports the whole C interface.

Parameter structures change between versions of llama.cpp. Only their first fields are used here, the buffer is larger than
any known version, and the defaults that the library fills in are checked against the values that it documents: a library
whose layout has moved is refused instead of being fed garbage. Layouts: llama.h of llama.cpp 0c1e570 (October 2026).
"""

from __future__ import annotations

import ctypes as c
import importlib.util
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..attribution.errors import UserFacingError


class PeerUnavailableError(UserFacingError):
    """No usable llama.cpp here. The ratio then says "no peer"."""


class ContextParameters(c.Structure):
    """llama_context_params as far as its fields are used, padded so that a longer structure fits."""

    _fields_ = [
        *((name, c.c_uint32) for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq")),
        *((name, c.c_uint32) for name in ("n_outputs_max", "n_outputs_max_per_seq")),
        *((name, c.c_int32) for name in ("n_threads", "n_threads_batch", "ctx_type", "rope_scaling_type")),
        *((name, c.c_int32) for name in ("pooling_type", "attention_type", "flash_attn_type")),
        *((name, c.c_float) for name in ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor")),
        *((name, c.c_float) for name in ("yarn_beta_fast", "yarn_beta_slow")),
        ("yarn_orig_ctx", c.c_uint32),
        ("defrag_thold", c.c_float),
        ("cb_eval", c.c_void_p),
        ("cb_eval_user_data", c.c_void_p),
        ("type_k", c.c_int32),
        ("type_v", c.c_int32),
        ("rest", c.c_uint64 * 32),
    ]


class ModelParameters(c.Structure):
    """llama_model_params as far as its fields are used, padded likewise."""

    _fields_ = [
        ("devices", c.c_void_p),
        ("tensor_buft_overrides", c.c_void_p),
        ("n_gpu_layers", c.c_int32),
        ("split_mode", c.c_int32),
        ("rest", c.c_uint64 * 32),
    ]


class Batch(c.Structure):
    _fields_ = [
        ("n_tokens", c.c_int32),
        *((name, c.c_void_p) for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")),
    ]


class Tensor(c.Structure):
    """ggml_tensor up to its name."""

    _fields_ = [
        ("type", c.c_int32),
        ("buffer", c.c_void_p),
        ("ne", c.c_int64 * 4),
        ("nb", c.c_size_t * 4),
        ("op", c.c_int32),
        ("op_params", c.c_int32 * 16),
        ("flags", c.c_int32),
        ("src", c.c_void_p * 10),
        ("view_src", c.c_void_p),
        ("view_offs", c.c_size_t),
        ("data", c.c_void_p),
        ("name", c.c_char * 64),
    ]


EVALUATION_CALLBACK = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_bool, c.c_void_p)
_LOG_CALLBACK = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)

# What llama_context_default_params() documents; -1 is "not set" and 1 is GGML_TYPE_F16.
_CONTEXT_DEFAULTS = {
    "n_ctx": 512, "n_ubatch": 512, "rope_scaling_type": -1, "pooling_type": -1, "attention_type": -1,
    "flash_attn_type": -1, "yarn_ext_factor": -1.0, "yarn_orig_ctx": 0, "cb_eval": None, "type_k": 1, "type_v": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Library:
    """A loaded libllama whose layouts have been checked."""

    handle: Any
    path: str
    version: str
    log: Any
    """Keeps the log callback alive: the library holds only its address."""


def library_candidates() -> list[tuple[str, Path]]:
    """(how it was found, file) in order of preference; nothing is loaded yet."""
    found: list[tuple[str, Path]] = []
    named = os.environ.get("LLAMA_CPP_LIB_PATH")
    if named:
        files = sorted(Path(named).glob("libllama.so*"))
        if not files:
            raise PeerUnavailableError(f"LLAMA_CPP_LIB_PATH={named}: no libllama.so in that folder; name its folder")
        found.append(("LLAMA_CPP_LIB_PATH", files[0]))
    for package, pattern in (("llama_cpp", "lib/libllama.so*"), ("xllamacpp", "xllamacpp*.so")):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            for folder in spec.submodule_search_locations:
                found.extend((package, file) for file in sorted(Path(folder).glob(pattern))[:1])
    return found


@cache
def load_library() -> Library:
    """Load the first usable library, silence its log, start its backends. Raises PeerUnavailableError."""
    candidates = library_candidates()
    if not candidates:
        raise PeerUnavailableError(
            "llama.cpp: no library found; install xllamacpp (CPU), or llama-cpp-python built for this GPU, "
            "or name a folder in LLAMA_CPP_LIB_PATH"
        )
    problems: list[str] = []
    for source, path in candidates:
        try:
            return _prepare(source, path)
        except (OSError, PeerUnavailableError) as error:
            problems.append(f"{path.name} ({source}): {error}")
    raise PeerUnavailableError("llama.cpp: no usable library: " + "; ".join(problems))


def _prepare(source: str, path: Path) -> Library:
    if source != "xllamacpp":
        # libllama finds its ggml libraries by soname; loading them first spares the user an LD_LIBRARY_PATH.
        for name in ("libggml-base", "libggml-cpu", "libggml-cuda", "libggml"):
            for dependency in sorted(path.parent.glob(f"{name}.so*"))[:1]:
                c.CDLL(str(dependency), mode=c.RTLD_GLOBAL)
    lib = c.CDLL(str(path), mode=c.RTLD_GLOBAL if source != "xllamacpp" else c.RTLD_LOCAL)
    try:
        _declare(lib)
    except AttributeError as error:
        raise PeerUnavailableError(f"lacks a function of llama.h: {error}; use llama.cpp of 2026 or later") from error
    _check_layout(lib)
    log = _LOG_CALLBACK(lambda level, text, data: None)
    lib.llama_log_set(log, None)
    lib.llama_backend_init()
    if hasattr(lib, "ggml_backend_load_all_from_path") and source != "xllamacpp":
        lib.ggml_backend_load_all_from_path.argtypes = [c.c_char_p]
        lib.ggml_backend_load_all_from_path(str(path.parent).encode())
    return Library(lib, str(path), _version(source, path), log)


def _declare(lib: Any) -> None:
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "llama_context_default_params": (ContextParameters, []),
        "llama_model_default_params": (ModelParameters, []),
        "llama_log_set": (None, [_LOG_CALLBACK, c.c_void_p]),
        "llama_model_load_from_file": (c.c_void_p, [c.c_char_p, ModelParameters]),
        "llama_model_free": (None, [c.c_void_p]),
        "llama_model_get_vocab": (c.c_void_p, [c.c_void_p]),
        "llama_vocab_n_tokens": (c.c_int32, [c.c_void_p]),
        "llama_tokenize": (
            c.c_int32,
            [c.c_void_p, c.c_char_p, c.c_int32, c.c_void_p, c.c_int32, c.c_bool, c.c_bool],
        ),
        "llama_init_from_model": (c.c_void_p, [c.c_void_p, ContextParameters]),
        "llama_free": (None, [c.c_void_p]),
        "llama_n_ubatch": (c.c_uint32, [c.c_void_p]),
        "llama_batch_get_one": (Batch, [c.c_void_p, c.c_int32]),
        "llama_batch_init": (Batch, [c.c_int32, c.c_int32, c.c_int32]),
        "llama_batch_free": (None, [Batch]),
        "llama_decode": (c.c_int32, [c.c_void_p, Batch]),
        "llama_synchronize": (None, [c.c_void_p]),
        "llama_get_memory": (c.c_void_p, [c.c_void_p]),
        "llama_memory_clear": (None, [c.c_void_p, c.c_bool]),
        "llama_get_logits": (c.POINTER(c.c_float), [c.c_void_p]),
        "ggml_op_desc": (c.c_char_p, [c.c_void_p]),
        "ggml_type_name": (c.c_char_p, [c.c_int32]),
        "ggml_nbytes": (c.c_size_t, [c.c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments


def _check_layout(lib: Any) -> None:
    """Compare the defaults that the library writes with the documented ones, field by field."""
    parameters = lib.llama_context_default_params()
    for name, expected in _CONTEXT_DEFAULTS.items():
        seen = getattr(parameters, name)
        if seen != expected:
            raise PeerUnavailableError(
                f"llama_context_params.{name} reads {seen!r}, its default is {expected!r}: this version lays the "
                "structure out otherwise; use llama.cpp of October 2026, or its llama-bench binary"
            )


def _version(source: str, path: Path) -> str:
    """Name and version as the package manager knows them; a bare library is known by its folder's name."""
    if source == "LLAMA_CPP_LIB_PATH":
        return os.environ.get("LLAMA_CPP_VERSION", f"library {path.parent.name}/{path.name}")
    import importlib.metadata

    distribution = {"llama_cpp": "llama-cpp-python"}.get(source, source)
    return f"{distribution} {importlib.metadata.version(distribution)} ({sys.platform})"
