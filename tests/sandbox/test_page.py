from __future__ import annotations

import re

NUMBER = "27821234567"


def page_of(client):
    return client.call("GET", "/", base="", headers={})


def test_the_page_shows_what_arrived_newest_first(client):
    """Time, number, text, parts, cost and event id of each message, the newest on top."""
    client.bulk((NUMBER, "First"))
    event_id = client.bulk(("447700900123", "Second")).json()["EventId"]
    answer = page_of(client)
    rows = re.findall("<tr><td>.*</tr>", answer.text)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert [re.search('dir="auto">([^<]*)', row)[1] for row in rows] == ["Second", "First"]
    cells = [re.sub("^[^>]*>", "", cell) for cell in rows[0].removesuffix("</tr>").split("<td")[1:]]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", cells[0])
    assert ["447700900123", "Second", "1", "2.4", str(event_id)] == cells[1:]
    assert "2 messages arrived; balance 996.6" in answer.text


def test_texts_cannot_become_markup(client):
    """A text with HTML in it is shown as text."""
    client.bulk((NUMBER, "<script>alert('x')</script> & \"more\""))
    page = page_of(client).text
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;more&quot;" in page


def test_braces_in_a_text_are_just_braces(client):
    """A text that looks like a template field is shown as it is."""
    client.bulk((NUMBER, "Hi {rows} {0}"))
    assert "Hi {rows} {0}" in page_of(client).text


def test_the_page_needs_no_other_address(client):
    """The page names no address outside itself and forbids the browser to load any."""
    answer = page_of(client)
    assert not re.search(r"https?:|//|src=|href=|@import|url\(", answer.text)
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_follows_the_colours_of_the_reader(client):
    """Light or dark, as the reader's system prefers."""
    assert "prefers-color-scheme: dark" in page_of(client).text


def test_a_long_list_is_cut(client):
    """Of more than 500 messages the newest 500 are shown, and all are counted."""
    for request in range(6):
        client.bulk(*((NUMBER, f"text {request}-{index}") for index in range(100)))
    page = page_of(client).text
    assert page.count("<tr><td>") == 500
    assert "600 messages arrived, the newest 500 below" in page
    assert "text 5-99<" in page
    assert "text 0-99<" not in page


def test_a_post_paid_account_is_called_so(start):
    """A post-paid account shows no balance."""
    assert "0 messages arrived; post-paid." in page_of(start(post_paid=True)).text
