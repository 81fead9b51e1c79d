from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest

from airflow_provider_sms.ledger.account import (
    CHARGED,
    NOT_CHARGED,
    UNDECIDED,
    AccountHistory,
    Observation,
    OpenRequest,
)
from airflow_provider_sms.sending.evidence import judge

HOUR = 3600.0


def sum_of(amount):
    return amount if amount is None else Decimal(str(amount))


def read(amount, begin, end=None):
    return Observation(sum_of(amount), Decimal(0), begin, begin if end is None else end)


def response(amount, charged, begin, end):
    return Observation(sum_of(amount), sum_of(charged), begin, end, request_id=1)


def lost(request_id, begin, settled, most=100, least=1, whole="most", **known):
    """A request that costs as much as that, if it was taken in whole."""
    whole = most if whole == "most" else whole
    return OpenRequest(request_id, sum_of(least), sum_of(most), sum_of(whole), begin, settled, **known)


def group(request_id, begin, settled):
    return lost(request_id, begin, settled, None, 0, None)


def charged(request_id, begin, settled, cost):
    """A request that the balance decided before."""
    return lost(request_id, begin, settled, cost, cost, cost, is_asked=False, is_charged=True)


def judged(*history):
    seen = [each for each in history if isinstance(each, Observation)]
    requests = [each for each in history if isinstance(each, OpenRequest)]
    found = judge(AccountHistory(seen, requests))
    # The order in which a ledger returns them means nothing.
    assert found == judge(AccountHistory(seen[::-1], requests[::-1]))
    return found


def verdicts(*history):
    return {request_id: evidence.verdict for request_id, evidence in judged(*history).items()}


