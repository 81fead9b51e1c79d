from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sms.exceptions import SourceError
from airflow_provider_sms.recipients.csv import QuotedText

QUOTED = st.text(st.sampled_from('ab,"\n')).map(lambda text: '"' + text.replace('"', '""') + '"')
FIELDS = st.one_of(st.text(st.sampled_from("ab")), QUOTED)


def passed(text, size=100, delimiter=","):
    """Give all that is passed on when it is read in steps."""
    quoted = QuotedText(io.BytesIO(text.encode()), delimiter, "a.csv")
    whole = b"".join(iter(lambda: quoted.read(size), b"")).decode()
    if quoted.failure is not None:
        raise quoted.failure
    return whole


@given(rows=st.lists(st.lists(FIELDS, min_size=1, max_size=4)), size=st.integers(5, 30))
def test_text_as_it_should_be(rows, size):
    """Text whose quotes are in place is passed on as it is, whatever the steps in which it is read."""
    text = "".join(",".join(row) + "\n" for row in rows)
    assert text == passed(text, size)


@given(text=st.text(st.sampled_from('a,"\n'), max_size=30), size=st.integers(5, 30))
def test_what_is_passed_is_read_in_one_way(text, size):
    """What is passed on reads the same for a strict parser; what a strict parser refuses is not passed on."""
    try:
        found = passed(text, size)
    except SourceError:
        return
    rows = list(csv.reader(io.StringIO(found, newline=""), strict=True))
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    assert list(csv.reader(io.StringIO(written.getvalue(), newline=""))) == rows
    assert found.count('"') % 2 == 0


@pytest.mark.parametrize("size", [5, 6, 7, 8, 100])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,x"y\n', 2),
        ('a,b\n1,"x"y\n', 2),
        ('a,b\n1, "x"\n', 2),
        ('a,b\n"1\n2",x"\n', 3),
        ('a,b\n1,"x\n3,4\n5,"z"\n', 4),
        ('a,b\n1,""x"\n', 2),
    ],
)
def test_quotes_out_of_place(text, line, size):
    """A quote within a value is refused with its line: it may be one of a pair whose other is lost."""
    with pytest.raises(SourceError, match=f"a.csv: line {line}: a quote stands within a value"):
        passed(text, size)


@pytest.mark.parametrize("size", [5, 6, 7, 100])
@pytest.mark.parametrize(("text", "line"), [('a,b\n1,"x\n3,4\n', 2), ('a\n"', 2), ('a\n\n"x""', 3), ('"', 1)])
def test_quotes_never_closed(text, line, size):
    """A quote that is never closed is refused with its line, rather than making one value of the rest."""
    with pytest.raises(SourceError, match=f"a.csv: line {line}: a quote is opened and never closed"):
        passed(text, size)


def test_tabs():
    """The delimiter is what a quote may stand beside."""
    assert passed('a\t"b"\tc\n', delimiter="\t") == 'a\t"b"\tc\n'
    with pytest.raises(SourceError, match="within a value"):
        passed('a,"b",c\n', delimiter="\t")


def test_the_last_line():
    """The last line is ended where the file does not, and nothing makes a line of nothing."""
    assert passed("a,b") == "a,b\n"
    assert passed('a,"b"') == 'a,"b"\n'
    assert passed("a\r") == "a\r"
    assert passed("") == ""


@given(text=st.text(st.sampled_from('a,"\n')), size=st.integers(5, 40))
def test_no_more_than_was_asked_for(text, size):
    """No step gives more bytes than asked for: the reader has no room for more."""
    quoted = QuotedText(io.BytesIO(text.encode()), ",", "a.csv")
    while step := quoted.read(size):
        assert len(step) <= size


def test_nothing_is_raised_where_arrow_reads():
    """What is wrong is kept and ends the text: raised in the thread that reads ahead, it could hang the process."""
    quoted = QuotedText(io.BytesIO(b'a,b\n"x"y,1\n2,3\n'), ",", "a.csv")
    assert quoted.read(100) == b""
    assert isinstance(quoted.failure, SourceError)
    assert quoted.read(100) == b""


@given(size=st.integers(3, 12), before=st.integers(0, 12))
def test_no_step_ends_within_a_line_end(size, before):
    """Arrow takes a line break at the beginning of a step for a line of its own, also within quotes."""
    text = 'a\n"' + "x" * before + '\r\ny"\n'
    quoted = QuotedText(io.BytesIO(text.encode()), ",", "a.csv")
    steps = list(iter(lambda: quoted.read(size), b""))
    assert b"".join(steps).decode() == text
    assert not any(step.endswith(b"\r") for step in steps)
