"""Secrets identified by a name, in the forms that letters, notes and programs use."""

import json
from typing import Any

import pytest

from dragoman.text.redact import is_secret_variable
from tests.requirements import proves
from tests.text.test_redact import ALL

SECRET = "Xk39vQz7Lm2pRt8w"
PUBLIC = "AAAAC3NzaC1lZDI1NTE5AAAAIJ0a9Zz8sQ2mK4vX7bN1cR5pL6oT3uW8yE1rG2hJ4kF5"


NAMED_FORMS = [
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
    "the password is '{}'",
    "the token is {}, keep it",
    "your API key was now `{}`.",
    "Password is: {}\nand more",
    "Here is the password:\n\n    {}\n\nBest,\nBob",
    "password =\n{}",
    "> Token:\n> {}\n> so",
    "the secret:\n```\n{}\n```\n",
    "Tokens:\n- {}\n",
    "passwords: [none, {}, other]",
    "api_keys = [ {} ]\n",
    "passwords: [\n  none,\n  {},\n]\n",
    '{{"password": [{}]}}',
    "password: |\n  {}\nuser: bob",
    "password: >-\n  {}\n",
    r"Token:\n\n{}\n\nBest",
    "<b>Password:</b> {}",
    "<strong>API key</strong>: <code>{}</code>",
    "<tr>\n<td>Password</td>\n  <td class='x y'>{}</td></tr>",
    "<dt>Token</dt><dd>{}</dd>",
    "<key>password</key>\n    <string>{}</string>",
    'const token =\n  "{}";',
    "<password>{}</password>",
    "<Password><Value>{}</Value></Password>",
    '<wsse:Password Type="a b">{}</wsse:Password>',
    "<secret><![CDATA[{}]]></secret>",
    "&lt;password&gt;{}&lt;/password&gt;",
    "password={}&amp;user=bob",
    "token: {}<br>next",
    "define('DB_PASSWORD', '{}');",
    'os.environ.setdefault("API_KEY", "{}")',
    "SET PASSWORD FOR bob = PASSWORD('{}')",
    "machine h password {} login bob",
    "machine h login bob account x password {}",
    "PresharedKey = {}",
    '{{"password": {{"old": "{}", "new": "none"}}}}',
    '{{"password":{{"type":"text","new":"{}"}}}}',
    '{{"env": {{"TOKEN": {{"value": "{}"}}}}}}',
    r"{{\"TOKEN\": {{\"value\": \"{}\"}}}}",
    '{{\n  "token": {{\n    "current": "{}"\n  }}\n}}',
    '{{"headers":[["x-api-key","{}"]]}}',
    '[["accept", "*/*"], ["x-api-key", "{}"]]',
    "[('x-api-key', '{}')]",
    '{{"password": ["{}"]}}',
    '{{"X-Api-Key":["none", "{}"], "x": 1}}',
    '{{\n  "tokens": [\n    "{}"\n  ]\n}}',
    r"{{\"password\":[\"{}\"]}}",
    "map[Accept:[*/*] X-Api-Key:[{}]]",
    "<password>\n  {}\n</password>",
    "<db>\r\n\t<token>\r\n\t\t{}\r\n\t</token>\r\n</db>",
    '<Password Value="{}"/>',
    '<db:password type="text" value="{}" x="y" />',
    "password:\n  value: {}\nuser: bob\n",
    'password:\n  value: "{}"\n',
    "password: {{value: {}}}",
    'secret {{\n  value = "{}"\n}}\n',
    'password = {{\n  default = "{}"\n}}\n',
    '"SecretString": "{{\\"username\\":\\"bob\\",\\"password\\":\\"{}\\"}}"',
    'password="{}',
    "UPDATE users SET password = '{}' WHERE id = 1",
    "-password = {}\n+password = none\n",
    "--secret: '{}'",
    '  ~ password = null -> "{}"\n',
    '  ~ password = "" -> "{}" # forces replacement',
    "[(b'accept', b'*/*'), (b'x-api-key', b'{}')]",
    'Config {{ token: Some("{}") }}',
    "api_key=SecretStr('{}')",
    "keytool -storepass {} -list",
    "influx -username b -password {} x",
    "AWS Secret Access Key [None]: {}\n",
    "AWS Secret Access Key [****************abcd]: {}",
    "Password for bob: {}",
    "the password for admin is {}.",
    "password (new) = '{}'",
    "AZURE_DEVOPS_EXT_PAT={}",
    "APP_CREDS={}",
    "DEPLOY_KEY={}",
    "Ocp-Apim-Subscription-Key: {}",
    "x-functions-key: {}",
    "SESSION_KEY = '{}'",
    'psk="{}"',
    "ldap_bind_pw={}",
    '{{"Name": "/prod/db/password", "Type": "SecureString", "Value": "{}"}}',
    '[\n  {{\n    "name": "API_KEY",\n    "slotSetting": false,\n    "value": "{}"\n  }}\n]',
    r"{{\"key\":\"API_KEY\",\"type\":\"secret\",\"sensitive\":true,\"value\":\"{}\"}}",
    "aws configure set aws_secret_access_key {}",
    "npm config set //npm.example.test/:_authToken {}\nnpm publish",
    "ENV API_TOKEN {}\n",
    "set -gx API_TOKEN '{}'",
    "Key         Value\n---         -----\npassword    {}\nuser        bob",
    "  DB_PASSWORD\t{}  \n  HOME\t/root\n",
    '      + master_password                       = "{}"',
    "DB_PASSWORD:                  {}\nHOME:   /root",
    "password='{} and no more\nbob's",
]
"""Surroundings of a secret that only a name identifies."""
POSITIONAL_FORMS = [
    "curl -s -u bob:{} https://h/x",
    "curl -ubob:{} https://h/x",
    "curl --user 'bob:{}' https://h/x",
    'curl --proxy-user "bob:{}" https://h/x',
    '["curl", "-s", "-u", "bob:{}", "https://h/x"]',
    "mysql -u root -p{} db",
    "mysqldump -uroot -p'{}' db",
    "sshpass -p {} ssh h",
    "docker login -u bob -p {} r.io",
    '["docker", "login", "-u", "bob", "-p", "{}", "r.io"]',
    "['podman','login','-p','{}']",
    '["az", "login", "--service-principal", "-u", "7", "-p", "{}"]',
    "redis-cli -h db -a {} ping",
    "az login --service-principal -u 7 -p {} --tenant 9",
    "mongosh -u bob -p {} db",
    "sqlcmd -S h -U sa -P {} -Q x",
    "DSN=bob:{}@tcp(db:3306)/app",
    "ldapsearch -D cn=x -w {} -b dc=x",
    "Cookie: lang=en; session={}; theme=dark",
    "Set-Cookie: sid={}; Path=/; HttpOnly",
    "-H 'Cookie: a=1; _session={}' https://h",
    '{{"cookie": "a=b; sid={}"}}',
    "localhost:5432:mydb:bob:{}\n",
    "*:*:*:postgres:{}",
    "jdbc:oracle:thin:scott/{}@//h:1521/x",
    "curl \\\n -u bob:{} https://h/x",
    "curl -s \\\r\n\t\t--user \\\r\n\t\tbob:{} \\\r\n\t\thttps://h/x\r\n",
    "sshpass -p \\\n      {} \\\n  ssh h\n",
    "deploy \\\n  --api_key \\\n    {} \\\n  --now\n",
]
"""Surroundings of a secret that its position identifies."""