def test_a_fall_that_only_one_request_explains():
    """A request was charged for where the balance fell by what it costs, and nothing else explains that."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(8900, 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, 100, False)
    assert evidence.words == (
        "The balance fell from 9000 to 8900, by 100 more than the responses account for, exactly what request 4 costs: "
        "it was taken."
    )


def test_a_balance_that_stays():
    """A request was not charged for where the balance stayed while it may have been."""
    evidence = judged(read(9000, 0), lost(5, 10, 20), read(9000, 30))[5]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (NOT_CHARGED, None, False)
    assert evidence.words == "The balance stayed at 9000: request 5 was not charged for, so it was not taken."


def test_a_fall_that_the_responses_account_for():
    """What responses say that their requests cost is no sign of another."""
    evidence = judged(
        read(9000, 0), lost(5, 10, 40), response(8700, 300, 5, 15), response(8400, 300, 12, 30), read(8400, 50)
    )[5]
    assert evidence.verdict == NOT_CHARGED
    assert evidence.words == (
        "The balance fell from 9000 to 8400, just what the responses account for: request 5 was not charged for, so it "
        "was not taken."
    )


def test_all_of_a_burst():
    """Requests that cost only all together as much as the balance fell by were all taken."""
    burst = [lost(each, 10, 40) for each in (9, 4, 6)]
    found = judged(read(9000, 0), *burst, response(8500, 300, 5, 15), response(8100, 300, 12, 30), read(8100, 80))
    assert {each.verdict for each in found.values()} == {CHARGED}
    assert {each.amount for each in found.values()} == {100}
    assert found[6].words == (
        "The balance fell from 9000 to 8100, by 300 more than the responses account for, exactly what requests 4, 6 "
        "and 9 cost: they were taken."
    )


def test_none_of_a_burst():
    """None of the requests without a response was taken where the responses account for all."""
    burst = [lost(each, 10, 40) for each in (4, 6, 9)]
    assert set(verdicts(read(9000, 0), *burst, response(8700, 300, 5, 15), read(8700, 80)).values()) == {NOT_CHARGED}


def test_some_of_a_burst():
    """Which of two was taken is left open where either explains the fall; the words name both."""
    found = judged(read(9000, 0), lost(4, 10, 40), lost(6, 10, 40), read(8900, 80))
    assert {each.verdict for each in found.values()} == {UNDECIDED}
    assert found[4].words == (
        "The balance does not tell whether request 4 was taken. The balance fell by 100 more than the responses "
        "account for, which may be what requests 4 and 6 cost, alone or together."
    )


def test_a_smaller_request_beside_a_larger_one():
    """Of two requests the one without which the fall is too large was taken; the other one may have been."""
    found = judged(read(9000, 0), lost(4, 10, 40), lost(6, 10, 40, most=37), read(8900, 80))
    assert (found[4].verdict, found[4].amount, found[6].verdict) == (CHARGED, None, UNDECIDED)
    assert found[4].words == (
        "The balance fell from 9000 to 8900, by 100 more than the responses account for, which nothing explains "
        "without request 4: it was taken. It was charged between 63 and 100."
    )


def test_falls_at_different_times():
    """A fall is explained only by requests that may have been charged for then."""
    history = [read(9000, 0), lost(4, 10, 20), read(8900, 30), lost(6, 40, 50), read(8900, 60)]
    assert verdicts(*history) == {4: CHARGED, 6: NOT_CHARGED}


def test_two_falls_need_two_requests():
    """A request explains no more than it costs: another fall needs another request."""
    history = [read(9000, 0), lost(4, 1, 50), lost(6, 25, 50), read(8900, 20), read(8800, 60)]
    assert verdicts(*history) == {4: CHARGED, 6: CHARGED}


def test_each_fall_is_explained_by_those_that_end_first():
    """A request that may explain a later fall is kept for it where another explains this one."""
    history = [read(9000, 0), lost(4, 1, 50), lost(6, 1, 15), read(8900, 20), read(8800, 60)]
    assert verdicts(*history) == {4: CHARGED, 6: CHARGED}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_reading_that_ties_with_a_response(order):
    """A reading of the balance from which a response starts came before that response, whatever its times."""
    ties = [read(9000, 10, 20), response(8900, 100, 10, 20)]
    history = [read(9000, 0), *(ties[each] for each in order), lost(4, 12, 30), read(8800, 40)]
    assert verdicts(*history) == {4: CHARGED}


def test_a_reading_of_what_a_response_left():
    """A reading of the balance that a response left came after that response, whatever its times."""
    ties = [read(8900, 4, 20), response(8900, 100, 5, 25)]
    assert verdicts(read(9000, 0), *ties, lost(4, 12, 30), read(8900, 40)) == {4: NOT_CHARGED}


def test_a_response_that_costs_nothing():
    """A response that costs nothing tells a balance as a reading does, and nothing else."""
    history = [read(9000, 0), response(9000, 0, 5, 25), response(8900, 100, 5, 25), lost(4, 10, 20), read(8900, 30)]
    assert verdicts(*history) == {4: NOT_CHARGED}


def test_times_that_only_touch():
    """Of two events at the same moment either may have come first."""
    assert verdicts(read(9000, 10), lost(4, 10, 20), read(9000, 30)) == {4: UNDECIDED}
    assert verdicts(read(9000, 0), lost(4, 10, 20), read(9000, 20)) == {4: UNDECIDED}
    assert verdicts(read(9000, 9), lost(4, 10, 20), read(9000, 21)) == {4: NOT_CHARGED}
    history = [read(9000, 0), lost(4, 1, 10), lost(6, 10, 20), read(8900, 10), read(8900, 30)]
    assert verdicts(*history) == {4: UNDECIDED, 6: UNDECIDED}
    history = [read(9000, 0), lost(4, 10, 20), lost(6, 20, 30), read(9000, 20), read(8900, 40)]
    assert verdicts(*history) == {4: UNDECIDED, 6: UNDECIDED}
    history = [read(9000, 0), response(8800, 100, 5, 10), response(8900, 100, 10, 20), lost(4, 7, 15)]
    assert verdicts(*history, read(8800, 30)) == {4: NOT_CHARGED}


def test_a_fall_lies_between_all_before_it_and_all_after_it():
    """A fall came after the begin of every observation before it, and before the end of every one after it."""
    first = [
        read(9000, -9),
        read(9000, -8),
        read(9000, -5),
        read(9000, 20, 25),
        response(8900, 100, 0, 30),
        lost(4, 1, 19),
        lost(6, 1, 35),
    ]
    assert verdicts(*first, read(8800, 40)) == {4: NOT_CHARGED, 6: CHARGED}
    last = [read(9000, 0), response(8850, 50, 10, 40), response(8800, 50, 15, 20), lost(4, 21, 50), lost(6, 5, 50)]
    assert verdicts(*last, read(8800, 60), read(8800, 70)) == {4: NOT_CHARGED, 6: CHARGED}


def test_times_before_values():
    """An observation that surely ended before another comes first, even where the balance rose in between."""
    history = [read(9000, -HOUR), read(8900, 5 - HOUR), read(9500, 8), lost(4, 10, 20), read(9400, 30)]
    assert verdicts(*history) == {4: CHARGED}


@pytest.mark.parametrize(("fall", "verdict"), [("0.0001", NOT_CHARGED), ("0.0002", CHARGED), ("-0.0001", NOT_CHARGED)])
def test_sums_that_hardly_differ_are_the_same(fall, verdict):
    """A balance that moves by no more than a ten-thousandth of a credit has not moved."""
    after = Decimal(9000) - Decimal(fall)
    evidence = judged(read(9000, 0), group(4, 10, 20), read(after, 30))[4]
    assert evidence.verdict == verdict
    assert ("more than the responses account for" in evidence.words) == (verdict == CHARGED)


@pytest.mark.parametrize(
    ("fall", "verdict", "amount"),
    [
        ("49.9998", UNDECIDED, None),
        ("49.9999", CHARGED, "49.9999"),
        ("99.9998", CHARGED, "99.9998"),
        ("99.9999", CHARGED, "99.9999"),
        ("100.0001", CHARGED, "100.0001"),
        ("100.0002", UNDECIDED, None),
    ],
)
def test_bounds_hold_to_a_ten_thousandth(fall, verdict, amount):
    """A charge is at least half of what all of a request costs and at most its most; below all of it is in part."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(9000 - Decimal(fall), 30))[4]
    assert (evidence.verdict, evidence.amount) == (verdict, sum_of(amount))
    assert evidence.in_part == (fall in {"49.9999", "99.9998"})


