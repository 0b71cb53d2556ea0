"""A llama-bench binary is run as stated, its first repetition dropped, and its failures become one line."""

import sys

import pytest

from benchmarks import programs
from benchmarks.peers.llama_bench import BenchOptions, kept_samples, llama_bench_binary, run_llama_bench
from benchmarks.peers.llama_library import PeerUnavailableError

OPTIONS = BenchOptions(nt=512, ubatches=(256, 512), repetitions=3, threads=2, gpu_layers=0)

FAKE = """#!{python}
import json, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
{extra}
for ubatch in arguments["-ub"].split(","):
    samples = [900] + [100 + int(ubatch)] * (int(arguments["-r"]) - 1)
    print(json.dumps({{"n_prompt": int(arguments["-p"]), "n_gen": int(arguments["-n"]), "n_ubatch": int(ubatch),
                       "avg_ts": 1.0, "avg_ns": 5, "samples_ns": samples, "build_commit": "abc", "n_depth": 0}}))
"""


@pytest.fixture
def binary(tmp_path):
    def make(extra=""):
        path = tmp_path / "llama-bench"
        path.write_text(FAKE.format(python=sys.executable, extra=extra))
        path.chmod(0o755)
        return path

    return make


def test_each_ubatch_has_its_samples_without_the_first(binary, tmp_path):
    results = run_llama_bench(binary(), tmp_path / "m.gguf", OPTIONS)
    assert [(result.ubatch, kept_samples(result)) for result in results] == [(256, (356,) * 3), (512, (612,) * 3)]


def test_its_own_words_reach_the_user(binary, tmp_path):
    failing = binary('sys.exit("error: failed to load model")')
    with pytest.raises(PeerUnavailableError, match=r"error: failed to load model; run it by hand: \S+llama-bench -m"):
        run_llama_bench(failing, tmp_path / "m.gguf", OPTIONS)


def test_another_nt_than_asked_for_is_refused(binary, tmp_path):
    with pytest.raises(PeerUnavailableError, match="expected 2 at nt 512"):
        run_llama_bench(binary('arguments["-p"] = "511"'), tmp_path / "m.gguf", OPTIONS)


def test_the_users_binary_comes_first_and_a_wrong_name_is_said(monkeypatch, binary):
    monkeypatch.setenv("MINFER_LLAMA_BENCH", str(binary()))
    assert llama_bench_binary() == binary()
    monkeypatch.setenv("MINFER_LLAMA_BENCH", "/no/such/llama-bench")
    with pytest.raises(PeerUnavailableError, match="MINFER_LLAMA_BENCH=/no/such/llama-bench: no such program"):
        llama_bench_binary()


def test_without_a_binary_there_is_none(monkeypatch):
    monkeypatch.delenv("MINFER_LLAMA_BENCH", raising=False)
    monkeypatch.setattr(programs.shutil, "which", lambda name: None)
    assert llama_bench_binary() is None

