"""Personal data, one document and one expression at a time: the oracle of `clean.pii`."""

from __future__ import annotations

import ipaddress
import re

from corpusforge.clean.pii import FILES

W = r"A-Za-z0-9_\x80-\U0010ffff"
DOMAIN = re.compile(r"(?:[A-Za-z0-9]|\.(?=[A-Za-z0-9])|-(?=[A-Za-z0-9-])){0,128}")
IPV4 = re.compile(rf"(?<![{W}.\-])(?<!(?<!/)/)[0-9]+(?:\.[0-9]+){{3}}(?![{W}]|[.\-][{W}])")
IPV6 = re.compile(rf"(?<![{W}:])[23][0-9A-Fa-f]{{3}}(?=:)[0-9A-Fa-f:]{{1,36}}")
PLUS = re.compile(rf"(?<![{W}])\+[1-9][0-9]*")
GROUP = re.compile(r"[ \-.()/]{1,2}([0-9]+)")
AREA = re.compile(
    rf"(?<![{W}])(?P<trunk>(?<!\+)1[-. ])?(?:\([2-9][0-9]{{2}}\)[ -]?|[2-9][0-9]{{2}}(?P<gap>[-.]))"
    rf"[2-9][0-9]{{2}}(?(gap)[-. ]|[-. ])[0-9]{{4}}(?![{W}]|[-./][0-9])"
)


def finds(text: str, kinds: tuple[str, ...]) -> list[tuple[int, int, int]]:
    """Spans of characters with 0 e-mail, 1 IPv4, 2 IPv6, 3 telephone; overlapping ones as one, of the first's kind."""
    found = []
    if "email" in kinds:
        found += [(*span, 0) for i, c in enumerate(text) if c == "@" for span in _email(text, i)]
    if "ip" in kinds:
        found += [(*m.span(), 1) for i in range(len(text)) if (m := IPV4.match(text, i)) and _public(m[0])]
        found += [(*span, 2) for m in IPV6.finditer(text) for span in _ipv6(text, m)]
    if "phone" in kinds:
        found += [(*span, 3) for m in PLUS.finditer(text) for span in _international(text, m)]
        found += [(*span, 3) for span in _american(text)]
    merged: list[tuple[int, int, int]] = []
    for start, stop, kind in sorted(found, key=lambda f: (f[0], -f[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, stop, kind))
    return merged


def _email(text: str, at: int) -> list[tuple[int, int]]:
    near = text[:at].encode()[-64:].decode("utf-8", "ignore")
    left = re.search(r"[A-Za-z0-9._%+\-\u00c0-\u04ff]*\Z", near)
    local = left and re.search(r"[A-Za-z0-9\u00c0-\u04ff].*\Z", left[0])
    right = DOMAIN.match(text, at + 1)
    assert right
    domain = right[0]
    if not local or local[0].endswith(".") or not domain[:1].isalnum() or "." not in domain:
        return []
    label = domain.rsplit(".", 1)[1]
    good = re.fullmatch("[A-Za-z]{2,24}", label) and label.lower() not in FILES
    return [(at - len(local[0]), at + 1 + len(domain))] if good else []


def _public(text: str) -> bool:
    octets = text.split(".")
    if any(int(o) > 255 or str(int(o)) != o for o in octets) or max(map(int, octets)) < 20:
        return False
    address = ipaddress.IPv4Address(text)
    return address.is_global and not address.is_multicast and not text.startswith("192.0.0.")


def _ipv6(text: str, match: re.Match[str]) -> list[tuple[int, int]]:
    start, stop = match.start(), min(match.end(), match.start() + 40)
    if text[stop - 1] == ":" and text[stop - 2] != ":":
        stop -= 1
    if text[start:stop].count(":") < 2 or re.match(f"[{W}]", text[stop : stop + 1]):
        return []
    try:
        return [(start, stop)] if ipaddress.IPv6Address(text[start:stop]).is_global else []
    except ValueError:
        return []


def _international(text: str, match: re.Match[str]) -> list[tuple[int, int]]:
    digits, stop = len(match[0]) - 1, match.end()
    american = match[0][1] == "1"
    most = 11 if american else 15
    for _ in range(7):
        group = GROUP.match(text, stop)
        if not group or digits + len(group[1]) > most:
            break
        digits, stop = digits + len(group[1]), group.end()
    if digits < (11 if american else 9) or digits > most or re.match(f"[{W}]", text[stop : stop + 1]):
        return []
    bracket = text[: match.start()].endswith("(") and text[match.end() : match.end() + 1] == ")"
    return [(match.start() - bracket, stop)]


def _american(text: str) -> list[tuple[int, int]]:
    spans = []
    for i in range(len(text)):
        match = AREA.match(text, i)
        if not match:
            continue
        gap = match["gap"]
        other = match[0][-5]
        if gap and other != gap and other not in "-. ":
            continue
        if text[:i][-1:] in tuple("-./+"):
            continue
        spans.append(match.span())
    return spans
