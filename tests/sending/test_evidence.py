from __future__ import annotations

from decimal import Decimal

import pytest
from support.accounts import Account, Setting

from airflow_provider_sms.ledger.account import CHARGED, NOT_CHARGED, UNDECIDED, BilledRequest, Reading
from airflow_provider_sms.sending.evidence import Verdict, judge, late_charges

DEADLINE = 45.0
HOUR = 3600.0


def read(at, amount):
    """Return a balance that was asked for and read at about a moment."""
    return Reading(at, at + 0.1, Decimal(str(amount)))


def lost(number, at, least=100, most=None):
    """Return a request whose response was lost."""
    most = least if most is None else most
    return BilledRequest(number, at, at + DEADLINE, Decimal(str(least)), Decimal(str(most)))


def answered(number, at, cost=100, seconds=1.0):
    """Return a request with a response."""
    return BilledRequest(number, at, at + seconds, Decimal(cost), Decimal(cost), Decimal(cost))


def outcomes(readings, *requests):
    return [verdict.outcome for verdict in judge(readings, requests).values()]


GROUP = lost(1, 10, 1, "Infinity")
WINDOWS = [lost(1, 10), lost(2, 70)]


@pytest.mark.parametrize(
    ("later", "requests", "expected"),
    [
        # What the responses do not account for was charged for a request, or there is nothing of that kind.
        ([(70, 800)], [answered(1, 10), lost(2, 20)], [CHARGED]),
        ([(70, 900)], [answered(1, 10), lost(2, 20)], [NOT_CHARGED]),
        # Requests share a sum: it decides where it is nothing, or what all cost. At half of one, 150 needs both, and
        # nobody explains 201.
        *(
            ([(70, 1000 - fall)], [lost(1, 10), lost(2, 11)], [each] * 2)
            for fall, each in ((0, NOT_CHARGED), (100, UNDECIDED), (149, UNDECIDED), (150, CHARGED), (200, CHARGED))
        ),
        ([(70, 799)], [lost(1, 10), lost(2, 11)], [UNDECIDED] * 2),
        # The service may leave people out; a sum below half of the least or above the most, somebody else spent.
        *(
            ([(70, 1000 - fall)], [lost(1, 10, 100, 300)], [each])
            for fall, each in ((49, UNDECIDED), (50, CHARGED), (300, CHARGED), (301, UNDECIDED))
        ),
        # A part of one request may cost what another one costs: sizes do not tell which was lost on its way.
        *(
            ([(70, 1000 - fall)], [lost(1, 10, 300), lost(2, 11, 70)], [first, second])
            for fall, first, second in (
                (40, UNDECIDED, UNDECIDED),
                (70, UNDECIDED, UNDECIDED),
                (300, CHARGED, UNDECIDED),
                (335, CHARGED, CHARGED),
                (370, CHARGED, CHARGED),
            )
        ),
        # A group costs one part at least, and any amount; beside it another request may have cost the sum, or nothing.
        ([(70, 200)], [GROUP], [CHARGED]),
        ([(70, 1000)], [GROUP], [NOT_CHARGED]),
        ([(70, 900)], [GROUP, lost(2, 11)], [UNDECIDED] * 2),
        # What may be free is never called not taken: no sum tells then.
        ([(70, 1000)], [lost(1, 10, 0, 100)], [UNDECIDED]),
        ([(70, 990)], [lost(1, 10, 0, 100)], [CHARGED]),
        # Services compute in binary: sums that differ by noise are equal.
        ([(70, "1000.0001")], [lost(1, 10)], [NOT_CHARGED]),
        ([(70, "899.9999")], [lost(1, 10)], [CHARGED]),
        ([(70, "1000.0002")], [lost(1, 10)], [UNDECIDED]),
        # A request is weighed in one window: a sum before it, or after it was settled, is another one's. Two tasks may
        # read at once, and record in any order.
        ([(60, 900), (130, 900), (200, 800)], [*WINDOWS, lost(3, 140)], [CHARGED, NOT_CHARGED, CHARGED]),
        ([(130, 900), (60, 900)], WINDOWS, [CHARGED, NOT_CHARGED]),
        # Less than half of a request, such as a message to the people on call, makes no doubt of what follows.
        ([(1, 951), (2, 951), (70, 851)], [lost(1, 10)], [CHARGED]),
        # A request under way may explain the sum: nothing tells it from a lost one until its response is there.
        ([(56, 900)], [lost(1, 10), lost(2, 40)], [UNDECIDED] * 2),
        ([(56, 900)], [lost(1, 10), answered(2, 40)], [NOT_CHARGED]),
    ],
)
def test_balances_decide_what_they_prove_and_nothing_else(later, requests, expected):
    """From a balance of 1000 before the first request, and those that were read later."""
    assert outcomes([*(read(*each) for each in later), read(0, 1000)], *requests) == expected


