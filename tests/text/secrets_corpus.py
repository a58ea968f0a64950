"""A corpus of made-up secrets and of text without any, the same in every run.

The secrets follow the formats that their issuers publish, not the rules that find them, so that a
rule that is too narrow fails. `bench` uses the corpus, too.

"""

import random
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from msgspec import Struct

from dragoman.text.redact import Redactor

HEX = "0123456789abcdef"
ALNUM = ascii_letters + digits
URL_SAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"
BASE32 = ascii_uppercase + "234567"


class SecretCase(Struct, frozen=True):
    """A secret, and a text that contains it."""

    kind: str
    secret: str
    text: str


def _of(alphabet: str, size: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices(alphabet, k=size))


def _join(*parts: str | Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    return lambda chance: "".join(part if isinstance(part, str) else part(chance) for part in parts)


def _one_of(*words: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(words)


def _jwt(chance: random.Random) -> str:
    part = _of(URL_SAFE, 43)
    return f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{part(chance)}.{part(chance)}"


PREFIXED: dict[str, Callable[[random.Random], str]] = {
    "dragoman_token": _join("drg_coder_", _of(HEX, 12), "_", _of(URL_SAFE, 43)),
    "github_token": _join(_one_of("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _of(ALNUM, 36)),
    "github_fine_grained_token": _join("github_pat_", _of(ALNUM, 22), "_", _of(ALNUM, 59)),
    "gitlab_token": _join(_one_of("glpat-", "gldt-", "glrt-"), _of(URL_SAFE, 20)),
    "npm_token": _join("npm_", _of(ALNUM, 36)),
    "pypi_token": _join("pypi-AgEIcHlwaS5vcmc", _of(URL_SAFE, 120)),
    "rubygems_key": _join("rubygems_", _of(HEX, 48)),
    "docker_token": _join("dckr_pat_", _of(URL_SAFE, 27)),
    "aws_access_key_id": _join(_one_of("AKIA", "ASIA"), _of(BASE32, 16)),
    "google_api_key": _join("AIza", _of(URL_SAFE, 35)),
    "google_auth_key": _join("AQ.Ab8RN6", _of(URL_SAFE, 44)),
    "cloudflare_token": _join(_one_of("cfut_", "cfat_", "cfk_"), _of(ALNUM, 40), _of(HEX, 8)),
    "google_oauth_token": _join("ya29.", _of(URL_SAFE, 140)),
    "google_hmac_key_id": _join("GOOG1E", _of(ascii_uppercase + digits, 55)),
    "aws_bedrock_key": _join("ABSK", _of(BASE64, 127), "="),
    "vercel_token": _join(_one_of("vcp_", "vck_"), _of(ALNUM, 56)),
    "neon_key": _join("napi_", _of(ascii_lowercase + digits, 64)),
    "e2b_key": _join("e2b_", _of(HEX, 40)),
    "langfuse_key": _join(
        "sk-lf-", _of(HEX, 8), *(_join("-", _of(HEX, 4)) for _ in range(3)), "-", _of(HEX, 12)
    ),
    "nvidia_key": _join("nvapi-", _of(URL_SAFE, 64)),
    "tavily_key": _join("tvly-", _one_of("dev-", ""), _of(ALNUM, 32)),
    "wandb_key": _join("wandb_v1_", _of(ALNUM, 27), "_", _of(ALNUM, 49)),
    "posthog_key": _join("phx_", _of(ALNUM, 43)),
    "google_client_secret": _join("GOCSPX-", _of(URL_SAFE, 28)),
    "azure_storage_key": _join("AccountKey=", _of(BASE64, 86), "=="),
    "digitalocean_token": _join("dop_v1_", _of(HEX, 64)),
    "vault_token": _join("hvs.", _of(URL_SAFE, 90)),
    "terraform_token": _join(_of(ALNUM, 14), ".atlasv1.", _of(ALNUM, 67)),
    "doppler_token": _join("dp.pt.", _of(ALNUM, 43)),
    "pulumi_token": _join("pul-", _of(HEX, 40)),
    "age_secret_key": _join("AGE-SECRET-KEY-1", _of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "anthropic_key": _join("sk-ant-api03-", _of(URL_SAFE, 93), "AA"),
    "openai_key": _join("sk-proj-", _of(URL_SAFE, 74), "T3BlbkFJ", _of(URL_SAFE, 74)),
    "openai_key (old)": _join("sk-", _of(ALNUM, 20), "T3BlbkFJ", _of(ALNUM, 20)),
    "huggingface_token": _join("hf_", _of(ascii_letters, 34)),
    "groq_key": _join("gsk_", _of(ALNUM, 52)),
    "slack_token": _join("xoxb-", _of(digits, 12), "-", _of(digits, 13), "-", _of(ALNUM, 24)),
    "slack_webhook": _join(
        "hooks.slack.com/services/T", _of(ALNUM, 10), "/B", _of(ALNUM, 10), "/", _of(ALNUM, 24)
    ),
    "discord_webhook": _join(
        "discord.com/api/webhooks/", _of("123456789", 18), "/", _of(URL_SAFE, 68)
    ),
    "telegram_bot_token": _join(_of("123456789", 10), ":AA", _of(URL_SAFE, 33)),
    "telegram_bot_address": _join(
        "https://api.telegram.org/bot", _of("123456789", 10), ":AA", _of(URL_SAFE, 33)
    ),
    "sendgrid_key": _join("SG.", _of(URL_SAFE, 22), ".", _of(URL_SAFE, 43)),
    "twilio_key": _join("SK", _of(HEX, 32)),
    "mailchimp_key": _join(_of(HEX, 32), "-us", _one_of("1", "21")),
    "stripe_key": _join(_one_of("sk_live_", "rk_live_", "sk_test_"), _of(ALNUM, 99)),
    "webhook_secret": _join("whsec_", _of(BASE64, 43), "="),
    "square_token": _join("sq0csp-", _of(URL_SAFE, 43)),
    "shopify_token": _join("shpat_", _of(HEX, 32)),
    "grafana_token": _join("glsa_", _of(ALNUM, 32), "_", _of(HEX, 8)),
    "newrelic_key": _join("NRAK-", _of(ascii_uppercase + digits, 27)),
    "sentry_token": _join("sntrys_", _of(BASE64, 120)),
    "databricks_token": _join("dapi", _of(HEX, 32)),
    "airtable_token": _join("pat", _of(ALNUM, 14), ".", _of(HEX, 64)),
    "notion_token": _join("ntn_", _of(ALNUM, 46)),
    "figma_token": _join("figd_", _of(URL_SAFE, 43)),
    "linear_key": _join("lin_api_", _of(ALNUM, 40)),
    "atlassian_token": _join("ATATT3xFfGF0", _of(URL_SAFE, 180), "=", _of(HEX.upper(), 8)),
    "tailscale_key": _join("tskey-auth-", _of(ALNUM, 14), "CNTRL-", _of(ALNUM, 32)),
    "bcrypt_hash": _join(_one_of("$2a$", "$2b$", "$2y$"), "10$", _of(ALNUM + "./", 53)),
    "jwt": _jwt,
    "jwe": _join(
        "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.",
        *(_one_of("", "aB3x" * 20), ".", _of(URL_SAFE, 16), ".", _of(URL_SAFE, 63)),
        *(".", _of(URL_SAFE, 22)),
    ),
}
"""Kind -> generator of a secret."""

GENERIC: dict[str, Callable[[random.Random], str]] = {
    "letters and digits": _of(ALNUM, 24),
    "short password": _join(_of(ascii_lowercase, 6), _of(digits, 2), _of("!#%+", 1)),
    "hexadecimal": _of(HEX, 40),
    "base64": _join(_of(BASE64, 43), "="),
    "url safe": _of(URL_SAFE, 32),
    "lower case and digits": _of(ascii_lowercase + digits, 20),
    "lower case": _of(ascii_lowercase, 16),
    "letters": _of(ascii_letters, 16),
    "with signs": _join(_of(ALNUM, 6), _of("!#%*+?@^_~", 2), _of(ALNUM, 8)),
}
"""Secrets without a format: only the name before them shows that they are secrets."""

_ENVELOPES: tuple[Callable[[str], str], ...] = (
    lambda secret: secret,
    lambda secret: f"the token is {secret}, keep it",
    lambda secret: f'{{"a": 1, "value": "{secret}"}}',
    lambda secret: f'{{"text": "first\\n{secret}\\nlast"}}',
    lambda secret: f"GET https://api.example.com/v1/x?t={secret}&page=2",
    lambda secret: f"+    client = Client('{secret}')",
    lambda secret: f"\x1b[32mINFO\x1b[0m got \x1b[1m{secret[:7]}\x1b[31m{secret[7:]}\x1b[0m",
    lambda secret: f"  value: {secret}",
)
"""Surroundings of a secret with a format: prose, JSON, a URL, a diff, colours, YAML."""

_NAMED: tuple[Callable[[str], str], ...] = (
    lambda secret: f"DB_PASSWORD={secret}",
    lambda secret: f"export API_KEY='{secret}'",
    lambda secret: f'{{"client_secret": "{secret}", "id": 7}}',
    lambda secret: f'{{\\"access_token\\": \\"{secret}\\"}}',
    lambda secret: f"  password: {secret}",
    lambda secret: f"deploy --token {secret} --verbose",
    lambda secret: f"Authorization: Bearer {secret}",
    lambda secret: f'secret_key = "{secret}"  # of the staging system',
    lambda secret: f"<password>{secret}</password>",
    lambda secret: f"machine api.example.com login bob password {secret}",
    lambda secret: f"    pass: {secret}",
    lambda secret: f"\x1b[33mauth_token\x1b[0m=\x1b[36m{secret}\x1b[0m",
    lambda secret: f"- **API key:** {secret}",
    lambda secret: f'{{"name": "API_KEY", "value": "{secret}"}}',
    lambda secret: f"| Password | {secret} |",
    lambda secret: f"{{&quot;password&quot;: &quot;{secret}&quot;}}",
    lambda secret: f"the password is '{secret}'",
    lambda secret: f"Here is the token:\n\n    {secret}\n\nBest",
    lambda secret: f"<b>Password:</b> {secret}",
    lambda secret: f"curl -s -u bob:{secret} https://api.example.com/x",
    lambda secret: f"mysql -u root -p{secret} db",
    lambda secret: f"Cookie: lang=en; session={secret}",
    lambda secret: f"db.example.com:5432:app:bob:{secret}",
)


def prefixed(each: int = 20, seed: int = 7) -> Iterator[SecretCase]:
    """Credentials with a recognizable format, each in every envelope, and in Base64."""
    chance = random.Random(seed)
    for kind, make in PREFIXED.items():
        for number in range(each):
            secret = make(chance)
            yield SecretCase(kind, secret, _ENVELOPES[number % len(_ENVELOPES)](secret))
        encoded = b64encode(f"user:{make(chance)}".encode()).decode()
        yield SecretCase(kind, encoded, f"data: {encoded}")


def generic(each: int = 30, seed: int = 11) -> Iterator[SecretCase]:
    """Secrets that only their name identifies."""
    chance = random.Random(seed)
    for kind, make in GENERIC.items():
        for number in range(each):
            secret = make(chance)
            yield SecretCase(kind, secret, _NAMED[number % len(_NAMED)](secret))


def values(count: int = 60, seed: int = 13) -> list[str]:
    """Values that a hub might know, with difficult characters."""
    chance = random.Random(seed)
    alphabets = (ALNUM, BASE64, ALNUM + " !\"'\\/&<>%+=", HEX, ALNUM + "äß→", digits)
    return [
        "".join(chance.choices(alphabets[number % len(alphabets)], k=8 + number)).strip() + "x7Q"
        for number in range(count)
    ]


def clean_lines(count: int = 4_000, seed: int = 17) -> list[str]:
    """Lines without a secret: own logs, build output, and every third one misleading."""
    chance = random.Random(seed)
    kinds = (*_ORDINARY, *_MISLEADING)
    return [kinds[number % len(kinds)](chance) for number in range(count)]


def log_lines(count: int = 4_000, seed: int = 19) -> list[str]:
    """The ordinary lines only."""
    chance = random.Random(seed)
    return [_ORDINARY[number % len(_ORDINARY)](chance) for number in range(count)]


def _uuid(chance: random.Random) -> str:
    text = "".join(chance.choices(HEX, k=32))
    return f"{text[:8]}-{text[8:12]}-7{text[13:16]}-{text[16:20]}-{text[20:]}"


def _hex(chance: random.Random, size: int) -> str:
    return "".join(chance.choices(HEX, k=size))


def _task(chance: random.Random) -> str:
    return f"TASK-2026-11-{chance.randint(1, 28):02d}-{chance.randint(1, 999):03d}"


_ORDINARY: tuple[Callable[[random.Random], str], ...] = (
    lambda c: (
        f"2026-11-15T18:02:11.{c.randint(0, 999):03d}Z out collected {c.randint(1, 99)} items"
    ),
    lambda c: f"2026-11-15T18:02:11.123Z hub attempt 2 of coder: /usr/bin/agent {_task(c)}",
    lambda c: (
        f'{{"eventId": {c.randint(1, 9999)}, "type": "task.transitioned", "taskId": "{_task(c)}"}}'
    ),
    lambda c: (
        f'{{"id":"{_uuid(c)}","hash":"{_hex(c, 64)}","stream":"task:{_task(c)}","version":3}}'
    ),
    lambda c: f"commit {_hex(c, 40)}",
    lambda c: f"index {_hex(c, 7)}..{_hex(c, 7)} 100644",
    lambda c: f"sha256:{_hex(c, 64)} {c.randint(10, 99)}.4MB / 102.9MB",
    lambda c: f'    "integrity": "sha512-{b64encode(c.randbytes(64)).decode()}",',
    lambda c: f"   Compiling serde_derive v1.0.{c.randint(100, 300)} (/src/target/debug)",
    lambda c: f"gcc -O2 -Wall -I/usr/include/x86_64-linux-gnu -c src/file_{c.randint(1, 99)}.c",
    lambda c: f"{c.randint(1, 999)} passed, {c.randint(0, 9)} failed in {c.randint(1, 99)}.42s",
    lambda c: f"GET /v1/tasks/{_task(c)}?after={c.randint(1, 9999)} 200 {c.randint(1, 99)} ms",
    lambda c: (
        f"npm http fetch GET 200 https://packages.example.org/left-pad 1{c.randint(10, 99)}ms"
    ),
    lambda c: (
        f"added {c.randint(10, 999)} packages, and audited {c.randint(10, 999)} packages in 4s"
    ),
    lambda c: (
        f"Downloading cryptography-50.0.{c.randint(0, 9)}-cp311-abi3-linux_x86_64.whl (4.4 MB)"
    ),
    lambda c: f"ssh-ed25519 {b64encode(c.randbytes(51)).decode()} bob@laptop",
    lambda c: f"SHA256:{b64encode(c.randbytes(32)).decode().rstrip('=')} (ED25519)",
    lambda c: f'etag: "{_hex(c, 32)}"  cache-key: linux-x64-{_hex(c, 64)}',
    lambda c: f"diff --git a/src/keys.py b/src/keys.py  # {_hex(c, 10)}",
    lambda c: f"session 01{_hex(c, 24)} lease fence={c.randint(1, 9999)} ttl=300000",
    lambda c: (
        f"drwxr-xr-x {c.randint(1, 9)} bob staff {c.randint(64, 4096)} Nov 15 18:02 node_modules"
    ),
    lambda c: f"WARN deprecated glob@7.2.{c.randint(1, 9)}: versions before v9 are not supported",
    lambda c: (
        f"\x1b[32m✓\x1b[0m {c.randint(1, 99)} modules done. dist/index-{_hex(c, 8)}.js 143.5 kB"
    ),
)

WORDS = [
    "required",
    "configured",
    "getpassword",
    "unavailable",
    "placeholder",
    "passwordfield",
    "authentication",
    "refresh",
    "workflow",
    "rhythmically",
    "anywhere",
    "copyright",
    "postgresql",
    "knowledge",
    "accesskeyprovider",
    "pygments",
    "keychain",
    "backwards",
    "erforderlich",
    "zwischenspeicher",
    "contraseña",
    "wachtwoord",
    "getSecretManager",
    "OAuthTokenStore",
    "PDFDocument",
    "HttpsProxyConfig",
    "deserialize",
    "subprocess",
    "kubernetes",
]
"""Words of languages and of programs that follow names of secrets."""

_MISLEADING: tuple[Callable[[random.Random], str], ...] = (
    lambda c: (
        f"tests/core/test_tokens.py::test_token_{c.randint(1, 99)} PASSED [ {c.randint(1, 99)}%]"
    ),
    lambda c: "    raise ValueError('the password is too short')",
    lambda c: f'  File "/app/src/auth/token_store.py", line {c.randint(1, 900)}, in refresh_token',
    lambda c: "        token = await self.tokens.get_or_create(user.id)",
    lambda c: "    password: str = field(repr=False)",
    lambda c: "DATABASE_PASSWORD=${DATABASE_PASSWORD:?is not set}",
    lambda c: 'api_key = os.environ["SERVICE_API_KEY"]',
    lambda c: "export GITHUB_TOKEN=<your token here>",
    lambda c: f"tokens used: {c.randint(1000, 999_999)} of 1000000, cost 0.{c.randint(10, 99)} USD",
    lambda c: f"max_tokens={c.randint(256, 8192)} temperature=0.7 token_count={c.randint(1, 9999)}",
    lambda c: f"request_id={_uuid(c)} token_id={_hex(c, 12)} key_id={_hex(c, 16)}",
    lambda c: f"Authorization: Bearer [REDACTED:authorization:{_hex(c, 8)}]",
    lambda c: f"password=[REDACTED:password:{_hex(c, 8)}] user=bob",
    lambda c: "| `notify.webhook_secret_file` | A file that holds the secret instead |",
    lambda c: f"--- PASS: TestHTTP2Server{c.randint(10, 99)}x (0.0{c.randint(1, 9)}s)",
    lambda c: "login form: the user's password reset did not pass: see 2FA_setup",
    lambda c: '{"auth": "oauth2-device", "bypass": "Z9kQ2mT7xA", "auth": {"type": "basic"}}',
    lambda c: f"token={c.choice(WORDS)} password: {c.choice(WORDS)} secret = {c.choice(WORDS)}",
    lambda c: f"pass: TestHTTP2Server_{c.randint(10, 99)}x  PASS=test_login_{c.randint(10, 99)}x",
    lambda c: f"token: 0x7ffe{_hex(c, 8)} secret=0x{_hex(c, 16)}.",
    lambda c: f"token: {_uuid(c)}. password: op://vault{c.randint(1, 9)}/db/{_hex(c, 6)}",
    lambda c: f"    token = b64encode(user{c.randint(1, 9)}).decode()",
    lambda c: "    private_key: Ed25519PrivateKey",
    lambda c: f"src/token.c:{c.randint(1, 99)}:{c.randint(1, 99)}:error:v{_hex(c, 9)}",
    lambda c: "secret scanning: enabled; credentials: not found; auth: required",
    lambda c: (
        f"at com.example.AuthTokenFilterChain$Virtual.doFilter(Filter.java:{c.randint(1, 400)})"
    ),
    lambda c: (
        "The reviewer asked whether the password policy in section 3 applies to service accounts."
    ),
)
"""Lines with names of secrets, hashes and placeholders, and without a secret."""


def recall(redactor: Redactor, cases: Iterable[SecretCase]) -> float:
    """Share of these secrets of which no long part remains."""
    removed = [_is_removed(case, redactor.text(case.text).text) for case in cases]
    return sum(removed) / len(removed)


def _is_removed(case: SecretCase, text: str) -> bool:
    return is_removed(secret_part(case), text)


def secret_part(case: SecretCase) -> str:
    """The secret of a case without its public prefix."""
    return case.secret[len(PUBLIC_PREFIXES.get(case.kind, "")) :]


def is_removed(secret: str, text: str) -> bool:
    """Check that no eight characters in a row remain of a secret."""
    text = PLACEHOLDER.sub("", text)
    return not any(secret[at : at + 8] in text for at in range(max(1, len(secret) - 7)))


PLACEHOLDER = re.compile(r"\[REDACTED:[^\]]*\]")
PUBLIC_PREFIXES = {
    "azure_storage_key": "AccountKey=",
    "slack_webhook": "hooks.slack.com/services/",
    "discord_webhook": "discord.com/api/webhooks/",
    "telegram_bot_address": "https://api.telegram.org/bot",
}
"""Public part of a kind, an address or a name, that may remain."""