@proves("REDACT-NAMED")
@pytest.mark.parametrize(
    "text",
    [
        *NAMED_FORMS,
        *POSITIONAL_FORMS,
    ],
)
def test_named_value_is_masked_whole_and_in_chunks(text: str) -> None:
    user_part = "{user}:" if "{user}" in text.format("") else ""
    before, _, behind = text.format(SECRET).partition(user_part + SECRET)
    masked = ALL.text(before + user_part + SECRET + behind)
    assert len(masked.found) == 1
    assert masked.text == before + masked.found[0].placeholder + behind
    assert ALL.text(masked.text).text == masked.text
    for size in (1, 5):
        stream = ALL.stream()
        whole = before + user_part + SECRET + behind
        pieces = [stream.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
        assert "".join(pieces) + stream.close() == masked.text, size


@proves("REDACT-NAMED")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"name": "API_KEY", "value": SECRET}, "value"),
        ([{"key": "DB_PASSWORD", "value": SECRET}], "[0].value"),
        (["deploy", "--api_key", SECRET], "[2]"),
        ({"Name": "/prod/db/password", "Type": "SecureString", "Value": SECRET}, "Value"),
        ({"SSHPASS": SECRET}, "SSHPASS"),
        ({"hmac_key": SECRET}, "hmac_key"),
        ({"API key": SECRET}, "API key"),
        ({"password": {"old": SECRET, "new": "none"}}, "password.old"),
        ({"env": {"TOKEN": {"value": SECRET}}}, "env.TOKEN.value"),
        ({"headers": [["x-api-key", SECRET]]}, "headers[0][1]"),
        ([{"name": "x-api-key", "value": SECRET}], "[0].value"),
        ({"element": "Password field", "ref": "e7", "text": SECRET}, "text"),
        ({"command": ["curl", "-u", f"bob:{SECRET}", "https://h"]}, "command[2]"),
        (["/usr/bin/curl", "-m", 5, "", f"--user=bob:{SECRET}"], "[4]"),
        (["mysql", f"-p{SECRET}"], "[1]"),
        (["sshpass", "-p", SECRET], "[2]"),
        (["docker", "login", "-u", "bob", "-p", SECRET], "[5]"),
        (["curl", *["-H", "Accept: text/plain"] * 60, "-u", f"bob:{SECRET}"], "[122]"),
    ],
)
def test_named_value_in_a_json_tree_is_masked(value: Any, path: str) -> None:
    assert [found_path for found_path, _ in ALL.tree(value).found] == [path]