def test_a_share_of_a_sum_is_nobodys_cost():
    """Of requests that were lost together, the cost is known where the sum is what all cost, and one alone has it."""
    for fall, costs in ((150, [None, None]), (200, [100, 100])):
        found = judge([read(0, 1000), read(70, 1000 - fall)], [lost(1, 10), lost(2, 11)])
        assert [verdict.amount for verdict in found.values()] == costs


def test_a_first_balance_beside_a_lost_request_is_not_quiet():
    """What is charged for that one later would look like the charge of the next."""
    assert outcomes([read(20, 1000), read(80, 900)], lost(1, 10), lost(2, 30)) == [UNDECIDED, UNDECIDED]


def test_words_say_what_was_seen():
    """From which balance to which, by how much, and of which request."""
    readings = [read(0, 1000), read(70, "799.50"), read(200, "799.50")]
    found = judge(readings, [answered(1, 10), lost(2, 20, 100, 200), lost(3, 100)])
    charged = (
        "100.5 more than the responses account for, which nothing explains without request 2: the service took it."
    )
    not_charged = "just what the responses account for: the service did not take request 3."
    assert found == {
        2: Verdict(CHARGED, f"From 1000 to 799.5, the balance fell by {charged}", Decimal("100.50")),
        3: Verdict(NOT_CHARGED, f"From 799.5 to 799.5, the balance fell by {not_charged}"),
    }
    (verdict,) = judge([read(0, 1000), read(70, 910)], [lost(1, 10)]).values()
    assert verdict.words.endswith("the service took it, and perhaps left some people out.")


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([read(0, 1000), read(70, 1400)], "rose by 400"),
        ([read(0, 1000), read(70, 858)], "fell by 142 more than the responses account for, and somebody else spent"),
        ([read(70, 1000), read(80, 1000)], ""),
    ],
    ids=["a top-up may hide a charge", "somebody else spent", "no balance from before"],
)
def test_what_decides_nothing_is_waited_for_no_longer(readings, words):
    """No later balance will tell."""
    (verdict,) = judge(readings, [lost(1, 10)]).values()
    assert (verdict.outcome, verdict.settles_at) == (UNDECIDED, None)
    assert words in verdict.words


def test_a_charge_is_seen_at_once_that_there_was_none_only_at_the_deadline():
    """Until then it may still be charged for, and a later balance tells; the rest of a part of a charge may follow."""
    before, request = read(0, 1000), lost(1, 10)
    assert outcomes([before, read(20, 900)], request) == [CHARGED]
    (verdict,) = judge([before, read(20, 1000)], [request]).values()
    assert (verdict.outcome, verdict.settles_at) == (UNDECIDED, 55.0)
    assert "may be charged for until 00:00:55 UTC" in verdict.words
    assert outcomes([before, read(54.9, 1000), read(55, 1000)], request) == [NOT_CHARGED]
    (verdict,) = judge([before, read(20, 940)], [request]).values()
    assert verdict.settles_at == 55.0


