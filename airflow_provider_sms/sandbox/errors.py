"""The error that refuses a request, with the response body that explains it.

A module of its own, however short, because every check of a request raises this error.
"""

from __future__ import annotations

from typing import Any

REQUIRED = "RequiredParameter.Missing"
TYPE = "InvalidParameter.Type"
FORMAT = "InvalidParameter.Format"


class RefusalError(Exception):
    """The request is refused, and none of its messages is accepted.

    :param status: HTTP status of the response.
    :param errors: pairs of error code and message, at least one, without numbers, texts or tokens.
    """

    def __init__(self, status: int, *errors: tuple[str, str]) -> None:
        super().__init__(f"{status}: {errors[0][0]}")
        self.status = status
        self.errors = errors

    def body(self) -> dict[str, Any]:
        """Return the service's error body."""
        return {
            "statusCode": self.status,
            "errors": [{"errorCode": code, "errorMessage": message} for code, message in self.errors],
        }


def bad_request(code: str, message: str) -> RefusalError:
    """Return a refusal with status 400 and one error.

    :param code: the service's error code.
    :param message: what is wrong, naming the field.
    """
    return RefusalError(400, (code, message))