@proves("REDACT-NAMED")
def test_password_argument_of_a_command_list_is_masked_whole() -> None:
    secret = "hG7s k'Pq\n2x9 \udcff"
    masked = ALL.tree(["curl", "-s", f"-ubob:{secret}", f"https://h/{SECRET}"])
    (placeholder,) = (finding.placeholder for finding in ALL.text(f"password: {SECRET}").found)
    assert masked.value[2].startswith("-ubob:[REDACTED:password:")
    assert masked.value[2].endswith("]")
    assert masked.value[3] == f"https://h/{SECRET}"
    assert ALL.tree(masked.value).value == masked.value
    assert ALL.tree(["curl", "-u", f"bob:{SECRET}"]).value == ["curl", "-u", f"bob:{placeholder}"]


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
        "token = f'([{start}][{more}]+)|[{start}]'",
        'TOKEN = r"[-!#$%&*+.^_`|~0-9a-zA-Z]+"',
        f'ssh_key = "ssh-ed25519 {PUBLIC} bob@laptop"',
        f"ssh_key={PUBLIC}",
        "an API key: required, and the secret key: see above",
        "the password is required, the token is at https://h/Xk39vQz7Lm2pRt8w",
        "the password is p:see-below, and token is 12345678",
        "token:\n  kind2: Xk39vQz7Lm2pRt8w",
        "Password:\n  Xk39vQz7Lm2pRt8w and more stand here",
        "secret:\n  name=Xk39vQz7Lm2pRt8w",
        "<td>Password</td><td>required</td>",
        "a token<br>\n338615\u00a0suppress\u00a0optimized<br>",
        'class Token:\n    """An OAuth2x access token."""',
        "curl -u $USER:$TOKEN https://h/Xk39vQz7Lm2pRt8w -o Xk39vQz7Lm2pRt8w",
        "curl -u bob https://h\n -u bob:Xk39vQz7Lm2pRt8w",
        "mkdir -pXk39vQz7Lm2pRt8w && ls -aXk39vQz7Lm2pRt8w",
        "mysql -p Xk39vQz7Lm2pRt8w",
        "Cookie: lang=en_US; theme=dark",
        "Set-Cookie: lang=de; Path=/Xk39vQz7Lm2pRt8w; Domain=Xk39vQz7Lm2pRt8w",
        "src/main.c:12:5:error:Xk39vQz7Lm2pRt8w",
        "12:34:56:bob:Xk39vQz7Lm2pRt8w",
        'api_key=""""""',
        '{"token": {"id": "Xk39vQz7Lm2pRt8w", "owner": "Xk39vQz7Lm2pRt8w"}}',
        '{"token_hint": {"value": "Xk39vQz7Lm2pRt8w"}}',
        '{"token": {"value": Xk39vQz7Lm2pRt8w, "new": [], "old": "required"}}',
        '{"token": {"id": 7}, "value": "Xk39vQz7Lm2pRt8w"}',
        '["token", "Xk39vQz7Lm2pRt8w", "x"]',
        '{"tokens": ["required", 7, "Xk39vQz7Lm2pRt8w"], "x": ["Xk39vQz7Lm2pRt8w"]}',
        '{"token_ids": ["Xk39vQz7Lm2pRt8w"]}',
        """tests = {'pass': ["runf()", "In [1]: runf()", "In [1]: if 1:"]}""",
        "token: [A-Za-z0-9_-] and token:[A-Za-z0-9_-] and token:[Required]",
        "token: [Xk39vQz7Lm2pRt8w](https://h)",
        "tokens = [START_TOKEN, END_TOKEN, T_ARRAY2, sha256]",
        "passwords: [Xk39vQz7Lm2pRt8w and more]",
        "keyword\\\ntoken\\\nname",
        "usage: login <password>\n  Xk39vQz7Lm2pRt8w",
        '<token type="a"/>\nXk39vQz7Lm2pRt8w',
        "password:\n  value: Xk39vQz7Lm2pRt8w and more",
        "token:\n  id: 7\nvalue: Xk39vQz7Lm2pRt8w",
        "tokenizers    0.19.1\nsecret-service    Xk39vQz7Lm2pRt8w  1/1  Running",
        "see token  Xk39vQz7Lm2pRt8w  again",
        "a service-account-token Xk39vQz7Lm2pRt8w, x-token Xk39vQz7Lm2pRt8w",
        'password = "required" -> "optional"',
        "search_pattern=Xk39vQz7Lm2pRt8w sacred: Xk39vQz7Lm2pRt8w cache_key=Xk39vQz7Lm2pRt8w",
        "    token: Record<string,V2x9>[],\n    password=conf['db2x'].get9(x),\nsecret: [a9x](b2y)",
        'tokens=["a9x2","b8y3"]\ntoken: {"a9x2":"b8y3"}\nTOKEN=$(get_9x2 "a")',
    ],
)
def test_other_names_and_words_are_kept(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-KEPT")
@pytest.mark.parametrize(
    "text",
    [
        "pass: TestFoo_Bar2x",
        "PASS=test_auth_v2_Login3x",
        "  pass: tests/auth/test_login2fa.py::test_x9",
        "token: 0x7ffe9a3b1c20",
        "token=0x7f3c2a1b0d00, secret: 0x00007ffd12345678.",
        "token: 0197f5d2-8c1a-7b3e-9f42-1234567890ab.",
        "token: https://example.com/a1b2c3d4?x=9",
        ".. _`Bearer Token`: https://tools.ietf.org/html/rfc6750#x9",
        "password: op://vault2/db9x/password",
        "secret: ref+vault://kv2/db#pass9x",
        "secret: projects/123456/secrets/db2-pass/versions/3",
        "token: data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
        "secret: k8s-tls-prod-v2",
        "private_key: x25519.X25519PrivateKey = Ed25519PrivateKey.generate()",
        "token: OAuth2Token",
        "The secret is base64url-encoded",
        "unexpected token: 'fooBar12'",
        "SyntaxError: Unexpected token: fooBar12x",
        "token: cl100k_base",
        "session token: s-20261116-1",
        "token = b64encode(userpass).decode()",
        "token = get_token_v2x9(user)",
        "https://&lt;user&gt;:&lt;password&gt;@h",
        "PWD=/tmp/tmp.k3Jx9aQw2z OLDPWD=/tmp/tmp.k3Jx9aQw2z/build",
        "pwd: /var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T",
        "PWD=/nix/store/k3jx9aqw2zk3jx9aqw2zk3jx9aqw2zaa-hello-2.12",
        "PWD=/Users/bob/k3Jx9aQw2z secret: ~/keys/k3Jx9aQw2z",
        'ENCODED_AUTH = base64.b64encode(f"{user}:{word}".encode()).decode()',
        "token_budget: 200k-context token_quota=9000k-Tier2x",
        "xoxo-love-letters-from-the-team-2024",
        "xapp-store-front-ui-components-library-v2",
        "nvapi-settings-for-display-configuration-panel",
        "glc_config_loader_initialisation_routine",
    ],
)
def test_output_of_builds_and_programs_about_tokens_is_kept(text: str) -> None:
    assert ALL.text(text).text == text
    for border in range(len(text)):
        stream = ALL.stream()
        assert stream.feed(text[:border]) + stream.feed(text[border:]) + stream.close() == text


@proves("REDACT-NAMED", "REDACT-KEPT")
def test_other_fields_are_kept() -> None:
    for value in (
        {"name": "colour", "value": SECRET},
        {"name": 7, "value": SECRET},
        {"value": SECRET},
        {"token": {"id": SECRET, "type": SECRET, "owner": SECRET}},
        {"token_id": {"value": SECRET}},
        ["token", SECRET, "x"],
        ["colour", SECRET],
        {"element": "Search field", "text": SECRET},
        ["curl", "-u"],
        ["curl", "-u", "bob", f"https://h/{SECRET}"],
        ["use curl so", "-u", f"bob:{SECRET}"],
        ["mkdir", f"-p{SECRET}", "mysql", "-p", SECRET],
    ):
        assert ALL.tree(value).found == (), json.dumps(value)


QUOTED = {
    'password="{}"': 'hG7s\\"kPq2x9',
    '{{"user":"x","password":"{}"}}': 'hG7skPq2\\"x9aB3zz',
    "password='{}'": r"hG7s\'k Pq2x9",
    'deploy --password "{}" --now': 'hG7s\\"k Pq2x9',
    r'{{"a":"{{\"password\":\"{}\"}}"}}': r"hG7s\\\"k Pq2x9",
    "password: '{}'": "hG7s''k Pq2x9",
    "deploy --password '{}' --now": "hG7s'\"'\"'k Pq2x9",
    "sshpass -p '{}' ssh h": r"hG7s'\''kPq2x9",
    'x="login --password="{}"" y="z"': "hG7skPq2x9",
}
"""Values with quotes, as escaped in their surroundings."""


@proves("REDACT-NAMED", "REDACT-STREAM")
def test_both_sides_of_a_changed_secret_are_masked() -> None:
    text = f'  ~ password = "{SECRET}9" -> "{SECRET}"\n    user = "bob" -> "eve"\n'
    old, new = (finding.placeholder for finding in ALL.text(text).found)
    assert ALL.text(text).text == text.replace(f"{SECRET}9", old).replace(SECRET, new)
    for border in range(len(text)):
        stream = ALL.stream()
        pieces = stream.feed(text[:border]), stream.feed(text[border:]), stream.close()
        assert "".join(pieces) == ALL.text(text).text, border


@proves("REDACT-NAMED", "REDACT-STREAM")
@pytest.mark.parametrize("form", QUOTED)
def test_quote_inside_a_value_does_not_end_it(form: str) -> None:
    text = f"so {form.format(QUOTED[form])} and on\n"
    masked = ALL.text(text)
    assert masked.text == text.replace(QUOTED[form], masked.found[0].placeholder)
    for border in range(len(text)):
        stream = ALL.stream()
        pieces = stream.feed(text[:border]), stream.feed(text[border:]), stream.close()
        assert "".join(pieces) == masked.text, border


@proves("REDACT-NAMED")
@pytest.mark.parametrize("size", [13, 100])
@pytest.mark.parametrize(
    "form", ['{{"SessionToken": "{}", "x": 1}}', r"{{\"token\":\"{}\"}}", "token='{}'"]
)
def test_long_quoted_value_is_masked(form: str, size: int) -> None:
    text = form.format(size * SECRET)
    masked = ALL.text(text)
    assert masked.text == text.replace(size * SECRET, masked.found[0].placeholder)


@proves("REDACT-NAMED")
@pytest.mark.parametrize("text", ["postgres://bob:{}@db/x", 'password = "{}"', '{{"token":"{}"}}'])
@pytest.mark.parametrize(
    "secret",
    [
        *("$Xk39vQz7Lm2", "%24Xk39vQz7Lm2", "%Xk39vQz7Lm2", "{Xk39vQz7Lm2", "$ecr3tP4ss99"),
        *("$P)4;b[k9!w", "B}ZW=-AM8#AD5]q", "my_Xk39vQz7Lm2", "yourXk39vQz7", "exampleXk39vQz7"),
    ],
)
def test_secret_that_starts_like_a_placeholder_is_masked(text: str, secret: str) -> None:
    assert secret not in ALL.text(text.format(secret)).text


@proves("REDACT-NAMED", "REDACT-STREAM")
@pytest.mark.parametrize(
    "form", ["HOME=/x\nDB_PASSWORD={}\nX=1\n", "password: {}", r"a\nTOKEN={}\nb"]
)
@pytest.mark.parametrize("secret", ["tUv4`<9iQB36#m>&v", "|Xk3{9vQz]7Lm", '(Xk39"vQz7'])
def test_secret_to_the_line_end_may_have_any_character(form: str, secret: str) -> None:
    text = form.format(secret)
    masked = ALL.text(text)
    assert masked.text == text.replace(secret, masked.found[0].placeholder)
    for border in range(len(text)):
        stream = ALL.stream()
        pieces = stream.feed(text[:border]), stream.feed(text[border:]), stream.close()
        assert "".join(pieces) == masked.text, border


@proves("REDACT-KEPT")
@pytest.mark.parametrize("text", ["postgres://bob:{}@db/x", 'password = "{}"', "TOKEN={}"])
@pytest.mark.parametrize(
    "placeholder",
    [
        *("${DB_PASS2x9}", "$DB_PASS2X9", "$(vault9x)", "$dbPassword", "%PASS2X9%", "{{pass2x9}}"),
        *("%(pass9x2)s", "<pass2x9word>", "{pass2x9word}", "my_token", "your-token"),
        "example-token",
    ],
)
def test_placeholder_is_kept(text: str, placeholder: str) -> None:
    assert ALL.text(text.format(placeholder)).text == text.format(placeholder)


@proves("REDACT-NAMED")
def test_variables_with_secret_names_are_recognized() -> None:
    for name in ("SSHPASS", "HMAC_KEY", "SSH_KEY", "SUPABASE_SERVICE_ROLE_KEY"):
        assert is_secret_variable(name, "any word")


@proves("REDACT-NAMED")
@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("PGPASSWORD={} psql -h db", "letmein"),
        ("export PGPASSWORD='{}'", "correct horse"),
        ('-e MYSQL_PWD="{}" mysql', "tiger"),
        ("REDISCLI_AUTH={}", "tiger"),
        ("curl -u bob:{} https://h", "letmein"),
        ('["curl", "--user", "bob:{}", "https://h"]', "letmein"),
        ("mysql -uroot -p{} db", "tiger"),
        ("sshpass -p {} ssh h", "tiger"),
    ],
)
def test_word_is_masked_where_only_a_password_stands(form: str, word: str) -> None:
    before, _, behind = form.partition("{}")
    masked = ALL.text(form.format(word))
    assert masked.text == before + masked.found[0].placeholder + behind
    assert ALL.text(masked.text).text == masked.text


@proves("REDACT-KEPT")
@pytest.mark.parametrize(
    "text",
    [
        "PGPASSWORD=${PASS} psql",
        "PGPASSWORD=$(cat /run/pass) psql",
        "PGPASSWORD= psql",
        "PGPASSWORD=... is how it is given",
        "curl -u user:password https://h",
        "curl -u '<user>:<password>' https://h",
        "curl -u bob https://h/path:word",
        "curl -u $USER:$pass https://h",
        "mysql -p db",
        "mysql --protocol=tcp -P 3306",
        "sshpass -p $PASS ssh h",
        "sshpass -p --help",
        "the mysql client takes -p, and curl takes -u",
    ],
)
def test_placeholder_is_kept_where_only_a_password_stands(text: str) -> None:
    assert ALL.text(text).text == text


@proves("REDACT-NAMED", "REDACT-TREE")
def test_word_is_masked_in_the_variable_of_an_object() -> None:
    masked = ALL.tree({"env": {"PGPASSWORD": "letmein", "MYSQL_PWD": "${PASS}", "USER": "tiger"}})
    assert masked.found == (("env.PGPASSWORD", "password"),)
    assert ALL.tree(masked.value).found == ()