def test_one_of_two_that_is_charged_for_at_once_waits_for_the_other():
    """Until both are settled, the sum may grow."""
    requests = lost(1, 10), lost(2, 11)
    found = judge([read(0, 1000), read(20, 900)], requests)
    assert [each.settles_at for each in found.values()] == [55.0, 56.0]
    assert outcomes([read(0, 1000), read(20, 800)], *requests) == [CHARGED, CHARGED]


@pytest.mark.parametrize("at", [69.0, 69.95, 70.05])
def test_a_reading_beside_a_request_is_not_quiet(at):
    """Its charge may be in that balance or not; the next reading that is quiet counts."""
    beside = answered(2, at, seconds=1.2)
    readings = [read(0, 1000), read(70, 1000), read(90, 900)]
    assert outcomes(readings[:2], lost(1, 10), beside) == [UNDECIDED]
    assert outcomes(readings, lost(1, 10), beside) == [NOT_CHARGED]


@pytest.mark.parametrize(("hours", "outcome"), [(0.9, UNDECIDED), (1.1, CHARGED)])
@pytest.mark.parametrize("later", [True, False])
def test_what_nobody_explains_makes_an_hour_doubtful(hours, outcome, later):
    """Whoever spent what a request costs may do so again, and a late charge looks the same."""
    spent = [read(0, 1000), read(1, 940)]
    sent = [read(2, 940), read(70, 840)], lost(1, 10)
    if later:
        spent = [read(at + hours * HOUR, amount) for at, amount in ((0, 840), (1, 780))]
    else:
        sent = [read(at + hours * HOUR, amount) for at, amount in ((2, 940), (70, 840))], lost(1, hours * HOUR + 10)
    readings, request = sent
    assert outcomes([*spent, *readings], request) == [outcome]


def test_a_fall_that_a_late_charge_explains_is_told():
    """Of which requests that seemed not to be taken; a sum that fits none of them is none of theirs."""
    readings = [read(0, 1000), read(60, 1000), read(120, 900), read(180, 877)]
    told = (
        "The balance fell by 100 that nothing explains, unless it was charged late for request 1, which seemed not to"
    )
    assert late_charges(readings, [lost(1, 10), lost(2, 11, 300)]) == [f"{told} be taken."]
    assert late_charges(readings, [lost(2, 10, 300)]) == []


# On accounts whose truth is known


APART = {"tasks": ((20, 1),), "silent": 0.0}


def test_no_verdict_is_wrong():
    """Within the assumptions, whatever is lost, whenever it is charged for, and whoever dies."""
    found = [Account(Setting.at_random(seed), seed).found() for seed in range(100)]
    assert sum(wrong for _, _, wrong in found) == 0
    assert 0 < sum(undecided for _, undecided, _ in found) < sum(lost for lost, _, _ in found) / 3


@pytest.mark.parametrize("prices", ["one", "sizes", "exact", "bounds"])
def test_what_is_lost_apart_is_decided(prices):
    """One request at a time, on an account that nobody else uses."""
    for seed in range(10):
        lost, undecided, wrong = Account(Setting(**APART, prices=prices, left_out=0.4), seed).found()
        assert (lost > 0, undecided, wrong) == (True, 0, 0)


@pytest.mark.parametrize("spent", [(30, 300), (30, -300), (10, 1)], ids=["much", "top-ups", "little"])
def test_what_others_spend_makes_no_verdict_wrong(spent):
    """Sums that no request costs, larger or smaller, leave it undecided."""
    found = [Account(Setting(others=(spent,)), seed).found() for seed in range(20)]
    assert sum(wrong for _, _, wrong in found) == 0


def test_a_sum_like_that_of_a_request_deceives():
    """The assumption is needed, and the simulator notices."""
    found = [Account(Setting(tasks=((10, 1),), taken=0.0, others=((60, 100),)), seed).found() for seed in range(20)]
    assert sum(wrong for _, _, wrong in found) > 0
