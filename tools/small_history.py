"""A small made-up campaign: two machines, three engines, decomposition records and asv results, with a story to find.

The figures at its start are those of the published round r37 and the peer's of a real H200; what happens then is made up.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.attribution import record as r
from benchmarks.attribution import record_files
from tools.noise import RealNoise
from tools.story import HOSTILE_SUBJECT, ORDINARY, STORY

LAYERS = 28
_LINEAR = (
    # operation, weight type, n, k
    ("attn_q", "q4_K", 3584, 3584),
    ("attn_k", "q4_K", 512, 3584),
    ("attn_v", "q6_K", 512, 3584),
    ("attn_output", "q4_K", 3584, 3584),
    ("ffn_gate", "q4_K", 18944, 3584),
    ("ffn_up", "q4_K", 18944, 3584),
    ("ffn_down", "q6_K", 3584, 18944),
)
_SMALL = ("activation quantise", "norm", "rope", "elementwise", "kv write")


# Class costs at the start: us per GMAC of the GEMMs, ms per 1000 tokens of the others, of attention per 1000 tokens squared.
_START = {
    "q4_K GEMM": 33.0,
    "q6_K GEMM": 190.0,
    "attention": 11.3,
    "activation quantise": 6.0,
    "norm": 3.1,
    "rope": 1.8,
    "elementwise": 4.2,
    "kv write": 0.9,
    "embedding": 0.2,
    "logits": 0.4,
}
_PEER = {
    "q4_K GEMM": 11.2,
    "q6_K GEMM": 14.5,
    "attention": 1.8,
    "activation quantise": 2.6,
    "norm": 1.9,
    "rope": 0.7,
    "elementwise": 2.4,
    "kv write": 0.5,
    "embedding": 0.1,
    "logits": 0.3,
}
_MACHINES = {
    "h200": (r.Machine("h200", "Intel Xeon", 16, 128 << 30, "Linux", "3.12", "NVIDIA H200", "580.65"), (512, 3325), 1.0),
    "epyc-2core": (r.Machine("epyc-2core", "AMD EPYC", 2, 24 << 30, "Linux", "3.11"), (128, 512), 700.0),
}


def commit_hash(index: int, seed: int) -> str:
    return hashlib.sha1(f"made-up {seed} {index}".encode()).hexdigest()


def write(folder: Path, commits: int = 48, seed: int = 0, layers: int = LAYERS) -> list[str]:
    """Write the history; returns its commits, oldest first. Fewer ``layers`` make a smaller model and smaller records."""
    noise = RealNoise(seed)
    start = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)
    steps = {min(commits - 1, round(step.at * commits)): step for step in STORY}
    hashes, lines = [], []
    multipliers: dict[str, float] = {}
    drift = {name: np.clip(noise.factors(commits, 0.003), 0.97, 1.03) for name in _MACHINES}
    for index in range(commits):
        commit = commit_hash(index, seed)
        when = start + timedelta(hours=31 * index)
        step = steps.get(index)
        subject, body = (step.subject, step.body) if step else (ORDINARY[index % len(ORDINARY)], "")
        paths = ["kernels/linear.cu"] if step else ["docs/method.md"]
        if index == 5:
            subject = HOSTILE_SUBJECT
        for name, factor in (step.factors if step else {}).items():
            multipliers[name] = multipliers.get(name, 1.0) * factor
        lines.append(
            json.dumps(
                {
                    "commit": commit,
                    "time": when.isoformat(),
                    "subject": subject,
                    "body": body,
                    "paths": paths,
                    "parents": hashes[-1:],
                }
            )
        )
        hashes.append(commit)
        for name in _MACHINES:
            made = _record(commit, when, name, multipliers, noise, float(drift[name][index]), index, layers)
            record_files.append_record(folder / name / "records" / f"{commit}.jsonl", made)
    (folder / "commits.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return hashes


def _record(
    commit: str,
    when: datetime,
    name: str,
    multipliers: dict[str, float],
    noise: RealNoise,
    drift: float,
    index: int,
    layers: int,
) -> r.Record:
    machine, lengths, slower = _MACHINES[name]
    walls = []
    for nt in lengths:
        walls.append(_wall("minfer", nt, multipliers, noise, slower * drift, index, layers))
        walls.append(_wall("llama.cpp", nt, {}, noise, slower * drift, index, layers))
    conditions = tuple(
        r.Conditions(
            moment,
            (when + timedelta(minutes=20 + 3 * place)).isoformat(),
            {"sm": 1980.0, "memory": 2619.0},
            41.0 + place,
            310.0 + 90 * place,
            0.2,
            ("python (pid 4711), 3.1 GiB",) if index % 17 == 9 and place == 1 else (),
        )
        for place, moment in enumerate(("before", "during", "after"))
    )
    ceilings = ()
    if machine.gpu:
        ceilings = (
            r.Ceiling("copy", "TB/s", 4.26),
            r.Ceiling("f16 GEMM", "TFLOP/s", 742.0),
            r.Ceiling("int8 GEMM", "TOP/s", 655.0),
        )
    else:
        ceilings = (r.Ceiling("copy", "TB/s", 0.021), r.Ceiling("f32 GEMM", "TFLOP/s", 0.135))
    window = r.Window(
        f"{name}-{index:04d}",
        (when + timedelta(minutes=20)).isoformat(),
        (when + timedelta(minutes=27)).isoformat(),
        conditions,
    )
    return r.Record(
        commit=commit,
        commit_time=when.isoformat(),
        machine=machine,
        window=window,
        instrument="cupti" if machine.gpu else "spans",
        instrument_version=1,
        model=r.Model(
            "Qwen2.5-7B shape, Q4_K_M", "ab" * 32, "qwen2", 7_600_000_000, {"q4_K": 5_500_000_000, "q6_K": 1_000_000_000}
        ),
        walls=tuple(walls),
        ceilings=ceilings,
        checks=(r.Check("same GMAC on both sides", True, 0.0, 0.0, "GMAC"),),
        notes=("made up by tools/make_history.py",),
    )


def _wall(
    engine: str, nt: int, multipliers: dict[str, float], noise: RealNoise, scale: float, index: int, layers: int
) -> r.Wall:
    ours = engine == "minfer"
    costs = _START if ours else _PEER
    wobble = np.clip(noise.factors(32, 0.004), 0.98, 1.03)
    classes = []
    for place, (name, cost) in enumerate(costs.items()):
        factor = multipliers.get(name, 1.0) * scale * float(wobble[place])
        classes.append(_class(name, cost * factor, nt, ours, layers))
    stray: tuple[str, ...] = ()
    if ours and index % 13 == 4:
        stray = ("void mystery_kernel<128, true>(float const*, float*)",)
        classes.append(r.ClassTime("unclassified", round(0.022 * sum(c.ns for c in classes)), 3, symbols=stray))
    busy = sum(item.ns for item in classes)
    copy = round(busy * 0.003)
    gap = busy * (0.06 if ours else 0.03) * multipliers.get("gap", 1.0) * (1.0 if nt > 1000 else 2.5)
    gaps = {"host-late": round(gap * 0.7), "queued": round(gap * 0.2), "unknown": round(gap * 0.1)}
    total = busy + copy + sum(gaps.values())
    samples = tuple(round(total * 0.992 * float(f)) for f in np.clip(noise.factors(9, 0.004), 0.95, 1.08))
    traced = tuple(round(total * float(f)) for f in noise.factors(3, 0.004))
    bad = (r.Quarantined(4, round(total * 1.4), "foreign process: python (pid 4711)"),) if index % 17 == 9 else ()
    gap_share = sum(gaps.values()) / total
    checks = (
        r.Check("closure", True, 0.0, 0.0, "ns"),
        r.Check("gap against wall", gap_share < 0.05, round(gap_share * 100, 2), 5.0, "% of wall"),
        r.Check("tracer's own cost", True, 0.8, 3.0, "% of wall"),
        r.Check("unclassified", not stray, 2.2 if stray else 0.0, 1.0, "% of busy", ", ".join(stray)),
    )
    return r.Wall(
        engine=engine,
        engine_version="0.1.0" if ours else "b7010",
        backend="cuda",
        nt=nt,
        ubatch=nt if ours else 2048,
        gates={"mmq": True, "bt": True, "graph": multipliers.get("gap", 1.0) < 1} if ours else {},
        samples_ns=samples,
        traced_ns=traced,
        quarantined=bad,
        decomposition=r.Decomposition(
            total, busy, copy, gaps, tuple(classes), stray, timeline=_timeline(classes, layers // 2)
        ),
        peak_memory_bytes=6 << 30,
        checks=checks,
    )


def _timeline(classes: list[r.ClassTime], layer: int) -> r.LayerTimeline:
    """A layer's launches with 2 us between them, the norms on a second stream beside what runs there."""
    launches, start = [], 0
    for item in classes:
        for split in item.splits:
            if split.layer == layer:
                beside = item.name == "norm"
                symbol = item.symbols[0] if item.symbols else item.name
                launches.append(r.LayerLaunch(split.operation, item.name, symbol, start, split.ns, 7 if beside else 0))
                start += 0 if beside else split.ns + 2000
    return r.LayerTimeline(layer, tuple(sorted(launches, key=lambda launch: launch.start_ns)))


