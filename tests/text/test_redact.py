"""Redaction: the secrets that are masked, and the text that is kept."""

import json
import random
import re
import urllib.parse
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docs.generate import DOCS
from dragoman.text.linear_regex import AnyRegex, LinearRegex, Match
from dragoman.text.redact import Redactor, Secret
from dragoman.text.redact.rules import PROGRAMS, RULES
from tests.requirements import proves
from tests.text import secrets_corpus as corpus

KEY = b"k" * 32
ALL = Redactor(key=KEY)
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{8}\]")
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join("MIIEowIBAAKCAQEA" + "q7Xz" * 12 for _ in range(5))
    + "\nab12=\n-----END RSA PRIVATE KEY-----"
)
PUTTY = (
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n"
    "AAAAC3NzaC1lZDI1NTE5\n{}\n"
)
PUTTY_LINES = "Private-Lines: 3\n" + ("q7Xz" * 16 + "\n") * 2 + "ab12="
PUTTY_MAC = "Private-MAC: " + "0a1b" * 16
DOCKER = b64encode(b"bob:nLqNGpuxcmlzkO").decode()
GITHUB = "ghp_" + "a1B2" * 9


def redact_without_digests(text: str) -> str:
    """Redact a text and remove the digests from its placeholders."""
    return re.sub(r":[0-9a-f]{8}\]", "]", ALL.text(text).text)


@proves("REDACT-COMMON")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{{"auths": {{"r.io": {{"auth": "{DOCKER}"}}}}}}', DOCKER),
        (rf"{{\"auth\": \"{DOCKER}\"}}", DOCKER),
        ("machine h login y password nLqNGpuxcmlzkO", "nLqNGpuxcmlzkO"),
        ("machine h\n  login y\n  password nLqNGpuxcmlzkO\n", "nLqNGpuxcmlzkO"),
        ("  pass: FBNOfQ5xj7t2yd", "FBNOfQ5xj7t2yd"),
        ('{"pass": "FBNOfQ5xj7t2yd"}', "FBNOfQ5xj7t2yd"),
        ("bob:$2y$05$" + "./a1B2" * 8 + "c3D4e", "$2y$05$" + "./a1B2" * 8 + "c3D4e"),
        (PUTTY.format(f"{PUTTY_LINES}\nand on"), PUTTY_LINES),
        (PUTTY.format(f"{PUTTY_LINES}\n{PUTTY_MAC}"), f"{PUTTY_LINES}\n{PUTTY_MAC}"),
        (json.dumps(PUTTY.format(PUTTY_LINES).rstrip()), json.dumps(PUTTY_LINES)[1:-1]),
    ],
)
def test_common_credential_forms_are_found_whole_and_in_chunks(text: str, expected: str) -> None:
    masked = ALL.text(text)
    assert len(masked.found) == 1
    assert masked.text == text.replace(expected, masked.found[0].placeholder)
    assert ALL.text(masked.text).text == masked.text
    for size in (1, 2, 5, 17):
        stream = ALL.stream()
        pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(pieces) + stream.close() == masked.text, size


