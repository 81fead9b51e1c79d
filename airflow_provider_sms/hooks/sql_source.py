"""Recipients that a query returns, from any Airflow connection whose hook is a ``DbApiHook``.

The query runs once, and its rows are checked as they come: the plan and the send see one snapshot, however the tables
change meanwhile. A task that gave up its slot to wait runs the query again when it goes on.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import closing
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException, BaseHook

from airflow_provider_sms.exceptions import InputError, NoConnectionError, SourceError, SourceUnavailableError
from airflow_provider_sms.masking import STARS, mask_numbers_in
from airflow_provider_sms.recipients.paths import without_secrets

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import pyarrow as pa
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sms.recipients.batches import Source

log = logging.getLogger(__name__)

_DAY = re.compile(r"(?<![\d-])((?:19|20)\d{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?![\d-])")
_OUTSIDE = {"OperationalError", "InterfaceError"}
"""Errors of PEP 249 that need not be the query's fault: the database is down or busy, or ends a slow query."""
_SQLITE_TYPO = re.compile(r"syntax error|no such (?:table|column)")
"""How SQLite describes a wrong statement, in an OperationalError."""
_OF_THE_STATEMENT = {"OperationalError", "ProgrammingError"}
"""Errors of PEP 249 whose words are about the statement and the server, and quote no value of a row."""


