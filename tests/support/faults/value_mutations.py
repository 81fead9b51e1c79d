"""Defects of what a value is: a text or a key that depends on other rows, on a type or on a format."""

from __future__ import annotations

from support.faults.mutation import KEYS, Mutation

ONE_TEXT = "tests/messages/test_one_text.py"
ANY_FORM = "tests/recipients/test_any_form.py"
TEXTS = "tests/messages/test_texts.py"
TEMPLATE = "tests/messages/test_template.py"
GROUP_NAMES = "tests/messages/test_group_names.py"
VALUES = "tests/faults/test_values.py"

VALUE_MUTATIONS = (
    Mutation(
        "a number beside a word reads as its type writes it",
        "recipients/values.py",
        "        return write(value)\n    raise TypeError",
        "        return str(value)\n    raise TypeError",
        (ONE_TEXT, VALUES),
    ),
    Mutation(
        "Arrow decides what values of several kinds are",
        "recipients/memory.py",
        "    elif len(kinds) <= 1 or kinds == {int, Decimal}:\n",
        "    else:\n",
        (ONE_TEXT, ANY_FORM, VALUES),
    ),
    Mutation(
        "times of several zones take the first one's",
        "recipients/memory.py",
        "_converted(moments) if len(zones) <= 1 else None",
        "_converted(moments)",
        (ONE_TEXT,),
    ),
    Mutation(
        "decimals need no format",
        "messages/template.py",
        "                _check_no_decimals(column, field)\n",
        "                pass\n",
        (ONE_TEXT, VALUES),
    ),
    Mutation(
        "the scale of decimals in memory says how they read",
        "messages/template.py",
        "    if not stored and not holds_decimals(column):\n",
        "    if not stored:\n",
        (ONE_TEXT, VALUES),
    ),
    Mutation(
        "a whole decimal reads as its column stores it",
        "messages/number_formats.py",
        "as_stored and (spec or kind.scale == 0)",
        "as_stored",
        ("tests/messages/test_number_formats.py",),
    ),
    Mutation(
        "a short float reads as what it is in 64 bits",
        "recipients/columns.py",
        "column.cast(pa.string()).cast(pa.float64())",
        "column.cast(pa.float64())",
        (ONE_TEXT, KEYS),
    ),
    Mutation(
        "a number that a short float has lost is texted",
        "recipients/columns.py",
        'pc.if_else(lost, constant(float("inf")), ',
        "pc.if_else(lost, column.cast(pa.float64()), ",
        (ONE_TEXT,),
    ),
    Mutation(
        "a number in memory that a short float has lost is texted",
        "recipients/memory.py",
        ' if abs(value) < LOST_FROM[bits] else float("inf")',
        "",
        (ONE_TEXT,),
    ),
    Mutation(
        "decimals of one file become floats for another",
        "recipients/files.py",
        "                if _would_change(known.type, field.type):\n",
        "                if known.type == object:\n",
        (ONE_TEXT,),
    ),
    Mutation(
        "a float with lost digits is written",
        "messages/template.py",
        "        return column if pc.all(kept).as_py() else",
        "        return column if True else",
        (TEMPLATE, ONE_TEXT, ANY_FORM),
    ),
    Mutation(
        "floats round otherwise than decimals",
        "recipients/values.py",
        ' and digits[digits.index(".") + 1 + precision :] != "5"',
        "",
        (TEMPLATE, ANY_FORM),
    ),
    Mutation(
        "midnight reads otherwise than its date",
        "recipients/values.py",
        "return str(value.date()) if value.tzinfo is None and value.time() == dt.time() else str(value)",
        "return str(value)",
        (TEMPLATE, ONE_TEXT),
    ),
    Mutation(
        "a number that is text is another key",
        "recipients/values.py",
        "    if _KEY_NUMBER.fullmatch(text):\n",
        "    if not text:\n",
        (KEYS, ONE_TEXT),
    ),
    Mutation(
        "a code with leading zeros is a number",
        "recipients/values.py",
        'rf"-?(?:0|[1-9][0-9]*)',
        'rf"-?(?:[0-9]+)',
        (KEYS,),
    ),
    Mutation(
        "an id such as 1e5 is a number",
        "recipients/values.py",
        '_EXPONENT = r"(?:[eE][-+]',
        '_EXPONENT = r"(?:[eE][-+]?',
        (KEYS,),
    ),
    Mutation(
        "a time that is text is another key",
        "recipients/values.py",
        "    if found is None or moment is None:\n        return text\n",
        "    return text\n",
        (KEYS,),
    ),
    Mutation(
        "words for a missing value are texted",
        "messages/texts.py",
        "            nothing = pc.or_(nothing, missing_words(column))\n",
        "            pass\n",
        (TEXTS, VALUES),
    ),
    Mutation(
        "nobody may be called Nan",
        "messages/plain_text.py",
        'MISSING_WORDS = ("nan", ',
        'MISSING_WORDS = ("nan", "Nan", ',
        (TEXTS,),
    ),
    Mutation(
        "an empty text of a Parquet file is written",
        "messages/texts.py",
        "    nothing = mask(lengths == 0)\n",
        "    nothing = mask(lengths < 0)\n",
        (TEXTS, ANY_FORM),
    ),
    Mutation(
        "an empty text is a key of its own",
        "messages/prepare.py",
        "without_missing(tidy(column)) if is_text(column.type) else column",
        "column",
        (TEXTS, ANY_FORM, VALUES),
    ),
    Mutation(
        "accents stay decomposed",
        "messages/texts.py",
        'unicodedata.normalize("NFC", text) for',
        'unicodedata.normalize("NFD", text) for',
        (TEXTS, VALUES),
    ),
    Mutation(
        "no-break spaces stay",
        "messages/texts.py",
        'pc.replace_substring_regex(column, _ANY_NO_BREAK_SPACE, " ")',
        "column",
        (TEXTS, VALUES),
    ),
    Mutation(
        "padding stays",
        "messages/texts.py",
        "return pc.utf8_trim(column, characters=BLANKS) if",
        "return column if",
        (TEXTS, VALUES),
    ),
    Mutation(
        "blanks around the name of a group are taken",
        "messages/group_names.py",
        "        if spelt != spelt.strip():\n",
        "        if not spelt:\n",
        (GROUP_NAMES,),
    ),
    Mutation(
        "one group may be named in two ways",
        "messages/group_names.py",
        "        if other != spelt:\n",
        "        if not other:\n",
        (GROUP_NAMES,),
    ),
    Mutation(
        "an accent in a group's name makes another key",
        "messages/keys.py",
        "{plain_text(name) for name in groups}",
        "set(groups)",
        (KEYS,),
    ),
    Mutation(
        "groups are texted what was rendered from nothing",
        "operators/group.py",
        "    if message in MISSING_WORDS:\n",
        "    if not message:\n",
        ("tests/operators/test_group.py",),
        first="test_wrong_arguments_are_refused",
    ),
    Mutation(
        "a text to groups that looks the same is another",
        "operators/group.py",
        "    message = tidy_text(task.message)\n",
        "    message = task.message\n",
        ("tests/operators/test_group.py",),
        first="test_a_campaign_texts_a_group_once",
    ),
)
