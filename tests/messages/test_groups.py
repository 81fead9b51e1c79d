from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.groups import check_groups, group_key


def test_the_order_and_repeats_of_groups_do_not_matter():
    """The same text to the same groups is the same message."""
    assert group_key("Hi", ["a", "b"]) == group_key("Hi", ["b", "a", "b"])


def test_text_and_groups_cannot_run_together():
    """Another text, other groups, or a group whose name holds another's are other messages."""
    keys = {
        group_key("Hi", ["a"]),
        group_key("Ho", ["a"]),
        group_key("Hi", ["a", "b"]),
        group_key("Hi", ['a", "b']),
        group_key('a"], "Hi', []),
    }
    assert {len(key) for key in keys} == {16}
    assert len(keys) == 5


def test_keys_stay_what_they_are():
    """A change of the key texts every group again: it is frozen."""
    assert group_key("All hands", ["staff"]).hex() == "e69396224ee2d02079d88afbe166a730"


def test_an_accent_has_one_key_however_it_is_stored():
    """Composed or not, a name that looks the same is the same group."""
    assert group_key("Hi", ["Jos\u00e9"]) == group_key("Hi", ["Jose\u0301"])


@pytest.mark.parametrize("name", [" staff", "staff ", "staff\n", "\tstaff", "\u00a0staff"])
def test_blanks_around_a_name_are_refused(name):
    """A name with blanks around it is refused, with the name to write."""
    with pytest.raises(InputError, match=r"blanks around the name .* write 'staff'"):
        check_groups(["customers", name])


@pytest.mark.parametrize("names", [["Staff", "staff"], ["a", "STAFF", "b", "Staff"], ["JOS\u00c9", "Jose\u0301"]])
def test_names_that_differ_in_capitals_are_refused(names):
    """Two spellings of a name in one list could be one group, whose people would be texted twice."""
    with pytest.raises(InputError, match="differ in capitals alone"):
        check_groups(names)


@pytest.mark.parametrize(
    "names", [["staff"], ["staff", "staff"], ["Staff", "Customers A"], ["Jos\u00e9", "Jose\u0301"]]
)
def test_clear_names_are_taken(names):
    """Names that are clear, and repeats of one, are taken as they are."""
    check_groups(names)


@pytest.mark.parametrize("names", [[], [""], [" "], ["a", None]])
def test_names_are_needed(names):
    """Without a name there is no group."""
    with pytest.raises(InputError, match="at least one group's name"):
        check_groups(names)
