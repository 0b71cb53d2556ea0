"""Import: drop a trace or a llama-bench file and get its portrait, from the same core that reads our own captures."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from benchmarks.attribution.attribute import Answer, DeviceAnswer, attribute
from benchmarks.attribution.errors import UserFacingError
from benchmarks.attribution.events import BenchResult, Trace
from benchmarks.attribution.ingest import open_trace
from benchmarks.attribution.macs import GMAC, us_per_gmac
from benchmarks.attribution.windows import choose
from benchmarks.report import html
from benchmarks.report.portrait import PROFILE_HEADERS, profile_rows
from dashboard import session
from dashboard.charts.portrait import wall_bars
from dashboard.tables import show_table
from dashboard.text import for_markdown, shortened

WHOLE = "the whole trace"
MOST_RANGES = 40


@st.cache_data(max_entries=2, show_spinner="Reading the trace")
def read(digest: str, name: str, _data: bytes) -> Trace:
    """The trace in an uploaded file; its format is found by its content. Raises TraceError."""
    ending = "".join(c for c in Path(name).suffix if c.isalnum() or c == ".")[:8]
    with tempfile.TemporaryDirectory(prefix="minfer-import-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(_data)
        return open_trace(path)


def range_names(trace: Trace) -> list[str]:
    """Named ranges, the longest in sum first."""
    if trace.ranges is None or not len(trace.ranges):
        return []
    ids, places = np.unique(trace.ranges.name, return_inverse=True)
    lengths = np.bincount(places, weights=(trace.ranges.end - trace.ranges.start).astype(float))
    return [trace.names[int(ids[place])] for place in np.argsort(-lengths)[:MOST_RANGES]]


def device_table(device: DeviceAnswer) -> pd.DataFrame:
    taken = device.decomposition
    rows = [
        {
            "class": item.name,
            "class_ms": item.ns / 1e6,
            "share_of_busy": None if (share := device.share(item)) is None else 100 * share,
            "share_of_wall": 100 * item.ns / taken.wall_ns if taken and taken.wall_ns else None,
            "launches": item.launches,
            "gmac": item.macs / GMAC if item.macs else None,
            "cost": us_per_gmac(item.ns, item.macs),
            "kernels": "; ".join(item.symbols[:4]),
        }
        for item in sorted(device.classes, key=lambda item: -item.ns)
    ]
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def show(answer: Answer, name: str) -> None:
    st.caption(f"{for_markdown(answer.format)}, {for_markdown(answer.window.sentence, 300)}")
    for note in answer.notes:
        st.markdown(f"- {for_markdown(note, 400)}")
    failed = answer.failed
    if failed:
        lines = [f"- **{for_markdown(check.name)}** failed: {for_markdown(check.detail, 300)}" for _, check in failed]
        st.warning("\n".join(lines), icon=":material/warning:")
    drawn = [
        (f"device {item.device}: {item.name or 'unnamed'}", item.decomposition)
        for item in answer.devices
        if item.decomposition is not None
    ]
    if drawn:
        session.show_chart(wall_bars(drawn, share=False), "imported", "One bar of kernel classes a device")
    for place, device in enumerate(answer.devices):
        st.subheader(for_markdown(f"Device {device.device}: {device.name or 'unnamed'}"), anchor=False)
        if device.decomposition is None:
            st.caption("This format knows sums only: it has no timeline, so no busy, no gap and no wall.")
        show_table(device_table(device), f"imported-{place}", chips="class")
        for entry in device.queue[:3]:
            head = f"{entry.name}: {entry.recoverable.value:,.4g} ms recoverable, {entry.target_name}"
            with st.expander(for_markdown(head)):
                st.code("\n".join(entry.chain), language=None)
    if answer.bench_results:
        st.subheader("Benchmark rows", anchor=False)
        show_table(pd.DataFrame([plain(row) for row in answer.bench_results]), "bench-rows")
    if answer.profiles:
        st.subheader("Profiled kernels", anchor=False)
        rows = [dict(zip(PROFILE_HEADERS, row, strict=True)) for row in profile_rows(answer.profiles)]
        show_table(pd.DataFrame(rows), "profiles")
    st.download_button(
        "Report as HTML", html.render([answer]), f"{Path(name).stem or 'trace'}.html", "text/html", on_click="ignore"
    )


def plain(row: BenchResult) -> dict[str, object]:
    """A benchmark's row as a table takes it: samples as text."""
    return asdict(row) | {"samples_ns": ", ".join(map(str, row.samples_ns))}


st.title("Import a trace")
st.caption(
    "nsys SQLite, torch.profiler JSON, nsys stats or ncu CSV, llama-bench output, or a capture of ours. Nothing is kept."
)
uploaded = st.file_uploader("Drop a file", key="upload")
if uploaded is None:
    st.stop()
data = uploaded.getvalue()
st.markdown(f"**{for_markdown(shortened(uploaded.name, 120))}**, {len(data):,} bytes")
try:
    trace = read(hashlib.blake2b(data, digest_size=16).hexdigest(), uploaded.name, data)
    names = range_names(trace)
    wanted = st.selectbox("Window", [WHOLE, *names], key="range") if names else WHOLE
    window = choose(trace, range_name=None if wanted == WHOLE else wanted)
    answer = attribute(trace, shortened(uploaded.name, 120), window)
except UserFacingError as error:
    st.error(for_markdown(str(error), 500), icon=":material/error:")
    st.stop()
show(answer, uploaded.name)
