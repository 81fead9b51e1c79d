from __future__ import annotations

import asyncio
import threading

import pytest
from fastapi import HTTPException
from support.plugins import Person
from support.told import tell

from airflow_provider_sms.plugins import authorization, turns
from airflow_provider_sms.plugins.turns import WAITING, Turns, in_turn


class Looks:
    """Responses that are made until they are allowed to end.

    :param most: how many were made at once, of all users.
    :param order: the requests in the order of their turns: the user, and which of all requests it is.
    """

    def __init__(self):
        self.now, self.most, self.of_user, self.over = 0, 0, {}, asyncio.Event()
        self.order = []
        self.turns = Turns()

    async def look(self, user, number):
        try:
            async with self.turns.turn(user):
                self.order.append((user, number))
                self.now += 1
                self.most = max(self.most, self.now)
                self.of_user[user] = self.of_user.get(user, 0) + 1
                await self.over.wait()
                self.now -= 1
        except HTTPException as refused:
            return refused.status_code, refused.headers
        return 200, None


def run(users, *, patience=5.0):
    """Let users look at once, and return the looks and the responses."""

    async def all_of_them():
        looks = Looks()
        tasks = [asyncio.create_task(looks.look(user, number)) for number, user in enumerate(users)]
        await asyncio.sleep(0.1 + (0 if patience > 1 else 2 * patience))
        begun = dict(looks.of_user)
        looks.over.set()
        return looks, begun, await asyncio.gather(*tasks)

    return asyncio.run(all_of_them())


def test_few_requests_of_a_user_wait():
    """One response is made, a few wait, and the rest is refused at once, with the time to try again after."""
    looks, begun, answers = run(["vic"] * 40)
    assert (begun, looks.most) == ({"vic": 1}, 1)
    assert sorted(code for code, _ in answers) == [200] * (1 + WAITING) + [429] * (39 - WAITING)
    assert {headers["Retry-After"] for code, headers in answers if code == 429} == {"5"}


def test_a_process_makes_one_response_at_a_time():
    """Of all users together: Airflow's own requests find threads and processors free."""
    looks, begun, answers = run([f"user {number}" for number in range(40)])
    assert (len(begun), looks.most) == (1, 1)
    assert [code for code, _ in answers] == [200] * 40


def test_a_user_with_many_requests_delays_others_by_one_response():
    """The next turn is of the user whose last turn is longest ago, and of a user the first request is made first."""
    looks, _, _ = run(["vic"] * (1 + WAITING) + ["ann", "ann", "ed"])
    assert looks.order == [("vic", 0), ("ann", 4), ("ed", 6), ("vic", 1), ("ann", 5), ("vic", 2), ("vic", 3)]


def test_nobody_waits_for_ever(monkeypatch):
    """A request that waited for its turn for too long is refused, and keeps nobody else waiting."""
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.1)
    looks, _, answers = run([f"user {number}" for number in range(5)], patience=0.1)
    assert sorted(code for code, _ in answers) == [200] + [429] * 4
    assert (looks.turns._busy, looks.turns._present, looks.turns._waiting) == (False, {}, [])


def test_a_route_that_fails_ends_its_turn():
    """An error of one page is not the end of all pages."""

    class Ann:
        user_id = "ann"

    @in_turn
    def route(access):
        raise ValueError(access.user_id)

    for _ in range(2):
        with pytest.raises(ValueError, match="ann"):
            asyncio.run(route(access=Ann()))


def test_a_page_that_must_wait_says_so(site, store, monkeypatch):
    """The status, the header and the words; static files wait for nothing."""
    tell(store)
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.1)
    busy, over = threading.Event(), threading.Event()
    ed = Person(site, "ed")

    async def hold():
        async with turns.TURNS.turn("ed"):
            busy.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    busy.wait()
    try:
        answers = [ed.get(path) for path in ("/", "/campaigns/1", "/campaigns/1/requests")]
        answers.append(ed.get("/task?dag_id=d&run_id=r&task_id=t"))
        assert [(each.status_code, each.headers.get("Retry-After")) for each in answers] == [(429, "5")] * 4
        assert "Too many pages are being made" in answers[0].text
        assert ed.get("/static/page.js").status_code == 200
        assert Person(site, "ann").get("/").status_code == 429
    finally:
        over.set()
        thread.join()
    assert ed.get("/").status_code == 200


def test_a_request_above_the_limit_asks_for_no_rights(site, store, monkeypatch):
    """Its refusal costs next to nothing."""

    def ask(*arguments):
        raise AssertionError

    tell(store)
    monkeypatch.setattr(turns, "WAITING", -1)
    ed = Person(site, "ed")
    monkeypatch.setattr(authorization._Permission, "holds_for", ask)
    monkeypatch.setattr(authorization._Permission, "_ask", ask)
    answers = [ed.get("/"), ed.get("/campaigns/1")]
    assert [each.status_code for each in answers] == [429] * 2
    assert "Too many pages are being made" in answers[0].text
