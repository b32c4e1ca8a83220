"""Equations of docstrings and metrics, which are plain text, set as mathematics: letters, indices, powers, signs.

The notation is that of the source: `sigma_l^2`, `w~ = w + alpha * eps`, `sum_k`, `||w||`. Lines, spaces and words stay
as they were written, and so does what is not understood: nothing is lost. Screen readers get the source.
"""

import re
import unicodedata

from markupsafe import Markup, escape

GREEK = ("alpha", "beta", "delta", "epsilon", "eta", "lamda", "mu", "nu", "phi", "pi", "rho", "sigma", "tau", "theta")
LETTERS = {name: unicodedata.lookup(f"GREEK SMALL LETTER {name}") for name in GREEK}
LETTERS |= {"eps": LETTERS["epsilon"], "lambda": LETTERS["lamda"]}  # Unicode calls it lamda
MINUS, PRIME = "\N{MINUS SIGN}", "\N{PRIME}"
OPERATORS = {"sum": "∑", "sqrt": "√", "grad": "∇"}
SIGNS = {"<=": "≤", ">=": "≥", "<-": "←", "->": "→", "+-": "±", "||": "‖", "'": PRIME}
NAMED = {*OPERATORS, "mean", "max", "min", "log"}  # words that carry an index of any length
_TOKEN = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<down>_(?:-?[^\W_]+(?:\+1\b)?|\{[^{}]*\}))"
    r"|(?P<up>\^(?:-?[^\W_]+|\([^()]*\)))"
    r"|(?P<sign><=|>=|<-|->|\+-|\|\|)"
    r"|(?P<prime>(?<=\w)'(?![^\W\d_]))"
    r"|(?P<tilde>(?<=[^\W\d_])~)"
    r"|(?P<star>(?<=[^\W\d_])\*(?!\w))"
    r"|(?P<times>(?<= )\*(?= ))"
    r"|(?P<minus>(?<![^\s(\[,=|])-(?=[^\s>])|(?<= )-(?= ))"
)
_PROSE = re.compile(r"\s[^\W\d_]{2,}")  # a word follows


def equation(text: str) -> Markup:
    """Return one or more lines of an equation as HTML."""
    parts, end = [], 0
    for match in _TOKEN.finditer(text):
        parts += [escape(text[end : match.start()]), _set(match, text)]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


# What is mathematics in a sentence: a Greek letter, a letter with a short index, a power. Names such as
# `noise_in` or `x_train` are not.
_INLINE = re.compile(
    rf"(?<![\w.])(?<!\w-)(?:{'|'.join(LETTERS)})(?:_\w+)?(?:\^-?\w+)?(?![\w-])"
    r"|(?<![\w.])[A-Za-z]_-?\w{1,3}(?:\^-?\w+)?(?!\w|\.\w)"
    r"|(?<![\w.])\w+\^-?\w+(?!\w)"
    r"|(?<![\w.])sqrt(?=\()"
)


def sentence(text: str) -> Markup:
    """Return words as HTML, with the letters, indices and powers among them set as in equations."""
    parts, end = [], 0
    for match in _INLINE.finditer(text):
        parts += [escape(text[end : match.start()]), equation(match[0])]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _set(match: re.Match[str], text: str) -> Markup:
    kind, own = str(match.lastgroup), match[str(match.lastgroup)]
    if kind == "code":
        return Markup("<code>{}</code>").format(own)
    if kind == "word":
        return _word(own, text[: match.start()], text[match.end() :])
    if kind == "down":
        base = re.search(r"[^\W\d_]*\Z", text[: match.start()])
        named = base is not None and len(base[0]) > 2 and base[0] not in NAMED and base[0] not in LETTERS
        # An option such as length_scale is a name, not a letter with an index.
        return escape(own) if named and len(own) > 2 else Markup("<sub>{}</sub>").format(_index(own[1:]))
    if kind == "up":
        return Markup("<sup>{}</sup>").format(_index(own[1:]))
    fixed = {"tilde": "\N{COMBINING TILDE}", "star": "*", "times": "·", "minus": MINUS}
    return escape(fixed.get(kind) or SIGNS[own])


def _word(word: str, before: str, after: str) -> Markup:
    """Return a word: Greek letters and operators as signs, single letters in italics, others as they are."""
    if word == "sqrt":  # fonts for mathematics draw it to be stretched, below the line
        return Markup('<span class="root">√</span>')
    if word in OPERATORS:
        return Markup(OPERATORS[word])
    if word in LETTERS:
        return Markup("<i>{}</i>").format(LETTERS[word])
    if word == "o" and before.endswith(" ") and after.startswith(" "):
        return Markup("∘")
    if len(word) > 1 or before[-1:] in ("-", "'") or (word == "a" and before.endswith(" ") and _PROSE.match(after)):
        return escape(word)
    return Markup("<i>{}</i>").format(word)


def _index(text: str) -> str:
    """Return an index or a power."""
    sign, rest = (MINUS, text[1:]) if text.startswith("-") else ("", text)
    inner = rest[1:-1] if rest.startswith(("(", "{")) else rest
    return sign + LETTERS.get(inner, inner)
