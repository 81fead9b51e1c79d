from __future__ import annotations

import pytest

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.messages.arguments import read_groups


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ("staff", ["staff"]),  # not letter by letter
        (["Staff", "Customers A"], ["Staff", "Customers A"]),
        (("staff", "all", "staff"), ["staff", "all"]),
        (["Jos\u00e9", "Jose\u0301"], ["Jos\u00e9"]),
        *((name, [name]) for name in ("[VIP]", "(staff)", "[VIP] 'gold'", '"Acacia" (shop)', "[1]")),
    ],
)
def test_clear_names_are_taken(names, taken):
    """As they are written, and each once, also with brackets."""
    assert read_groups(names) == taken


BLANKS = r"groups: there are blanks around the name .*; write 'staff'"
CAPITALS = "groups: .* differ in capitals alone. If they are one group"
LISTS = ["['staff', 'ops']", '["staff"]', "('staff',)", "{'staff'}", "[]", "()", " ['staff', 'ops'] "]
NO_BREAK = "27\u00a082\u00a0000\u00a00001"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        *((["customers", name], BLANKS) for name in (" staff", "staff ", "staff\n", "\tstaff", "\u00a0staff")),
        # Two spellings in one list could be one group, whose people would be texted twice.
        (["Staff", "staff"], CAPITALS),
        (["a", "STAFF", "b", "Staff"], CAPITALS),
        (["JOS\u00c9", "Jose\u0301"], CAPITALS),
        # A number in place of a name is masked, whatever stands between its digits.
        (["27820000001 "], "blanks around the name '2782"),
        (["a27820000001", "A27820000001"], CAPITALS),
        ([f"\u00a0{NO_BREAK}"], "blanks around"),
        (["a27\x1f82\x1f000\x1f0001", "A27\x1f82\x1f000\x1f0001"], CAPITALS),
        # A template writes a list as text, which would be posted as the name of one group.
        *((name, "^groups: a list was rendered .*render_template_as_native_obj=True") for name in LISTS),
        (["customers", LISTS[0]], "^groups: a list was rendered .*render_template_as_native_obj=True"),
        *((names, r"groups: a name is '\w+': was there no value") for names in ("None", ["staff", "nan"], "null")),
        *((names, "at least one group's name") for names in ([], [""], [" "], ["a", None], "", " ", None, 5)),
    ],
)
def test_names_that_could_miss_their_group_are_refused(names, words):
    """The error says what is wrong with a name, and shows no number."""
    with pytest.raises(InputError, match=words) as caught:
        read_groups(names)
    assert "0001" not in str(caught.value)
