"""Likelihood of a secret: random values against words, names, hashes and placeholders."""

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Final

from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import LinearRegex

# --- placeholders of redacted secrets ---------------------------------------------------------

PLACEHOLDER: Final = LinearRegex(rb"\[REDACTED:[a-z0-9_]{1,64}:[0-9a-f]{8}\]", captures=False)

MARK: Final = b"[REDACTED:"

_MASKED: Final = lazy_regex(PLACEHOLDER.pattern)

_LONGEST: Final = 84


def without_placeholders(value: bytes) -> str:
    """Remove placeholders."""
    return (_MASKED.sub(b"", value) if b"[" in value else value).decode(errors="replace")


def is_in_placeholder(data: bytes, at: int) -> bool:
    """Check whether a position is in a placeholder."""
    begin = data.rfind(MARK, max(0, at - _LONGEST), at)
    found = PLACEHOLDER.match(data, begin) if begin >= 0 else None
    return found is not None and at < found.end()


# --- random or words --------------------------------------------------------------------------

_METADATA_NAME: Final = lazy_regex(
    r"(?:id|ids|name|names|hash|hashes|digest|sha\d*|md5|file|path|dir|folder|url|uri|type|count|"
    r"limit|length|len|size|expiry|expires|expiration|ttl|(?<!p)at|in|policy|field|label|hint|header|"
    r"status|kind|version|budget|quota|format|prefix|env|variable|ref|manager|store|provider|endpoint|required|"
    r"used|usage|index|_ms|seconds|rotation|scope|scopes|fingerprint|source|sock|socket)$|"
    r"\.(?:c|cc|cpp|cs|css|go|h|hpp|html|java|js|jsx|kt|md|mjs|php|pl|pyi?|rb|rs|scala|sh|sql|swift|tsx?)$|"
    r"\Aunexpected |pass(?:ed|es|ing|age|port|ive|thr)|auth(?:or(?!iz)|entic)|tokeni[sz]",
    re.IGNORECASE | re.ASCII,
)
"""End of a name that describes a secret and does not hold it; or of a program, before the number of
a line."""

