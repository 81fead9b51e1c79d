from __future__ import annotations

import copy
import pickle

from airflow_provider_sms.stop_flag import StopFlag


def test_it_stays_set_and_can_be_copied():
    """It is part of an operator, and Airflow copies operators."""
    stop = StopFlag()
    assert not stop.is_set()
    stop.set()
    assert [each.is_set() for each in (stop, copy.deepcopy(stop), pickle.loads(pickle.dumps(stop)))] == [True] * 3
