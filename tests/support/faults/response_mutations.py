"""Defects of what a response means, and of when a connection may be used again."""

from __future__ import annotations

from support.faults.mutation import Mutation

ERRORS = "tests/service/test_errors.py"
CONNECTIONS = "tests/service/test_connections.py"
AUTHENTICATION = "tests/service/test_authentication.py"
STATUSES = "tests/faults/test_statuses.py"
NETWORK = "tests/faults/test_network.py"

RESPONSE_MUTATIONS = (
    Mutation(
        "an error within a 200 counts as a response",
        "service/responses.py",
        '    if str(_whole(_get(fields, "statusCode", HTTPStatus.OK.value))) != str(HTTPStatus.OK.value):\n',
        "    if False:\n",
        ("tests/service/test_responses.py",),
        first="test_a_response_that_names_another_status_is_unknown",
    ),
    Mutation(
        "any 503 is not processed",
        "service/errors.py",
        "(status == HTTPStatus.SERVICE_UNAVAILABLE and own)",
        "status == HTTPStatus.SERVICE_UNAVAILABLE",
        (STATUSES,),
    ),
    Mutation(
        "408 is refused",
        "service/errors.py",
        "HTTPStatus.REQUEST_TIMEOUT, ",
        "",
        (STATUSES,),
    ),
    Mutation(
        "303 is refused",
        "service/errors.py",
        "HTTPStatus.SEE_OTHER, ",
        "",
        (ERRORS,),
    ),
    Mutation(
        "499 is refused",
        "service/errors.py",
        ", 499})",
        "})",
        (ERRORS,),
    ),
    Mutation(
        "an error code makes any error one of the service",
        "service/errors.py",
        "(status == HTTPStatus.SERVICE_UNAVAILABLE and own)",
        "own",
        (ERRORS,),
    ),
    Mutation(
        "a 503 for a token is one for the request",
        "service/authentication.py",
        " or response.status == HTTPStatus.SERVICE_UNAVAILABLE:",
        ":",
        (AUTHENTICATION,),
    ),
    Mutation(
        "a connection is kept after an error",
        "service/connections.py",
        "return self.status == HTTPStatus.OK and not self.surplus",
        "return not self.surplus",
        (NETWORK,),
        first="test_only_what_has_no_whole_answer_is_unknown",
    ),
    Mutation(
        "a connection is kept though more came than the answer",
        "service/connections.py",
        "return self.status == HTTPStatus.OK and not self.surplus",
        "return self.status == HTTPStatus.OK",
        (CONNECTIONS,),
    ),
    Mutation(
        "bytes that wait are not looked at",
        "service/connections.py",
        "    sock.settimeout(0.0)\n    try:\n        sock.recv(1)\n",
        "    try:\n        pass\n",
        (CONNECTIONS,),
        first="test_an_answer_that_tls_has_decrypted_already_is_not_the_next_ones",
    ),
    Mutation(
        "bytes that wait are not looked at when a connection is chosen",
        "service/connections.py",
        "not _spoke(connection.sock)",
        "True",
        (CONNECTIONS,),
    ),
    Mutation(
        "bytes that wait on a new connection are not looked at",
        "service/connections.py",
        "            if has_input(connection.sock):\n",
        "            if False:\n",
        (CONNECTIONS,),
    ),
    Mutation(
        "a session ticket is taken for an answer",
        "service/connections.py",
        "(BlockingIOError, ssl.SSLWantReadError, TimeoutError)",
        "(BlockingIOError, TimeoutError)",
        (CONNECTIONS,),
        first="test_session_tickets_are_no_reason_for_a_new_connection",
    ),
)
