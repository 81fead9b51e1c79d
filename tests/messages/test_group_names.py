from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.group_names import read_groups


@pytest.mark.parametrize("name", [" staff", "staff ", "staff\n", "\tstaff", "\u00a0staff"])
def test_blanks_around_a_name_are_refused(name):
    """A name with blanks around it is refused, with the name to write."""
    with pytest.raises(InputError, match=r"blanks around the name .* write 'staff'"):
        read_groups(["customers", name])


@pytest.mark.parametrize("names", [["Staff", "staff"], ["a", "STAFF", "b", "Staff"], ["JOS\u00c9", "Jose\u0301"]])
def test_names_that_differ_in_capitals_are_refused(names):
    """Two spellings of a name in one list could be one group, whose people would be texted twice."""
    with pytest.raises(InputError, match="differ in capitals alone"):
        read_groups(names)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["staff"], ["staff"]),
        (["Staff", "Customers A"], ["Staff", "Customers A"]),
        (["staff", "all", "staff"], ["staff", "all"]),
        (["Jos\u00e9", "Jose\u0301"], ["Jos\u00e9"]),
    ],
)
def test_clear_names_are_taken(names, taken):
    """As they are written, and each once, from a list or another collection."""
    assert read_groups(names) == read_groups(tuple(names)) == taken


NO_BREAK = "27\u00a082\u00a0000\u00a00001"


@pytest.mark.parametrize(
    "names",
    [
        ["27820000001 "],
        ["a27820000001", "A27820000001"],
        [f"\u00a0{NO_BREAK}"],
        ["a27\x1f82\x1f000\x1f0001", "A27\x1f82\x1f000\x1f0001"],
    ],
)
def test_no_error_shows_a_number(names):
    """A number in place of a name is masked, whatever stands between its digits."""
    with pytest.raises(InputError, match="groups: ") as caught:
        read_groups(names)
    assert "0001" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["['staff', 'ops']", '["staff"]', "('staff',)", "{'staff'}", "[]", "()", " ['staff', 'ops'] "]
)
def test_the_text_of_a_list_is_no_name(name):
    """A template writes a list as text, which would be posted as the name of one group."""
    for names in (name, ["customers", name]):
        with pytest.raises(InputError, match=r"^groups: a list was rendered .*render_template_as_native_obj=True"):
            read_groups(names)


@pytest.mark.parametrize("name", ["[VIP]", "(staff)", "[VIP] 'gold'", '"Acacia" (shop)', "[1]"])
def test_a_name_may_have_brackets(name):
    """Only quotes within them are those of a list."""
    assert read_groups(name) == [name]


@pytest.mark.parametrize("names", ["None", ["staff", "nan"], "null"])
def test_a_word_for_no_value_is_no_name(names):
    """A template that found no value would text a group of that name, or nobody."""
    with pytest.raises(InputError, match=r"groups: a name is '\w+': was there no value to render it from"):
        read_groups(names)


def test_one_name_is_a_list_of_one():
    """It is not read letter by letter."""
    assert read_groups("staff") == ["staff"]


@pytest.mark.parametrize("names", [[], [""], [" "], ["a", None], "", " ", None, 5])
def test_names_are_needed(names):
    """Without a name there is no group."""
    with pytest.raises(InputError, match="at least one group's name"):
        read_groups(names)
