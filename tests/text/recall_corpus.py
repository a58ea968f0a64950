"""Cases of the frozen recall test: made-up secrets by class, and clean text, from fixed seeds.

A class is one way in which a secret can stand in a text. Each case has a secret that chance made;
the surroundings are those of the other redaction tests.
"""

import html
import json
import random
from base64 import b64encode, encodebytes
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from tests.text import secrets_corpus as corpus
from tests.text.test_redact import BREAKS, LINE_STARTS
from tests.text.test_redact_named_values import NAMED_FORMS, POSITIONAL_FORMS, QUOTED
from tests.text.test_redact_normalized_text import SPELLINGS

PHRASE = "correct horse battery staple"
"""A known value with white space in it."""
KNOWN = (PHRASE, "zx81-Tiger.Burning_42", 'q7"X&z 9\\kP/2<w')
"""Values that the redactor of all classes knows."""


class Case(NamedTuple):
    """A text, and what must not remain of the secret in it."""

    text: str
    secret: str
    """The secret as it is written there."""
    parts: tuple[str, ...] = ()
    """Its parts, where eight characters of its spelling are too few to tell."""

    def is_masked(self, masked: str) -> bool:
        """Check that nothing of the secret remains in the redacted text."""
        if self.parts:
            rest = corpus.PLACEHOLDER.sub("", masked)
            return not any(part in rest for part in self.parts)
        return corpus.is_removed(self.secret, masked)


def _named_secret(chance: random.Random) -> str:
    """A secret of letters and digits that no form of a name would cut."""
    letters = "".join(chance.choices(corpus.ALNUM, k=14))
    return letters + chance.choice("0123456789") + chance.choice("xyz")


def _prefixed_secrets(each: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for kind, make in corpus.PREFIXED.items():
        if kind not in corpus.PUBLIC_PREFIXES:
            yield from (make(chance) for _ in range(each))


def _in_forms(forms: list[str], each: int, seed: int) -> Iterator[Case]:
    chance = random.Random(seed)
    for form in forms:
        for _ in range(each):
            secret = _named_secret(chance)
            yield Case(form.format(secret), secret)


def _prefixed_plain() -> Iterator[Case]:
    for case in corpus.prefixed(each=16, seed=101):
        yield Case(case.text, corpus.secret_part(case))


def _generic() -> Iterator[Case]:
    for case in corpus.generic(each=60, seed=103):
        yield Case(case.text, case.secret)


def _quoted() -> Iterator[Case]:
    for form, secret in QUOTED.items():
        yield Case(form.format(secret), secret)


def _urls() -> Iterator[Case]:
    chance = random.Random(105)
    forms = (
        "postgresql://ann:{}@db/x",
        "clone https://x-access-token:{}@github.com/acme/x.git .",
        "REDIS_URL=redis://:{}@cache:6379/0",
        "amqp://guest:{}@mq:5672/%2f and on",
        '{{"url": "https://bob:{}@host.example/x?y=1"}}',
        "u=postgres%3A%2F%2Fadmin%3a{}%40db%2fx&z=%20",
    )
    for form in forms * 12:
        secret = _named_secret(chance)
        yield Case(form.format(secret), secret)
    for _ in range(12):
        secret = "".join(chance.choices(corpus.HEX, k=32))
        yield Case(f"https://{secret}@host/x", secret)


def _known() -> Iterator[Case]:
    for value in KNOWN:
        for spell in SPELLINGS.values():
            text = f"we read <{spell(value)}> today"
            yield Case(text, value, (text,))
        for before in (b"", b"u", b"us"):
            written = b64encode(before + value.encode()).decode()
            yield Case(f"data: {written}", written)
        yield Case(f"it is {value.encode().hex()} so", value.encode().hex())


def _known_broken() -> Iterator[Case]:
    value = KNOWN[1]
    for end in BREAKS:
        for at in range(5, len(value) - 4):
            yield Case(f"it is {value[:at]}{end}{value[at:]} so", value[at:])


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _url(text: str) -> str:
    return quote(text, safe="")


_BASE64: dict[str, Callable[[str], str]] = {
    "base64": _base64,
    "base64 in lines": lambda text: encodebytes(text.encode()).decode(),
    "base64 in base64": lambda text: _base64(_base64(text)),
    "base64 in JSON": lambda text: json.dumps({"data": _base64(text)}),
    "base64 in a URL": lambda text: "x?d=" + _url(_base64(text)),
}
_SPELLED: dict[str, Callable[[str], str]] = {
    "URL": _url,
    "URL in a URL": lambda text: _url(_url(text)),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[3:-3],
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text)))[7:-7],
    "HTML": html.escape,
    "HTML in JSON": lambda text: json.dumps(html.escape(text))[1:-1],
    "JSON in a URL": lambda text: _url(json.dumps(text)[1:-1]),
    "JSON of numbers": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "HTML of numbers": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "URL of numbers": lambda text: "".join(f"%{ord(one):02x}" for one in text),
    "bytes of C": lambda text: "".join(f"\\x{ord(one):02x}" for one in text),
    "octal": lambda text: "".join(f"\\{ord(one):03o}" for one in text),
}
"""Encodings in which each character has a spelling of its own."""