@pytest.mark.parametrize(
    ("fall", "words"),
    [
        ("0.9998", "The balance also fell by 0.9998 that no request explains."),
        ("0.9999", "The balance fell by 0.9999 that only this request explains. All of it costs 100 or more, so "),
    ],
)
def test_a_least_holds_to_a_ten_thousandth(fall, words):
    """What a request may have cost is at least the price of one SMS part."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(9000 - Decimal(fall), 30))[4]
    assert evidence.verdict == UNDECIDED
    assert words in evidence.words


def test_what_is_needed_is_more_than_noise():
    """A request is not charged for because of a ten-thousandth, nor is another's sum unknown because of it."""
    history = [read(9000, 0), group(4, 10, 20), lost(6, 10, 20, most="99.9999"), read(8900, 30)]
    assert verdicts(*history) == {4: UNDECIDED, 6: UNDECIDED}
    history = [read(9000, 0), charged(6, 10, 20, 100), group(4, 10, 20), read("8899.9999", 30)]
    assert verdicts(*history) == {4: NOT_CHARGED}
    history = [read(9000, 0), charged(6, 10, 20, 100), lost(4, 10, 20), read("8900.0001", 30)]
    assert verdicts(*history) == {4: NOT_CHARGED}
    found = judged(read(9000, 0), lost(4, 10, 20), lost(6, 10, 20), read("8800.0001", 30))
    assert {each.amount for each in found.values()} == {Decimal("99.9999")}


def test_falls_of_one_component_at_different_times():
    """A request explains no fall of a time when it cannot have been charged for, whatever else is open then."""
    history = [lost(4, 1, 15, most=300, whole=100), lost(6, 1, 50)]
    assert verdicts(read(9000, 0), *history, read(8900, 20), read(8800, 60)) == {4: CHARGED, 6: CHARGED}


def test_what_is_needed_for_little():
    """A request that is needed for less than half of what it costs is undecided: somebody else may have spent that."""
    found = judged(read(9000, 0), lost(4, 10, 20), lost(6, 10, 20), read(8870, 30))
    assert {each.verdict for each in found.values()} == {UNDECIDED}
    assert found[4].words == (
        "The balance does not tell whether request 4 was taken. The balance fell by 30 that only this request "
        "explains. All of it costs 100 or more, so somebody else may have spent that."
    )
    found = judged(read(9000, 0), lost(4, 10, 20), lost(6, 10, 20), read(8850, 30))
    assert {each.verdict for each in found.values()} == {CHARGED}
    assert found[4].words.endswith("It was charged between 50 and 100.")


def test_requests_that_share_falls_by_way_of_others():
    """Requests belong together through a third one that may explain the falls of both."""
    history = [lost(4, 1, 50), lost(6, 1, 15), lost(8, 25, 50)]
    found = verdicts(read(9000, 0), *history, read(8900, 20), read(8800, 60))
    assert found == {4: UNDECIDED, 6: UNDECIDED, 8: UNDECIDED}


def test_binary_sums():
    """Balances are compared as services that compute in binary write them, and amounts are told without their noise."""
    evidence = judged(
        read("99.69999999999999", 0),
        lost(4, 10, 20, most="0.3", least="0.1"),
        response("98.39999999999999", "1.0000000000000001", 5, 25),
        read("98.4", 30),
    )[4]
    assert (evidence.verdict, str(evidence.amount), evidence.in_part) == (CHARGED, "0.300000", False)
    assert evidence.words.startswith("The balance fell from 99.7 to 98.4, by 0.3 more than the responses account for, ")


def test_a_response_from_a_hair_above():
    """A response that starts a hair above the balance before it, as binary sums do, is no rise."""
    history = [read("99.7", 0), response("98.70000000000001", 1, 5, 25), response("97.7", 1, 5, 25), lost(4, 10, 30)]
    assert verdicts(*history, read("97.7", 40)) == {4: NOT_CHARGED}
    history = [read("9000", 0), read("8999.9999", 5, 25), response("8900", 100, 5, 25), lost(4, 10, 30)]
    assert verdicts(*history, read("8900", 40)) == {4: NOT_CHARGED}


def test_a_request_taken_in_part():
    """A charge of less than the whole request costs means that the service left people out, or somebody else spent."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read("8940.5", 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, Decimal("59.5"), True)
    assert evidence.words == (
        "The balance fell from 9000 to 8940.5, by 59.5 more than the responses account for, which nothing explains "
        "without request 4: it was taken. It was charged 59.5 of at least 100, so the service left some people out, "
        "and nobody can tell whom; or else somebody else spent that."
    )


@pytest.mark.parametrize("fall", ["1", "5", "49.9"])
def test_less_than_half_of_a_request(fall):
    """Less than half of what all of a request costs may be what somebody else spent: it stays undecided."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(9000 - Decimal(fall), 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (UNDECIDED, None, False)
    assert evidence.settles_at is None
    assert evidence.words == (
        f"The balance does not tell whether request 4 was taken. The balance fell by {fall} that only this request "
        "explains. All of it costs 100 or more, so somebody else may have spent that."
    )


def test_half_is_of_the_least_that_all_of_a_request_costs():
    """Where prices differ, half is of what all of it costs at the least price."""
    dear = lost(4, 10, 20, most=250, whole=100)
    assert verdicts(read(9000, 0), dear, read(8950, 30)) == {4: CHARGED}
    assert verdicts(read(9000, 0), dear, read(8951, 30)) == {4: UNDECIDED}


