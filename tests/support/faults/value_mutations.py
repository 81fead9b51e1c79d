"""Defects of what a value is: a text or a key that depends on other rows, on a type or on a format."""

from __future__ import annotations

from support.faults.mutation import KEYS, Mutation

TEXTS = "tests/messages/test_texts.py"

VALUE_MUTATIONS = (
    Mutation(
        "a second number in a cell is glued to the first",
        "recipients/numbers.py",
        "    if _holds_several(groups, digits, within, best):\n",
        "    if False:\n",
        ("tests/recipients/test_numbers.py",),
        first="test_a_cell_holds_one_number",
    ),
    Mutation(
        "a number of any length is posted",
        "recipients/numbers.py",
        "kind != PhoneNumberType.UNKNOWN or len(national) == usual",
        "True",
        ("tests/recipients/test_numbers.py",),
        first="test_what_is_no_number_is_refused",
    ),
    Mutation(
        "a former spelling suppresses nobody",
        "planning/suppression.py",
        " | are_in(self.former, _endings(numbers))",
        "",
        ("tests/planning/test_suppression.py",),
        first="test_a_former_spelling_suppresses_the_line",
    ),
    Mutation(
        "a code with leading zeros is a number",
        "recipients/values.py",
        'rf"-?(?:0|[1-9][0-9]*)',
        'rf"-?(?:[0-9]+)',
        (KEYS,),
    ),
    Mutation(
        "accents stay decomposed",
        "recipients/values.py",
        'unicodedata.normalize("NFC", text)',
        'unicodedata.normalize("NFD", text)',
        (TEXTS,),
    ),
)
