"""The reference of the commands, made of their definitions: ``python -m support.command_reference`` writes the page."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_sms.cli.definitions import get_cli_commands
from airflow_provider_sms.cli.main import PROGRAM

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "commands.md"
GUIDE = DOCS / "ledger-command.md"
HEAD = f"""# Command reference

<!-- `make commands` writes this page, from the definitions of the commands. A test compares them. -->

Every command of `{PROGRAM}` and its arguments. [Ledger commands](ledger-command.md) explains them, with
examples. `{PROGRAM} COMMAND --help` prints the same.
"""


def commands():
    """Return every command with the words that call it, in the order of the help."""
    (top,) = get_cli_commands()

    return [(f"{PROGRAM} {command.name}", command) for command in top.subcommands]


def page():
    """Return the page."""
    found = commands()
    rows = "\n".join(f"| [`{words}`](#{_anchor(words)}) | {command.help} |" for words, command in found)
    return "\n".join([HEAD, f"| Command | |\n|---|---|\n{rows}\n", *(_section(*each) for each in found)])


def _section(words, command):
    rows = "\n".join(f"| `{_written(arg)}` | {_told(arg)} |" for arg in command.args)
    usage = " ".join([words, *(_in_usage(arg) for arg in sorted(command.args, key=_is_optional))])
    return f"""## {words}

{command.help}. [More]({_guide(command.name)})

```text
{usage}
```

| Argument | |
|---|---|
{rows}
"""


def _guide(name):
    """Return where a command is explained: under the heading that has its name."""
    for heading in re.findall(r"^## (.+)$", GUIDE.read_text(), re.MULTILINE):
        if name in heading.split():
            return f"{GUIDE.name}#{_anchor(heading)}"
    raise LookupError(f"No page explains {name}")


def _anchor(heading):
    return heading.lower().replace(" ", "-")


def _is_positional(arg):
    return not arg.flags[0].startswith("-")


def _is_optional(arg):
    """Return whether an argument may be left out."""
    return arg.kwargs.get("nargs") == "*" if _is_positional(arg) else not arg.kwargs.get("required")


def _value(arg):
    """Return what stands for the value of an argument; empty for a switch."""
    given = arg.kwargs
    if given.get("action") == "store_true":
        return ""
    choices = given.get("choices")
    value = "{" + ",".join(choices) + "}" if choices else given.get("metavar", arg.flags[0].upper())
    return {"+": f"{value} [{value} ...]", "*": f"[{value} ...]"}.get(given.get("nargs"), value)


def _written(arg):
    value = _value(arg)
    return value if _is_positional(arg) else ", ".join(arg.flags) + (f" {value}" if value else "")


def _in_usage(arg):
    value = _value(arg)
    if _is_positional(arg):
        return value
    words = arg.flags[-1] + (f" {value}" if value else "")
    return f"[{words}]" if _is_optional(arg) else words


def _told(arg):
    required = not _is_positional(arg) and arg.kwargs.get("required")
    return f"{'**Required.** ' if required else ''}{arg.kwargs['help']}".replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
