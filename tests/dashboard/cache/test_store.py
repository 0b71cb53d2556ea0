"""The cache: nothing is read twice, a change is read alone, damage means a rebuild, sessions do not collide."""

import json
import multiprocessing
import shutil
from datetime import UTC, datetime

import pytest

from dashboard.cache import ingest, query, store
from dashboard.cache.sources import find_sources
from tools import big_history

COMMITS, SERIES = 12, 30


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    big_history.write(folder, COMMITS, SERIES, seed=3)
    return folder


@pytest.fixture
def read_files(monkeypatch):
    """The paths that ingest was asked to read, in order."""
    asked = []
    original = ingest.Batch.read

    def read(self, folder, files, known):
        files = list(files)
        asked.extend(item.path for item in files)
        original(self, folder, files, known)

    monkeypatch.setattr(ingest.Batch, "read", read)
    return asked


def one_more_commit(results):
    """A copy of the newest h200 file under another commit."""
    path = sorted((results / "h200").glob("*-minfer.json"))[0]
    content = json.loads(path.read_text())
    content["commit_hash"] = "f" * 40
    content["date"] = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1000)
    (path.parent / ("f" * 40 + "-minfer.json")).write_text(json.dumps(content))


def test_every_value_is_the_files_own(results):
    snapshot = store.Store(results).refresh()
    assert snapshot.sources.num_rows == 2 * COMMITS
    assert snapshot.series.num_rows == 2 * SERIES
    values = query.values_of(snapshot, range(2 * SERIES))
    assert len(values) == 2 * SERIES * COMMITS
    sources = {row["source"]: row for row in snapshot.sources.to_pylist()}
    series = {row["series"]: row for row in snapshot.series.to_pylist()}
    for row in values.sample(40, random_state=1).itertuples():
        source, key = sources[row.source], series[row.series]
        stored = json.loads((results / source["path"]).read_text())["results"][key["benchmark"]]
        combinations = [f"{a}, {b}" for a in stored[1][0] for b in stored[1][1]]
        assert row.value == stored[0][combinations.index(key["parameters"])]
        assert row.low < row.value < row.high


def test_an_unchanged_folder_is_not_read_again(results, read_files):
    first = store.Store(results).refresh()
    assert len(read_files) == 2 * COMMITS
    assert store.Store(results).refresh().key == first.key
    assert len(read_files) == 2 * COMMITS


def test_one_more_commit_reads_one_file(results, read_files):
    keeper = store.Store(results)
    keeper.refresh()
    read_files.clear()
    one_more_commit(results)
    snapshot = keeper.refresh()
    assert read_files == [f"h200/{'f' * 40}-minfer.json"]
    assert snapshot.sources.num_rows == 2 * COMMITS + 1
    assert len(query.values_of(snapshot, range(2 * SERIES))) == 2 * SERIES * COMMITS + SERIES


def test_a_touched_file_of_the_same_content_keeps_its_rows(results):
    keeper = store.Store(results)
    before = keeper.refresh()
    path = next((results / "h200").glob("*-minfer.json"))
    path.touch()
    after = keeper.refresh()
    assert after.files["values"] == before.files["values"]


def test_a_changed_file_replaces_its_values_and_a_removed_one_takes_them_along(results):
    keeper = store.Store(results)
    keeper.refresh()
    paths = sorted((results / "h200").glob("*-minfer.json"))
    content = json.loads(paths[0].read_text())
    name = next(iter(content["results"]))
    content["results"][name][0][0] = 12345.0
    paths[0].write_text(json.dumps(content))
    paths[1].unlink()
    values = query.values_of(keeper.refresh(), range(2 * SERIES))
    assert len(values) == 2 * SERIES * COMMITS - SERIES
    assert (values["value"] == 12345.0).sum() == 1


@pytest.mark.parametrize("damage", ["manifest", "flipped bit", "missing file", "other version"])
def test_a_damaged_cache_is_rebuilt(results, damage):
    keeper = store.Store(results)
    good = keeper.refresh()
    manifest = keeper.folder / "manifest.json"
    values = keeper.folder / good.files["values"][0]
    if damage == "manifest":
        manifest.write_text(manifest.read_text()[:50])
    elif damage == "flipped bit":
        data = bytearray(values.read_bytes())
        data[len(data) // 2] ^= 1
        values.write_bytes(data)
    elif damage == "missing file":
        values.unlink()
    else:
        content = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(content | {"reader": "old"}))
    again = store.Store(results).refresh()
    assert len(query.values_of(again, range(2 * SERIES))) == 2 * SERIES * COMMITS


def test_many_small_additions_are_compacted_and_nothing_is_lost(results, monkeypatch):
    monkeypatch.setattr(store, "MOST_FILES_A_TABLE", 3)
    monkeypatch.setattr(store, "SUPERSEDED_SECONDS", -1)
    keeper = store.Store(results)
    keeper.refresh()
    path = sorted((results / "h200").glob("*-minfer.json"))[0]
    for number in range(5):
        content = json.loads(path.read_text())
        content["commit_hash"] = f"{number:040d}"
        (path.parent / f"{number:040d}-minfer.json").write_text(json.dumps(content))
        snapshot = keeper.refresh()
        assert len(snapshot.files["values"]) <= 3
    assert len(query.values_of(snapshot, range(2 * SERIES))) == 2 * SERIES * COMMITS + 5 * SERIES
    assert {path.name for path in keeper.folder.glob("*.parquet")} == {
        name for files in snapshot.files.values() for name in files
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2}', '{"version": 2, "commit_hash": "a", "result_columns": 3, "results": {"x": 1}}']
)
def test_a_file_that_asv_did_not_write_is_a_problem_and_no_end(results, text):
    (results / "h200" / "bad-minfer.json").write_text(text)
    snapshot = store.Store(results).refresh()
    problems = [row for row in snapshot.sources.to_pylist() if row["problem"]]
    assert [row["path"] for row in problems] == ["h200/bad-minfer.json"]
    assert len(query.values_of(snapshot, range(2 * SERIES))) == 2 * SERIES * COMMITS


def _refresh(folder, barrier, answers):
    barrier.wait()
    snapshot = store.Store(folder).refresh()
    answers.put((snapshot.key, len(query.values_of(snapshot, range(2 * SERIES)))))


def test_sessions_that_start_together_agree(results):
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_refresh, args=(results, barrier, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    seen = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    assert len(set(seen)) == 1
    assert seen[0][1] == 2 * SERIES * COMMITS


def test_a_folder_that_cannot_be_written_beside_gets_its_cache_elsewhere(tmp_path, monkeypatch):
    results = tmp_path / "results"
    big_history.write(results, 2, 5, seed=0)
    (tmp_path / ".cache").write_text("a file where the cache's folder should be")
    monkeypatch.setattr(store.tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    keeper = store.Store(results)
    assert str(keeper.folder).startswith(str(tmp_path / "elsewhere"))
    assert keeper.refresh().sources.num_rows == 4


def test_a_write_under_way_and_machine_json_are_no_sources(results):
    shutil.copy(next((results / "h200").glob("*-minfer.json")), results / "h200" / ".half.json")
    assert not [path for path in find_sources(results) if "machine.json" in path or "/." in path]


def test_a_missing_folder_is_an_empty_snapshot(tmp_path):
    snapshot = store.Store(tmp_path / "none", tmp_path / "cache").refresh()
    assert snapshot.sources.num_rows == 0
    assert query.values_of(snapshot, [0]).empty
