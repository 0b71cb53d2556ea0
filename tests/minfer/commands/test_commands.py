"""The commands end to end on tiny models: what they print, and how they refuse."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from gguf import GGUFReader, GGUFWriter

from minfer import cli
from minfer.gates import GATES
from minfer.synthesis.write import synthesise
from tests.minfer.small_vocabularies import byte_pairs
from tests.real_models import GEMMA, SMOLLM2, real_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    synthesise(path, "tiny", "q4_k_m")
    return path


@pytest.fixture(scope="module")
def speaking(tiny, tmp_path_factory):
    """The tiny model with a vocabulary of bytes and a chat template."""
    return with_metadata(tiny, tmp_path_factory.mktemp("speaking") / "speaking.gguf", VOCABULARY)


FILLED = byte_pairs(special=[*(f"<{i}>" for i in range(1024 - 257 - 2)), "<|start|>", "<|endoftext|>"])
VOCABULARY = {**FILLED, "tokenizer.chat_template": "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"}


def with_metadata(source, out, changes):
    """A copy of a GGUF file with other metadata."""
    reader = GGUFReader(source)
    metadata = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    metadata.update({key: value for key, value in changes.items() if key != "general.architecture"})
    writer = GGUFWriter(out, metadata.pop("general.architecture"))
    for key, value in metadata.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_uint32(key, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def call(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_run_takes_ids_where_there_is_no_vocabulary(tiny, capsys):
    code, out, err = call(capsys, "run", tiny, "--ids", "1,2,3", "-n", 4, "--temp", 0)
    assert code == 0
    assert out.count("<") == 4
    assert "prompt 3 tokens" in err
    assert "ended by limit" in err
    assert call(capsys, "run", tiny, "--ids", "1,2,3", "-n", 4, "--temp", 0)[1] == out


def test_run_repeats_with_the_seed(tiny, capsys):
    options = ["run", tiny, "--ids", "1", "-n", 8, "--temp", 1, "--top-k", 0, "--top-p", 1, "--min-p", 0, "-q"]
    first = call(capsys, *options, "--seed", 5)
    assert first == call(capsys, *options, "--seed", 5)
    assert first[1] != call(capsys, *options, "--seed", 6)[1]
    assert first[2] == ""


def test_run_continues_a_text_and_a_file_and_standard_input(speaking, tmp_path, capsys, monkeypatch):
    (tmp_path / "prompt.txt").write_text("Hello")
    options = [speaking, "-n", 5, "--temp", 0, "-q", "--ignore-end", "--special"]
    texts = [call(capsys, "run", *options, "-p", "Hello"), call(capsys, "run", *options, "-f", tmp_path / "prompt.txt")]
    monkeypatch.setattr("sys.stdin", (tmp_path / "prompt.txt").open())
    texts.append(call(capsys, "run", *options))
    assert texts[0][0] == 0
    assert texts[0] == texts[1] == texts[2]


def test_run_converses_until_the_input_ends(speaking, tmp_path, capsys, monkeypatch):
    (tmp_path / "said.txt").write_text("Hello\nAgain\n")
    monkeypatch.setattr("sys.stdin", (tmp_path / "said.txt").open())
    code, _, err = call(capsys, "run", speaking, "--chat", "--system", "Be brief", "-n", 2, "--temp", 0, "--ignore-end")
    assert code == 0
    assert err.count("ended by limit") == 2
    # The first prompt holds "[system]Be brief[user]Hello"; the second that, the answer and "[user]Again".
    assert "prompt 27 tokens" in err


def test_inspect_shows_everything(tiny, capsys):
    code, out, _ = call(capsys, "inspect", tiny, "--nt", 64)
    assert code == 0
    for part in ("qwen2.vocab_size", "q4_K GEMM", "GMAC per token", "blk.7.ffn_down.weight", "quantisation mix"):
        assert part in out
    parsed = json.loads(call(capsys, "inspect", tiny, "--json")[1])
    assert parsed["model_type"].startswith("qwen2 ")
    assert len(parsed["tensors"]) == sum(entry["tensors"] for entry in parsed["mix"])


def test_inspect_shows_what_the_engine_cannot_run(speaking, tmp_path, capsys):
    path = with_metadata(speaking, tmp_path / "odd.gguf", {"qwen2.attention.head_count": 7})
    code, out, _ = call(capsys, "inspect", path)
    assert code == 0
    assert "not known: " in out
    assert "blk.0.attn_q.weight" in out


def test_inspect_gates_shows_every_gate_and_refuses_others(capsys, monkeypatch):
    monkeypatch.delenv("MINFER_GATES", raising=False)
    code, out, _ = call(capsys, "inspect", "--gates")
    assert code == 0
    assert all(gate.name in out and gate.meaning in out for gate in GATES)
    assert "no gate 'nonsense'" in call(capsys, "inspect", "--gates", "--gate", "nonsense=1")[2]


def test_bench_prints_one_row_a_test(tiny, capsys):
    code, out, _ = call(capsys, "bench", tiny, "-p", "8,16", "-n", 4, "-r", 2, "-o", "jsonl", "--backend", "numpy")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(row["n_prompt"], row["n_gen"]) for row in rows] == [(8, 0), (16, 0), (0, 4)]
    assert all(len(row["samples_ns"]) == 2 and row["avg_ts"] > 0 for row in rows)
    assert rows[0]["model_type"].endswith("Q4_K - Medium")


def test_synth_writes_a_file(tmp_path, capsys):
    code, out, _ = call(capsys, "synth", tmp_path / "s.gguf", "--arch", "gemma3", "--mix", "q8_0")
    assert code == 0
    assert "GB in" in out
    assert (tmp_path / "s.gguf").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "TINY", "-p", "x"], "has no vocabulary to read texts with"),
        (["run", "TINY", "--ids", "1,x"], "--ids is '1,x', expected whole numbers"),
        (["run", "TINY", "--ids", "5000"], "token 0 is 5000, expected 0 to 1023"),
        (["run", "TINY", "--ids", "1,2,3,4,5", "-c", "3"], "5 tokens do not fit the context of 3"),
        (["run", "TINY", "--ids", "1", "--stop", ""], "a stop text is empty"),
        (["run", "TINY", "--ids", "1", "--gate", "nonsense=1"], "no gate 'nonsense'"),
        (["run", "TINY", "--chat", "-p", "x"], "has no chat template"),
        (["run", "SPEAKING", "-p", ""], "the prompt has no tokens"),
        (["run", "SPEAKING", "-p", "a\udcff"], "not valid UTF-8 at character 1"),
        (["inspect"], "no FILE; give a GGUF model"),
        (["inspect", "none.gguf"], "none.gguf: cannot be read"),
        (["bench", "TINY", "-p", "0", "-n", "0"], "nothing to time"),
        (["bench", "TINY", "-p", "x"], "-p is 'x', expected whole numbers"),
        (["bench", "TINY", "-o", "xml"], "argument -o/--output: invalid choice"),
        (["synth", "no/such/folder/s.gguf"], "cannot be written"),
        (["synth", "s.gguf", "--mix", "q9"], "no mix 'q9'"),
    ],
)
def test_mistakes_are_one_line(arguments, message, tiny, speaking, capsys):
    code, _, err = call(capsys, *[{"TINY": tiny, "SPEAKING": speaking}.get(part, part) for part in arguments])
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("pre", ["gpt-9", "__import__"])
def test_an_unknown_pre_tokenizer_is_refused_by_name(pre, tiny, tmp_path, capsys):
    path = with_metadata(tiny, tmp_path / "odd.gguf", {**VOCABULARY, "tokenizer.ggml.pre": pre})
    code, _, err = call(capsys, "run", path, "-p", "x")
    assert code == 2
    assert f"tokenizer.ggml.pre is {pre!r}" in err


def start(*arguments, **options):
    command = [sys.executable, "-m", "minfer", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_ctrl_c_ends_a_generation_cleanly(tiny):
    process = start("run", tiny, "--ids", "1", "--ignore-end", "--temp", "0")
    assert process.stdout is not None
    assert process.stdout.read(1) == b"<"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == b"\nminfer run: interrupted\n"


def test_ctrl_c_leaves_no_half_written_file(tmp_path):
    process = start("synth", tmp_path / "s.gguf", "--shape", "qwen2.5-7b")
    deadline = time.monotonic() + 30
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_a_generation_cleanly(tiny):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "minfer", "run", tiny, "--ids", "1", "-n", "4"]
    process = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert process.returncode == 141
    assert b"Traceback" not in process.stderr


@pytest.mark.real_model
def test_gemma_knows_the_capital_of_france(capsys):
    question = "What is the capital of France?"
    code, out, _ = call(capsys, "run", real_model(GEMMA), "-p", question, "-n", 8, "--temp", 0, "--backend", "numpy")
    assert code == 0
    assert "Paris" in out


@pytest.mark.real_model
def test_smollm2_answers_in_its_template(capsys):
    path = real_model(SMOLLM2)
    code, out, err = call(capsys, "run", path, "--chat", "-p", "What is the capital of France?", "-n", 7, "--temp", 0)
    assert code == 0
    assert "Paris" in out
    assert "prompt" in err
