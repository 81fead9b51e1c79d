from __future__ import annotations

import json
import pickle

import pytest

from airflow_provider_sms.ledger.model import AttemptState, RequestState


@pytest.mark.parametrize("word", [*RequestState, *AttemptState])
def test_a_stored_word_is_its_string(word):
    """To JSON, in a dictionary and in a text, on every version of Python."""
    value = word.value
    assert (str(word), f"{word:>30}", {word: 1}[value]) == (value, f"{value:>30}", 1)
    assert (json.dumps({word: word}), pickle.loads(pickle.dumps(word)) is word) == (f'{{"{value}": "{value}"}}', True)
