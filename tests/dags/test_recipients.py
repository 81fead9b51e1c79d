from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[2] / "dags" / "data"


@pytest.fixture(scope="module")
def generator():
    return SimpleNamespace(**runpy.run_path(str(DATA / "make_recipients.py")))


def test_the_file_holds_what_the_program_makes(generator):
    """The table beside the program is the one that it makes: nobody has to trust a binary file."""
    table = pq.read_table(DATA / "recipients.parquet")
    assert table.schema == generator.SCHEMA
    assert generator.make_rows() == table.to_pylist()


def test_every_other_row_can_be_texted_and_is_another_person_or_a_repeat(generator):
    """The table's own account of itself: people, repeats, and rows that nobody can text."""
    from support.composed import composed

    from airflow_provider_sms.messages.compose import Composer

    composer = Composer(message="Hi {first_name}", content_column=None, default_region="ZA")
    (batch,) = pq.read_table(generator.PATH).combine_chunks().to_batches()
    prepared = composed(composer, batch)
    assert len(generator.UNUSABLE) + generator.NAMELESS == len(prepared.rejected)
    assert len(prepared.rows) == generator.PEOPLE + generator.REPEATS
    assert generator.PEOPLE == len(set(prepared.keys)) == len(set(prepared.destinations))
