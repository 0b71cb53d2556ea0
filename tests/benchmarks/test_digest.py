"""The model is read once, in a thread where one was begun, and what it raises reaches the caller."""

import threading
from types import SimpleNamespace

import pytest

from benchmarks.digest import ModelOf


@pytest.mark.parametrize("begun", [True, False])
def test_it_is_read_once_and_in_a_thread_only_where_asked(begun):
    seen = []
    engine = SimpleNamespace(model=lambda: seen.append(threading.current_thread()) or "model")
    model_of = ModelOf()
    if begun:
        model_of.begin(engine)
    assert model_of(engine) == "model"
    assert [thread is threading.main_thread() for thread in seen] == [not begun]


def test_an_unreadable_file_is_the_callers_error():
    def model():
        raise OSError("no such file")

    model_of = ModelOf()
    model_of.begin(SimpleNamespace(model=model))
    with pytest.raises(OSError, match="no such file"):
        model_of(SimpleNamespace(model=model))