class SqlSource:
    """Recipients that a query returns: a ``source``, or a list of numbers for ``suppress``.

    The rows are fetched a piece at a time, in memory that does not grow with their number: from PostgreSQL by a cursor
    on the server, as Arrow where the driver offers it (``fetch_record_batch``, as of ADBC), and otherwise by
    ``fetchmany``.

    :param conn_id: an Airflow connection whose hook is a ``DbApiHook``. (templated)
    :param sql: one statement that returns rows; ``{% include "people.sql" %}`` is that of a file, which is looked up as
        Airflow looks up templates. (templated)
    :param parameters: values for the statement's placeholders, in the style of the driver: a list, or a dict. They are
        never shown. None means that the statement has no placeholders. (templated)
    """

    template_fields: ClassVar[tuple[str, ...]] = ("conn_id", "sql", "parameters")

    def __init__(self, conn_id: str, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> None:
        self.conn_id = conn_id
        self.sql = sql
        self.parameters = parameters

    def __repr__(self) -> str:
        # Anything that could be a phone number is masked.
        pieces = _DAY.split(str(self.sql))
        shown = "".join(piece if n % 2 else mask_numbers_in(piece) for n, piece in enumerate(pieces))
        return f"SqlSource of connection {self.conn_id}: {shown}"

    def serialize(self) -> str:
        """Return the text form, for Airflow's serialiser."""
        return repr(self)

    def resolve(self, context: Context) -> SqlSource:
        """Return a copy with its templates rendered, as Airflow asks for it: other attempts may share this source."""
        render = context["task"].render_template
        return SqlSource(*(render(each, context) for each in (self.conn_id, self.sql, self.parameters)))

    def hook(self, argument: str = "source") -> Any:
        """Return the hook of the connection; an error names the operator's argument."""
        from airflow.providers.common.sql.hooks.sql import DbApiHook

        try:
            hook = BaseHook.get_hook(self.conn_id)
        except AirflowNotFoundException:
            raise NoConnectionError(
                f"{argument}: there is no Airflow connection {self.conn_id!r}", "Otherwise create it"
            ) from None
        except (AirflowException, ImportError) as error:
            conn_type = str(BaseHook.get_connection(self.conn_id).conn_type)
            raise InputError(
                f"{argument}: connection {self.conn_id!r} has no hook: {error}. Install its provider, usually "
                f"apache-airflow-providers-{conn_type.replace('_', '-')}"
            ) from None
        if not isinstance(hook, DbApiHook):
            raise InputError(
                f"{argument}: connection {self.conn_id!r} is not a database: its hook {type(hook).__name__} is not a "
                "DbApiHook"
            )
        return hook

    def require_statement(self, argument: str) -> None:
        """Refuse an empty statement, and the name of a file; the error names the operator's argument."""
        if not isinstance(self.sql, str) or not self.sql.strip():
            raise InputError(f"{argument}: the sql of a SqlSource must be a statement that returns rows")
        if self.sql.endswith(".sql"):
            raise InputError(f"{argument}: sql is a statement; for that of a file, write {{% include 'people.sql' %}}")

    def open(self, argument: str = "source") -> Source:
        """Return the source of the query's rows; it runs when the first of them is read.

        :param argument: the operator's argument, which an error names.
        :raises InputError: there is no such connection, its hook reads no SQL, the statement is empty, or the
            parameters are of another type.
        """
        from airflow_provider_sms.recipients.batches import Source

        self.require_statement(argument)
        if not isinstance(self.parameters, (list, tuple, Mapping, NoneType)):
            raise InputError(
                f"{argument}: the parameters of a SqlSource must be a list, a tuple or a dict, not "
                f"{type(self.parameters).__name__}: write [value] for a single one"
            )
        description = f"query of connection {self.conn_id}"
        hook = self.hook(argument)
        return Source(description, lambda _: self._read(hook, description))

    def _read(self, hook: Any, description: str) -> Generator[pa.RecordBatch, None, None]:
        log.info("Reading the %s", description)
        try:
            with closing(hook.get_conn()) as connection, closing(_cursor(connection)) as cursor:
                # Without parameters a percent sign stands for itself.
                cursor.execute(*([self.sql] if self.parameters is None else [self.sql, self.parameters]))
                yield from _fetch(cursor, description)
        except (SourceError, AirflowException):
            raise
        except Exception as error:  # noqa: BLE001 - each driver raises errors of its own
            raise self._explained(error, description) from None

    def _explained(self, error: Exception, description: str) -> SourceError:
        """Return an error of this package in place of the driver's, which may quote rows and parameters."""
        kinds = {kind.__name__ for kind in type(error).__mro__}
        words = type(error).__name__
        if not kinds & _OF_THE_STATEMENT:
            words += " (the driver's words are not shown, since they may quote a row)"
        elif said := without_secrets(str(error).strip().partition("\n")[0]):
            for value in _texts(self.parameters):
                said = said.replace(value, STARS)
            words += f": {mask_numbers_in(said)}"
        is_typo = type(error).__module__ == "sqlite3" and _SQLITE_TYPO.search(str(error))
        raised = SourceUnavailableError if kinds & _OUTSIDE and not is_typo else SourceError
        return raised(f"the {description} failed: {words}")


def _texts(parameters: Any) -> list[str]:
    """Return the texts of all values of parameters, the longest first."""
    if isinstance(parameters, Mapping):
        parameters = list(parameters.values())
    if isinstance(parameters, (list, tuple, set)):
        return sorted({text for each in parameters for text in _texts(each)}, key=len, reverse=True)
    return [str(parameters)] if parameters is not None and str(parameters) else []


def _cursor(connection: Any) -> Any:
    if type(connection).__module__.partition(".")[0] in ("psycopg", "psycopg2"):
        # A named cursor is on the server: with any other the driver fetches all rows at once.
        return connection.cursor("airflow_provider_sms")
    return connection.cursor()


def _fetch(cursor: Any, description: str) -> Iterator[pa.RecordBatch]:
    from airflow_provider_sms.recipients.batches import BATCH_ROWS, batch_without_rows, check_names
    from airflow_provider_sms.recipients.memory import batch_of_values

    if hasattr(cursor, "fetch_record_batch"):
        reader = cursor.fetch_record_batch()
        yield batch_without_rows(reader.schema)
        yield from reader
        return
    rows = cursor.fetchmany(BATCH_ROWS)
    # The columns of a cursor on the server are known only once rows have been fetched.
    if cursor.description is None:
        raise SourceError(f"the {description} returns no rows: a SqlSource takes a SELECT")
    names = [column[0] for column in cursor.description]
    check_names(names, description)
    while True:
        # A connection may be set up to return dicts.
        values = [[row[name] for name in names] if isinstance(row, Mapping) else row for row in rows]
        yield batch_of_values(names, values, description)
        if not rows:
            return
        rows = cursor.fetchmany(BATCH_ROWS)
