"""Every gate of the engine, named once: a switch between two ways to compute the same thing, recorded with each result.

A value comes from, in this order: an explicit override (``minfer.load(gates=...)``, ``--gate mmq=1``), the environment
(``MINFER_GATES="mmq=1,bt=0"``), the default here. Adding a gate is adding one line to GATES.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import MinferError

GateValue = bool | int | str

ENVIRONMENT_VARIABLE = "MINFER_GATES"
_TRUE = ("1", "true", "on", "yes")
_FALSE = ("0", "false", "off", "no")


@dataclass(frozen=True, slots=True)
class Gate:
    """One switch. The type of ``default`` is the type of every value that it takes."""

    name: str
    backend: str
    """"numpy" or "cuda": the backend that reads it."""
    default: GateValue
    meaning: str
    """One line: what is computed differently when it is set."""
    choices: tuple[GateValue, ...] = ()
    """The values allowed; empty for any of the default's type."""

    def read(self, value: GateValue) -> GateValue:
        """``value``, or the text of one, as this gate's type. Raises MinferError naming gate, value and what it takes."""
        parsed = _parsed(self.default, value)
        if parsed is None or (self.choices and parsed not in self.choices):
            raise MinferError(f"gate {self.name}: value {value!r}; it takes {self.takes()}")
        return parsed

    def takes(self) -> str:
        """The values allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        if isinstance(self.default, bool):
            return "0 or 1"
        return "a whole number, 0 or more" if isinstance(self.default, int) else "a word"


GATES: tuple[Gate, ...] = (
    Gate("native", "numpy", True, "kernels compiled for this CPU; 0: NumPy alone, the reference"),
    Gate("integers", "numpy", True, "native products of many rows over activations rounded to 16 bits; 0: float32 and BLAS"),
    Gate("threads", "numpy", 0, "threads of the native kernels; 0: as many as NumPy's BLAS"),
    Gate("weight_cache_bytes", "numpy", 2 << 30, "bytes of weights kept as float32; the others are converted at each use"),
    Gate("fa", "cuda", True, "flash attention on the matrix units; 0: one warp a query, no tiles"),
    Gate("fa3", "cuda", True, "flash attention on Hopper's warpgroup matrix units, where the heads allow; 0: as other GPUs"),
    Gate("mmq", "cuda", False, "products on the int8 matrix units over q8_1 activations; 0: f16 and cuBLAS"),
    Gate("bt", "cuda", False, "q4_K products from raw nibbles and transposed q8_1 activations; 0: as the other types"),
    Gate("fused", "cuda", True, "q4_K and q6_K products below 2048 tokens unpack their weights (Hopper); 0: as others"),
    Gate("dense", "cuda", False, "keep an f16 copy of each layer's weights on the device: no dequantise, 2 bytes a weight"),
    Gate("graphs", "cuda", True, "launch a pass seen before as CUDA graphs; 0: launch each kernel"),
)


def gates_of(backend: str, registry: Sequence[Gate] = GATES) -> dict[str, Gate]:
    """The gates that ``backend`` reads, by name."""
    return {gate.name: gate for gate in registry if gate.backend == backend}


def resolve(
    backend: str,
    overrides: Mapping[str, GateValue] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    registry: Sequence[Gate] = GATES,
) -> dict[str, GateValue]:
    """The value of each gate of ``backend``.

    An override must name a gate of this backend: one that the run would ignore is an error, since its result would be
    recorded as if the gate had acted. The environment may name gates of other backends too, so that one setting serves
    a whole comparison; a name that no backend knows is an error there as well.
    """
    gates = gates_of(backend, registry)
    known = {gate.name: gate for gate in registry}
    values = {name: gate.default for name, gate in gates.items()}
    settings = parse_settings((os.environ if environment is None else environment).get(ENVIRONMENT_VARIABLE, ""))
    for name, value in settings.items():
        _require_known(name, known, f" (in {ENVIRONMENT_VARIABLE})")
        read = known[name].read(value)
        if name in gates:
            values[name] = read
    for name, given in (overrides or {}).items():
        _require_known(name, known, "")
        if name not in gates:
            raise MinferError(f"gate {name} belongs to the {known[name].backend} backend, and this run uses {backend}")
        values[name] = gates[name].read(given)
    return values


def parse_settings(text: str) -> dict[str, str]:
    """"mmq=1,bt=0" as {"mmq": "1", "bt": "0"}; the empty text as no settings. The last of two values of a name counts."""
    settings = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise MinferError(f"gate setting {part!r}: expected name=value, for example mmq=1,bt=0")
        settings[name.strip()] = value.strip()
    return settings


def _require_known(name: str, known: Mapping[str, Gate], where: str) -> None:
    if name not in known:
        raise MinferError(f"no gate {name!r}{where}; there are: {', '.join(sorted(known)) or 'none'}")


def _parsed(default: GateValue, value: GateValue) -> GateValue | None:
    if isinstance(default, bool):
        text = str(int(value) if isinstance(value, bool) else value).strip().lower()
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        try:
            number = None if isinstance(value, bool) else int(value)
        except ValueError:
            return None
        return None if number is None or number < 0 else number
    return value.strip() if isinstance(value, str) else None
