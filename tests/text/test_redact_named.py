"""Secrets that a name tells, in the forms that letters, notes and programs use."""

import json
from typing import Any

import pytest

from dragoman.text.redact import is_secret_variable
from tests.requirements import proves
from tests.text.test_redact import ALL

SECRET = "Xk39vQz7Lm2pRt8w"
PUBLIC = "AAAAC3NzaC1lZDI1NTE5AAAAIJ0a9Zz8sQ2mK4vX7bN1cR5pL6oT3uW8yE1rG2hJ4kF5"


@proves("REDACT-NAMED")
@pytest.mark.parametrize(
    "text",
    [
        "**Password:** {}",
        "**Password**: {} and more",
        "- **API Key**: `{}`",
        "__Token:__ {}",
        "API key: {}",
        "the secret key: {}",
        "Private key = {}",
        "deploy --api_key {} --now",
        "deploy --api_key={}",
        '["--api_key","{}"]',
        '["deploy", "--api_key", "{}"]',
        '{{"name": "API_KEY", "value": "{}"}}',
        '{{"value": 1, "key":"DB_PASSWORD","value":"{}"}}',
        r"{{\"name\": \"API_KEY\", \"value\": \"{}\"}}",
        "env:\n  - name: API_KEY\n    value: {}\n  - name: HOME\n",
        '<add key="ApiKey" value="{}" />',
        "ALTER USER x WITH PASSWORD '{}';",
        "CREATE USER x IDENTIFIED BY '{}'",
        'api_key="""{}"""',
        "api_key = '''{}'''",
        'password = f"{}"',
        'password = f"{{user}}:{}"',
        "token = r'{}'",
        "token = rb'{}'",
        "PASS={}",
        "export PASS={} && x",
        "| Password | {} |",
        "| user | bob |\n| db password | `{}` | of staging |",
        "|**API key**|{}|",
        "│ Password │ {} │",
        "SSHPASS={} ssh x",
        "hmac_key: {}",
        '"hmacKey": "{}"',
        "ssh_key={}",
        "SUPABASE_SERVICE_ROLE_KEY={}",
    ],
)
def test_a_value_behind_its_name_is_masked_whole_and_in_pieces(text: str) -> None:
    said = "{user}:" if "{user}" in text.format("") else ""
    before, _, behind = text.format(SECRET).partition(said + SECRET)
    masked = ALL.text(before + said + SECRET + behind)
    assert len(masked.found) == 1
    assert masked.text == before + masked.found[0].placeholder + behind
    assert ALL.text(masked.text).text == masked.text
    for size in (1, 5):
        stream = ALL.stream()
        whole = before + said + SECRET + behind
        pieces = [stream.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
        assert "".join(pieces) + stream.close() == masked.text, size


@proves("REDACT-NAMED")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"name": "API_KEY", "value": SECRET}, "value"),
        ([{"key": "DB_PASSWORD", "value": SECRET}], "[0].value"),
        (["deploy", "--api_key", SECRET], "[2]"),
        ({"SSHPASS": SECRET}, "SSHPASS"),
        ({"hmac_key": SECRET}, "hmac_key"),
        ({"API key": SECRET}, "API key"),
    ],
)
def test_so_is_one_in_json(value: Any, path: str) -> None:
    assert [place for place, _ in ALL.tree(value).found] == [path]


@proves("REDACT-NAMED", "REDACT-KEPT")
@pytest.mark.parametrize(
    "text",
    [
        '{"name": "TOKEN_URL", "value": "Xk39vQz7Lm2pRt8w"}',
        '{"name": "colour", "value": "Xk39vQz7Lm2pRt8w"}',
        "f(name=token, value=Xk39vQz7Lm)",
        "the password 'is required' here, and password Xk39vQz7Lm2pRt8w is not quoted",
        "cat x | grep token | sha256sum",
        "def f() -> Ed25519PrivateKey | Ed448PrivateKey | X25519PrivateKey | None:",
        "| `notify.webhook_secret` | A file that holds the secret instead |",
        "| Password | required | 12 |",
        "--- PASS: TestHTTP2Server (0.00s)",
        "PASS=12 FAIL=0 PASS=required",
        'token = f"{prefix}_{number:04x}_{name}"',
        'TOKEN = r"[-!#$%&*+.^_`|~0-9a-zA-Z]+"',
        f'ssh_key = "ssh-ed25519 {PUBLIC} bob@laptop"',
        f"ssh_key={PUBLIC}",
        "an API key: required, and the secret key: see above",
        'api_key=""""""',
    ],
)
def test_other_names_and_other_words_stay(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-NAMED", "REDACT-KEPT")
def test_other_fields_stay() -> None:
    for value in (
        {"name": "colour", "value": SECRET},
        {"name": 7, "value": SECRET},
        {"value": SECRET},
    ):
        assert ALL.tree(value).found == (), json.dumps(value)


@proves("REDACT-NAMED")
def test_variables_of_these_names_are_secret() -> None:
    for name in ("SSHPASS", "HMAC_KEY", "SSH_KEY", "SUPABASE_SERVICE_ROLE_KEY"):
        assert is_secret_variable(name, "any word")
