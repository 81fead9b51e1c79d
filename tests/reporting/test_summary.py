from __future__ import annotations

import json
from collections import Counter
from decimal import Context, Decimal, localcontext

import pytest

from airflow_provider_sms.ledger.model import ACCEPTED, NOT_SENT, SUPERSEDED, UNKNOWN, SentRequest
from airflow_provider_sms.reporting.row_counts import RowCounts
from airflow_provider_sms.reporting.summary import Sums, add_up, summarise
from airflow_provider_sms.service.redaction import redacted_response
from airflow_provider_sms.service.responses import parse_send_response


def sent(submitted=1, taken=1, state=ACCEPTED, cost="0.1", at=1.0, **body):
    """Return a request as the ledger has it."""
    whole = {"Cost": 0.1, "RemainingBalance": 9.9, "EventId": 1, "Messages": taken, "Parts": 1, **body}
    kept = redacted_response(parse_send_response(json.dumps(whole).encode()), ())
    return SentRequest(state, submitted, taken, 1, cost, at, json.dumps(kept))


def summed(counts=None, sums=None, campaign="c", **how):
    return summarise(campaign, counts or RowCounts(), sums or Sums(), **how)


@pytest.mark.parametrize("networks", [1, 10, 400])
def test_the_summary_takes_less_than_2_kb(networks):
    """However many networks there are: those that cost least are in one, and none is lost."""
    most = 2**63 - 1
    sums = Sums(
        requests=most,
        parts=most,
        left_out=most,
        cost=Decimal("123456789012345.123456"),
        remaining_balance=Decimal("-123456789012345.123456"),
        cost_breakdown={f"{number:030}": (Decimal(f"{number}.123456"), most) for number in range(networks)},
        error_report=Counter({"NoNetwork": most, "Duplicates": most, "OptedOuts": most, "Faults": most, "x" * 99: 1}),
    )
    summary = summarise("c" * 200, RowCounts(*[most] * 7), sums, most, "s3://bucket/" + "r" * 100)
    assert len(json.dumps(summary)) < 2000
    assert sum(each["quantity"] for each in summary["cost_breakdown"].values()) == most * networks
    assert sum(each["cost"] for each in summary["cost_breakdown"].values()) == pytest.approx(
        sum(float(cost) for cost, _ in sums.cost_breakdown.values())
    )


@pytest.mark.parametrize("precision", [28, 1], ids=["usual decimals", "decimals of other code"])
def test_costs_are_added_exactly(precision):
    """Money is added as decimals: ten times 0.1 is 1, though a DAG's file computes with one digit."""
    network = {"Network": "Local", "Cost": 0.1, "Quantity": 1}
    with localcontext(Context(prec=precision)):
        sums = add_up([sent(cost="10.1", CostBreakDown=[network])] * 10)
    assert sums.cost == Decimal(101)
    assert sums.cost_breakdown == {"Local": (Decimal(1), 10)}


def test_error_reports_are_added():
    """Faults as a count only, and without counters of any other name."""
    report = {"NoNetwork": 1, "OptedOuts": 2, "NoContents": 4, "Faults": [{"rawDestination": "27821234567"}]}
    summary = summed(sums=add_up([sent(ErrorReport=report)] * 2))
    assert summary["error_report"] == {"NoNetwork": 2, "Duplicates": 0, "OptedOuts": 4, "Faults": 2}


def test_the_balance_is_that_of_the_last_response():
    """Responses need not come in the order of the requests; without one there is no balance."""
    assert add_up([]).remaining_balance is None
    found = add_up([sent(at=2.0, RemainingBalance=900), sent(at=1.0, RemainingBalance=950)])
    assert found.remaining_balance == 900


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (sent(10, 7), Sums(1, 1, Decimal("0.1"), left_out=3)),
        (sent(10, 0, NOT_SENT), Sums(none_taken=10)),
        (SentRequest(UNKNOWN, 10, None, None, None, None, None), Sums(1, of_unknown_cost=1)),
        (SentRequest(SUPERSEDED, 10, None, None, None, None, None), Sums(1, of_unknown_cost=1)),
        (SentRequest(ACCEPTED, 10, None, 10, "12.5", 1.0, None), Sums(1, 10, Decimal("12.5"))),
        (SentRequest(ACCEPTED, 10, None, None, None, 1.0, None), Sums(1, of_unknown_cost=1)),
    ],
    ids=["in part", "none taken", "unknown", "superseded", "told by the balance", "decided by a person"],
)
def test_each_request_adds_what_is_known_of_it(request_, expected):
    """One of which nothing was taken is none; one that may have been sent is one, of an unknown cost."""
    found = add_up([request_])
    found.remaining_balance, found.error_report = None, Counter()
    assert found == expected
