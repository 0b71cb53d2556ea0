"""Hugging Face Transformers in bf16 on the same shape: what a user would run instead, at three times the memory.

Its weights are random, of the shape that the GGUF file states: speed depends on shapes, not on values. It is therefore a
peer in speed and never in answers. Only what PyTorch and Transformers bring is used; where they are missing it is absent.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .llama_library import PeerUnavailableError

CONFIGURATIONS = {"llama": "LlamaConfig", "qwen2": "Qwen2Config", "qwen3": "Qwen3Config"}
"""Architectures whose decoder Transformers builds from numbers alone."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A dense decoder in numbers."""

    architecture: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    rope_base: float
    epsilon: float

    @property
    def linear_weights_per_layer(self) -> int:
        """Weights of the seven products of one layer."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.ffn

    def macs(self, nt: int) -> int:
        """Multiply-accumulates of its products in one prefill: every layer on all tokens, the head on the last one."""
        return nt * self.layers * self.linear_weights_per_layer + self.hidden * self.vocabulary


class TransformersPeer:
    """One model of a shape on one device. ``close`` frees its memory."""

    name = "transformers"

    def __init__(self, shape: DecoderShape, nt: int, *, device: str, compiled: bool) -> None:
        """Build it with random weights. Raises PeerUnavailableError without PyTorch or for another architecture."""
        self._torch, transformers = _import("torch"), _import("transformers")
        kind = CONFIGURATIONS.get(shape.architecture)
        if kind is None:
            known = ", ".join(sorted(CONFIGURATIONS))
            raise PeerUnavailableError(f"transformers: no shape of {shape.architecture}; there are {known}")
        torch = self._torch
        self.compiled = compiled
        self.version = f"transformers {transformers.__version__}, torch {torch.__version__}, bf16, SDPA, " + (
            "torch.compile" if compiled else "eager"
        )
        self._device = device
        config = getattr(transformers, kind)(
            num_hidden_layers=shape.layers,
            hidden_size=shape.hidden,
            intermediate_size=shape.ffn,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            vocab_size=shape.vocabulary,
            rms_norm_eps=shape.epsilon,
            max_position_embeddings=max(nt, 4096),
            tie_word_embeddings=False,
        )
        config._attn_implementation = "sdpa"
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model = model.to_empty(device=device).eval()
        _fill(torch, model, shape)
        self._model = model
        self._forward = torch.compile(self._run, mode="reduce-overhead") if compiled else self._run

    def prefill(self, tokens: Sequence[int]) -> int:
        """Whole prefill; host ns from the call to the last token's logits, device synchronised."""
        torch = self._torch
        ids = torch.tensor([list(tokens)], device=self._device)
        self._synchronize()
        began = time.perf_counter_ns()
        with torch.inference_mode():
            self._forward(ids)
        self._synchronize()
        return time.perf_counter_ns() - began

    def close(self) -> None:
        """Give the memory back."""
        self._model = self._forward = None
        gc.collect()
        if self._device == "cuda":
            self._torch.cuda.empty_cache()

    def _run(self, ids: Any) -> Any:
        # Without a cache to fill: it favours this peer, by the few microseconds that writing keys and values takes.
        return self._model(input_ids=ids, use_cache=False, logits_to_keep=1).logits

    def _synchronize(self) -> None:
        if self._device == "cuda":
            self._torch.cuda.synchronize()


def _fill(torch: Any, model: Any, shape: DecoderShape) -> None:
    """Random weights, ones for norms, and the rotary table that ``to_empty`` left unset."""
    generator = torch.Generator(device=next(model.parameters()).device).manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.fill_(1.0)
            else:
                parameter.normal_(0.0, 0.02, generator=generator)
        for module in model.modules():
            if hasattr(module, "inv_freq"):
                steps = torch.arange(0, shape.head_dim, 2, device=module.inv_freq.device, dtype=torch.float32)
                module.inv_freq.copy_(shape.rope_base ** (-steps / shape.head_dim))


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PeerUnavailableError(f"transformers: {error}; pip install torch transformers to compare with it") from error
