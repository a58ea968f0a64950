"""Escaped and encoded secrets, and secrets beside terminal colours."""

import html
import itertools
import json
import random
import shlex
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact import Redactor, Secret
from dragoman.text.redact.normalized_text import (
    NormalizedText,
    normalize_lines,
    unescape,
    unescape_with_positions,
)
from tests.requirements import proves
from tests.text import secrets_corpus as corpus
from tests.text.test_redact import ALL, GITHUB, KEY, WorkMeter, redact_without_digests

Spelling = Callable[[str], str]


def go_json(value: str) -> str:
    """JSON as Go writes it, safe inside HTML."""
    text = json.dumps(value)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _utf16_units(value: str) -> list[int]:
    """UTF-16 code units of a text, as JSON escapes them."""
    data = value.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


SPELLINGS: dict[str, Spelling] = {
    "JSON of Go": go_json,
    "JSON of Go in JSON of Go": lambda value: go_json(go_json(value)),
    "JSON three times": lambda value: json.dumps(json.dumps(json.dumps(value))),
    "JSON that escapes slashes": lambda value: json.dumps(value).replace("/", r"\/"),
    "all of it as numbers of JSON": lambda v: "".join(rf"\u{unit:04x}" for unit in _utf16_units(v)),
    "all of it as bytes of C": lambda v: "".join(rf"\x{byte:02x}" for byte in v.encode()),
    "all of it in octal": lambda v: "".join(rf"\{byte:03o}" for byte in v.encode()),
    "HTML": html.escape,
    "HTML with numbers": lambda v: html.escape(v).replace("&#x27;", "&#39;"),
    "HTML without quotes": lambda value: html.escape(value, quote=False),
    "HTML in HTML": lambda value: html.escape(html.escape(value)),
    "all of it as numbers of HTML": lambda v: "".join(f"&#{ord(character)};" for character in v),
    "a URL in a URL": lambda value: quote(quote(value, safe=""), safe=""),
    "a form in a form": lambda value: quote_plus(quote_plus(value)),
    "all of it as numbers of a URL": lambda v: "".join(f"%{byte:02X}" for byte in v.encode()),
    "and twice so": lambda v: "".join(f"%25{byte:02x}" for byte in v.encode()),
    "JSON in a URL": lambda value: quote(go_json(value)),
    "JSON in HTML": lambda value: html.escape(json.dumps(value)),
    "JSON in HTML in a URL": lambda value: quote(html.escape(json.dumps(value))),
    "HTML in JSON": lambda value: json.dumps(html.escape(value)),
    "Base64 in a URL": lambda v: quote(b64encode(f"u:{v}".encode()).decode(), safe=""),
    "CSV": lambda value: value.replace('"', '""'),
    "SQL": lambda value: value.replace("'", "''"),
    "a shell in quotes": shlex.quote,
    "a shell in quotes, otherwise": lambda value: value.replace("'", r"'\''"),
    "a shell in quotes in JSON": lambda value: json.dumps(shlex.quote(value)),
    "Python": repr,
    "bytes of Python": lambda value: repr(value.encode()),
    "a shell": lambda v: "".join(c if c.isalnum() or ord(c) > 127 else f"\\{c}" for c in v),
}
"""Writer -> its spelling of a value."""
_MISLEADING = ("abcdef0123456789%\\&;", "aAbB12\"'\\/&<>%+= ", "nrtux0123%\\&#;amp", "äß→😀ab12&'")


def known_values() -> list[str]:
    """Known values, many of which contain text that looks like an escape."""
    chance = random.Random(23)
    alphabets = itertools.cycle(_MISLEADING)
    generated = (
        "".join(chance.choices(next(alphabets), k=8 + n % 20)).strip() + "x7Q" for n in range(120)
    )
    return [*corpus.values(), *generated]


@cache
def redactors_by_value() -> dict[str, Redactor]:
    """One redactor for each value; creating one takes longer than using it."""
    return {
        value: Redactor([Secret("pin", value)], KEY, known_only=True) for value in known_values()
    }


@proves("REDACT-MEANT")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_known_value_is_found_in_every_spelling(spelling: str) -> None:
    for value, redactor in redactors_by_value().items():
        digest = redactor.text(value).found[0].digest
        written = SPELLINGS[spelling](value)
        masked = redactor.text(f"a <{written}> é")
        assert [finding.digest for finding in masked.found] == [digest], (value, written)
        assert redactor.may_contain(written.encode())


@proves("REDACT-MEANT")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_known_value_in_chunks_is_found_in_every_spelling(spelling: str) -> None:
    for value in ("tiger & <tiger> 'burning' bright", "zx81-Tiger&Burn'ing<42"):
        redactor = Redactor([Secret("pin", value)], KEY)
        text = f"we read {SPELLINGS[spelling](value)} today"
        whole = redactor.text(text).text
        assert whole.count("[REDACTED:pin:") == 1
        for size in (1, 7):
            stream = redactor.stream()
            pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
            assert "".join(pieces) + stream.close() == whole, size


