"""A request that the sandbox does not serve, with the answer that says why."""

from __future__ import annotations

from typing import Any

REQUIRED = "RequiredParameter.Missing"
TYPE = "InvalidParameter.Type"
FORMAT = "InvalidParameter.Format"


class RefusalError(Exception):
    """The request is refused, and nothing of it is accepted.

    :param status: HTTP status of the answer.
    :param errors: pairs of error code and message, at least one; no number, text or token in them.
    """

    def __init__(self, status: int, *errors: tuple[str, str]) -> None:
        super().__init__(f"{status}: {errors[0][0]}")
        self.status = status
        self.errors = errors

    def body(self) -> dict[str, Any]:
        """Give the error body of the service."""
        return {
            "statusCode": self.status,
            "errors": [{"errorCode": code, "errorMessage": message} for code, message in self.errors],
        }


def bad_request(code: str, message: str) -> RefusalError:
    """Give a refusal with status 400 and one error.

    :param code: the service's error code.
    :param message: what is wrong, naming the field.
    """
    return RefusalError(400, (code, message))