@pytest.mark.parametrize(("fall", "in_part"), [(99, True), (100, False), (150, False), (200, False)])
def test_prices_that_differ(fall, in_part):
    """A request was taken in part where it was charged less than all its parts cost at the least price."""
    evidence = judged(read(9000, 0), lost(4, 10, 20, most=200, whole=100), read(9000 - fall, 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, fall, in_part)


def test_a_fall_below_the_least():
    """A fall of less than one SMS part costs is none of the request's, and leaves all about it open."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read("8999.5", 30))[4]
    assert evidence.verdict == UNDECIDED
    assert evidence.words == (
        "The balance does not tell whether request 4 was taken. The balance also fell by 0.5 that no request explains."
    )


def test_a_group_may_cost_anything():
    """A group has no least and no most: any fall may be its, and it is taken in whole as far as anybody can tell."""
    evidence = judged(read(9000, 0), group(4, 10, 20), read("8123.45", 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, Decimal("876.55"), False)
    assert verdicts(read(9000, 0), group(4, 10, 20), read(9000, 30)) == {4: NOT_CHARGED}
    assert verdicts(read(9000, 0), group(4, 10, 20), lost(6, 10, 20), read(8900, 30)) == {4: UNDECIDED, 6: UNDECIDED}


@pytest.mark.parametrize("free", [{"most": 0, "least": 0, "whole": 0}, {"least": 0, "whole": 0}, {"least": "0.0001"}])
def test_a_request_that_may_cost_nothing(free):
    """Of a request whose parts may cost nothing, a balance that stays tells nothing."""
    evidence = judged(read(9000, 0), lost(4, 10, 20, **free), read(9000, 30))[4]
    assert evidence.verdict == UNDECIDED
    assert evidence.words == "The balance does not tell whether request 4 was taken. It may cost nothing."


def test_no_balance_before():
    """Without a balance from before a request was posted, nothing tells that it was not charged for."""
    evidence = judged(lost(4, 10, 20), read(9000, 15, 18), read(9000, 30))[4]
    assert (evidence.verdict, evidence.settles_at) == (UNDECIDED, None)
    assert evidence.words == (
        "The balance does not tell whether request 4 was taken. "
        "No balance is known from before 00:00:10 UTC, when it was posted."
    )


def test_no_balance_after():
    """Until a balance is read that began after a request is settled, it may still be charged for."""
    evidence = judged(read(9000, 0), lost(4, 10, 3675), read(9000, 15, 4000))[4]
    assert (evidence.verdict, evidence.settles_at) == (UNDECIDED, 3675)
    assert evidence.words == (
        "The balance does not tell whether request 4 was taken. "
        "It may be charged for until 01:01:15 UTC, and no balance was read after that."
    )


def test_charged_before_it_is_settled():
    """That all of a request was charged for is certain at once, with the sum; of less, more may follow for a while."""
    evidence = judged(read(9000, 0), lost(4, 10, 60, most=600, whole=100), read(8900, 20))[4]
    assert (evidence.verdict, evidence.amount) == (CHARGED, 100)
    assert evidence.words.startswith("The balance fell from 9000 to 8900, by 100 more than the responses account for, ")
    evidence = judged(read(9000, 0), lost(4, 10, 60), read(8940, 20))[4]
    assert (evidence.verdict, evidence.settles_at) == (UNDECIDED, 60)
    evidence = judged(read(9000, 0), lost(4, 10, 60), read(8940, 20), read(8940, 70))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, 60, True)
    assert judged(read(9000, 0), group(4, 10, 60), read(8940, 20))[4].amount == 60


WIDE = {"least": "0.5", "most": 300, "whole": 50}
"""100 messages, at prices from half a credit to 3 credits for a part."""


def test_what_falls_later_belongs_to_later_requests():
    """A request that the balance has shown to be charged for, with nothing else open, explains no later fall."""
    history = [read(9000, 0), lost(5, 10, 60, **WIDE), read(8900, 20)]
    first = judged(*history)[5]
    assert (first.verdict, first.amount) == (CHARGED, 100)
    assert 10 < first.settles_at < 20
    history[1] = lost(5, 10, first.settles_at, **WIDE)
    later = [*history, response(8800, 100, 22, 25), lost(7, 30, 80, **WIDE)]
    found = judged(*later, read(8700, 40))
    assert {each: (found[each].verdict, found[each].amount) for each in found} == {5: (CHARGED, 100), 7: (CHARGED, 100)}
    assert found[5].settles_at == first.settles_at  # kept, it stays what it was
    assert verdicts(*later, read(8800, 90)) == {5: CHARGED, 7: NOT_CHARGED}


def test_what_falls_later_where_the_sums_are_not_known():
    """The same holds for two requests of which only the sum is known: neither explains a later fall."""
    prices = {"least": 1, "most": 150, "whole": 100}
    found = judged(read(9000, 0), lost(5, 10, 60, **prices), lost(6, 10, 60, **prices), read(8750, 20))
    assert {each: (found[each].verdict, found[each].amount) for each in found} == {
        5: (CHARGED, None),
        6: (CHARGED, None),
    }
    assert found[5].words.endswith("It was charged between 100 and 150.")
    charged_both = [lost(each, 10, found[each].settles_at, is_asked=False, is_charged=True, **prices) for each in found]
    later = judged(read(9000, 0), *charged_both, read(8750, 20), lost(7, 30, 80, **prices), read(8630, 40))[7]
    assert (later.verdict, later.amount) == (CHARGED, 120)


def test_a_charge_beside_another_observation():
    """Where a response overlaps the reading, nothing tells when the charge came: later falls may be its own."""
    evidence = judged(read(9000, 0), lost(5, 10, 60, **WIDE), response(8900, 100, 20, 23), read(8800, 20, 25))[5]
    assert (evidence.verdict, evidence.amount, evidence.settles_at) == (CHARGED, 100, None)


def test_no_charge_is_said_to_be_more_than_the_fall():
    """A charge is between sums of which neither exceeds what the balance fell by."""
    prices = {"least": 1, "most": "657.6", "whole": "111.1"}
    evidence = judged(read(9000, 0), lost(5, 10, 60, **prices), lost(6, 10, 60, most="104.6"), read("8784.3", 20))[5]
    assert evidence.words.endswith("It was charged between 111.1 and 215.7.")


def test_less_than_half_before_it_is_settled():
    """Less than half is no sign of a charge before a request is settled either, but the rest may follow until then."""
    history = [read(9000, 0), lost(4, 10, 60), read(8970, 20)]
    evidence = judged(*history)[4]
    assert (evidence.verdict, evidence.settles_at) == (UNDECIDED, 60)
    assert evidence.words == (
        "The balance does not tell whether request 4 was taken. It may be charged for until 00:01:00 UTC, and no "
        "balance was read after that. The balance fell by 30 that only this request explains. All of it costs 100 or "
        "more, so somebody else may have spent that."
    )
    assert verdicts(*history, read(8930, 70)) == {4: CHARGED}
    evidence = judged(*history, read(8970, 70))[4]
    assert (evidence.verdict, evidence.settles_at) == (UNDECIDED, None)


def test_less_than_one_part_before_it_is_settled():
    """A charge is at least the price of one SMS part, however little all of a request costs."""
    assert verdicts(read(9000, 0), lost(4, 10, 60, most=1), read("8999.37", 20)) == {4: UNDECIDED}
    assert verdicts(read(9000, 0), lost(4, 10, 60, most=1), read("8999", 20)) == {4: CHARGED}


def test_less_than_one_part_that_only_one_request_explains():
    """Beside another request, the part of a fall that only one explains may be less than an SMS part: no charge."""
    history = [read(9000, 0), lost(4, 10, 20, most=1), lost(6, 10, 20, most=1)]
    assert verdicts(*history, read("8998.4", 30)) == {4: UNDECIDED, 6: UNDECIDED}
    assert verdicts(*history, read(8998, 30)) == {4: CHARGED, 6: CHARGED}


def test_until_when_a_charge_may_follow():
    """What is undecided may still be charged for until it is settled, unless a balance was read after that moment."""
    history = [read(9000, 0), lost(4, 10, 40), lost(6, 10, 60), read(8900, 50)]
    assert [each.settles_at for each in judged(*history).values()] == [None, 60]
    assert [each.settles_at for each in judged(*history, read(8900, 60)).values()] == [None, 60]
    assert [each.settles_at for each in judged(*history, read(8900, 61)).values()] == [None, None]
    assert verdicts(*history, read(8800, 61)) == {4: CHARGED, 6: CHARGED}


def test_no_balance_at_all():
    """Where no balance is known, as with a post-paid account, nothing is decided."""
    evidence = judged(lost(4, 10, 20))[4]
    assert (evidence.verdict, evidence.amount, evidence.settles_at) == (UNDECIDED, None, 20)
    assert evidence.words == "No balance of the account is known, so nothing tells whether request 4 was taken."


def test_one_balance():
    """One balance tells nothing: neither what was before it, nor what came after."""
    assert verdicts(lost(4, 10, 20), read(9000, 5)) == verdicts(lost(4, 10, 20), read(9000, 30)) == {4: UNDECIDED}


def test_only_what_is_asked_for_is_judged():
    """A request for which no verdict is wanted has none, but it may explain a fall."""
    other = lost(6, 10, 20, is_asked=False)
    assert verdicts(read(9000, 0), lost(4, 10, 20), other, read(8900, 30)) == {4: UNDECIDED}
    assert verdicts(read(9000, 0), lost(4, 10, 20), other, read(8800, 30)) == {4: CHARGED}


def test_what_was_surely_charged_has_its_share():
    """A fall goes to the request that was surely charged for first; what is left is another's."""
    other = charged(6, 10, 20, 100)
    evidence = judged(read(9000, 0), lost(4, 10, 20), other, read(8900, 30))[4]
    assert evidence.verdict == NOT_CHARGED
    assert evidence.words == (
        "The balance fell from 9000 to 8900, by 100 more than the responses account for, which other requests cost: "
        "request 4 was not charged for, so it was not taken."
    )
    evidence = judged(read(9000, 0), lost(4, 10, 20), other, read(8840, 30))[4]
    assert (evidence.verdict, evidence.amount, evidence.in_part) == (CHARGED, 60, True)


def test_what_was_surely_charged_may_be_elsewhere():
    """A request that was surely charged for need not be in a fall where its time goes beyond what is known."""
    other = charged(6, 10, 40, 100)
    assert verdicts(read(9000, 0), lost(4, 10, 20), other, read(8900, 30)) == {4: UNDECIDED}


def test_what_was_surely_charged_is_missing():
    """A balance that does not show what was surely charged tells nothing of what may have been charged then."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), charged(6, 10, 20, 100), read(9000, 30))[4]
    assert evidence.verdict == UNDECIDED
    assert evidence.words.endswith("The balance does not show what request 6 surely cost.")
    evidence = judged(read(9000, 0), lost(4, 10, 20), charged(6, 10, 20, 100), read(8950, 30))[4]
    assert evidence.verdict == UNDECIDED


def test_in_flight_requests_are_waited_for():
    """An undecided request waits for those under way that may explain the same fall, and for no others."""
    flying = [lost(each, 10, 20, is_asked=False, in_flight=True) for each in (6, 7)]
    history = [read(9000, 0), lost(4, 10, 20), *flying, lost(5, 10, 20), read(8900, 30)]
    found = judged(*history, lost(8, 40, 50, in_flight=True, is_asked=False), read(8800, 60))
    assert {each.waits_for for each in found.values()} == {frozenset({6, 7})}
    assert found[4].words.endswith("which may be what requests 4, 5, 6 and 7 cost, alone or together.")


def test_a_request_does_not_wait_for_itself():
    """What is in flight and judged waits for the others alone; what is decided waits for none."""
    flying = [lost(each, 10, 20, in_flight=True) for each in (6, 7)]
    found = judged(read(9000, 0), *flying, read(8900, 30))
    assert [found[6].waits_for, found[7].waits_for] == [{7}, {6}]
    found = judged(read(9000, 0), *flying, read(8800, 30))
    assert [found[6].waits_for, found[7].waits_for] == [set(), set()]


def test_an_in_flight_request_may_be_charged_after_the_reading():
    """A request that is under way is not known not to have been charged for, nor is it needed where another fits."""
    flying = lost(6, 10, 60, in_flight=True)
    assert verdicts(read(9000, 0), lost(4, 10, 20), flying, read(8900, 30)) == {4: UNDECIDED, 6: UNDECIDED}
    assert verdicts(read(9000, 0), lost(4, 10, 20), flying, read(9000, 30)) == {4: NOT_CHARGED, 6: UNDECIDED}


def test_many_requests_are_not_all_named():
    """Words name ten requests, and say how many more there are."""
    found = judged(read(9000, 0), *(lost(each, 10, 20) for each in range(1, 16)), read(8900, 30))
    assert "requests 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 5 more cost" in found[3].words
    found = judged(read(9000, 0), *(lost(each, 10, 20) for each in range(1, 11)), read(8900, 30))
    assert "requests 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10 cost" in found[3].words


def test_many_at_once_are_decided_too():
    """Nothing is left open because it is much."""
    burst = [lost(each, 10, 20) for each in range(1, 61)]
    assert set(verdicts(read(9000, 0), *burst, read(3000, 30)).values()) == {CHARGED}


def test_amounts_are_written_without_an_exponent():
    """Words hold plain numbers, whatever the number of digits that the service states."""
    words = judged(read("1E+9", 0), group(4, 10, 20), read("9.9999999E+8", 30))[4].words
    assert words.startswith("The balance fell from 1000000000 to 999999990, by 10 more than")
    words = judged(read("0.1", 0), group(4, 10, 20), read("-1E-12", 30))[4].words
    assert words.startswith("The balance fell from 0.1 to 0, by 0.1 more than")


def test_falls_that_do_not_follow_each_other():
    """Words say from where to where the balance fell only where that is the fall that they are about."""
    history = [lost(6, 5, 30), lost(4, 40, 50), lost(7, 1, 50, most=None, is_asked=False)]
    found = judged(read(9000, 0), *history, read(8900, 35), read(8800, 60))
    assert found[4].verdict == UNDECIDED
    history = [read(9000, 0), lost(4, 1, 35), lost(6, 25, 50), read(8900, 20), read(8800, 40), read(8800, 60)]
    together = (
        "The balance fell from 9000 to 8800, by 200 more than the responses account for, exactly what requests 4 and 6"
    )
    assert all(each.words.startswith(together) for each in judged(*history).values())
    history = [read(9000, 0), lost(4, 1, 50), read(8950, 10), read(8960, 20), read(8910, 30), read(8910, 60)]
    assert judged(*history)[4].words.startswith("The balance fell by 100 more than the responses account for")


# The assumptions broken: what is noticed, and what cannot be.


def test_somebody_else_spends_more_than_a_request_costs():
    """A fall that no request explains is told, and leaves open what may have been charged then."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(8858, 30))[4]
    assert evidence.verdict == UNDECIDED
    assert evidence.words == (
        "The balance does not tell whether request 4 was taken. The balance also fell by 42 that no request explains."
    )


def test_somebody_else_spends_within_the_hour():
    """Who spends once may do so again: all within an hour before or after is undecided, and the words say so."""
    spent = [read(9000, 0), read(8940, 10)]
    found = judged(*spent, lost(4, 20, 30), read(8840, 40), lost(6, 50, 60), read(8840, 70))
    assert {each.verdict for each in found.values()} == {UNDECIDED}
    assert {each.settles_at for each in found.values()} == {None}
    words = "The balance also fell by 60 that no request explains. That was less than an hour before or after."
    assert found[6].words.endswith(f"request 6 was taken. {words}")
    assert verdicts(read(9100, -30), lost(4, -20, -15), read(9000, -10), *spent) == {4: UNDECIDED}


@pytest.mark.parametrize(("seconds", "verdict"), [(HOUR, UNDECIDED), (HOUR + 1, CHARGED)])
def test_somebody_else_spends_an_hour_away(seconds, verdict):
    """What others spent more than an hour before or after the balances around a request does it no harm."""
    spent = [read(9000, 10), read(8940, 10)]
    assert verdicts(*spent, read(8940, 10 + seconds), lost(4, 5000, 5010), read(8840, 5020)) == {4: verdict}
    assert verdicts(read(9100, -5020), lost(4, -5010, -5000), read(9000, 10 - seconds), *spent) == {4: verdict}


def test_somebody_else_spends_little():
    """A fall that is too small for any request, as by a message to the people on call, only counts in its own time."""
    spent = [read(9000, 0), read(8951, 10)]
    assert verdicts(*spent, lost(4, 20, 30), read(8851, 40), lost(6, 50, 60), read(8851, 70)) == {
        4: CHARGED,
        6: NOT_CHARGED,
    }


def test_somebody_else_spends_at_a_moment_that_is_not_known():
    """What was spent some time since yesterday's last balance, as overnight, does no harm to what is sent today."""
    later = [lost(4, 2 * HOUR + 10, 2 * HOUR + 20), read(7900, 2 * HOUR + 30)]
    assert verdicts(read(9000, 0), read(8000, 2 * HOUR), *later) == {4: CHARGED}
    assert verdicts(read(9000, 0), read(8000, 5), read(8000, 2 * HOUR), *later) == {4: CHARGED}


def test_somebody_else_spends_what_a_request_costs():
    """The exception: what others spend meanwhile is taken for a request's charge from half of its cost to all of it."""
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(8900, 30))[4]
    assert (evidence.verdict, evidence.in_part) == (CHARGED, False)
    evidence = judged(read(9000, 0), lost(4, 10, 20), read(8950, 30))[4]
    assert (evidence.verdict, evidence.in_part) == (CHARGED, True)
    assert "or else somebody else spent that" in evidence.words


