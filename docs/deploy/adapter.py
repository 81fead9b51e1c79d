"""An adapter between this package and a service that takes one message per call: see docs/service.md.

The service reads an API key from a header, uses text as ids, and states price, credit and parts. OTHER_SMS_URL is its
address. The connection's password is the API key, and chunk_size=1 gives each message its own outcome.
"""

from __future__ import annotations

import hashlib
import os
from typing import Annotated, Any

import requests
from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.responses import JSONResponse

OTHER = os.environ["OTHER_SMS_URL"]
TIMEOUT = (5, 20)  # seconds: less than the timeouts of the connection
NOT_TAKEN = (400, 401, 404, 422, 429)  # statuses that say, by the service's documentation, that nothing was taken
NO_CREDIT, TAKEN = 402, 201
app = FastAPI(openapi_url=None)


def _key(authorization: str) -> dict[str, str]:
    return {"X-Api-Key": authorization.removeprefix("Bearer ")}


def _refused(status: int, code: str, words: str) -> JSONResponse:
    return JSONResponse({"statusCode": status, "errors": [{"errorCode": code, "errorMessage": words}]}, status)


@app.post("/v1/bulkmessages", response_model=None)
def bulkmessages(
    body: Annotated[dict[str, Any], Body()], authorization: Annotated[str, Header()]
) -> dict[str, Any] | JSONResponse:
    """Pass one message on, once. An exception becomes a 500, unknown: the service may have taken the message."""
    if len(body["Messages"]) != 1:
        return _refused(400, "InvalidParameter.Format", "one message in a request: set chunk_size=1")
    (message,) = body["Messages"]
    answer = requests.post(
        f"{OTHER}/sms",
        json={"to": f"+{message['Destination']}", "text": message["Content"]},
        headers=_key(authorization),
        timeout=TIMEOUT,
        allow_redirects=False,
    )
    if answer.status_code == NO_CREDIT:
        return _refused(403, "InsufficientCredits", "the account has no credit")
    if answer.status_code in NOT_TAKEN:
        return _refused(answer.status_code, "Refused", "the service did not take the message")
    if answer.status_code != TAKEN:
        raise HTTPException(502)
    taken = answer.json()
    event_id = int.from_bytes(hashlib.blake2b(taken["id"].encode(), digest_size=8).digest(), "big") >> 1
    return {
        "Cost": taken["price"],
        "RemainingBalance": taken["credit"],
        "EventId": event_id,
        "Messages": 1,
        "Parts": taken["parts"],
    }


@app.get("/v1/Balance")
def balance(authorization: Annotated[str, Header()]) -> dict[str, Any]:
    """Return the service's credit."""
    answer = requests.get(f"{OTHER}/credit", headers=_key(authorization), timeout=TIMEOUT)
    answer.raise_for_status()
    return {"Balance": answer.json()["credit"]}
