from __future__ import annotations

import json
import pickle

import pytest
from sqlalchemy import case, func, select, text, true
from sqlalchemy import literal_column as column

from airflow_provider_sms.ledger.model import AttemptState, RequestState
from airflow_provider_sms.ledger.schema import campaign

WORDS = [*RequestState, *AttemptState]


@pytest.mark.parametrize("word", WORDS)
def test_a_stored_word_is_its_string(word):
    """To JSON, in a dictionary, in a text and to whatever else takes strings."""
    value = word.value
    assert (str(word), f"{word}", f"{word:>30}", "%s" % word) == (value, value, f"{value:>30}", value)  # noqa: UP031
    assert (json.dumps({word: word}), {word: 1}[value]) == (f'{{"{value}": "{value}"}}', 1)
    assert type(str(word)) is str
    assert pickle.loads(pickle.dumps(word)) is word


def test_a_word_reaches_the_database_as_its_string(store):
    """As a driver's own parameter, in an expression and in a list; drivers write other enums by their names."""
    marker = "?" if store.description.endswith(".db") else "%s"
    with store.write(1) as connection:
        for word in WORDS:
            insert = f"INSERT INTO sms_campaign (name, created_at) VALUES ({marker}, 0)"
            connection.exec_driver_sql(insert, (word,))
        stored = connection.execute(text("SELECT name FROM sms_campaign ORDER BY id")).scalars().all()
        assert (stored, {type(each) for each in stored}) == ([word.value for word in WORDS], {str})
        among = select(func.count()).select_from(campaign).where(campaign.c.name.in_(WORDS))
        assert connection.execute(among).scalar() == len(WORDS)
        chosen = select(case((true(), RequestState.UNKNOWN), else_=campaign.c.name).label("word")).group_by(
            column("word")
        )
        assert connection.execute(chosen).scalars().all() == ["unknown"]
