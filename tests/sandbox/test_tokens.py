from __future__ import annotations

import pytest

NUMBER = "27821234567"


@pytest.mark.parametrize("operation", ["bulk", "group", "balance"])
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", "Bearer token-of-these-test", "Basic token-of-these-tests", "Bearer t\xf6ken"],
)
def test_a_wrong_or_missing_token_is_refused(client, state, headers, operation, authorization):
    """Every operation of the contract needs the bearer token; otherwise it gets 401 and does nothing."""
    headers["Authorization"] = authorization.encode("latin-1") if authorization is not None else None
    arguments = {"bulk": [(NUMBER, "Hello")], "group": ["Hello", "staff"], "balance": []}[operation]
    answer = getattr(client, operation)(*arguments, headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (401, "AuthenticationToken.Invalid")
    assert state.accepted_messages == []


def test_the_token_is_checked_before_anything_else(client, headers):
    """A client without a token learns nothing about its request body."""
    headers["Authorization"] = "Bearer wrong"
    assert client.call("POST", "/bulkmessages", headers=headers, data=b"{").status_code == 401


def test_client_credentials_fetch_a_token_that_works(start, headers):
    """HTTP Basic with client id and secret fetches a new token and its lifetime in minutes."""
    client = start(token=None, client_id="me", client_secret="pass:word")
    bodies = [client.call("GET", "/Authentication", headers={}, auth=("me", "pass:word")).json() for _ in range(2)]
    assert [(body["schema"], body["expiresInMinutes"]) for body in bodies] == [("JWT", 1440)] * 2
    assert bodies[0]["token"] != bodies[1]["token"]
    for body in bodies:
        headers["Authorization"] = f"Bearer {body['token']}"
        assert client.bulk((NUMBER, "Hello"), headers=headers).status_code == 200


def test_the_fixed_token_works_beside_fetched_ones(start):
    """A sandbox with client credentials accepts the fixed token, too."""
    client = start(client_id="me", client_secret="secret")
    assert client.balance().status_code == 200


@pytest.mark.parametrize("auth", [None, ("me", "wrong"), ("you", "secret"), ("", "")])
def test_wrong_credentials_fetch_nothing(start, auth):
    """Wrong or missing credentials get 401."""
    client = start(client_id="me", client_secret="secret")
    answer = client.call("GET", "/Authentication", headers={}, auth=auth)
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (401, "InvalidCredentials")


@pytest.mark.parametrize("authorization", ["Basic ?", "Basic None:None", "Bearer token-of-these-tests"])
def test_a_sandbox_without_client_credentials_issues_no_token(client, authorization):
    """Without configured client credentials, no header fetches a token."""
    answer = client.call("GET", "/Authentication", headers={"Authorization": authorization})
    assert answer.json()["errors"][0]["errorCode"] == "InvalidCredentials"
    assert client.call("GET", "/Authentication", headers={}, auth=("None", "None")).status_code == 401


def test_a_fetched_token_expires(start, headers):
    """A token past its lifetime gets 401 with its own error code."""
    client = start(client_id="me", client_secret="secret", token_minutes=0)
    body = client.call("GET", "/Authentication", headers={}, auth=("me", "secret")).json()
    headers["Authorization"] = f"Bearer {body['token']}"
    answer = client.balance(headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["errorCode"]) == (401, "AuthenticationToken.Expired")