@proves("REDACT-COMMON")
@pytest.mark.parametrize(
    "text",
    [
        "--- PASS: TestHTTP2Server (0.00s)",
        "bypass: FBNOfQ5xj7t2yd",
        "did all of them pass: yes",
        "the login form has a password field",
        '"auth": "oauth2-device"',
        "Private-Lines: 3 are counted",
        "$2y$05$ is how it begins",
    ],
)
def test_text_similar_to_credentials_is_kept(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-COMMON")
def test_only_whole_keys_of_an_object_name_secrets() -> None:
    value = {"auth": DOCKER, "pass": "FBNOfQ5xj7t2yd", "passage": "FBNOfQ5xj7t2yd"}
    assert ALL.tree(value).found == (("auth", "auth"), ("pass", "password"))


@proves("REDACT-LAYERS")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"push {GITHUB} done", "push [REDACTED:github_token] done"),
        (f"first\\n{GITHUB}\\nlast", "first\\n[REDACTED:github_token]\\nlast"),
        (f"a%3D{GITHUB}", "a%3D[REDACTED:github_token]"),
        (f"x{GITHUB}", f"x{GITHUB}"),
        ("password = hunter22x!", "password = [REDACTED:password]"),
        ("password: Tr0ub4dor&3xyz", "password: [REDACTED:password]"),
        ("--password Tr0ub4dor&3xyz9Q x", "--password [REDACTED:password] x"),
        ("password=aB3;xY7!kL9@mN2qq", "password=[REDACTED:password]"),
        ("password: xK9,mP2vQ7rT4w, and", "password: [REDACTED:password], and"),
        ("password: xK9)mP2vQ7rT4w", "password: [REDACTED:password]"),
        ("password=xK9mP2vQ7(rT4w", "password=[REDACTED:password]"),
        ("?token=hunter22x9&user=bob", "?token=[REDACTED:token]&user=bob"),
        ("Pwd=hunter22x9;Server=db", "Pwd=[REDACTED:password];Server=db"),
        ("f(token=hunter22x9,user=bob)", "f(token=[REDACTED:token],user=bob)"),
        ('password: str = "hunter22x"', 'password: str = "[REDACTED:password]"'),
        ('{"apiKey": "k3Jx 9-aQ w"}', '{"apiKey": "[REDACTED:apikey]"}'),
        (r"{\"api_key\": \"k3Jx9aQw\"}", r"{\"api_key\": \"[REDACTED:api_key]\"}"),
        ("deploy --db-password s3Cr3t99 now", "deploy --db-password [REDACTED:password] now"),
        (
            "Authorization: Basic dXNlcjpwYXNzMTIz",
            "Authorization: Basic [REDACTED:authorization]",
        ),
        ("postgresql://ann:hunter2@db/x", "postgresql://ann:[REDACTED:url_password]@db/x"),
        ("https://0a1b2c3d4e5f6a7b8c9d0e1f@host/x", "https://[REDACTED:url_user]@host/x"),
        ("blob?sv=1&sig=" + "a1B2" * 12 + "%3D", "blob?sv=1&sig=[REDACTED:azure_sas]"),
        (
            'Digest username="b", nonce="0a", response="' + "0a1b" * 8 + '"',
            'Digest username="b", nonce="0a", response="[REDACTED:digest_response]"',
        ),
        (
            "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=" + "0a1b" * 16,
            "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=[REDACTED:aws_signature]",
        ),
        ("APP_KEY=base64:" + "a1B" * 14 + "a=", "APP_KEY=base64:[REDACTED:laravel_key]"),
        (f"before\n{PEM}\nafter", "before\n[REDACTED:private_key]\nafter"),
        (json.dumps({"k": PEM}), '{"k": "[REDACTED:private_key]"}'),
        (PEM.rpartition("\n")[0] + "\nand on", "[REDACTED:private_key]\nand on"),
        (b64encode(f"u:{GITHUB}".encode()).decode(), "[REDACTED:github_token]"),
        (b64encode(b"AKIAIOSFODNN7EXAMPLQ").decode(), "[REDACTED:aws_access_key_id]"),
        ("id: QUtJQUlPU0ZPRE5ON0VYQU1QTFE\n", "id: [REDACTED:aws_access_key_id]\n"),
        ("é" + GITHUB.replace("ghp_", "é ghp_"), "éé [REDACTED:github_token]"),
    ],
)
def test_secret_is_replaced_by_its_kind(text: str, expected: str) -> None:
    assert redact_without_digests(text) == expected


@proves("REDACT-URLS")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"git clone https://x-access-token:{GITHUB}@github.com/acme/x.git .",
            "git clone https://x-access-token:[REDACTED:github_token]@github.com/acme/x.git .",
        ),
        (
            "https://gitlab-ci-token:z9Q2mK4vX7bN1cR5@gitlab.com/acme/x.git",
            "https://gitlab-ci-token:[REDACTED:url_password]@gitlab.com/acme/x.git",
        ),
        ("https://token:z9Q2mK4v@h/x?y=1", "https://token:[REDACTED:url_password]@h/x?y=1"),
        ("https://db_password:z9Q2@h/x", "https://db_password:[REDACTED:url_password]@h/x"),
        (
            f"https://api.telegram.org/bot110201543:AA{'a1B' * 11}/getMe",
            "https://api.telegram.org/bot[REDACTED:telegram_bot_address]/getMe",
        ),
        (
            "/r?next=https%3A%2F%2Fhooks.slack.com%2Fservices%2FT0A%2FB0A%2FabcdEFGH1234ijklMN&x=1",
            "/r?next=https%3A%2F%2Fhooks.slack.com%2Fservices%2F[REDACTED:slack_webhook]&x=1",
        ),
        (
            "?u=postgres%3A%2F%2Fadmin%3az9Q2mK4vX7bN1cR5%40db%2fx&z=%20",
            "?u=postgres%3A%2F%2Fadmin%3a[REDACTED:url_password]%40db%2fx&z=%20",
        ),
        (
            "r?q=a%3Fpassword%3Dhünter22x%25y9%26user%3Dbob",
            "r?q=a%3Fpassword%3D[REDACTED:password]%26user%3Dbob",
        ),
        (
            "a%253Fnext%253Dhttps%253A%252F%252Fu%253Ahunter22%2540h%252Fx 100%",
            "a%253Fnext%253Dhttps%253A%252F%252Fu%253A[REDACTED:url_password]%2540h%252Fx 100%",
        ),
        ("see https://token:z9Q2mK4vX7bN1cR5 now", "see https://token:[REDACTED:token] now"),
    ],
)
def test_only_the_secret_of_a_url_is_masked(text: str, expected: str) -> None:
    assert redact_without_digests(text) == expected
    once = ALL.text(text).text
    assert ALL.text(once).text == once
    stream = ALL.stream()
    assert "".join(stream.feed(character) for character in text) + stream.close() == once


