"""What of a window can be told without measuring one."""

from benchmarks.attribution.record import Wall
from benchmarks.window import _bench_ubatches


def wall(engine, nt, ubatch, *samples_ns):
    return Wall(engine, "1", "cuda", nt, ubatch, {}, samples_ns)


def test_llama_bench_runs_at_the_baselines_ubatch_or_at_all_where_it_is_the_only_peer():
    walls = [wall("minfer", 3325, 3325, 5), wall("llama.cpp", 3325, 512, 90, 91), wall("llama.cpp", 3325, 2048, 80, 81)]
    assert _bench_ubatches(walls, 3325) == (2048,)
    assert _bench_ubatches(walls[:1], 3325) == (512, 2048, 3325)
    # Another length's baseline says nothing of this one's.
    assert _bench_ubatches(walls, 512) == (512, 256)
