"""The threads that share an operation: several callers, forked children, and no race that the thread sanitiser could see."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from minfer.backends.cpu_kernels import address_of
from minfer.kernels import sources_folder
from minfer.quantisation import QUANTISATIONS
from tests.gpu.support import stored_blocks
from tests.minfer.backends.cpu_builds import SANITISED, kernels_of

TASKS = Path("/proc/self/task")
"""A process's threads, on Linux."""
Q8_0 = next(kind for kind in QUANTISATIONS.values() if kind.name == "q8_0")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    with kernels_of("native", tmp_path_factory.mktemp("build")) as made:
        yield made


@pytest.fixture(scope="module")
def weight():
    return stored_blocks("q8_0", 900, 640, np.random.default_rng(0))


def random(m, seed):
    return np.random.default_rng(seed).standard_normal((m, 640)).astype(np.float32)


def product(kernels, raw, x):
    y = np.full((len(x), 900), np.nan, np.float32)
    kernels.mmv(Q8_0, address_of(raw), x, y)
    return y


def test_callers_in_two_threads_do_not_disturb_each_other(kernels, weight):
    raw, dense = weight
    inputs = [random(3, seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(inputs, pool.map(lambda x: product(kernels, raw, x), inputs), strict=True):
            np.testing.assert_allclose(y, x @ dense.T, rtol=1e-3, atol=1e-3 * np.abs(dense).max())


def test_more_threads_than_parts_and_than_cores(kernels, weight):
    raw, dense = weight
    x, threads = random(8, 0), kernels.threads
    try:
        for kernels.threads in (1, 2, 7, 64, 255):
            np.testing.assert_allclose(product(kernels, raw, x), x @ dense.T, rtol=1e-3, atol=1e-3 * np.abs(dense).max())
    finally:
        kernels.threads = threads


def forked(body):
    """The exit code of a child that runs ``body``, which must hold; a child that hangs is ended after a minute."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if body() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_has_workers_of_its_own(kernels, weight):
    raw, _ = weight
    x = random(2, 0)
    expected = product(kernels, raw, x)

    def the_same():
        return np.array_equal(product(kernels, raw, x), expected)

    def with_workers():
        return the_same() and (not TASKS.exists() or len(list(TASKS.iterdir())) >= kernels.threads)

    assert forked(with_workers) == 0
    assert forked(lambda: with_workers() and forked(with_workers) == 0) == 0
    assert the_same()


def test_a_fork_in_the_middle_of_another_threads_operation(kernels, weight):
    raw, _ = weight
    x = random(8, 0)
    expected, over = product(kernels, raw, x), threading.Event()

    def multiply():
        while not over.is_set():
            product(kernels, raw, x)

    other = threading.Thread(target=multiply)
    other.start()
    try:
        codes = [forked(lambda: np.array_equal(product(kernels, raw, x), expected)) for _ in range(20)]
    finally:
        over.set()
        other.join()
    assert codes == [0] * 20


@pytest.mark.skipif(SANITISED or shutil.which("cc") is None, reason="no C compiler, or it has a sanitiser already")
def test_each_part_runs_once_and_threads_race_for_nothing(tmp_path):
    folder, driver = sources_folder() / "cpu", Path(__file__).parent / "host" / "threads.c"
    command = ["cc", "-std=gnu11", "-O1", "-g", "-fsanitize=thread", f"-I{folder}", "-o", str(tmp_path / "threads")]
    made = subprocess.run([*command, str(driver), str(folder / "threads.c"), "-lpthread"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip("the compiler has no thread sanitiser")
    # The sanitiser of GCC 12 does not know the address layouts of newer kernels.
    run = [*(["setarch", "-R"] if shutil.which("setarch") else []), str(tmp_path / "threads")]
    done = subprocess.run(run, capture_output=True, text=True)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitiser cannot run here")
    assert (done.returncode, done.stdout) == (0, "each part once\n"), done.stdout + done.stderr
