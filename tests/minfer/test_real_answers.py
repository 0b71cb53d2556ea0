"""Real weights answer as they should. Against llama.cpp they are held by `python -m benchmarks parity`."""

import numpy as np
import pytest

import minfer
from minfer.tokenizer import Tokenizer
from tests.real_models import GEMMA, SMOLLM2, real_model

pytestmark = pytest.mark.real_model


def continued(name: str, text: str, count: int) -> str:
    """The greedy continuation of ``text``."""
    engine = minfer.load(real_model(name), backend="numpy")
    tokenizer = Tokenizer.from_metadata(engine.file.metadata, str(engine.file.path))
    found = [int(np.argmax(engine.prefill(tokenizer.encode(text))))]
    while len(found) < count:
        found.append(int(np.argmax(engine.decode(found[-1]))))
    return tokenizer.decode(found)


def test_gemma_knows_the_capital_of_france():
    # llama.cpp goes on in the same words; after a bare "The capital of France is" neither it nor we say Paris.
    assert continued(GEMMA, "Question: What is the capital of France?\nAnswer:", 3).startswith(" Paris\n")


def test_smollm2_knows_the_capital_of_france():
    assert "Paris" in continued(SMOLLM2, "The capital of France is", 2)
