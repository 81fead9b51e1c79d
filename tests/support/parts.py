"""SMS parts in the plainest way, for comparison."""

from __future__ import annotations

# GSM 03.38, 6.2.1: the default alphabet in the order of its codes without the escape at 0x1B, and its extension.
GSM = (
    "@£$¥èéùìòÇ\nØø\rÅå"
    "Δ_ΦΓΛΩΠΨΣΘΞÆæßÉ"
    " !\"#¤%&'()*+,-./"
    "0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNO"
    "PQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmno"
    "pqrstuvwxyzäöñüà"
)
EXTENSION = "\f^{}\\[~]|€"


def encoding(text):
    """Return the encoding in which a text is sent."""
    return "GSM-7" if all(character in GSM + EXTENSION for character in text) else "UCS-2"


def laid_out(text):
    """Lay the characters out one by one, each whole, and return the parts that they take."""
    if encoding(text) == "GSM-7":
        sizes, single, part = [2 if character in EXTENSION else 1 for character in text], 160, 153
    else:
        sizes, single, part = [2 if ord(character) > 0xFFFF else 1 for character in text], 70, 67
    if sum(sizes) <= single:
        return 1
    parts, used = 1, 0
    for size in sizes:
        if used + size > part:
            parts, used = parts + 1, 0
        used += size
    return parts
