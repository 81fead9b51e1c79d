"""Regions: the countries whose national numbers can be completed, known without ``phonenumbers``, which loads slowly.

A DAG file is loaded every few seconds, and a country that does not exist is refused as early as that.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_sms.exceptions import InputError
from airflow_provider_sms.masking import mask_numbers_in

REGIONS = frozenset(
    (  # noqa: SIM905 - a list of them would be 245 lines
        "AC AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ "
        "CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM "
        "FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE "
        "JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN "
        "MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PR PS PT "
        "PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TA TC TD TG TH TJ TK "
        "TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW"
    ).split()
)
"""Codes of ISO 3166 alpha-2, as ``phonenumbers`` supports them, with its own for Ascension, Kosovo and Tristan."""


def read_region(written: Any) -> str:
    """Return the code of a region in capitals.

    :param written: ISO 3166 alpha-2 code, such as ``ZA`` or ``za``; blanks around it do not count.
    :raises InputError: there is no such region.
    """
    region = written.strip().upper() if isinstance(written, str) else ""
    if region not in REGIONS:
        given = mask_numbers_in(repr(written))
        meant = "; did you mean 'GB'?" if region == "UK" else ""
        raise InputError(f"default_region must be a country as in ISO 3166 alpha-2, such as 'ZA', not {given}{meant}")
    return region
