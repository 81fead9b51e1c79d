from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_provider_sms.execution.markdown import REPLACEMENT, block, cell, code

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ACTIVE = "`|\\![](){}<>*_~#&;:/@.+-=^\"' \t\n\r\u2028\u2029\u0085\u202e\u2066\x00\x1b"
TEXTS = st.text(st.one_of(st.sampled_from(ACTIVE), st.characters(exclude_categories=("Cs",))), max_size=40)
HOSTILE = [
    "![x](http://evil.example/x.png)",
    "[Sign in again](http://evil.example/)",
    "http://evil.example/ www.evil.example a@evil.example",
    "<img src=http://evil.example/x.png><a href=http://evil.example/>Sign in</a>",
    "`` ` ``` ![x](y) `",
    "a | b \\| c \\\\| d ||",
    "\\",
    "one\n\n# two\r\n| three |\u2028![x](y)",
    "\u202egnirps\u2066",
]


def shown(token):
    """Return what is left to see of a token: nothing but code and the texts around it."""
    assert {each.type for each in token.children} <= {"code_inline", "text"}
    return [each.content for each in token.children if each.type == "code_inline"]


def plain(text):
    """Return a text as a person sees it on one line."""
    return "".join(each if each.isprintable() else REPLACEMENT for each in " ".join(text.split()))


@given(TEXTS)
@example("")
def test_any_text_is_one_code_span(text):
    """A name is seen as it is, whatever it holds, and what stands around it keeps its meaning."""
    opening, inline, closing = PARSER.parse(f"Campaign {code(text)}: 1 message")
    assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
    assert shown(inline) == ([plain(text)] if text.split() else [])
    assert inline.children[0].content == "Campaign " if text.split() else "Campaign : 1 message"


@given(TEXTS, TEXTS)
def test_any_text_stays_in_its_cell(first, second):
    """A row keeps its cells; a backslash before a bar is set apart from it, and nothing else is changed."""
    lines = ["| a | b | c |", "|---|---|---|", f"| {cell(first)} | {cell(second)} | end |", "", "after"]
    tokens = PARSER.parse("\n".join(lines))
    row = [each for each in tokens if each.type == "inline"][3:]
    assert [each.content for each in row[2:]] == ["end", "after"]
    for text, token in zip((first, second), row, strict=False):
        assert shown(token) == ([plain(text).replace("\\|", "\\ |")] if text.split() else [])


@given(TEXTS)
def test_any_text_stays_in_its_block(text):
    """A message is one block of code, and what follows it is no part of it."""
    tokens = PARSER.parse("\n".join(["before", "", *block(text), "", "after"]))
    assert {each.type for each in tokens} <= {"paragraph_open", "inline", "paragraph_close", "code_block"}
    assert [each.content for each in tokens if each.type == "inline"] == ["before", "after"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_backslash_that_counts_stands_before_a_bar_or_a_fence(text):
    """Airflow's parser lets a backslash escape a backslash in a table, which this test's parser does not."""
    bars = [at for at, each in enumerate(cell(text)) if each == "|"]
    assert [cell(text)[at - 2 : at].count("\\") for at in bars] == [1] * len(bars)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_is_left_in_a_block(text):
    """A message is shown in the direction in which it is written; only its tabs and its joined characters stay."""
    assert all(each.isprintable() for line in block(text) for each in line)
    assert block("a\u202eb\x1b[2J\x00\tc") == ["    a\ufffdb\ufffd[2J\ufffd\tc"]
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert block(family) == [f"    {family}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_character_without_a_shape_is_left(text):
    """Line ends, controls and overrides of the direction of writing are neither in a name nor in a reason."""
    assert all(each.isprintable() for each in code(text) + cell(text))
