"""What a model file says of its own shape, read once into a typed, frozen form.

Key names: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import MinferError
from .rotary import RopeScaling

_MOST = 1 << 24
"""No published model has a dimension near this; a file that claims more is damaged."""
_MOST_LAYERS = 4096
_WINDOWED = {"gemma3"}
"""Architectures with local layers. Files of others may name a window; llama.cpp lets them see everything, and so do we."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape and constants of one model. Lengths in elements, epsilons and bases as the file states them."""

    architecture: str
    layers: int
    context: int
    """Tokens that the model was made for."""
    embedding: int
    feed_forward: int
    heads: int
    kv_heads: int
    key_length: int
    """Per head."""
    value_length: int
    """Per head."""
    vocabulary: int
    norm_epsilon: float
    rope_base: float
    rope_dimensions: int
    rope_scaling: RopeScaling | None
    sliding_window: int | None
    """A local layer's token sees itself and the window - 1 before it; None: all layers see everything."""
    sliding_pattern: int
    """Every such layer is global, the others local."""
    attention_softcap: float | None
    logit_softcap: float | None
    experts: int
    experts_used: int
    expert_feed_forward: int


class _Metadata:
    """Typed look-ups that name the file, the key, what was seen and what was expected."""

    def __init__(self, path: str, architecture: str, values: Mapping[str, Any]) -> None:
        self._path = path
        self._prefix = architecture
        self._values = values

    def value(self, key: str) -> Any:
        return self._values.get(f"{self._prefix}.{key}")

    def integer(self, key: str, default: int | None = None, *, least: int = 1, most: int = _MOST) -> int:
        value = self.value(key)
        if value is None:
            if default is None:
                raise self.error(key, "nothing", "a whole number")
            return default
        return self.checked(key, value, least, most)

    def checked(self, key: str, value: Any, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.error(key, _brief(value), f"a whole number from {least} to {most}")
        return value

    def number(self, key: str, default: float | None = None, *, least: float = 0.0, most: float = 1e12) -> float | None:
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not least < value <= most:
            raise self.error(key, _brief(value), f"a number above {least:g} and at most {most:g}")
        return float(value)

    def required_number(self, key: str) -> float:
        value = self.number(key)
        if value is None:
            raise self.error(key, "nothing", "a number above 0")
        return value

    def error(self, key: str, seen: str, expected: str) -> MinferError:
        return MinferError(f"{self._path}: metadata {self._prefix}.{key} is {seen}, expected {expected}; convert it again")


def read_config(path: str, metadata: Mapping[str, Any], vocabulary: int) -> ModelConfig:
    """The config of the model in ``path``; ``vocabulary``: rows of its token embedding. Raises MinferError."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise MinferError(f"{path}: metadata general.architecture is {_brief(architecture)}, expected a name; give a model")
    read = _Metadata(path, architecture, metadata)
    embedding = read.integer("embedding_length")
    heads = _uniform(read, "attention.head_count", None)
    if embedding % heads and read.value("attention.key_length") is None:
        raise MinferError(f"{path}: embedding length {embedding} is no multiple of {heads} heads; convert the model again")
    kv_heads = _uniform(read, "attention.head_count_kv", heads)
    if heads % kv_heads:
        raise MinferError(f"{path}: {heads} heads cannot share {kv_heads} key-value heads evenly; convert the model again")
    key_length = read.integer("attention.key_length", max(1, embedding // heads))
    experts = read.integer("expert_count", 0, least=0)
    return ModelConfig(
        architecture=architecture,
        layers=read.integer("block_count", most=_MOST_LAYERS),
        context=read.integer("context_length", most=1 << 40),
        embedding=embedding,
        feed_forward=_uniform(read, "feed_forward_length", 0 if experts else None),
        heads=heads,
        kv_heads=kv_heads,
        key_length=key_length,
        value_length=read.integer("attention.value_length", max(1, embedding // heads)),
        vocabulary=vocabulary,
        norm_epsilon=read.required_number("attention.layer_norm_rms_epsilon"),
        rope_base=read.number("rope.freq_base", least=1.0) or 10000.0,
        rope_dimensions=_rope_dimensions(read, key_length),
        rope_scaling=_rope_scaling(read),
        sliding_window=_window(read) if architecture in _WINDOWED else None,
        sliding_pattern=_pattern(read),
        attention_softcap=read.number("attn_logit_softcapping"),
        logit_softcap=read.number("final_logit_softcapping"),
        experts=experts,
        experts_used=read.integer("expert_used_count", most=experts) if experts else 0,
        expert_feed_forward=read.integer("expert_feed_forward_length", 0, least=0),
    )


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _uniform(read: _Metadata, key: str, default: int | None) -> int:
    """A count that some files give per layer; only one that is the same in all layers is supported."""
    value = read.value(key)
    if value is None or isinstance(value, int):
        return read.integer(key, default)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or len(value) == 0 or (value != value[0]).any():
        raise read.error(key, _brief(value), "one whole number, the same in all layers")
    return read.checked(key, int(value[0]), 1, _MOST)


def _rope_dimensions(read: _Metadata, key_length: int) -> int:
    dimensions = read.integer("rope.dimension_count", key_length)
    if dimensions % 2 or dimensions > key_length:
        raise read.error("rope.dimension_count", str(dimensions), f"an even number up to the key length {key_length}")
    return dimensions


def _window(read: _Metadata) -> int | None:
    return read.integer("attention.sliding_window", 0, least=0, most=1 << 40) or None


def _pattern(read: _Metadata) -> int:
    return read.integer("attention.sliding_window_pattern", 6, least=1, most=_MOST_LAYERS)


def _rope_scaling(read: _Metadata) -> RopeScaling | None:
    kind = read.value("rope.scaling.type")
    factor = read.number("rope.scaling.factor") or read.number("rope.scale_linear")
    if kind in (None, "none") and factor is None:
        return None
    kind = kind or "linear"
    if kind == "none":
        return None
    if kind not in ("linear", "yarn"):
        raise read.error("rope.scaling.type", _brief(kind), "none, linear or yarn")
    return RopeScaling(
        kind=kind,
        factor=factor or 1.0,
        original_context=read.integer("rope.scaling.original_context_length", 0, least=0, most=1 << 40) or None,
        attention_factor=read.number("rope.scaling.attn_factor") or 1.0,
        beta_fast=read.number("rope.scaling.yarn_beta_fast") or 32.0,
        beta_slow=read.number("rope.scaling.yarn_beta_slow") or 1.0,
    )