@proves("REDACT-MEANT")
def test_escaped_known_value_across_lines_is_held_for_the_next_chunk() -> None:
    redactor = Redactor([Secret("pin", "zx81&Tiger.Burning_42")], KEY)
    text = "it is zx81%26Tiger.Bur\nning_42 so"
    whole = redactor.text(text).text
    assert whole.count("[REDACTED:pin:") == 1
    stream = redactor.stream()
    assert "".join(stream.feed(character) for character in text) + stream.close() == whole


@proves("REDACT-MEANT")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password&quot;:&quot;z9Q2mK4v&quot;", "password&quot;:&quot;[REDACTED:password]&quot;"),
        ("pwd&quot;: &quot;z9Q2mK4v&quot; x", "pwd&quot;: &quot;[REDACTED:password]&quot; x"),
        ("password=%22z9Q2mK4v%22", "password=%22[REDACTED:password]%22"),
        (r"token\u003dz9Q2mK4v\u0026u\u003dbob", r"token\u003d[REDACTED:token]\u0026u\u003dbob"),
        (r"\u0067hp_" + "a1B2" * 9 + r"\u000ao", r"[REDACTED:github_token]\u000ao"),
        (
            f"a%3D1\nnothing to see\nb%3D{GITHUB}\nnor here",
            "a%3D1\nnothing to see\nb%3D[REDACTED:github_token]\nnor here",
        ),
    ],
)
def test_escaped_secrets_of_other_kinds_are_found(text: str, expected: str) -> None:
    assert redact_without_digests(text) == expected
    once = ALL.text(text)
    assert ALL.text(once.text).text == once.text
    stream = ALL.stream()
    assert "".join(stream.feed(character) for character in text) + stream.close() == once.text


@proves("REDACT-MEANT")
def test_digest_of_a_secret_is_the_same_in_every_spelling() -> None:
    plain = ALL.text('"password": "z9Q2&mK4v"').found[0]
    for text in (r'"password": "z9Q2\u0026mK4v"', "password&quot;: &quot;z9Q2&amp;mK4v&quot;"):
        assert ALL.text(text).found[0].digest == plain.digest


@proves("REDACT-MEANT", "REDACT-PLACEHOLDER")
@pytest.mark.parametrize(
    ("before", "written", "behind"),
    [
        ("password: ", "hunter2xyz&9Q", ""),
        ("password: ", "hunter2xyz&amp;9Q", " so"),
        ("<password>", "hunter2xyz&amp;9Q", "</password>"),
        ("&lt;password&gt;", "hunter2xyz&amp;amp;9Q", "&lt;/password&gt;"),
        ("password: ", "hunter2xyz&amp;9Q", "&lt;br&gt;"),
        ('{"password": "', r"hunter2xyz\u00269Q", '"}'),
        ('<a password="', "hunter2xyz&#38;9Q", '">'),
    ],
)
def test_secret_in_xml_is_found_and_its_tag_kept(before: str, written: str, behind: str) -> None:
    (plain,) = ALL.text('password = "hunter2xyz&9Q"').found
    masked = ALL.text(before + written + behind)
    assert masked.text == before + plain.placeholder + behind


@proves("REDACT-MEANT", "REDACT-PLACEHOLDER")
def test_escaped_quote_does_not_end_a_quoted_value() -> None:
    value = 'z9Q2mK4v"Xk39vQz7'
    (plain,) = ALL.text(f"password: '{value}'").found
    text = json.dumps({"password": value, "x": 1})
    for _ in range(3):
        masked = ALL.text(text)
        assert [finding.digest for finding in masked.found] == [plain.digest]
        assert "Xk39" not in masked.text
        text = json.dumps(text)
    closed = json.dumps({"password": "z9Q2mK4v\\", "x": "y"})
    assert redact_without_digests(closed) == '{"password": "[REDACTED:password]", "x": "y"}'
    assert ALL.tree({"password": value}).value["password"] == plain.placeholder


