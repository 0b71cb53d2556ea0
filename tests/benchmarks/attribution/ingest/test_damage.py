"""Damaged files of every format end in an answer or in one line, whatever the damage."""

import json
import random
import warnings

import pytest

from benchmarks.attribution.answer_json import to_json
from benchmarks.attribution.attribute import attribute
from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.ingest import capture_file, open_trace
from benchmarks.attribution.windows import choose
from tests.benchmarks.attribution.ingest import builders
from tests.benchmarks.attribution.ingest import text_builders as text

ROUNDS = 30
SPLICES = (b"NaN", b"null", b"-1", b"1e999", b"99999999999999999999", b'""', b"[]", b"{}")


def _seeds(folder):
    builders.nsys_sqlite(folder / "sqlite")
    builders.chrome_json(folder / "json")
    builders.cupti_tsv(folder / "tsv", packed=False)
    capture_file.save(open_trace(folder / "sqlite"), folder / "capture")
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, layout in {"csv": text.csv_text, "columns": text.columns_text, "box": text.boxed_text}.items():
        made[f"sums {name}"] = layout(text.KERN_SUM_HEADER, text.kern_sum_cells()).encode()
        made[f"trace {name}"] = layout(text.GPU_TRACE_HEADER, text.gpu_trace_rows()).encode()
    metrics = [(0, "gpu__time_duration.sum", "us", "6.75"), (0, "dram__bytes_read.sum", "Mbyte", "2.33")]
    made["ncu"] = text.ncu_text(metrics).encode()
    for dialect in ("json", "jsonl", "csv", "sql", "markdown"):
        made[f"llama-bench {dialect}"] = text.llama_bench_text(dialect).encode()
    return made


def _damaged(data, chance):
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        place, kind = chance.randrange(len(data) or 1), chance.random()
        if kind < 0.4 and data:
            data[place] = chance.choice(b"0123456789\"',{}[]:-.\x00\xff\n| ")
        elif kind < 0.6:
            del data[place : place + chance.choice([1, 3, 30])]
        elif kind < 0.8:
            source = chance.randrange(len(data) or 1)
            data[place:place] = data[source : source + chance.choice([1, 5, 40])]
        elif kind < 0.9:
            del data[place:]
        else:
            data[place:place] = chance.choice(SPLICES)
    return bytes(data)


@pytest.mark.parametrize("seed", range(3))
def test_damage_never_ends_in_a_traceback(tmp_path, seed):
    chance = random.Random(seed)
    (tmp_path / "seeds").mkdir()
    path = tmp_path / "damaged"
    refused = 0
    for name, data in _seeds(tmp_path / "seeds").items():
        for _ in range(ROUNDS):
            path.write_bytes(_damaged(data, chance))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    trace = open_trace(path)
                    json.dumps(to_json(attribute(trace, name, choose(trace))), allow_nan=False)
                except UserFacingError as error:
                    refused += 1
                    assert "\n" not in str(error)
    assert refused > 50
