from __future__ import annotations

import ast
import io
import re
import runpy
import tokenize
from operator import attrgetter
from textwrap import dedent

import pytest
from support.pages import PAGES, ROOT, Block, blocks

BLOCKS = [block for page in PAGES for block in blocks(page)]
OF_EXAMPLES = [block for block in BLOCKS if block.example]
assert OF_EXAMPLES
DAGS = [block for block in BLOCKS if block.is_dag]
WHERE = attrgetter("where")


def _said(code):
    """What code says, however it is laid out: its syntax tree and its comments."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return ast.dump(ast.parse(code)), [token.string for token in tokens if token.type == tokenize.COMMENT]


@pytest.mark.parametrize("block", OF_EXAMPLES, ids=WHERE)
def test_a_part_of_an_example_stands_on_its_page_as_it_is(block: Block):
    """Code under a comment that names an example's part is that part."""
    file, mark = block.example
    (part,) = re.findall(
        rf"# \[START {mark}\]\n(.*?)^ *# \[END {mark}\]$", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL
    )
    assert _said(dedent(part)) == _said(block.code)


@pytest.mark.parametrize("block", DAGS, ids=WHERE)
def test_a_dag_of_a_page_is_one(block: Block, airflow_home, tmp_path):
    """Every DAG that stands in the documentation loads: its imports exist, and its operators know their arguments."""
    path = tmp_path / "dag.py"
    path.write_text(block.code)
    runpy.run_path(str(path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_is_closed_and_read(page):
    """A block that these tests pass over would be tested by nobody."""
    fences = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
    with_braces = re.findall(r"^```\{", page.read_text(), re.MULTILINE)
    assert len(fences) == 2 * (len(blocks(page)) + len(with_braces))
