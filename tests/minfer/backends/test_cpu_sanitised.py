"""The tests of the CPU kernels, and small models that run on them, once more with each of the compiler's sanitisers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minfer.kernels import host
from tests.minfer.backends.cpu_builds import SANITISED

HERE = Path(__file__).parent
TESTS = [str(HERE / name) for name in ("test_cpu_kernels.py", "test_cpu_threads.py", "test_native.py")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SANITISED or shutil.which("cc") is None, reason="no C compiler, or it is this run"),
]


def run_with(library, flags, variables, before=()):
    """The tests' output, and their exit code. Python itself is not built so: what its parts share is the sanitiser's own."""
    found = subprocess.run(["cc", f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip(f"the compiler has no {library}")
    environment = {
        **os.environ,
        host.MORE_FLAGS: f"-O1 -g {flags}",
        "LD_PRELOAD": found,
        # Its threads wait for each other by means that no sanitiser sees.
        "OPENBLAS_NUM_THREADS": "1",
        **variables,
    }
    options = ["-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not real_model"]
    command = [*before, sys.executable, "-m", "pytest", *options, *TESTS]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_no_kernel_reads_or_writes_beside_its_arrays_nor_does_what_c_leaves_undefined():
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all"
    done = run_with("libasan.so", flags, {"ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_no_two_threads_of_a_kernel_race_for_the_same_memory():
    # The sanitiser of GCC 12 does not know the address layouts of newer kernels.
    before = ["setarch", "-R"] if shutil.which("setarch") else []
    # A forked child, too, has workers.
    done = run_with("libtsan.so", "-fsanitize=thread", {"TSAN_OPTIONS": "die_after_fork=0 exitcode=66"}, before)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitiser cannot run here")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
