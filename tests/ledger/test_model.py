from __future__ import annotations

import json
import pickle

import pytest

from airflow_provider_sms.ledger.model import AttemptState, RequestState

WORDS = [*RequestState, *AttemptState]


@pytest.mark.parametrize("word", WORDS)
def test_a_stored_word_is_its_string(word):
    """To JSON, in a dictionary, in a text and to whatever else takes strings."""
    value = word.value
    assert (str(word), f"{word}", f"{word:>30}", "%s" % word) == (value, value, f"{value:>30}", value)  # noqa: UP031
    assert (json.dumps({word: word}), {word: 1}[value]) == (f'{{"{value}": "{value}"}}', 1)
    assert type(str(word)) is str
    assert pickle.loads(pickle.dumps(word)) is word