def test_an_account_that_other_tasks_share():
    """Requests of other tasks do no harm where they are in the same ledger, and are noticed where they are not."""
    other = response(8700, 300, 5, 25)
    assert verdicts(read(9000, 0), other, lost(4, 10, 20), read(8600, 30)) == {4: CHARGED}
    assert verdicts(read(9000, 0), lost(4, 10, 20), read(8600, 30)) == {4: UNDECIDED}


def test_a_top_up():
    """A rise is told, and leaves open what may have been charged then, and nothing else."""
    history = [read(9000, 0), lost(4, 10, 20), read(13900, 30), lost(6, 40, 50), read(13800, 60)]
    found = judged(*history)
    assert (found[4].verdict, found[6].verdict) == (UNDECIDED, CHARGED)
    assert found[4].words == (
        "The balance does not tell whether request 4 was taken. The balance also rose by 4900, which may hide a charge."
    )


def test_a_charge_that_a_top_up_may_hide():
    """What was surely charged need not be in a fall where it may be in a rise."""
    history = [read(9000, 0), charged(6, 10, 40, 100), read(13900, 20), lost(4, 30, 40), read(13900, 50)]
    assert verdicts(*history) == {4: NOT_CHARGED}


def test_a_top_up_at_a_quiet_moment():
    """A rise while nothing else went on is where it was: what comes after it is decided."""
    burst = [response(9900, 100, 10, 30), response(9700, 100, 15, 35)]
    assert verdicts(read(9000, 0), *burst, lost(4, 20, 32), read(9700, 40)) == {4: CHARGED}


