from __future__ import annotations

import asyncio

from support.metrics import Told

from airflow_provider_sms.triggers.balance import BalanceTrigger


def test_each_look_of_a_trigger_tells_the_balance(sms_default, sandbox, metrics):
    """While a sensor is deferred, the gauge lives on."""
    sandbox.state.set_balance(500)

    async def first():
        return await anext(BalanceTrigger("sms_default", "100", 0.01, 2).run())

    asyncio.run(first())
    assert metrics.told == [Told("gauge", "sms.balance", 500.0, {"conn_id": "sms_default"})]
