from __future__ import annotations

import re

from support.command_reference import GUIDE, PAGE, commands, page


def test_the_reference_is_what_the_definitions_say():
    """``make commands`` writes the page; nobody else does."""
    assert page() == PAGE.read_text()


def test_every_command_has_a_help_text_and_so_has_each_argument():
    """A sentence that begins with a capital letter and has no full stop, as argparse prints them."""
    texts = [
        text for _, command in commands() for text in (command.help, *(arg.kwargs["help"] for arg in command.args))
    ]
    starts = [text for text in texts if not re.match(r"[A-Z]|accepted: |- reads", text) or text.endswith(".")]
    assert starts == []


def test_every_command_on_the_pages_exists():
    """What the guide calls is in the definitions."""
    known = {words for words, _ in commands()}
    called = set(re.findall(r"^\$? ?(airflow-sms (?:ledger )?[a-z]+)", GUIDE.read_text(), re.MULTILINE))
    assert (called - known, called == set()) == (set(), False)