def test_a_top_up_that_makes_up_for_a_charge():
    """The exception: a top-up of exactly what a request cost, while it may be charged for, hides the charge."""
    assert verdicts(read(9000, 0), lost(4, 10, 20), read(9000, 30)) == {4: NOT_CHARGED}


def test_a_top_up_between_responses_that_overlap():
    """Where responses overlap, a rise leaves open all that lies between the quiet moments before and after."""
    burst = [response(8900, 100, 10, 30), response(9300, 100, 15, 35), response(9200, 100, 32, 45)]
    history = [read(9000, 0), *burst, lost(4, 1, 5), lost(6, 20, 31), lost(8, 48, 55), read(9100, 60)]
    assert verdicts(*history) == {4: UNDECIDED, 6: UNDECIDED, 8: UNDECIDED}
    assert "The balance also rose by 500, which may hide a charge." in judged(*history)[8].words
    assert verdicts(*history, lost(9, 62, 70), read(9000, 80))[9] == CHARGED
    assert verdicts(*history, read(9500, -20), lost(2, -15, -5))[2] == UNDECIDED
    assert verdicts(*history, read(9500, -20), lost(2, -15, -5, most=500))[2] == CHARGED


def test_a_balance_that_is_told_late():
    """Two responses that overlap and tell the same balance are noticed: one of them told that of a later moment."""
    burst = [response(8800, 100, 10, 30), response(8800, 100, 15, 35)]
    evidence = judged(read(9000, 0), *burst, lost(4, 1, 12), read(8800, 60))[4]
    assert evidence.verdict == UNDECIDED
    assert evidence.words.endswith("The balance also rose by 100, which may hide a charge.")
    touching = [response(8800, 100, 10, 20), response(8800, 100, 20, 30)]
    assert verdicts(read(9000, 0), *touching, lost(4, 1, 8), read(8800, 60)) == {4: UNDECIDED}