_PLACEHOLDER: Final = lazy_regex(
    r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{8}\]|[$%][({].*|\$env:.*|(?-i:\$[A-Z_][A-Z0-9_]*)|%\w+%|\{.*\}|<.*>|"
    r"[*x.#?_…-]+|&lt;.*|none|null|true|false|undefined|"
    r"pass(?:word|wd)?\d{0,4}|secret|token|user(?:name)?|foo(?:bar)?|test(?:ing)?\d{0,4}",
    re.IGNORECASE | re.DOTALL,
)

_STANDS_IN: Final = lazy_regex(
    r"[$%<{]|your|my[_-]|example|(?:change|replace)[_-]?me", re.IGNORECASE
)
"""Start of a placeholder if only words follow; a password may also begin with `$`, `%`, `<` or
`{`."""

_NOT_SECRET: Final = lazy_regex(
    r"(?:urn:uuid:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:[a-z0-9@.-]+ )?AAAA[BCEI][A-Za-z0-9+/=]{20,}.*"
    r"|sha\d{1,3}[:-][A-Za-z0-9+/=]+|md5[:-][0-9a-f]+|TASK-\d{4}-\d\d-\d\d-\w+|s-\d{8}-\d{1,6}|[0-9a-f]{12}"
    r"|[a-z]{1,2}\d{2,3}k_[a-z]{3,10}|0x[0-9a-f]{1,16}|data:[a-z]+/.*|projects/[^/]+/secrets/.*"
    r"|(?-i:~?/[A-Z]?[a-z]{2,15})(?:/.*)?"
    r"|[a-z][a-z0-9+.-]*://.*|\d{4}-\d\d-\d\d.*|v?\d+(?:\.\d+)+\S{0,12}|[\d.,:%_-]+[a-zA-Z]{0,3}",
    re.IGNORECASE | re.ASCII,
)
"""Values that are no secrets, among them encodings of tokens (`cl100k_base`), and paths, in which a
temporary folder may have a random name."""

_TEST_NAME: Final = lazy_regex(
    r"(?:\A|[^A-Za-z])(?:[Tt]ests?|[Ss]pec|Benchmark|Example|Fuzz)(?![a-z])|Test(?![a-z])|::|[Tt]est_"
)

_COLOUR: Final = lazy_regex(r"(?<![^\s:,;(])#(?:[0-9A-Fa-f]{3,4}){1,2}(?![0-9A-Za-z])")
"""A colour of a web page."""

_EXPRESSION: Final = lazy_regex(r"\[[^\]\s]*\w-\w[^\]\s]*\][+*?{]|\\[dws][+*?{]|\(\?[:=!<]")
"""Parts of regular expressions, hardly ever of a password."""

_ALGORITHM: Final = lazy_regex(
    r"(?=.*(?:pbkdf2|pbe|hmac|sha\d|md5|aes|des|rsa|ecdsa|25519|448|hkdf|crypt|argon2|blowfish|chacha20"
    r"|poly1305|gcm|cbc|ecb|oaep|mgf1|pkcs|oauth2|x509|b(?:ase)?(?:16|32|64)))"
    r"(?:pbkdf2|pbe|hmac|sha|md5|aes|des|desede|rsa|ecdsa|ed25519|x25519|ed448|x448|hkdf|scrypt|"
    r"bcrypt|argon2(?:id?|d)|blowfish|chacha20|poly1305|gcm|cbc|ctr|ecb|oaep|mgf1|pkcs(?:1|5|7|8|12)|"
    r"nopadding|padding|with|and|x509|oauth2|b(?:ase)?(?:16|32|64)|standard|url|encoded?|decoded?|private|"
    r"public|secret|session|client|access|bearer|keys?|tokens?|auth|password|types?|\d{1,4}|[-_/.]){2,}+",
    re.IGNORECASE | re.ASCII,
)
"""Name of an algorithm, or of a class that deals with one: PBKDF2WithHmacSHA256,
Ed25519PrivateKey."""

_WORDS: Final = lazy_regex(
    r"(?:(?:[a-z]\d{1,2}[a-z](?![A-Za-z0-9])|[A-Z]?[a-z]{2,}+|[A-Z]+(?=[A-Z][a-z]|[^A-Za-z]|\Z)|[a-z](?![A-Za-z]))++"
    r"\d{0,3}+(?![A-Za-z0-9])|\d{1,4}+(?![A-Za-z0-9])|[^A-Za-z0-9]++)*+"
)
"""Words of a language, or names of a program, with anything between them."""

_PHRASE: Final = lazy_regex(r"[A-Za-z]++[-_.].*[A-Za-z]{3}", re.DOTALL)

_NUMBERED: Final = lazy_regex(r"[^A-Za-z0-9]*+[A-Za-z]++\d{2,}+[^A-Za-z0-9]*+")
"""One word with a number behind it: rather a password than a name."""

_RARE_NEXT_LETTERS: Final = {
    "a": "q",
    "b": "bcdfghjkmnpqtvwxz",
    "c": "bdfgjmnpqsvwx",
    "d": "cfghjkmpqtvwxz",
    "f": "bcdghjkmnpqvwxz",
    "g": "bcdfjkmpqvwxz",
    "h": "bcdfghjkmnpqsvwxz",
    "i": "hiqw",
    "j": "bcdfghjklmnpqrstvwxyz",
    "k": "bcdfjmpqvwxz",
    "l": "chjqrwxz",
    "m": "cdfghjklqrtvwxz",
    "n": "qrwx",
    "o": "hqx",
    "p": "bcdfjkmnqvwxz",
    "q": "abcdefghijkmnopqrstvwxyz",
    "r": "jqx",
    "s": "bdgjrvwx",
    "t": "bdfgjkpqvxz",
    "u": "hoquvxyz",
    "v": "bcdfghjklmnpqrstuvwxyz",
    "w": "bcfghjklmpqrtuvwxz",
    "x": "bcdfghjklnoqrsuvwxz",
    "y": "bdfghjklqruvwxyz",
    "z": "bcdfghjklmnpqrstuvwxz",
}
"""Letter -> letters that seldom follow it in a word, in English or in a language near it. In random
text half of all pairs are such, in words hardly any."""

_PAIRS: Final = frozenset(
    first + second for first in _RARE_NEXT_LETTERS for second in _RARE_NEXT_LETTERS[first]
)

_WORD_OR_BLANK: Final = lazy_regex(r"[A-Za-z]{4}|\s")

_SIGN: Final = lazy_regex(r"[!-/:-@\[-`{-~]")

_LEAST_SIGNS: Final = 4

_LEAST_PAIRS: Final = 3

_PAIRS_PER_RARE: Final = 4
"""In random text, at least one pair of letters in this many is rare."""

_LEAST_BITS: Final = 2.3

_LEAST_LENGTH: Final = 8

_MAX_SCANNED: Final = 256
"""Longest part of a text that is examined."""


@lru_cache(1_024)
def is_metadata_name(name: str) -> bool:
    """Check whether a name describes a secret, like its length, and does not hold it."""
    return _METADATA_NAME.search(name) is not None


def is_placeholder(value: str) -> bool:
    """Check whether a value is a placeholder for a secret."""
    if _PLACEHOLDER.fullmatch(value) is not None:
        return True
    begins = _STANDS_IN.match(value) is not None
    return begins and is_only_words(value) and not _is_mostly_punctuation(value)


def is_only_words(text: str) -> bool:
    """Check whether a text consists of words, short numbers and punctuation."""
    return _WORDS.fullmatch(text) is not None


def is_phrase(text: str) -> bool:
    """Check whether the examined part of a text is several words with punctuation between them."""
    text = text[:_MAX_SCANNED]
    return _PHRASE.match(text) is not None and is_only_words(text)


def is_test_name(value: str) -> bool:
    """Check whether a value is rather the name of a test that has passed."""
    return _TEST_NAME.search(value) is not None


def looks_random(value: str) -> bool:
    """Check whether a value looks random: no words, hash, id, date, number or expression."""
    # Most values are short, words or numbers, which is found out at once.
    if len(value) < _LEAST_LENGTH or value.isdigit():
        return False
    value = _COLOUR.sub("", value[:_MAX_SCANNED])
    if value.isalpha() and value.islower() and not _has_rare_pairs(value):
        return False
    if is_placeholder(value) or _NOT_SECRET.fullmatch(value) or _ALGORITHM.fullmatch(value):
        return False
    if _EXPRESSION.search(value):
        return False
    if is_only_words(value) and not (
        _NUMBERED.fullmatch(value) or _has_rare_pairs(value) or _is_mostly_punctuation(value)
    ):
        return False
    return entropy_bits(value) >= _LEAST_BITS


def _has_rare_pairs(value: str) -> bool:
    """Check whether pairs of letters are rarer than in words; capitals begin new ones."""
    if not value.isalpha():
        return False
    pairs = [(first + second).lower() for first, second in pairwise(value) if second.islower()]
    rare = sum(pair in _PAIRS for pair in pairs)
    return rare >= _LEAST_PAIRS and _PAIRS_PER_RARE * rare >= len(pairs)


def _is_mostly_punctuation(value: str) -> bool:
    """Check whether there is much punctuation among letters that form no word."""
    if _WORD_OR_BLANK.search(value) is not None:
        return False
    signs = _SIGN.findall(value)
    return len(set(signs)) >= _LEAST_SIGNS <= len(value) - len(signs)


def entropy_bits(value: str) -> float:
    """Shannon entropy of a text per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())
