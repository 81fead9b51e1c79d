from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from airflow_provider_sms.execution.bulk import _in_markdown

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ACTIVE = "`|\\![](){}<>*_~#&;:/@.+-=^\"' \t\n\r\u2028\u2029\u0085\u202e\u2066\x00\x1b"
TEXTS = st.text(st.one_of(st.sampled_from(ACTIVE), st.characters(exclude_categories=("Cs",))), max_size=40)


def shown(text):
    """Return a plan for a person, whose message has this template."""
    return _in_markdown(SimpleNamespace(table=lambda: "the plan"), SimpleNamespace(message=text or "-"))


@given(TEXTS)
def test_any_text_stays_in_its_block(text):
    """A plan is one block of code, whatever its message holds: no image is fetched, and nothing becomes a link."""
    tokens = PARSER.parse(f"{shown(text)}\n\nafter")
    assert [each.type for each in tokens] == ["code_block", "paragraph_open", "inline", "paragraph_close"]
    assert [each.content for each in tokens if each.type == "inline"] == ["after"]
