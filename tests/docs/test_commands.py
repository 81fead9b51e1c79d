from __future__ import annotations

import re

from support.pages import ROOT

from airflow_provider_sms.cli.definitions import get_cli_commands

GUIDE = (ROOT / "docs" / "ledger-command.md").read_text()


def commands():
    (group,) = get_cli_commands()
    return group.subcommands


def test_every_command_is_explained_under_its_own_name():
    """The guide has a heading for each, and for nothing else."""
    named = re.findall(r"^## (.+)$", GUIDE, re.MULTILINE)
    assert sorted(command.name for command in commands()) == sorted(re.split(" and |\n", "\n".join(named)))


def test_every_command_has_a_help_text_and_so_has_each_argument():
    """A sentence that begins with a capital letter and has no full stop, as argparse prints them."""
    texts = [text for command in commands() for text in (command.help, *(arg.kwargs["help"] for arg in command.args))]
    starts = [text for text in texts if not re.match(r"[A-Z]|accepted: |- reads", text) or text.endswith(".")]
    assert starts == []


def test_every_command_on_the_pages_exists():
    """What the guide calls is in the definitions."""
    known = {f"airflow-sms {command.name}" for command in commands()}
    called = set(re.findall(r"^\$? ?(airflow-sms (?:ledger )?[a-z]+)", GUIDE, re.MULTILINE))
    assert (called - known, called == set()) == (set(), False)
