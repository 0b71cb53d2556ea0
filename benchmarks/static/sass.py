"""A cubin read with NVIDIA's own tools: ``cuobjdump`` for resources, ``nvdisasm`` for instructions (SASS)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..attribution.errors import UserFacingError
from .facts import KernelFacts, resident_warps

MATRIX = ("HMMA", "IMMA", "HGMMA", "IGMMA", "QGMMA", "QMMA", "OMMA", "BMMA", "DMMA")
_INSTRUCTION_BYTES = 16
_SECTION = re.compile(r"^\.text\.(\S+):$")
_LABEL = re.compile(r"^(\.L_\S+):$")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?);")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_RESOURCES = re.compile(r"Function (\S+):\n\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
_SPILLS = re.compile(
    r"Function properties for (\S+)\n.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_THREADS = re.compile(r"EIATTR_MAX_THREADS\s+Format:\s+\S+\s+Value:\s+0x([0-9a-f]+) 0x([0-9a-f]+) 0x([0-9a-f]+)")
_INFO_SECTION = re.compile(r"^\.nv\.info\.(\S+)", re.MULTILINE)


class StaticToolError(UserFacingError):
    """A tool that is missing, or says what cannot be read."""


@dataclass(frozen=True, slots=True)
class _Code:
    """The instructions of one kernel: opcode of each, and loops as (first, last) index."""

    opcodes: list[str]
    loops: list[tuple[int, int]]


def tool(name: str) -> str:
    """Path of cuobjdump or nvdisasm: of the installed wheel, else on the path. Raises StaticToolError."""
    for folder in dict.fromkeys(sys.path):
        for path in sorted(Path(folder or ".").glob(f"nvidia/*/bin/{name}"), reverse=True):
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise StaticToolError(f"{name}: not installed; pip install nvidia-cuda-{name}")
    return found


def read_cubin(path: Path, log: Path, source: str, target: str) -> list[KernelFacts]:
    """Every kernel of a cubin. ``log`` is what ptxas said while compiling it."""
    elf = _run(tool("cuobjdump"), "-elf", str(path))
    resources = {
        name: (int(registers), int(stack), int(shared))
        for name, registers, stack, shared in _RESOURCES.findall(_run(tool("cuobjdump"), "-res-usage", str(path)))
    }
    spills = {name: int(stores) + int(loads) for name, _, stores, loads in _SPILLS.findall(log.read_text(encoding="utf-8"))}
    threads = _threads(elf)
    found = []
    for kernel, code in disassembled(_run(tool("nvdisasm"), "-c", str(path))).items():
        if kernel not in resources or kernel not in spills or kernel not in threads:
            raise StaticToolError(f"{path.name}: {kernel} is missing from cuobjdump's or ptxas's report; compile it again")
        registers, stack, shared = resources[kernel]
        kinds = {kind: count for kind in MATRIX if (count := sum(_kind(op) == kind for op in code.opcodes))}
        # cuobjdump counts the system's own 1 KiB of a block's shared memory where there is any.
        own = max(0, shared - 1024) if target != "sm_80" and shared else shared
        found.append(
            KernelFacts(
                source=source,
                kernel=kernel,
                target=target,
                registers=registers,
                spill_bytes=spills[kernel],
                stack_bytes=stack,
                shared_bytes=own,
                threads=threads[kernel],
                warps_resident=resident_warps(target, registers, own, threads[kernel]),
                matrix_instructions=sum(kinds.values()),
                matrix_kinds=kinds,
                loop_per_matrix=_loop_per_matrix(code),
                code_bytes=len(code.opcodes) * _INSTRUCTION_BYTES,
            )
        )
    return found


def disassembled(text: str) -> dict[str, _Code]:
    """nvdisasm's listing by kernel."""
    found: dict[str, _Code] = {}
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    name: str | None = None

    def close() -> None:
        if name is not None:
            loops = [(labels[label], at) for at, label in branches if label in labels and labels[label] <= at]
            found[name] = _Code(_without_padding(opcodes), loops)

    for line in text.splitlines():
        if match := _SECTION.match(line):
            close()
            name, opcodes, labels, branches = match.group(1), [], {}, []
        elif match := _LABEL.match(line):
            labels[match.group(1)] = len(opcodes)
        elif match := _INSTRUCTION.match(line):
            if match.group(1).startswith("BRA") and (to := _TARGET.search(match.group(2))):
                branches.append((len(opcodes), to.group(1)))
            opcodes.append(match.group(1))
    close()
    return found


def _without_padding(opcodes: list[str]) -> list[str]:
    """Without the endless branch and the NOPs that fill the last cache line."""
    end = len(opcodes)
    while end and opcodes[end - 1].startswith(("NOP", "BRA")):
        end -= 1
    return opcodes[:end]


def _kind(opcode: str) -> str:
    return opcode.partition(".")[0]


def _loop_per_matrix(code: _Code) -> float | None:
    """See ``KernelFacts.loop_per_matrix``."""
    best: tuple[int, int] | None = None
    for first, last in code.loops:
        inside = code.opcodes[first : last + 1]
        matrix = sum(_kind(opcode) in MATRIX for opcode in inside)
        if matrix and (best is None or (matrix, -len(inside)) > (best[0], -best[1])):
            best = matrix, len(inside)
    return None if best is None else round(best[1] / best[0], 3)


def _threads(elf: str) -> dict[str, int]:
    """Launch bounds by kernel, from the attributes that follow each kernel's info section."""
    found = {}
    sections = list(_INFO_SECTION.finditer(elf))
    for section, end in zip(sections, [*(one.start() for one in sections[1:]), len(elf)], strict=False):
        values = _THREADS.search(elf, section.end(), end)
        if values:
            x, y, z = (int(value, 16) for value in values.groups())
            found[section.group(1)] = x * y * z
    return found


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[0]
        raise StaticToolError(f"{Path(command[0]).name} {Path(command[-1]).name}: {said}")
    return done.stdout
