"""Qwen3 as a mixture of experts (arXiv:2505.09388): a router sends each token through a few of many small feed-forwards."""

from __future__ import annotations

from ..backends import Array
from ..errors import MinferError
from ..forward import Forward
from ..weights import Weights
from .prenorm import PreNormDecoder


class Model(PreNormDecoder):
    normed = True

    def read_feed_forward(self, weights: Weights) -> None:
        c, layers = self.config, range(self.config.layers)
        if not c.experts or not c.expert_feed_forward:
            raise MinferError(
                f"{weights.path}: expert_count is {c.experts} and expert_feed_forward_length {c.expert_feed_forward}, "
                f"expected both above 0; convert the model again"
            )
        inner, outer = (c.experts, c.expert_feed_forward, c.embedding), (c.experts, c.embedding, c.expert_feed_forward)
        self.router = [weights.matrix(f"blk.{i}.ffn_gate_inp.weight", c.experts, c.embedding) for i in layers]
        self.gate = [weights.matrix(f"blk.{i}.ffn_gate_exps.weight", *inner) for i in layers]
        self.up = [weights.matrix(f"blk.{i}.ffn_up_exps.weight", *inner) for i in layers]
        self.down = [weights.matrix(f"blk.{i}.ffn_down_exps.weight", *outer) for i in layers]

    def feed_forward(self, run: Forward, layer: int, x: Array) -> Array:
        used = self.config.experts_used
        routing = run.route(layer, self.router[layer], x, used)
        gate = run.expert_linear("ffn_gate_exps", layer, self.gate[layer], x, routing, used)
        up = run.expert_linear("ffn_up_exps", layer, self.up[layer], x, routing, used)
        inner = run.gated(layer, gate, up, "silu")
        down = run.expert_linear("ffn_down_exps", layer, self.down[layer], inner, routing, used)
        return run.combine(layer, down, routing)
