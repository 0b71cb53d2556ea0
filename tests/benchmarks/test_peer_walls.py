"""Peers outside the interleaved samples: named so that they never pass for the in-process one, their work credited once."""

import sys

import pytest

from benchmarks.attribution.record import ClassTime, Decomposition, Wall
from benchmarks.peer_walls import llama_bench_walls, transformers_walls, with_product_macs
from benchmarks.peers.llama_bench import BenchOptions
from tests.benchmarks.peers.test_llama_bench import FAKE

OPTIONS = BenchOptions(nt=512, ubatches=(256, 512), repetitions=3, threads=2, gpu_layers=0)
IN_PROCESS = Wall("llama.cpp", "1", "cpu", 512, 512, {}, (1,))


@pytest.fixture
def fake_bench(monkeypatch, tmp_path):
    def make(extra=""):
        path = tmp_path / "llama-bench"
        path.write_text(FAKE.format(python=sys.executable, extra=extra))
        path.chmod(0o755)
        monkeypatch.setenv("MINFER_LLAMA_BENCH", str(path))

    return make


def silent(text):
    pass


def test_beside_the_in_process_peer_it_keeps_its_own_name(fake_bench, tmp_path):
    fake_bench()
    walls = llama_bench_walls(tmp_path / "m.gguf", OPTIONS, [IN_PROCESS], [], silent)
    assert [(wall.engine, wall.ubatch, wall.samples_ns) for wall in walls] == [
        ("llama-bench", 256, (356,) * 3),
        ("llama-bench", 512, (612,) * 3),
    ]
    assert "llama-bench abc" in walls[0].engine_version


def test_alone_it_is_the_peer(fake_bench, tmp_path):
    fake_bench()
    assert {wall.engine for wall in llama_bench_walls(tmp_path / "m.gguf", OPTIONS, [], [], silent)} == {"llama.cpp"}


def test_its_failure_is_a_note_and_no_wall(fake_bench, tmp_path):
    fake_bench('sys.exit("no such model")')
    notes = []
    assert llama_bench_walls(tmp_path / "m.gguf", OPTIONS, [], notes, silent) == []
    assert "no such model" in notes[0]


def part(*names):
    return Decomposition(100, 90, 0, {"unknown": 10}, tuple(ClassTime(name, 45, 1) for name in names))


def test_work_is_credited_only_where_one_class_holds_all_products():
    credited = with_product_macs(part("bf16 GEMM", "norm"), 7)
    assert {found.name: found.macs for found in credited.classes} == {"bf16 GEMM": 7, "norm": None}
    unknown = with_product_macs(part("bf16 GEMM", "f16 GEMM"), 7)
    assert [found.macs for found in unknown.classes] == [None, None]


def test_transformers_is_measured_only_when_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("MINFER_PEERS", raising=False)
    assert transformers_walls(tmp_path / "m.gguf", None, [1], 1, [], silent) == []