ARGUMENTS = ["mysql", "--host", "db-7x.example", "--db-password", "z9Q2mK4vX7bN1cR5", "-v"]


@proves("REDACT-ARGUMENTS")
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ARGUMENTS),
        json.dumps(ARGUMENTS, separators=(",", ":")),
        json.dumps({"command": ARGUMENTS}, indent=4),
        json.dumps(json.dumps(json.dumps(ARGUMENTS, indent=2))),
        repr(ARGUMENTS),
    ],
)
def test_option_names_the_next_argument_in_a_list(text: str) -> None:
    masked = ALL.text(text)
    assert [finding.kind for finding in masked.found] == ["password"]
    assert masked.text == text.replace(ARGUMENTS[4], masked.found[0].placeholder)
    assert ALL.text(masked.text).text == masked.text
    for size in (1, 3, 7):
        stream = ALL.stream()
        pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(pieces) + stream.close() == masked.text, size


@proves("REDACT-ARGUMENTS")
def test_option_names_the_next_argument_in_a_json_tree() -> None:
    masked = ALL.tree({"arguments": {"command": ARGUMENTS, "password": ["hunter22x", "--x", "y"]}})
    assert masked.found == (
        ("arguments.command[4]", "password"),
        ("arguments.password[0]", "password"),
    )
    command = masked.value["arguments"]["command"]
    assert command[:4] + command[5:] == ARGUMENTS[:4] + ARGUMENTS[5:]


@proves("REDACT-ARGUMENTS")
@pytest.mark.parametrize(
    "words",
    [
        ["--token-file", "/run/x9Q2mK4vX7"],
        ["--password", "--verbose"],
        ["--token", 7, "z9Q2mK4vX7bN1cR5"],
        ["--password", "required"],
        ["--passed", "z9Q2mK4vX7bN1cR5"],
    ],
)
def test_other_arguments_are_kept(words: list[Any]) -> None:
    assert ALL.tree(words).found == ()
    assert ALL.text(json.dumps(words)).found == ()
    assert ALL.text('run(["--token", token1234x])').found == ()


