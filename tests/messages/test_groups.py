from __future__ import annotations

from airflow_provider_sms.messages.groups import group_key


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
