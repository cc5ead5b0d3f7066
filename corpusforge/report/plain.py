"""Values as text for people: corpus text that cannot control a terminal or browser, numbers, sizes and durations.

Control characters become their pictures (U+2400 block), characters that change the writing direction become their
code in brackets (see CVE-2021-42574). Escaping for HTML or rich is left to the caller.
"""

from __future__ import annotations

_PICTURES = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {0x7F: 0x2421}
_CODES = {code: f"[U+{code:04X}]" for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_CODES |= {code: f"[U+{code:04X}]" for code in (0x200E, 0x200F, 0x061C)}
_VISIBLE: dict[int, int | str] = {**_PICTURES, **_CODES}


def visible(text: str) -> str:
    """The text with every control character made visible.

    >>> visible("a\\x1b[31mred")
    'a␛[31mred'
    >>> visible("left\\u202eright")
    'left[U+202E]right'
    """
    return text.translate(_VISIBLE)


def truncate(text: str, most: int) -> str:
    """At most ``most`` characters; an ellipsis marks a truncated text.

    >>> truncate("abcdef", 4)
    'abcd…'
    """
    return text if len(text) <= most else text[:most] + "…"


def number(value: float) -> str:
    """A number for people: thousands separated, four significant digits or all those before the point.

    >>> number(1234567), number(0.123456), number(3.0), number(float("nan"))
    ('1,234,567', '0.1235', '3', 'nan')
    >>> number(21_359.6), number(1.5e18)
    ('21,360', '1.5e+18')
    """
    if abs(value) >= 1e15:
        return f"{value:.4g}"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e4 else f"{value:,.4g}"


def shown(value: object) -> str:
    """Numbers as `number` formats them, anything else as `str`.

    >>> shown(0.5), shown("a")
    ('0.5', 'a')
    """
    return number(value) if isinstance(value, int | float) else str(value)


def words(key: object) -> str:
    """A key with spaces instead of underscores.

    >>> words("text_bytes_in")
    'text bytes in'
    """
    return str(key).replace("_", " ")


def size(count: float) -> str:
    """A number of bytes with a unit.

    >>> size(512), size(20_480), size(3_500_000)
    ('512 B', '20.5 kB', '3.5 MB')
    """
    for limit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:,.1f} {name}"
    return f"{count:.0f} B"


def memory(count: float) -> str:
    """Bytes of memory, always in MiB, so that a plan, a summary and a report can be compared.

    >>> memory(4e8), memory(2**34)
    ('381 MiB', '16,384 MiB')
    """
    return f"{count / 2**20:,.0f} MiB"


def seconds(amount: float) -> str:
    """A duration.

    >>> seconds(0.25), seconds(75), seconds(7300), seconds(1.6e6)
    ('0.2 s', '1 min 15 s', '2 h 01 min', '18 d 12 h')
    """
    if amount < 60:
        return f"{amount:.1f} s"
    minutes, rest = divmod(round(amount), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24:02d} h"
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