@proves("REDACT-MEANT", "REDACT-KEPT")
@pytest.mark.parametrize(
    "text",
    [
        "100% of 20% at %d items, %02x and %s",
        "&nosuchname; &copy; AT&T; a&b",
        r"C:\new\temp\user \d+ \w \\server\share",
        r"re.compile(r'\btoken\b\s*=\s*(\S{8,})')",
        "password=%PASSWORD% token=%20 key=%3Cyour%20key%3E",
    ],
)
def test_text_similar_to_escapes_is_kept(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-MEANT")
@given(st.text(st.sampled_from("ab\\%&#;25unx0é \n\"'"), max_size=24))
@example(r"\ud83d\ude00 \ud83d")
@example("&#38;&#x26;&amp;amp;&bogus;")
def test_positions_map_between_normalized_and_original_text(text: str) -> None:
    data = text.encode(errors="surrogatepass")
    normalized = unescape_with_positions(data)
    assert normalized.data == unescape(data)
    starts = [normalized.original_start(at) for at in range(len(normalized.data))]
    ends = [normalized.original_end(at + 1) for at in range(len(normalized.data))]
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(start < end <= len(data) for start, end in zip(starts, ends, strict=True))


@proves("REDACT-MEANT")
def test_positions_of_removed_text_map_to_the_text_after_it() -> None:
    normalized = NormalizedText(b"ab--cd", b"abcd", lambda _: [(2, 4, b"")])
    assert normalized.data == b"abcd"
    assert [normalized.original_start(position) for position in range(4)] == [0, 1, 4, 5]
    lines = normalize_lines(
        b"one\ntwo\nthree", LinearRegex(rb"[^\n]*w[^\n]*\n?"), bytes, lambda _: ()
    )
    assert lines.data == b";\ntwo\n;\n"
    assert lines.original_start(lines.data.index(b"two")) == 4


@proves("REDACT-MEANT", "REDACT-LINEAR")
@pytest.mark.parametrize("piece", ["\\", "%25", "&amp;", "amp;", r"\u0041", "%41", "&#65;", "&a"])
def test_work_grows_linearly_with_escapes(piece: str) -> None:
    redactor = Redactor([Secret("pin", "zx81&Tiger.Burning_42")], KEY)
    costs = list[int]()
    for size in (10_000, 20_000):
        with WorkMeter() as meter:
            redactor.text((piece * size)[:size])
        costs.append(meter.bytes_examined)
    assert 0 < costs[1] <= 3 * costs[0]


AWS = "AKIAWJIBAGI3MNBQNSPU"
DATABRICKS = "dapi5f08b79affd2b49c12a4b0062983475e"
HUGGING = "hf_" + "abcdeFGHIJ" * 3 + "klmn"
GITLAB = "glpat-" + "a1B2" * 5


@proves("REDACT-BORDERS")
@pytest.mark.parametrize(
    ("secret", "before", "behind"),
    [
        (AWS, "\x1b[31m", "\x1b[0mok"),
        (DATABRICKS, "\x1b[31m", "\x1b[0mINFO"),
        (HUGGING, "\x1b[33m", "\x1b[0mvalid"),
        (GITHUB, "", "\x1b[0mis the token"),
        (GITLAB, "Token\x1b[32m", "\x1b[0m"),
        (GITLAB, "Token\x1b[32m", "\x1b[0mdone and \u200bdone"),
        (AWS, r"{\"x\": \"\u001b[31m", r"\u001b[0mok\"}"),
        ("z9Q2mK4v", "token\x1b[0m=\x1b[36m", "\x1b[0mok"),
        ("Tr0ub4dorx9Zq", "\x1b[1mpassword:\x1b[0m ", " ok\n"),
        ("Tr0ub4dorx9Zq", "\x1b[31mAPI_KEY\x1b[0m: \x1b[32m", "\x1b[0m\n"),
        ("z9Q2mK4v", "token\x1b[0m=\x1b[36m", "\x1b[0m\nno more\n\x1b[1m."),
    ],
)
def test_terminal_colour_separates_a_secret_from_adjacent_words(
    secret: str, before: str, behind: str
) -> None:
    (alone,) = ALL.text(f"token={secret} .").found
    masked = ALL.text(before + secret + behind)
    assert [finding.digest for finding in masked.found] == [alone.digest]
    assert masked.text == before + masked.found[0].placeholder + behind
    assert ALL.text(masked.text).text == masked.text
    stream = ALL.stream()
    pieces = [stream.feed(character) for character in before + secret + behind]
    assert "".join(pieces) + stream.close() == masked.text


@proves("REDACT-BORDERS")
@pytest.mark.parametrize("border", [7, 12, 38])
def test_terminal_colour_inside_a_secret_does_not_split_it(border: int) -> None:
    secret = GITHUB + "c3D4e5F6g7"
    text = f"\x1b[1m{secret[:border]}\x1b[31m{secret[border:]}\x1b[0m"
    assert redact_without_digests(text) == "\x1b[1m[REDACTED:github_token]\x1b[0m"
    assert ALL.text(text).found[0].digest == ALL.text(secret).found[0].digest


@proves("REDACT-NAMED", "REDACT-STREAM")
def test_secret_in_nested_json_texts_is_found() -> None:
    text = json.dumps({"password": "Xk39vQz7Lm2pRt8w", "n": 1})
    (expected,) = ALL.text(text).found
    for _ in range(4):
        text = json.dumps({"body": text})
        masked = ALL.text(text)
        assert masked.text == text.replace("Xk39vQz7Lm2pRt8w", expected.placeholder)
        stream = ALL.stream()
        pieces = [stream.feed(text[at : at + 3]) for at in range(0, len(text), 3)]
        assert "".join(pieces) + stream.close() == masked.text
