from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_provider_sms.execution.planning import block

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


@given(TEXTS)
def test_any_text_stays_in_its_block(text):
    """A message is one block of code, and what follows it is no part of it."""
    tokens = PARSER.parse("\n".join(["before", "", *block(text), "", "after"]))
    assert {each.type for each in tokens} <= {"paragraph_open", "inline", "paragraph_close", "code_block"}
    assert [each.content for each in tokens if each.type == "inline"] == ["before", "after"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_is_left_in_a_block(text):
    """A message is shown in the direction in which it is written; only its tabs and its joined characters stay."""
    assert all(each.isprintable() for line in block(text) for each in line)
    assert block("a\u202eb\x1b[2J\x00\tc") == ["    a\ufffdb\ufffd[2J\ufffd\tc"]
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert block(family) == [f"    {family}"]
