"""Regions: the countries whose national numbers can be completed. Apart from numbers, which need Arrow."""

from __future__ import annotations

from typing import Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.masking import mask_numbers_in


def read_region(written: Any) -> str:
    """Return the code of a region in capitals.

    :param written: ISO 3166 alpha-2 code, such as ``ZA`` or ``za``; blanks around it do not count.
    :raises InputError: there is no such region.
    """
    from phonenumbers import SUPPORTED_REGIONS  # a DAG file without a region need not load it

    region = written.strip().upper() if isinstance(written, str) else ""
    if region not in SUPPORTED_REGIONS:
        given = mask_numbers_in(repr(written))
        meant = "; did you mean 'GB'?" if region == "UK" else ""
        raise InputError(f"default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not {given}{meant}")
    return region
