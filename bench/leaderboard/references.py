"""Publications in docstrings: found by the form in which they are cited, and linked where they have an address."""

import re
from dataclasses import dataclass

from markupsafe import Markup

from bench.leaderboard.equations import sentence

_NAME = r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)*"
# Authors YEAR, "Title" (venue), arXiv:ID; all but the authors may be missing here, `cited_in` says what may not be.
_CITATION = re.compile(
    rf"(?P<authors>{_NAME}(?:, {_NAME})*(?:,? and {_NAME})?(?: et al\.)?)(?: (?P<year>\d{{4}}))?"
    r'(?:,\s+"(?P<title>[^"]+)")?(?:\s+\([^()]+\))?(?:,\s+(?P<later>\d{4}))?'
    r"(?:,\s+(?P<id>(?:(?:arXiv|doi):|https?://)[^\s,;)]*[^\s,;:.)]))?"
)
_ADDRESS = re.compile(
    r"(?P<arxiv>\barXiv:(?P<paper>\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+/\d{7}))"
    r"|(?P<doi>\b(?:doi:\s?)?(?P<object>10\.\d{4,9}/[^\s\"<>]*[^\s\"<>.,;:)\]]))"
    r"|(?P<url>\bhttps?://[^\s\"<>]*[^\s\"<>.,;:)\]])"
    r"|`(?P<code>[^`\n]+)`"
)


@dataclass(frozen=True)
class Reference:
    """A publication."""

    text: str  # as it is cited
    short: str  # authors and year
    address: str = ""  # '' where the citation names none


def cited_in(text: str) -> tuple[Reference, ...]:
    """Return the publications that a text cites, each once, in its order.

    A citation has authors, a year, and a title in quotation marks or an identifier (arXiv, DOI, a web address).
    """
    found: dict[str, Reference] = {}
    for match in _CITATION.finditer(" ".join(text.split())):
        year, address = match["year"] or match["later"], address_of(match["id"] or "")
        if year and (match["title"] or address):
            short = f"{_short_authors(match['authors'])} {year}"
            found.setdefault(address or match[0], Reference(match[0].rstrip(".,"), short, address))
    return tuple(found.values())


def _short_authors(authors: str) -> str:
    """Return the authors as they are cited in a text: of more than two the first."""
    names = re.split(r",? and |, ", authors)
    return authors if len(names) <= 2 else f"{names[0]} et al."


def address_of(identifier: str) -> str:
    """Return the web address of an identifier or address that is the whole text; '' where it is none."""
    match = _ADDRESS.fullmatch(identifier)
    return "" if match is None else _address(match)


def _address(match: re.Match[str]) -> str:
    if match["arxiv"]:
        return f"https://arxiv.org/abs/{match['paper']}"
    return f"https://doi.org/{match['object']}" if match["doi"] else match["url"] or ""


def linked(text: str) -> Markup:
    """Return a text as HTML: identifiers and addresses are links, words in backticks are code, letters mathematics."""
    parts, end = [], 0
    for match in _ADDRESS.finditer(text):
        parts.append(sentence(text[end : match.start()]))
        if match["code"]:
            parts.append(Markup("<code>{}</code>").format(match["code"]))
        else:
            parts.append(Markup('<a href="{}" rel="noreferrer">{}</a>').format(_address(match), match[0]))
        end = match.end()
    return Markup("").join([*parts, sentence(text[end:])])
