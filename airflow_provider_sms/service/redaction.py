"""Redaction of the service's responses: what of a response the ledger keeps and XComs show.

A response repeats the text of one person's message, and names the numbers that it found fault with. Anyone who may read
XComs can read it, and the ledger keeps it as long as the campaign. So both leave these out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sms.masking import STARS, mask_numbers_in
from airflow_provider_sms.service.echoes import blanker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sms.service.responses import ErrorReport

_DEEPEST = 20
"""Levels of a fault that are read: a deeper value becomes stars, since recursion must not cost the record of a send."""


def storable(text: str) -> str:
    """Return a text of the service in a form that every database takes: half an emoji and NUL become question marks."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def shown(name: str) -> str:
    """Return a name that the service chose as summaries and logs show it."""
    return mask_numbers_in(storable(name))[:30]


def reported(report: ErrorReport) -> dict[str, int]:
    """Return an error report as counts only, since its faults hold numbers; further names are the service's words."""
    counts = {
        "NoNetwork": report.no_network,
        "Duplicates": report.duplicates,
        "OptedOuts": report.opted_outs,
        "Faults": len(report.faults),
    }
    for name, count in report.other.items():
        counts[shown(name)] = counts.get(shown(name), 0) + count
    return counts


def redacted_response(response: Mapping[str, Any], texts: Iterable[str] = ()) -> dict[str, Any]:
    """Return a response without its ``Sample``, with the numbers in its ``Faults`` and ``errors`` masked.

    All other fields are the same values in the same order. Keys match in any case, even within ``sendResponse``. A
    response that is redacted already stays as it is.

    :param response: the JSON as received, or as the ledger keeps it.
    :param texts: the texts that were posted. Sizable pieces of them are blanked where numbers are masked.
    """
    blank = blanker(texts)

    def clean(text: str) -> str:
        return mask_numbers_in(blank(text))

    def without_people(fields: Mapping[str, Any]) -> dict[str, Any]:
        return _without_people(fields, clean)

    return _with_field("sendresponse", without_people, without_people(response))


def _without_people(fields: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    def cleaned(value: Any) -> Any:
        return _cleaned(value, clean)

    kept = {key: value for key, value in fields.items() if key.lower() != "sample"}
    kept = {key: cleaned(value) if key.lower() == "errors" else value for key, value in kept.items()}
    return _with_field("errorreport", lambda report: _with_field("faults", cleaned, report), kept)


def _with_field(name: str, change: Callable[[Any], Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with one field changed, where the field has its type: a list of faults, otherwise an object.

    :param name: of the field, in lower case.
    """
    kind = list if name == "faults" else dict

    def is_it(key: str, value: Any) -> bool:
        return key.lower() == name and isinstance(value, kind)

    return {key: change(value) if is_it(key, value) else value for key, value in fields.items()}


def _cleaned(value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
    """Return a value of a fault or error, whose shape is not specified, with each of its texts and numbers cleaned."""
    if depth > _DEEPEST:
        return STARS
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item, clean, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item, clean, depth + 1) for key, item in value.items()}
    if isinstance(value, (int, float)):
        text = str(value)
        return value if mask_numbers_in(text) == text else mask_numbers_in(text)
    return value