def _nested(name: str) -> Iterator[Case]:
    """Credentials, named secrets and logins, encoded together with the words around them."""
    chance = random.Random(107)
    named = ('{{"password": "{}", "n": 1}}', "DB_PASSWORD={}", "https://u:{}@h/x") * 8
    texts = [("see {} ok", secret) for secret in _prefixed_secrets(1, 109)]
    texts += [(form, _named_secret(chance)) for form in named]
    for form, secret in texts:
        text = form.format(secret)
        if encode := _BASE64.get(name):
            # Base64 is masked as a whole, but for its first and last characters.
            written = encode(text)
            run = max(written.replace('"', " ").replace("%", " ").split(), key=len)
            places = range(8, len(run) - 24, 8)
            yield Case(written, secret, tuple(run[at : at + 16] for at in places))
        else:
            spell = _SPELLED[name]
            places = range(len(secret) - 7)
            yield Case(spell(text), secret, tuple(spell(secret[at : at + 8]) for at in places))


def _colours() -> Iterator[Case]:
    chance = random.Random(111)
    for number, secret in enumerate(_prefixed_secrets(2, 113)):
        cut = 7 if number % 2 else len(secret) // 2
        yield Case(f"\x1b[1m{secret[:cut]}\x1b[31m{secret[cut:]}\x1b[0m done", secret[cut:])
        yield Case(f"\x1b[32mINFO\x1b[0m got \x1b[36m{secret}\x1b[0mok", secret)
    forms = (
        "\x1b[33mauth_token\x1b[0m=\x1b[36m{}\x1b[0m",
        "\x1b[1mpassword:\x1b[0m {} ok\n",
        "token\u200b: {}\u200b and on",
        "\x1b[31mAPI_KEY\x1b[0m: \x1b[32m{}\x1b[0m\n",
    )
    for form in forms * 15:
        secret = _named_secret(chance)
        yield Case(form.format(secret), secret)


def _sequences() -> Iterator[Case]:
    chance = random.Random(115)
    frames = ("\x1b]0;{}\x07ok", "so \x1b]2;a {} b\x1b\\", "\x1bP{}\x1b\\ok", "so \x1b_{}\x1b\\ok")
    texts = ("password: {}", "https://ci:{}@h/7", "ghp_{0}{0}{0}", "curl -u bob:{} https://h")
    for frame in frames:
        for text in texts * 3:
            secret = _named_secret(chance)
            yield Case(frame.format(text.format(secret)), secret)


def private_key(chance: random.Random, lines: int = 5) -> list[str]:
    """The lines of a made-up private key."""
    kind = chance.choice(("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "))
    body = ["".join(chance.choices(corpus.BASE64, k=64)) for _ in range(lines)]
    last = "".join(chance.choices(corpus.ALNUM, k=22)) + "=="
    return [f"-----BEGIN {kind}PRIVATE KEY-----", *body, last, f"-----END {kind}PRIVATE KEY-----"]


def _keys_with(join: Callable[[list[str]], str], seed: int) -> Iterator[Case]:
    chance = random.Random(seed)
    for _ in range(4):
        lines = private_key(chance)
        for line in lines[1:-1]:
            yield Case(join(lines), line)


def _private_keys() -> Iterator[Case]:
    breaks = ("\n", "\r\n", "\\n", "\\u000a", "%0A", " ", "  \n", "\\\\n", "\n\n")
    for number, end in enumerate(breaks):
        yield from _keys_with(lambda lines, e=end: f"<{e.join(lines)}> next words", 200 + number)
    for number, start in enumerate((*LINE_STARTS, "2026-11-15T10:00:0{}Z app[7]: ")):
        yield from _keys_with(
            lambda lines, s=start: "\n".join(
                s.format(at) + line for at, line in enumerate([*lines, "next words"])
            ),
            300 + number,
        )
    for number, between in enumerate(("\\n' +\n  '", '",\n  "', "', '", '\\n"\n    "')):
        yield from _keys_with(
            lambda lines, b=between: f"x = [{b[-1]}{b.join(lines)}{b[-1]}]\nmore", 400 + number
        )
    yield from _keys_with(lambda lines: "\n".join(f"│ {line:<70} │" for line in lines), 500)
    yield from _keys_with(lambda lines: "\n".join(lines[:-1]) + "\n\nnext words", 501)


def _putty_keys() -> Iterator[Case]:
    chance = random.Random(117)
    for _ in range(12):
        lines = private_key(chance, 3)[1:-1]
        mac = "".join(chance.choices(corpus.HEX, k=64))
        text = "\n".join(("Comment: me", "Private-Lines: 4", *lines, f"Private-MAC: {mac}", "end"))
        yield from (Case(text, one) for one in (*lines, mac))


