"""The verdict as JUnit XML: one test case a metric, so that any CI system shows which one moved."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from ..attribution.statistics.paired import Verdict
from .exits import MEANING, Exit
from .report_text import detectable, interval, percent, seconds
from .verdict import Result

SUITE = "minfer CI gate"


def render(result: Result) -> str:
    """A slower metric is a failure (skipped where a commit accepts it), an open one an error unless that is allowed."""
    tests = str(len(result.findings) + len(result.compiled.worse))
    suite = ElementTree.Element("testsuite", name=SUITE, tests=tests, time=f"{result.seconds:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("base", result.base.commit), ("head", result.head.commit), ("exit", str(int(result.exit))),
        ("reproduce", result.reproduce),
        *(("accepted", f"{one.commit}: {one.reason}") for one in result.accepted),
    ):  # fmt: skip
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    counts = dict.fromkeys(("failures", "errors", "skipped"), 0)
    for f in result.findings:
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=_clean(f.name), time=f"{f.head_seconds:.9f}")
        limits = f"margin {f.margin:.2%}, detectable {detectable(f, result)}"
        words = f"{f.verdict}: {percent(f.change)} ({interval(f)}), {limits}"
        figures = f"base {seconds(f.base_seconds)}, head {seconds(f.head_seconds)}, {f.pairs} pairs"
        detail = "\n".join([figures, *result.next_steps])
        if f.verdict is Verdict.SLOWER and not result.accepted:
            _outcome(case, "failure", words, detail, counts, "failures")
        elif f.verdict is Verdict.SLOWER:
            _outcome(case, "skipped", f"{words}; accepted: {result.accepted[0].reason}", "", counts, "skipped")
        elif f in result.undecided and not result.undecided_allowed:
            _outcome(case, "error", words, detail, counts, "errors")
        elif f in result.undecided:
            _outcome(case, "skipped", f"{words}; let pass by --allow-undecided", "", counts, "skipped")
        else:
            ElementTree.SubElement(case, "system-out").text = _clean(words)
    for change in result.compiled.worse:
        name = f"{change.kernel} {change.target} {change.metric}"
        case = ElementTree.SubElement(suite, "testcase", classname="compiled", name=_clean(name))
        kind, counter = ("skipped", "skipped") if result.accepted else ("failure", "failures")
        _outcome(case, kind, f"{change.before:g} -> {change.after:g}", "", counts, counter)
    return _document(suite, counts)


def render_error(code: Exit, message: str) -> str:
    """One test case that carries what stopped the gate."""
    suite = ElementTree.Element("testsuite", name=SUITE, tests="1", time="0")
    counts = dict.fromkeys(("failures", "errors", "skipped"), 0)
    case = ElementTree.SubElement(suite, "testcase", classname="gate", name=MEANING[code])
    _outcome(case, "error", message, f"exit {int(code)}", counts, "errors")
    return _document(suite, counts)


def _outcome(
    case: ElementTree.Element, kind: str, message: str, detail: str, counts: dict[str, int], counter: str
) -> None:
    ElementTree.SubElement(case, kind, message=_clean(message)).text = _clean(detail)
    counts[counter] += 1


def _document(suite: ElementTree.Element, counts: dict[str, int]) -> str:
    for name, count in counts.items():
        suite.set(name, str(count))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """XML 1.0 has no way to write most control characters; a crashed process's last words may hold them."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