def test_a_charge_that_a_late_response_moves():
    """A response that tells the balance late shows a later charge before it, where nothing explains it: all is open."""
    late = [response(8700, 100, 10, 30), response(8800, 100, 12, 15)]  # the first one tells the balance of its end
    evidence = judged(read(9000, 0), *late, lost(4, 18, 25), read(8700, 50))[4]
    assert evidence.verdict == UNDECIDED
    assert "The balance also fell by 100 that no request explains." in evidence.words


def test_two_responses_that_tell_the_balance_late():
    """The exception: where several balances are told late, a charge may pass for that of another request."""
    # Request 6 was charged for just before the second response was there, and request 4 was not.
    late = [response(8800, 100, 10, 12), response(8700, 100, 10, 15)]
    assert verdicts(read(9000, 0), *late, lost(4, 5, 12), lost(6, 13, 20), read(8700, 30)) == {
        4: CHARGED,
        6: NOT_CHARGED,
    }


def test_a_fall_amid_responses_that_nothing_explains():
    """A fall between responses that overlap, in which no request was open, leaves open all around it."""
    burst = [response(8900, 100, 10, 30), response(8700, 100, 20, 25), response(8600, 100, 24, 50)]
    history = [read(9000, 0), *burst, lost(4, 35, 55), read(8600, 60)]
    assert verdicts(*history) == {4: UNDECIDED}


