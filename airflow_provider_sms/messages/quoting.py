"""The text of a CSV file on its way to the parser, refused where a stray quote would swallow rows in silence."""

from __future__ import annotations

from threading import Lock
from typing import Protocol

import numpy as np

from airflow_provider_sms.exceptions import SourceError

_QUOTE = b'"'
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    b"\xff\xfe": "UTF-16 text; write it as UTF-8",
    b"\xfe\xff": "UTF-16 text; write it as UTF-8",
    b"PAR1": "a Parquet file; name it .parquet",
    b"PK\x03\x04": "a workbook or a zip archive; save it as CSV",
    b"\x1f\x8b": "compressed with gzip; name it .csv.gz",
}
"""What files begin with that are no CSV."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class QuotedText:
    """A file to read from, in which every quote must be as RFC 4180 has it.

    A quote opens at the start of a field and closes at the end of one; inside it is doubled. Parsers take other quotes
    as they come: one that is never closed makes the rest of the file one value, and nobody misses the rows in it.

    :param content: the text.
    :param delimiter: what stands between fields, one character of ASCII.
    :param name: what to call the file in an error.
    """

    def __init__(self, content: _Readable, delimiter: str, name: str) -> None:
        self._content = content
        self._name = name
        self._around = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
        self._last = b"\n"
        """The byte before those to come."""
        self._held = b""
        """A quote whose next byte is still to come, or nothing."""
        self._begun = self._ended = self._inside = False
        self._line = self._opening_line = 1
        self._reading = Lock()
        self.closed = False
        self.failure: Exception | None = None
        """What reading raised. It is not raised there: Arrow reads in a thread that may wait for itself after it."""

    def read(self, size: int) -> bytes:
        """Read at most so many bytes, at least three; none at the end, when it is closed, or once ``failure`` is set.

        The last line ends with a line break, whether the file has one or not. The failure is a :class:`SourceError`
        that names the line where the text is of another format, or a quote is out of place.
        """
        with self._reading:
            if self._ended or self.closed or self.failure is not None:
                return b""
            try:
                return self._read(size)
            except Exception as error:  # noqa: BLE001 - storage can fail in any way
                self.failure = error
                return b""

    def close(self) -> None:
        """Read no more, once this returns: Arrow reads ahead in a thread that does not notice that nobody wants it."""
        with self._reading:
            self.closed = True

    def _read(self, size: int) -> bytes:
        block, room = self._held, size - 1  # one for the line break
        while len(block) < room and (more := self._content.read(room - len(block))):
            block += more
        self._ended = len(block) < room
        if not self._begun:
            self._begun = True
            block = self._without_mark(block)
        if self._ended and (block or self._last)[-1:] not in (b"\n", b"\r"):
            block += b"\n"
        # Nor may a block end within a line end: Arrow would take its second character for a line of its own.
        passed = block[:-1] if not self._ended and block.endswith((_QUOTE, b"\r")) else block
        self._held = block[len(passed) :]
        self._check(passed, block)
        self._last = passed[-1:]
        if self._ended and self._inside:
            raise SourceError(f"{self._name}: line {self._opening_line}: a quote is opened and never closed")
        return passed

    def _without_mark(self, beginning: bytes) -> bytes:
        for mark, other in _OTHERS.items():
            if beginning.startswith(mark):
                raise SourceError(f"{self._name}: is {other}")
        return beginning.removeprefix(_BOM)

    def _check(self, passed: bytes, block: bytes) -> None:
        """Look at the quotes in some bytes.

        :param block: these and, where a quote comes next, that.
        """
        if b"\0" in passed:
            raise SourceError(f"{self._name}: line {self._line}: holds a zero byte, so it is no text in UTF-8")
        if _QUOTE in passed:
            self._check_quotes(passed, np.frombuffer(self._last + block, np.uint8))
        self._line += passed.count(b"\n")

    def _check_quotes(self, passed: bytes, text: np.ndarray) -> None:
        """Look whether each quote stands beside what it may.

        :param text: the bytes and those around them.
        """
        quotes = np.flatnonzero(text[1 : len(passed) + 1] == _QUOTE[0]) + 1
        first = int(self._inside)
        opening, closing = quotes[first::2], quotes[1 - first :: 2]
        astray = [
            *opening[~np.isin(text[opening - 1], self._around)],
            *closing[~np.isin(text[closing + 1], self._around)],
        ]
        if astray:
            raise SourceError(
                f"{self._name}: line {self._line_of(min(astray), passed)}: a quote stands within a value; a value with "
                'a quote in it is quoted, with the quote doubled: "5"" pipe"'
            )
        self._inside = (len(quotes) + first) % 2 == 1
        if self._inside:
            self._opening_line = self._line_of(quotes[-1], passed)

    def _line_of(self, position: int, passed: bytes) -> int:
        return self._line + passed.count(b"\n", 0, int(position) - 1)
