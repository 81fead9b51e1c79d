"""Statements that run with every request, written out once.

SQLAlchemy builds a statement anew each time that it runs, which costs more than the database's own work on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.engine import Connection, CursorResult
    from sqlalchemy.sql.expression import ClauseElement


class Compiled:
    """A statement of SQLAlchemy's, to be run often, with values that every driver takes as they are.

    :param statement: all its values are named parameters, or columns of an insert.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._written: dict[str, tuple[str, Sequence[str] | None]] = {}

    def run(self, connection: Connection, *rows: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it for each row of values; no-op, but for its cost, where there is none.

        :param rows: at least one; each has a value for every parameter.
        """
        dialect = connection.dialect
        if dialect.driver not in self._written:
            written = self._statement.compile(dialect=dialect)
            self._written[dialect.driver] = (str(written), getattr(written, "positiontup", None))
        sql, order = self._written[dialect.driver]
        values = [row if order is None else tuple(row[name] for name in order) for row in rows]
        return connection.exec_driver_sql(sql, values[0] if len(values) == 1 else values)
