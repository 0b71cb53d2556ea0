"""A gate is named once, has a type, and an unknown or ignored one is refused by name."""

import pytest

from minfer.errors import MinferError
from minfer.gates import GATES, Gate, gates_of, parse_settings, resolve

REGISTRY = (
    Gate("mmq", "cuda", True, "integer matrix product"),
    Gate("stages", "cuda", 3, "depth of the copy pipeline", (2, 3, 4)),
    Gate("attention", "cuda", "auto", "which attention kernel", ("auto", "mma", "wgmma")),
    Gate("threads", "numpy", 2, "threads of the matrix product"),
)


def of_cuda(overrides=None, settings=""):
    return resolve("cuda", overrides, environment={"MINFER_GATES": settings}, registry=REGISTRY)


def test_defaults_then_environment_then_override():
    assert of_cuda() == {"mmq": True, "stages": 3, "attention": "auto"}
    assert of_cuda(settings="mmq=0, stages=4")["stages"] == 4
    assert of_cuda({"stages": 2, "attention": "mma"}, "mmq=off,stages=4") == {"mmq": False, "stages": 2, "attention": "mma"}


def test_the_environment_may_speak_to_other_backends_but_an_override_may_not():
    assert of_cuda(settings="threads=8") == of_cuda()
    with pytest.raises(MinferError, match="gate threads belongs to the numpy backend, and this run uses cuda"):
        of_cuda({"threads": 8})


@pytest.mark.parametrize("value", [True, 1, "1", "on", "YES", "true"])
def test_each_spelling_of_true(value):
    assert of_cuda({"mmq": value})["mmq"] is True


@pytest.mark.parametrize(
    ("overrides", "settings", "message"),
    [
        ({"mmmq": 1}, "", "no gate 'mmmq'; there are: attention, mmq, stages, threads"),
        (None, "mmmq=1", r"no gate 'mmmq' \(in MINFER_GATES\)"),
        (None, "mmq", "gate setting 'mmq': expected name=value"),
        (None, "=1", "expected name=value"),
        ({"mmq": "2"}, "", "gate mmq: value '2'; it takes 0 or 1"),
        ({"stages": 5}, "", "gate stages: value 5; it takes one of 2, 3, 4"),
        ({"stages": True}, "", "gate stages: value True"),
        ({"stages": "x"}, "", "gate stages: value 'x'"),
        ({"attention": "cudnn"}, "", "it takes one of auto, mma, wgmma"),
        (None, "threads=x", "gate threads: value 'x'; it takes a whole number, 0 or more"),
        (None, "threads=-1", "gate threads: value '-1'; it takes a whole number, 0 or more"),
        ({"stages": -2}, "", "gate stages: value -2"),
    ],
)
def test_bad_settings_are_refused_by_name(overrides, settings, message):
    with pytest.raises(MinferError, match=message):
        of_cuda(overrides, settings)


def test_parse_settings():
    assert parse_settings("") == {}
    assert parse_settings(" a=1 ,, b=x=y ") == {"a": "1", "b": "x=y"}


def test_the_registry_itself_is_sound():
    assert len({gate.name for gate in GATES}) == len(GATES)
    for gate in GATES:
        assert gate.backend in ("numpy", "cuda")
        assert gate.meaning
        assert gate.read(gate.default) == gate.default
    assert {name for backend in ("numpy", "cuda") for name in gates_of(backend)} == {gate.name for gate in GATES}
