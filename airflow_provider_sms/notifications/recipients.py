"""Whom an alert goes to."""

from __future__ import annotations

from typing import Any


def recipients(to: Any, default_region: str | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Read the numbers of a few people.

    :param to: one number or several, also as text with commas between them.
    :param default_region: ISO 3166 alpha-2 of the country of those without country code; None: there are none.
    :returns: digits with country code, each once, in their order; and what cannot be read, as written, with the reason.
    :raises InputError: the region is unknown.
    """
    import pyarrow as pa

    from airflow_provider_sms.recipients.numbers.normalize import clean_destinations

    entries = to if isinstance(to, (list, tuple, set)) else [to]
    written = [number for entry in entries for part in str(entry).split(",") if (number := part.strip())]
    cleaned = clean_destinations(pa.array(written, pa.string()), default_region)
    refused = zip(written, cleaned.reasons.to_pylist(), strict=True)
    return (
        list(dict.fromkeys(cleaned.digits.drop_null().to_pylist())),
        [(number, reason) for number, reason in refused if reason],
    )
