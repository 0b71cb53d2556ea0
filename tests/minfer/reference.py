"""A forward pass in float64, one token and one head at a time, written from the papers and from nothing of the engine."""

from __future__ import annotations

import math

import numpy as np

from tests.minfer.synthetic import Tiny


def reference_logits(tiny: Tiny, weights: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """Logits [tokens, vocabulary] of ``tokens`` from position 0."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    gemma = tiny.architecture == "gemma3"
    x = [w["token_embd.weight"][t] * (math.sqrt(tiny.embedding) if gemma else 1.0) for t in tokens]
    for layer in range(tiny.layers):
        x = _block(tiny, w, layer, x)
    head = w.get("output.weight", w["token_embd.weight"])
    logits = np.stack([head @ _norm(row, w["output_norm.weight"]) for row in x])
    cap = tiny.extra.get("final_logit_softcapping")
    return logits if cap is None else cap * np.tanh(logits / cap)


def _block(tiny: Tiny, w: dict[str, np.ndarray], layer: int, x: list[np.ndarray]) -> list[np.ndarray]:
    b = f"blk.{layer}."
    mixed = _attention(tiny, w, layer, [_norm(row, w[b + "attn_norm.weight"]) for row in x])
    if b + "post_attention_norm.weight" in w:
        mixed = [_norm(row, w[b + "post_attention_norm.weight"]) for row in mixed]
    x = [row + more for row, more in zip(x, mixed, strict=True)]
    fed = [_feed_forward(tiny, w, b, _norm(row, w[b + "ffn_norm.weight"])) for row in x]
    if b + "post_ffw_norm.weight" in w:
        fed = [_norm(row, w[b + "post_ffw_norm.weight"]) for row in fed]
    return [row + more for row, more in zip(x, fed, strict=True)]


def _attention(tiny: Tiny, w: dict[str, np.ndarray], layer: int, x: list[np.ndarray]) -> list[np.ndarray]:
    b = f"blk.{layer}."
    local = tiny.architecture == "gemma3" and (layer + 1) % 6 != 0

    def heads(name: str, count: int) -> list[np.ndarray]:
        rows = []
        for row in x:
            projected = w[f"{b}attn_{name}.weight"] @ row + w.get(f"{b}attn_{name}.bias", 0.0)
            rows.append(projected.reshape(count, -1))
        return rows

    q, k, v = heads("q", tiny.heads), heads("k", tiny.kv_heads), heads("v", tiny.kv_heads)
    for name, rows in (("q", q), ("k", k)):
        for position, row in enumerate(rows):
            for h in range(len(row)):
                head = row[h]
                if tiny.normed:
                    head = _norm(head, w[f"{b}attn_{name}_norm.weight"])
                row[h] = _turn(tiny, w, head, position, local)
    window = tiny.extra.get("attention.sliding_window") if local else None
    cap = tiny.extra.get("attn_logit_softcapping")
    out = []
    for here in range(len(x)):
        row = []
        for h in range(tiny.heads):
            g = h // (tiny.heads // tiny.kv_heads)
            seen = [there for there in range(here + 1) if window is None or here - there < window]
            scores = [float(q[here][h] @ k[there][g]) / math.sqrt(tiny.key_length) for there in seen]
            if cap is not None:
                scores = [cap * math.tanh(score / cap) for score in scores]
            weights = [math.exp(score - max(scores)) for score in scores]
            row.append(sum(weight * v[there][g] for weight, there in zip(weights, seen, strict=True)) / sum(weights))
        out.append(w[b + "attn_output.weight"] @ np.concatenate(row))
    return out


def _turn(tiny: Tiny, w: dict[str, np.ndarray], head: np.ndarray, position: int, local: bool) -> np.ndarray:
    """Rotary embedding as complex multiplication."""
    dimensions = tiny.extra.get("rope.dimension_count", tiny.key_length)
    base = 10000.0 if local else tiny.extra.get("rope.freq_base", 10000.0)
    out = head.copy()
    for i in range(dimensions // 2):
        frequency = base ** (-2.0 * i / dimensions)
        magnitude = 1.0
        if "rope_freqs.weight" in w and not local:
            frequency /= w["rope_freqs.weight"][i]
        if not local:
            frequency, magnitude = _scaled(tiny, frequency, i, dimensions, base)
        a, c = (2 * i, 2 * i + 1) if tiny.architecture == "llama" else (i, i + dimensions // 2)
        angle = position * frequency
        turned = complex(head[a], head[c]) * magnitude * complex(math.cos(angle), math.sin(angle))
        out[a], out[c] = turned.real, turned.imag
    return out


def _scaled(tiny: Tiny, frequency: float, i: int, dimensions: int, base: float) -> tuple[float, float]:
    kind, factor = tiny.extra.get("rope.scaling.type"), tiny.extra.get("rope.scaling.factor", 1.0)
    if kind == "linear":
        return frequency / factor, 1.0
    if kind != "yarn":
        return frequency, 1.0
    trained = tiny.extra["rope.scaling.original_context_length"]
    # YaRN, section 3.2: pairs that turn more than 32 times over the trained context stay, those under once are divided.
    bounds = [dimensions * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32.0, 1.0)]
    low, high = max(0, math.floor(bounds[0])), min(dimensions - 1, math.ceil(bounds[1]))
    ramp = min(1.0, max(0.0, (i - low) / max(0.001, high - low)))
    return frequency / factor * ramp + frequency * (1 - ramp), 1 + 0.1 * math.log(factor)


def _feed_forward(tiny: Tiny, w: dict[str, np.ndarray], b: str, x: np.ndarray) -> np.ndarray:
    if not tiny.experts:
        return _gated(tiny, w[b + "ffn_gate.weight"], w[b + "ffn_up.weight"], w[b + "ffn_down.weight"], x)
    scores = w[b + "ffn_gate_inp.weight"] @ x
    chance = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    chosen = sorted(range(tiny.experts), key=lambda e: -chance[e])[: tiny.experts_used]
    total = sum(chance[e] for e in chosen)
    tensors = [w[f"{b}ffn_{name}_exps.weight"] for name in ("gate", "up", "down")]
    return sum(chance[e] / total * _gated(tiny, *(tensor[e] for tensor in tensors), x) for e in chosen)


def _gated(tiny: Tiny, gate: np.ndarray, up: np.ndarray, down: np.ndarray, x: np.ndarray) -> np.ndarray:
    a = gate @ x
    if tiny.architecture == "gemma3":
        active = 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
    else:
        active = a / (1 + np.exp(-a))
    return down @ (active * (up @ x))


def _norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / math.sqrt(float(np.mean(x * x)) + float(np.float32(1e-5))) * weight
