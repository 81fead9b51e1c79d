from __future__ import annotations

import copy
import pickle

from airflow_provider_sms.stop_flag import StopFlag


def test_it_is_set_once():
    """Once asked for, the end stays asked for."""
    stop = StopFlag()
    assert not stop.is_set()
    stop.set()
    stop.set()
    assert stop.is_set()


def test_it_can_be_copied():
    """It is part of an operator, and Airflow copies operators."""
    stop = StopFlag()
    stop.set()
    assert [copy.deepcopy(stop).is_set(), pickle.loads(pickle.dumps(stop)).is_set()] == [True, True]
