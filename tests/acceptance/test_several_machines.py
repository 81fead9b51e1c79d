"""Several machines behind relays, which need no rights; ``make several-machines`` plays all scenarios."""

from __future__ import annotations

import pytest
from support.machines import packages
from support.machines.engine import running_engine
from support.machines.scenarios import SCENARIOS
from support.machines.stage import play

PLAYED = ("worker_killed", "loses_database_60")

pytestmark = pytest.mark.skipif(packages.skips_tests(), reason="servers are not installed")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Play some scenarios with two workers, in one Airflow."""
    # Servers that run as another user look into it.
    folder = tmp_path_factory.mktemp("machines")
    with running_engine("relays", folder, workers=2) as engine:
        results = play(engine, [each for each in SCENARIOS if each.id in PLAYED], people=2_000)
    return {each.scenario.id: each for each in results}


@pytest.mark.parametrize("name", PLAYED)
def test_whatever_befalls_a_worker_nobody_is_texted_twice_or_lost(played, name):
    """The witness: nobody twice or lost, unknown only what a dead process had in flight; it fails on those alone."""
    result = played[name]
    assert (result.twice, result.lost) == (0, 0)
    assert result.unknown <= result.allowed
    assert None not in (result.quiet, *result.seconds)
    # How long they take, `make several-machines` judges: a test depends on no other load.
    assert (result.unexcused, result.refused) == (0, "")
