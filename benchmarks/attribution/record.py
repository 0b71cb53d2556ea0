"""The decomposition record: what one measurement window of one commit on one machine found.

One record is one JSON object on one line of ``results/<machine>/records/<commit>.jsonl``; measuring a commit again
appends a line, so nothing measured is lost. The dashboard, the CI gate and the queue read records and nothing else.
Times are integer ns, MACs integers; None means "not known", never zero.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field

RECORD_FORMAT = "minfer-record"
RECORD_VERSION = 3
"""2 added ``Decomposition.timeline``, 3 ``Window.stages_ns``; older records are read as having none."""


ENGINE, PEER = "minfer", "llama.cpp"
"""Names in ``Wall.engine``: the engine under test, and the peer that is always asked for."""


@dataclass(frozen=True, slots=True)
class Split:
    """A class divided by operation and shape: attn_v and ffn_down inside "q6_K GEMM"."""

    operation: str
    ns: int
    launches: int
    layer: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    quantisation: str | None = None
    macs: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ClassTime:
    """One kernel class inside one wall."""

    name: str
    ns: int
    """Attributed time: where launches overlap, each instant is counted once."""
    launches: int
    macs: int | None = None
    bytes: int | None = None
    samples_ns: tuple[int, ...] = ()
    """The same class in every traced repetition of the window, in order; ``ns`` belongs to the one decomposed."""
    splits: tuple[Split, ...] = ()
    symbols: tuple[str, ...] = ()
    """Demangled kernel symbols seen in the class, most time first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One trust rule applied: passed, failed, or None where it could not be applied, with the reason in ``detail``."""

    name: str
    passed: bool | None
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LayerLaunch:
    """One launch of a layer, as it ran in the traced wall."""

    operation: str
    """The engine's name of it; where the trace names none, the kernel's function."""
    kernel_class: str
    symbol: str
    start_ns: int
    """From the start of the layer's first launch."""
    ns: int
    """Its own duration: launches that overlap each keep theirs, unlike in a class."""
    stream: int


@dataclass(frozen=True, slots=True)
class LayerTimeline:
    """The launches of one layer in order of their start. The middle layer stands for the others."""

    layer: int
    launches: tuple[LayerLaunch, ...]
    left_out: int = 0
    """Launches at the layer's end that were not kept."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One traced wall taken apart; ``wall_ns == sum(classes) + copy_ns + sum(gap_ns)`` exactly."""

    wall_ns: int
    busy_ns: int
    copy_ns: int
    gap_ns: dict[str, int]
    """By cause: "host-late", "queued", "unknown"; of spans on a CPU, where no device queues anything: "host code"."""
    classes: tuple[ClassTime, ...]
    unclassified: tuple[str, ...] = ()
    """Symbols that no rule named."""
    summed_ns: int | None = None
    """Durations of all launches added up: more than ``busy_ns`` where launches overlap."""
    span_ns: int | None = None
    """First launch's start to last launch's end, inside the window."""
    copies_summed_ns: int | None = None
    """Durations of all copies added up; ``copy_ns`` is only their part that no kernel covers."""
    not_collected: int = 0
    """Launches and copies left out because a timestamp of theirs is 0, which means "not collected"."""
    timeline: LayerTimeline | None = None
    """None where no launch names a layer, and in records of version 1."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A sample that was taken and is not used, and why."""

    index: int
    ns: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wall:
    """One engine's whole prefill at one nt in this window."""

    engine: str
    """"minfer", "llama.cpp", "transformers"."""
    engine_version: str
    backend: str
    """"numpy", "cuda", "cpu", ..."""
    nt: int
    ubatch: int
    gates: dict[str, bool | int | str]
    samples_ns: tuple[int, ...]
    """Untraced walls, in the order taken. Their median is the wall that is quoted."""
    traced_ns: tuple[int, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    decomposition: Decomposition | None = None
    why_not_decomposed: str = ""
    peak_memory_bytes: int | None = None
    memory_bytes: dict[str, int] = field(default_factory=dict)
    """By purpose: "weights", "kv cache", "scratch", ..."""
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    """The machine's class ("epyc-2core", "h200"), never a host name."""
    cpu: str
    cores: int
    memory_bytes: int
    os: str
    python: str
    gpu: str | None = None
    driver: str | None = None
    libraries: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The state of the machine at one moment of the window."""

    when: str
    """"before", "during", "after"."""
    time: str
    """ISO 8601, UTC."""
    clock_mhz: dict[str, float] = field(default_factory=dict)
    temperature_c: float | None = None
    power_w: float | None = None
    load_average: float | None = None
    foreign_processes: tuple[str, ...] = ()
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """One sitting of measurements. Only what shares a window id may be divided by each other."""

    id: str
    started: str
    ended: str
    conditions: tuple[Conditions, ...] = ()
    stages_ns: dict[str, int] = field(default_factory=dict)
    """What the window's own time was spent on, in order; they add up to its length. Empty in records before version 3."""


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    digest: str
    """sha256 of the weights file."""
    architecture: str
    parameters: int
    quantisation_mix: dict[str, int]
    """Weights by ggml type."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of the device measured in this window: "copy", "f16 GEMM", "int8 GEMM", "fp8 GEMM", "f32 GEMM"."""

    name: str
    unit: str
    value: float
    samples: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    commit: str
    commit_time: str
    machine: Machine
    window: Window
    instrument: str
    """"spans", "cupti", "nsys", "cuda events"."""
    instrument_version: int
    model: Model
    walls: tuple[Wall, ...]
    ceilings: tuple[Ceiling, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    format: str = RECORD_FORMAT
    version: int = RECORD_VERSION

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"), allow_nan=False)
