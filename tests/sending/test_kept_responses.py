from __future__ import annotations

from support.sending import people

from airflow_provider_sms.sending.claims import ACCEPTED, Chunk, Outcome


def answered(ledger, messages, response):
    """Claim messages as one request, and record the answer to it."""
    chunk = Chunk([m.key for m in messages], [m.destination for m in messages])
    claim = ledger.commit(chunks=[chunk], claim_seconds=60.0)[0]
    ledger.commit(outcomes=[Outcome(claim.request_id, ACCEPTED, response=response)])


def test_responses_are_those_of_this_task_in_request_order(enter):
    """A retry sees the answers of earlier tries of its task, and of no other task."""
    first, other, retry = enter(1), enter(1, task_id="other"), enter(2)
    for start, ledger in enumerate([first, other, first]):
        answered(ledger, people(1, start), f'{{"EventId": {start}}}')
    assert retry.responses.first(10) == ['{"EventId": 0}', '{"EventId": 2}']
    assert retry.responses.first(1) == ['{"EventId": 0}']
    assert retry.responses.count() == 2


def test_mapped_tasks_have_their_own_answers(enter):
    """Each of a mapped task's instances sees the answers to its own requests only."""
    mapped = [enter(1, map_index=index) for index in range(2)]
    for index, ledger in enumerate(mapped):
        answered(ledger, people(1, index), f'{{"EventId": {index}}}')
    assert [ledger.responses.first(10) for ledger in mapped] == [['{"EventId": 0}'], ['{"EventId": 1}']]
    assert [ledger.responses.count() for ledger in mapped] == [1, 1]


def test_the_answer_to_a_message_is_found_whoever_sent_it(enter):
    """Another run of the campaign can read what became of a message."""
    first = enter(1)
    answered(first, people(1), "{}")
    other = enter(1, run_id="other")
    assert other.responses.to(people(1)[0].key) == "{}"
    assert other.responses.to(people(1, 5)[0].key) is None