@proves("REDACT-KEPT")
@pytest.mark.parametrize(
    "text",
    [
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id 0197f5d2-8c1a-7b3e-9f42-1234567890ab",
        "secret: 0197f5d2-8c1a-7b3e-9f42-1234567890ab",
        "TASK-2026-02-09-057 task:TASK-2026-02-09-00001234 bead:ol-527.1",
        "dragoman agent revoke coder --token 3f9a0c55d21e",
        "token_id=3f9a0c55d21e9911 password_hash=5f4dcc3b5aa765d61d8327deb882cf99",
        "passed: 3fd9aa0071, tokenizer=bpe50k9x, author: b0b99x7721",
        "PASSWORD=${PASSWORD} TOKEN=<your token> key=%KEY%",
        "tokens: 123456 password: required secret = get_secret(name)",
        "postgresql://user:${PGPASSWORD}@db https://user:***@host",
        "-----BEGIN PRIVATE KEY----- is how such a file begins",
        "from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY----- it is one",
        "-----BEGIN PRIVATE KEY-----\nuser: bob\nhost: example\n- one\n- two\n# and more",
        "-----BEGIN CERTIFICATE-----\nMIIB" + "q7Xz" * 15 + "\n-----END CERTIFICATE-----",
        "api_key: https://docs.example.com/v2/keys1",
        "use basic authentication or bearer authentication",
        'Token.Comment: "italic #A3AAB2"',
        'Token.Keyword: "bold #fff bg:#A3AAB2 nounderline"',
        'password: "^[A-Za-z0-9!@#]{8,}$"',
        '"tokenPattern": "(?:ghp|gho)_[A-Za-z0-9]{36}"',
        'secret = "id-\\\\d{4}-Z9x\\\\w+"',
        "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
        "secretArn=arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
        '"Resource": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:DbSecret-a1b2c3"',
        'password_algorithm = "PBKDF2WithHmacSHA256"',
        "secret: PBKDF2WithHmacSHA256 token_cipher: AES256/GCM/NoPadding",
    ],
)
def test_hashes_ids_names_and_words_are_kept(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-SOURCES")
def test_each_rule_has_a_unique_kind_and_a_source() -> None:
    kinds = [rule.kind for rule in RULES]
    assert len(set(kinds)) == len(kinds)
    assert all(re.fullmatch(r"[a-z0-9_]{1,64}", kind) for kind in kinds)
    assert all(rule.source.startswith(("https://", "docs/")) for rule in RULES)
    assert all(program.source.startswith("https://") for program in PROGRAMS)


@proves("REDACT-PLACEHOLDER")
def test_digests_are_equal_for_equal_secrets_under_one_key_only() -> None:
    one, other = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    text = ALL.text(f"{one} {other} {one[:9]}\x1b[1m{one[9:]} {b64encode(one.encode()).decode()}")
    first, second, coloured, encoded = (found.digest for found in text.found)
    assert first == coloured == encoded != second
    assert Redactor(key=b"another").text(one).found[0].digest != first
    assert all(PLACEHOLDER.fullmatch(found.placeholder) for found in text.found)


@proves("REDACT-KNOWN")
def test_known_value_is_found_in_every_encoding() -> None:
    values = corpus.values()
    for value in values:
        redactor = Redactor([Secret("vault_pin", value)], KEY, known_only=True)
        raw = value.encode()
        for written in (
            value,
            f"a{value}b",
            json.dumps({"x": value}),
            json.dumps(value, ensure_ascii=False),
            json.dumps(json.dumps(value)),
            urllib.parse.quote(value),
            urllib.parse.quote(value, safe=""),
            urllib.parse.quote_plus(value),
            raw.hex(),
            raw.hex().upper(),
            *(b64encode(before + raw + b"!!").decode() for before in (b"", b"u", b"us")),
            *(urlsafe_b64encode(before + raw).decode() for before in (b"", b"u:", b"u")),
            f"{value[:5]}\x1b[31m{value[5:]}",
            f"{value[:5]}\u200b{value[5:]}",
        ):
            found = redactor.text(f"<{written}>").found
            assert [finding.kind for finding in found] == ["vault_pin"], (value, written)
            assert found[0].digest == redactor.text(value).found[0].digest


@proves("REDACT-KNOWN")
def test_multiline_known_value_is_found_by_one_line() -> None:
    redactor = Redactor([Secret("deploy_key", PEM)], KEY, known_only=True)
    line = PEM.splitlines()[1]
    assert "MIIE" not in redactor.text(f"2026-11-15 out {line}").text
    assert redactor.text("-----BEGIN RSA PRIVATE KEY-----").found == ()
    assert [finding.kind for finding in redactor.text(PEM).found] == ["deploy_key"]


BREAKS = ("\n", "\r\n", "\r", "\n    ", "\n\t", "  \n", "\\\n", " \\\n  ", "\n\n", "\\n", r"\r\n\t")
"""Line ends, with blanks, with continuation marks, and as JSON escapes them."""


def broken_forms(value: str, end: str) -> Iterator[str]:
    """A value with a line break at each position."""
    return (f"{value[:at]}{end}{value[at:]}" for at in range(1, len(value)))


@proves("REDACT-KNOWN")
@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize("value", ["zx81-Tiger.Burning_42", r"zx81-\Ti\.ger_42"])
def test_known_value_broken_by_line_ends_is_found(end: str, value: str) -> None:
    redactor = Redactor([Secret("pin", value)], KEY, known_only=True)
    whole = redactor.text(value).text
    for written in {value, json.dumps(value)[1:-1]}:
        for broken in broken_forms(written, end):
            assert redactor.text(f"a{broken}b").text == f"a{whole}b", broken
    in_lines = end.join(value[at : at + 5] for at in range(0, len(value), 5))
    assert redactor.text(f"é {in_lines}{end}b").text == f"é {whole}{end}b"
    encoded = b64encode(value.encode()).decode()
    assert redactor.text(f"{encoded[:9]}{end}{encoded[9:]}\nb").text == f"{whole}\nb"


@proves("REDACT-KNOWN")
@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n\t", "\\\n"])
def test_line_break_is_distinguished_from_a_backslash_of_the_value(end: str) -> None:
    value = r"C:\new\temp\right-42"
    redactor = Redactor([Secret("pin", value)], KEY, known_only=True)
    whole = redactor.text(value).text
    for broken in broken_forms(value, end):
        assert redactor.text(f"a {broken} b").text == f"a {whole} b", broken


@proves("REDACT-KNOWN", "REDACT-KEPT")
def test_lines_that_join_to_a_known_value_by_chance_are_kept() -> None:
    redactor = Redactor([Secret("pin", "tiger-42"), Secret("word", "burning-bright-42")], KEY)
    for text in ("tiger\n-42", "bur\nningbright-42", "aning-bright-42", "burning\nand\n-bright-42"):
        assert redactor.text(text).text == text


@proves("REDACT-KNOWN")
def test_too_short_value_is_ignored_and_repr_shows_no_value() -> None:
    assert Redactor([Secret("pin", "1234")], KEY).text("1234 items").text == "1234 items"
    assert "1234" not in repr(Secret("pin", "1234"))


@proves("REDACT-TREE")
def test_json_tree_is_redacted_in_texts_and_under_secret_keys() -> None:
    value = {
        "tool": "curl",
        "arguments": {"password": "k3Jx 9-aQ w", "tokens": 17, "list": [GITHUB, "x", None, 1.5]},
        f"key {GITHUB}": True,
    }
    masked = ALL.tree(value)
    assert masked.found == (
        ("arguments.password", "password"),
        ("arguments.list[0]", "github_token"),
        ("", "github_token"),
    )
    text = json.dumps(masked.value)
    assert GITHUB not in text
    assert "k3Jx" not in text
    assert masked.value["arguments"]["list"][1:] == ["x", None, 1.5]
    assert ALL.tree({"password": "[REDACTED:password:00000000]"}).found == ()
    plain = {"a": ["b", 1], "token_id": "a1b2c3d4e5f6a7b8"}
    assert ALL.tree(plain).value is plain


@proves("REDACT-TREE")
def test_secret_names_are_ignored_with_known_values_only() -> None:
    redactor = Redactor([Secret("pin", "tiger-tiger-42")], KEY, known_only=True)
    masked = redactor.tree({"password": "k3Jx9aQw1", "note": "tiger-tiger-42"})
    assert masked.found == (("note", "pin"),)
    assert masked.value["password"] == "k3Jx9aQw1"


PIECES = st.sampled_from(
    [
        GITHUB,
        "password",
        "secret",
        "=",
        ": ",
        '"',
        "'",
        "\\",
        " ",
        "\n",
        "é",
        "…",
        "\x1b[31m",
        "\x1b]0;a b",
        "\ud800",
        "hunter22x",
        "://u:p4ssw0rd@h",
        "Bearer ",
        "AKIA",
        "[REDACTED:password:0a1b2c3d]",
        "[REDACTED:",
        "]",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAq7Xzq7Xzq7Xzq7Xz",
        "dXNlcjpnaHBfYTFCMmExQjJhMUIyYTFCMmExQjJhMUIyYTFCMmExQjJhMUIy",
        "AKIAIOSFODNN7EXAMPLQ",
        "zz91-zz91",
        "tiger tiger burning bright",
        "://",
        "@",
        "_",
        "/",
        "&",
        "://u:",
        "%3A%2F%2Fu%3A",
        "%40h",
        "%22",
        "&quot;",
        r"\u0026",
        "&amp;",
        "| ",
        "name: ",
        "value",
        "api ",
        "key",
        "**",
        "identified by ",
        "--api_key ",
        "Cookie: a=",
        "curl -u b:",
        "</b>",
        "<td>",
        "is ",
        "h:5432:d:u:",
    ]
)
WITH_KNOWN_VALUES = Redactor(
    [Secret("phrase", "tiger tiger burning bright"), Secret("pin", "zz91-zz91")], KEY
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=14).map("".join)


@proves("REDACT-TWICE")
@given(TEXTS)
@example("zz91-zz91AKIAIOSFODNN7EXAMPLQ")
@example("AKIAIOSFODNN7EXAMPLQzz91-zz91")
@example("://zz91-zz91@")
@example("zz91-zz91Bearer eyJhbGciOiJIUzI1NiJ9")
@example("zz91-zz91_dXNlcjpnaHBfYTFCMmExQjJhMUIyYTFCMmExQjJhMUIyYTFCMmExQjJhMUIy")
@example("[REDACTED:zz91-zz91,Authorization: ghp_a1B2a1B2a1B2a1B2")
@example(f"https://u:tiger tiger burning brightxoxb-1234567890-abc zz91-zz91{GITHUB}&@host/")
@example(f'password>"{PEM}{GITHUB}&" and "secret": "tiger tiger burning bright x"')
@example("https%3A%2F%2Fu%3Apassword=tiger tiger burning bright@host/=")
def test_redaction_is_idempotent(text: str) -> None:
    once = WITH_KNOWN_VALUES.text(text).text
    assert WITH_KNOWN_VALUES.text(once).text == once


@proves("REDACT-LAYERS")
@pytest.mark.parametrize("width", [20, 40, 64, 76])
def test_base64_is_decoded_across_lines(width: int) -> None:
    encoded = b64encode(f"{GITHUB} and some words that follow it".encode()).decode()
    lines = "\n".join(encoded[at : at + width] for at in range(0, len(encoded), width))
    assert (
        redact_without_digests(f"key:\n{lines}\nHello world")
        == "key:\n[REDACTED:github_token]\nHello world"
    )
    later = f"notaword16letters\n- {lines}\n"
    assert redact_without_digests(later) == "notaword16letters\n- [REDACTED:github_token]\n"
    indented = lines.replace("\n", "\r\n  ")
    assert redact_without_digests(f"  {indented}\r\nnext") == "  [REDACTED:github_token]\r\nnext"
    for between in ("  \n", "\n\n", "\r\n\r\n", "\\n", "\\r\\n", "\\\\n"):
        separated = lines.replace("\n", between)
        assert (
            redact_without_digests(f'"{separated}{between}" next')
            == f'"[REDACTED:github_token]{between}" next'
        )
        assert redact_without_digests(f'"{separated}" next') == '"[REDACTED:github_token]" next'


@proves("REDACT-LAYERS")
def test_base64_is_decoded_after_any_adjacent_character() -> None:
    encoded = b64encode(f"user:{GITHUB}".encode()).decode()
    for before in ("+", "/", "x", "+/", "a/b"):
        assert redact_without_digests(f"is {before}{encoded} so") == "is [REDACTED:github_token] so"


@proves("REDACT-LAYERS", "REDACT-KEPT")
def test_short_base64_lines_without_a_secret_are_kept() -> None:
    text = "YWFhYWFhYWFhYWFh\nY\nYWFhYWFhYWFhYWFh\nYW==\n"
    assert ALL.text(text).text == text


@proves("REDACT-LAYERS")
def test_private_key_in_wrapped_base64_in_json_is_masked() -> None:
    text = json.dumps({"k": encodebytes(PEM.encode()).decode()})
    assert redact_without_digests(text) == '{"k": "[REDACTED:private_key]\\n"}'


LINE_STARTS = ("> ", "-", "| ", "# ", "* ", "12: ", "app-1  | ", "2026-11-15T10:00:00Z ", "12→")
"""Line prefixes of replies, diffs, comments, searches and logs."""


@proves("REDACT-LAYERS")
@pytest.mark.parametrize("start", LINE_STARTS)
def test_private_key_is_found_behind_any_line_prefix(start: str) -> None:
    lines = f"before\n{PEM}\nnext words".splitlines()
    quoted = "\n".join(start + line for line in lines)
    assert (
        redact_without_digests(quoted)
        == f"{start}before\n{start}[REDACTED:private_key]\n{start}next words"
    )


@proves("REDACT-LAYERS")
@pytest.mark.parametrize("side", ["│", "┃", "║", "|"])
def test_private_key_is_found_in_a_drawn_box(side: str) -> None:
    def box(text: str) -> str:
        lines = text.splitlines()
        width = max(map(len, lines)) + 4
        return "\n".join(f"{side} {line:<{width}} {side}" for line in lines)

    whole = redact_without_digests(f"before\n{box(PEM)}\nnext words")
    assert whole.split() == ["before", side, "[REDACTED:private_key]", side, "next", "words"]


@proves("REDACT-LAYERS")
def test_secret_after_an_arn_is_found() -> None:
    address = "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf"
    assert redact_without_digests(f"secret: {address} password=Zq8rT1xwKp0") == (
        f"secret: {address} password=[REDACTED:password]"
    )
    assert (
        redact_without_digests(f"{address},token=Zq8rT1xwKp0")
        == f"{address},token=[REDACTED:token]"
    )


@proves("REDACT-LAYERS")
@pytest.mark.parametrize("start", [*LINE_STARTS, "{0}: ", "2026-11-15T10:00:{0}Z app[{0}]: "])
@pytest.mark.parametrize("follows", ["", "\n", "next words", "Server", "ready", "OK"])
def test_private_key_without_its_end_is_masked_to_its_last_long_line(
    start: str, follows: str
) -> None:
    *lines, short, _ = PEM.splitlines()
    text = "\n".join(
        start.format(9 + number) + line for number, line in enumerate([*lines, short, follows])
    )
    masked = redact_without_digests(text)
    assert masked.startswith(f"{start.format(9)}[REDACTED:private_key]")
    assert "q7Xz" not in masked
    assert masked.endswith((follows, "[REDACTED:private_key]"))
    # A short line behind the label of a log may be a word.
    if start in LINE_STARTS[:5]:
        assert short not in masked


@proves("REDACT-LAYERS")
@pytest.mark.parametrize(
    "between",
    ["  \n", " ", "\\u000a", "\\u000D\\u000A", "\\x0a", "\\x0b", "\x0b", "%0A", "%0d%0a", "\n\n"],
)
def test_private_key_is_found_with_any_line_separator(between: str) -> None:
    key = PEM.replace("\n", between)
    assert redact_without_digests(f"<{key}> next words") == "<[REDACTED:private_key]> next words"
    open_end = between.join(PEM.splitlines()[:-2])
    assert (
        redact_without_digests(f"<{open_end}\nnext words") == "<[REDACTED:private_key]\nnext words"
    )


@proves("REDACT-LAYERS", "REDACT-STREAM")
@pytest.mark.parametrize(
    "between",
    [
        "\\n' +\n  '",
        '" .\n"',
        '",\n  "',
        "', '",
        r"\", \"",
        '\\n"\n    "',
        '"\nlevel=info msg="',
        "' \\\necho '",
    ],
)
def test_private_key_is_found_in_string_literals_of_a_program(between: str) -> None:
    key = PEM.replace("\n", between)
    quote = between[-1]
    text = f"x = [{quote}{key}{quote}, {quote}next{quote}]\nmore words"
    assert (
        redact_without_digests(text)
        == f"x = [{quote}[REDACTED:private_key]{quote}, {quote}next{quote}]\nmore words"
    )
    for border in range(0, len(text), 3):
        stream = ALL.stream()
        pieces = stream.feed(text[:border]), stream.feed(text[border:]), stream.close()
        assert "".join(pieces) == ALL.text(text).text, border
    open_end = between.join(PEM.splitlines()[:-2])
    assert redact_without_digests(f"[{quote}{open_end}{quote}, {quote}next{quote}]") == (
        f"[{quote}[REDACTED:private_key]{quote}, {quote}next{quote}]"
    )


class WorkMeter:
    """Counts the bytes that regular expressions examine while it is active."""

    def __init__(self) -> None:
        self.bytes_examined = 0
        self._monkeypatch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        for owner, name, cost in _MEASURED:
            self._monkeypatch.setattr(owner, name, self._counting(getattr(owner, name), cost))
        return self

    def __exit__(self, *_: object) -> None:
        self._monkeypatch.undo()

    def _counting(self, method: Callable[..., Any], cost: Callable[..., int]) -> Callable[..., Any]:
        def counted(regex: object, text: bytes, *arguments: Any) -> Any:
            found = method(regex, text, *arguments)
            self.bytes_examined += cost(found, text, *arguments)
            return found

        return counted


def _cost_up_to_match(
    match: Match | None, text: bytes, pos: int = 0, end: int | None = None
) -> int:
    return (match.end() if match else end or len(text)) - pos


def _cost_of_whole_text(_: object, text: bytes) -> int:
    return len(text)


_MEASURED = (
    (LinearRegex, "search", _cost_up_to_match),
    (LinearRegex, "match", _cost_up_to_match),
    (LinearRegex, "finditer", _cost_of_whole_text),
    (AnyRegex, "matches", _cost_of_whole_text),
)
WITH_BREAKABLE_VALUES = Redactor(
    [
        Secret("pin", "zx81-Tiger.Burning_42"),
        Secret("path", r"C:\new\temp-pass.W0rd9"),
        Secret("phrase", "tiger tiger burning bright"),
    ],
    KEY,
)
PARTIAL_SECRETS = (
    "zx81\n",
    "x81-T\n",
    "zx81-Tige\nr.Burning_42\n",
    "C:\\\\new\\n",
    "\\",
    "tiger ",
    "tiger tiger burning brighttiger ",
    "zx81-Tiger.Burning_42AKIAIOSFODNN7EXAMPLQ",
    "AAAAAAAAAAAAAAAA\\n",
    "A" * 160 + "        \r\n",
    "[REDACTED:password:0a1b2c3d]hunter22x",
    "> -----BEGIN PRIVATE KEY-----\n> ",
    "+-----BEGIN PRIVATE KEY-----\n+" + "A" * 64 + "\n",
    "app | -----BEGIN PRIVATE KEY-----\napp | " + "A" * 64 + "\n",
    '"-----BEGIN PRIVATE KEY-----\\n' + "A" * 64 + "\\n",
)
"""Starts of known values, Base64 and keys over several lines."""
SLOW_PIECES = (
    "ghp_",
    "AKIA ",
    "drg_",
    "drga_",
    "dapi-",
    "sk-ant-",
    "-eyJaaaaaaaaaa",
    "-Maaaaaaaaaaaa-ghp_",
    "password=",
    "key: ",
    "pass: ",
    '"auth": "',
    "login a\n",
    "Private-Lines: 1\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "| a ",
    "name: key ",
    "api key ",
    "%41 ",
    "&quot; ",
    "\x1b[0m ",
    "://a:",
    "password:\n",
    "password is ",
    "password<b>",
    "<password ",
    "cookie: a=b; ",
    "curl -u a:",
    "token: {",
    'token: {"new": "a", ',
    "\x1b]0;a",
    "xoxo-love-",
    "h:5432:d:u:",
    "AAAAAAAAAAAAAAAAAAAA\n",
    "secret:arn:aws:s3:::",
    "arn:aws:s3:eu:1:secret: ",
    "│ -----BEGIN PRIVATE KEY-----   │\n│ " + "A" * 64 + " │\n",
    'token: "[a-',
    'token: "aes/',
)


@proves("REDACT-LINEAR")
@pytest.mark.parametrize(
    ("piece", "redactor"),
    [
        *((piece, ALL) for piece in SLOW_PIECES),
        *((piece, WITH_BREAKABLE_VALUES) for piece in PARTIAL_SECRETS),
    ],
)
def test_work_grows_linearly_with_the_text(piece: str, redactor: Redactor) -> None:
    costs = list[int]()
    for size in (10_000, 20_000):
        with WorkMeter() as meter:
            redactor.text((piece * size)[:size])
        costs.append(meter.bytes_examined)
    assert 0 < costs[1] <= 3 * costs[0]


@proves("REDACT-LINEAR")
@pytest.mark.parametrize(
    ("piece", "redactor"),
    [
        *(
            (piece, ALL)
            for piece in (
                "bearer ",
                "token: ",
                "auth ",
                "login a\n",
                "Private-Lines: 1\n",
                *SLOW_PIECES[-20:],
            )
        ),
        *((piece, WITH_BREAKABLE_VALUES) for piece in PARTIAL_SECRETS[::2]),
    ],
)
def test_work_grows_linearly_with_the_chunks(piece: str, redactor: Redactor) -> None:
    costs = list[int]()
    for count in (500, 1_000) if redactor is ALL else (200, 400):
        stream = redactor.stream()
        with WorkMeter() as meter:
            for _ in range(count):
                stream.feed(piece)
        costs.append(meter.bytes_examined)
    assert costs[1] <= 3 * costs[0]


@proves("REDACT-RECALL")
def test_recall_on_the_corpus_is_as_documented() -> None:
    assert corpus.recall(ALL, corpus.prefixed(each=16)) >= 0.99
    assert corpus.recall(ALL, corpus.generic(each=20)) >= 0.90


@proves("REDACT-LETTERS")
@pytest.mark.parametrize("value", ["clamhkpoztazfwnh", "qzRvbTxkwLjhPpds", "xkjwqvbz"])
def test_random_letters_are_not_taken_for_a_word(value: str) -> None:
    assert redact_without_digests(f"password={value}") == "password=[REDACTED:password]"


@proves("REDACT-LETTERS")
@pytest.mark.parametrize("kind", ["lower case", "letters"])
def test_recall_of_letter_only_secrets_is_90_percent(kind: str) -> None:
    cases = [case for case in corpus.generic(each=200) if case.kind == kind]
    assert corpus.recall(ALL, cases) >= 0.90


@proves("REDACT-LETTERS")
def test_words_of_languages_and_programs_are_kept() -> None:
    for word in corpus.WORDS:
        text = f"password={word} token: {word}"
        assert ALL.text(text).text == text, word


@proves("REDACT-RECALL")
def test_precision_on_ordinary_lines_is_95_percent() -> None:
    cases = [case.text for case in corpus.generic(each=10)]
    lines = corpus.clean_lines(count=1_200) + cases
    random.Random(3).shuffle(lines)
    masked = [line for line in lines if ALL.text(line).found]
    assert sum(line in cases for line in masked) / len(masked) >= 0.95


@proves("REDACT-LAYERS", "PROJECT-DOCS")
def test_example_of_the_page_runs() -> None:
    page = (DOCS / "redaction.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "redaction.md", "exec"), {})  # noqa: S102  our own page


@proves("REDACT-KNOWN")
def test_many_long_known_values_are_supported() -> None:
    keys = [
        "\n".join(f"{number:02d}{line:04d}" + "Ab3/" * 15 for line in range(50))
        for number in range(12)
    ]
    redactor = Redactor([Secret("key", key) for key in keys])
    assert redactor.text(f"take {keys[7]} along").text.startswith("take [REDACTED:key:")
    assert redactor.text("nothing to see").text == "nothing to see"
