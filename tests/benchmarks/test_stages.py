"""A window's time by stage: nothing is counted twice and nothing is lost."""

from benchmarks.stages import Stages


def test_the_stages_add_up_to_the_time_between_the_first_and_the_end():
    clock = iter([100, 130, 135, 200, 260])
    said = []
    stages = Stages(said.append, lambda: next(clock))
    stages("opening")
    stages("sampling")
    stages.say("sample 1 of 3")
    stages("tracing")
    stages("sampling")
    assert stages.ended() == {"opening": 30, "sampling": 5 + 60, "tracing": 65}
    assert said == ["opening", "sampling", "sample 1 of 3", "tracing", "sampling"]


def test_before_the_first_stage_nothing_is_counted():
    assert Stages(lambda text: None, lambda: 7).ended() == {}