CLASSES: dict[str, Callable[[], Iterator[Case]]] = {
    "prefixed": _prefixed_plain,
    "named": lambda: _in_forms(NAMED_FORMS, 3, 121),
    "named, any secret": _generic,
    "named, quotes in it": _quoted,
    "logins and command lines": lambda: _in_forms(POSITIONAL_FORMS, 4, 123),
    "logins in URLs": _urls,
    "known values": _known,
    "known values over lines": _known_broken,
    **{f"nested: {name}": partial(_nested, name) for name in (*_BASE64, *_SPELLED)},
    "terminal: colours": _colours,
    "terminal: sequences": _sequences,
    "private keys": _private_keys,
    "private keys of PuTTY": _putty_keys,
}
"""Name of a class -> its cases."""


def split_cases() -> Iterator[Case]:
    """Some cases of every class, to be split over chunks."""
    for make in CLASSES.values():
        cases = [*make()]
        yield from cases[:: 1 + len(cases) // 12]


def terminal_lines() -> Iterator[tuple[list[str], list[str]]]:
    """Private keys as lines that are recorded one by one, and what is secret of them."""
    for seed, start in enumerate(("", "> ", "+", "app-1  | ", "12:00:01 out ", "│ ")):
        chance = random.Random(600 + seed)
        for headers in ([], ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B", ""]):
            first, *body, last = private_key(chance)
            lines = ["words", first, *headers, *body, last, "other words"]
            yield [start + line for line in lines], body
            lines[3:3] = ["warning: it is open to all"]
            yield [start + line for line in lines], body


CLEAN_TEXTS = (
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "secret: 0197f5d2-8c1a-7b3e-9f42-1234567890ab",
    "TASK-2026-02-09-057 task:TASK-2026-02-09-00001234 bead:ol-527.1",
    "token_id=3f9a0c55d21e9911 password_hash=5f4dcc3b5aa765d61d8327deb882cf99",
    "PASSWORD=${PASSWORD} TOKEN=<your token> key=%KEY%",
    "tokens: 123456 password: required secret = get_secret(name)",
    "postgresql://user:${PGPASSWORD}@db https://user:***@host",
    "-----BEGIN PRIVATE KEY----- is how such a file begins",
    "-----BEGIN PRIVATE KEY-----\nuser: bob\nhost: example\n- one\n- two\n# and more",
    "-----BEGIN CERTIFICATE-----\nMIIB" + "q7Xz" * 15 + "\n-----END CERTIFICATE-----",
    "use basic authentication or bearer authentication",
    'password: "^[A-Za-z0-9!@#]{8,}$"',
    "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
    "secret: PBKDF2WithHmacSHA256 token_cipher: AES256/GCM/NoPadding",
    "cat x | grep token | sha256sum",
    "def f() -> Ed25519PrivateKey | Ed448PrivateKey | X25519PrivateKey | None:",
    'token = f"{prefix}_{number:04x}_{name}"',
    'TOKEN = r"[-!#$%&*+.^_`|~0-9a-zA-Z]+"',
    "curl -u $USER:$TOKEN https://h/Xk39vQz7Lm2pRt8w -o Xk39vQz7Lm2pRt8w",
    "mkdir -pXk39vQz7Lm2pRt8w && ls -aXk39vQz7Lm2pRt8w",
    "Cookie: lang=en_US; theme=dark",
    '{"token": {"id": "Xk39vQz7Lm2pRt8w", "owner": "Xk39vQz7Lm2pRt8w"}}',
    '["token", "Xk39vQz7Lm2pRt8w", "x"]',
    "tokenizers    0.19.1\nsecret-service    Xk39vQz7Lm2pRt8w  1/1  Running",
    "token: 0x7ffe9a3b1c20 and session token: s-20261116-1",
    "password: op://vault2/db9x/password",
    "unexpected token: 'fooBar12'",
    "token: cl100k_base",
    "PWD=/tmp/tmp.k3Jx9aQw2z OLDPWD=/tmp/tmp.k3Jx9aQw2z/build",
    "xapp-store-front-ui-components-library-v2",
    "100% of 20% at %d items, %02x and %s",
    r"C:\new\temp\user \d+ \w \\server\share",
    r"re.compile(r'\btoken\b\s*=\s*(\S{8,})')",
    "password=%PASSWORD% token=%20 key=%3Cyour%20key%3E",
    "YWFhYWFhYWFhYWFh\nY\nYWFhYWFhYWFhYWFh\nYW==\n",
    "The ledger keeps every entry, and the key of the map is the name of the task.",
)
"""Clean texts that look like secrets, fixed."""


def clean_texts() -> list[str]:
    """Text without a secret."""
    return [*CLEAN_TEXTS, *corpus.clean_lines(4_000, seed=127)]