def _class(name: str, cost: float, nt: int, ours: bool, layers: int) -> r.ClassTime:
    if name.endswith(" GEMM"):
        quantisation = name.removesuffix(" GEMM")
        template = [
            r.Split(
                op, round(nt * n * k * cost * 1e-6), 1, 0, nt, n, k, quant, nt * n * k, (nt * (n + k)) * 2 + n * k * 6 // 10
            )
            for op, quant, n, k in _LINEAR
            if quant == quantisation
        ]
    elif name == "attention":
        pairs = nt * (nt + 1) // 2 * 28 * 128 * 2
        template = [
            r.Split(
                "attention", round(cost * 1e6 * (nt / 1000) ** 2 / layers), 1, 0, nt, nt, 128, None, pairs, nt * 4608 * 4
            )
        ]
    elif name in _SMALL:
        template = [
            r.Split(
                name.replace(" ", "_"), round(cost * 1e6 * nt / 1000 / layers), 2, 0, nt, 3584, 0, None, None, nt * 3584 * 4
            )
        ]
    else:
        split = r.Split(name, round(cost * 1e6 * nt / 1000), 1, None, nt, 3584, 0, None, None, nt * 3584 * 4)
        return r.ClassTime(
            name, split.ns, 1, None, split.bytes, (split.ns,), (split,), (f"{name.replace(' ', '_')}_kernel",)
        )
    splits = tuple(replace(split, layer=layer) for layer in range(layers) for split in template)
    total = sum(split.ns for split in splits)
    macs = sum(split.macs or 0 for split in splits) or None
    samples = tuple(round(total * f) for f in (1.0, 1.004, 0.997))
    symbol = f"mul_mat_{name.split()[0]}_bt<8>" if ours else f"mul_mat_q<(ggml_type){12 if 'q4' in name else 14}, 128>"
    return r.ClassTime(name, total, len(splits), macs, sum(s.bytes or 0 for s in splits), samples, splits, (symbol,))