def test_quiet_is_where_no_observation_lasts():
    """A moment is quiet where every observation before it has ended, and none after it has begun."""
    late = [response(8900, 100, 10, 20), response(8900, 100, 11, 21), response(8800, 100, 30, 40)]
    assert verdicts(read(9000, 0), *late, lost(4, 32, 50), read(8700, 60)) == {4: CHARGED}
    lasting = [replace(late[0], end=35), *late[1:]]
    assert verdicts(read(9000, 0), *lasting, lost(4, 36, 50), read(8700, 60)) == {4: UNDECIDED}
    begun = [response(8900, 100, 10, 20), response(9300, 100, 11, 21)]
    begun += [response(9250, 50, 30, 35), response(9200, 50, 15, 45)]
    assert verdicts(read(9000, 0), *begun, lost(4, 46, 50), read(9100, 60)) == {4: UNDECIDED}


def test_a_charge_after_it_is_settled():
    """The exception: a charge that comes only after a request is settled is not seen as its own, unless it is near."""
    history = [read(9000, 0), lost(4, 10, 20), read(9000, 30)]
    assert verdicts(*history) == {4: NOT_CHARGED}
    assert verdicts(*history, read(8900, 40)) == {4: UNDECIDED}
    assert verdicts(*history, read(9000, 31 + HOUR), read(8900, 40 + HOUR)) == {4: NOT_CHARGED}


def test_a_balance_that_is_shown_late():
    """A reading that shows a charge only later, but before it is settled, is no sign against it."""
    assert verdicts(read(9000, 0), lost(4, 10, 35), read(9000, 30), read(8900, 40)) == {4: CHARGED}


def sums_of_a_send(seed):
    """Send one request at a time, some lost, at prices between two; return what each lost one cost, and the evidence.

    After each loss the balance is read, at once and, where that decides nothing, once the request has settled.
    """
    random = Random(seed)
    least, most = random.choice([(50, 300), (100, 150), (80, 80)])
    now, balance, observed, lost_ones, paid, told = 1.0, Decimal(9000), [read(9000, 0)], [], {}, {}
    for request_id in range(1, 12):
        fate = random.choices(["answered", "taken", "not taken"], [6, 2, 2])[0]
        cost = Decimal(0) if fate == "not taken" else Decimal(random.randint(least, most))
        balance, begin, now = balance - cost, now, now + 2
        if fate == "answered":
            observed.append(response(balance, cost, begin, now))
            continue
        lost_ones.append(lost(request_id, begin, now + 20, most=most, least="0.5", whole=least))
        for moment in (now + 1, now + 21):
            observed.append(read(balance, moment))
            evidence, now = judge(AccountHistory(observed, lost_ones))[request_id], moment + 1
            if evidence.verdict != UNDECIDED:
                break
        paid[request_id], told[request_id] = cost, evidence
        if evidence.verdict == CHARGED:
            lost_ones[-1] = replace(lost_ones[-1], settled=evidence.settles_at, is_asked=False, is_charged=True)
        else:
            lost_ones.pop()
    return paid, told


@pytest.mark.parametrize("seed", range(200))
def test_one_request_at_a_time_leaves_nothing_undecided(seed):
    """Whatever the prices, each lost request is closed rightly, and at the sum that was paid for it."""
    paid, told = sums_of_a_send(seed)
    assert {each: told[each].verdict for each in told} == {
        each: CHARGED if paid[each] else NOT_CHARGED for each in paid
    }
    assert {each: told[each].amount or 0 for each in told} == paid
