"""Line-by-line redaction: a private key is masked in each of its lines, and words are kept."""

import pytest

from dragoman.text.redact import NO_OPEN_KEY, Redactor
from tests.requirements import proves
from tests.text.test_redact import GITHUB, KEY, PEM, PUTTY_LINES, PUTTY_MAC

pytestmark = proves("REDACT-LINES")

ALL = Redactor(key=KEY)
BEGIN, *BODY, END = PEM.replace("ab12=", "aB12").splitlines()
KEY_HEADERS = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B", ""]
COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
PATH = "/usr/local/share/dragoman/key"


def redact_lines(*lines: str, redactor: Redactor = ALL) -> list[str]:
    """Redact lines one by one; … stands for a masked line of a key."""
    lines_since, shown = NO_OPEN_KEY, list[str]()
    for line in lines:
        masked = redactor.line(line, lines_since)
        lines_since = masked.since
        assert bool(masked.kinds) == ("REDACTED:" in masked.text)
        shown.append("…" if masked.text.startswith("[REDACTED:private_key:") else masked.text)
    return shown


@pytest.mark.parametrize("before", ["", "> ", "+", "app-1  | ", "12:00:01 out ", "│ "])
@pytest.mark.parametrize("end", ["", "\r", "\x1b[0m", "   │"])
@pytest.mark.parametrize("headers", [[], KEY_HEADERS])
def test_key_is_masked_line_by_line_until_it_ends(
    before: str, end: str, headers: list[str]
) -> None:
    first, last = ["words", BEGIN, *headers], [END, "words", COMMIT, "aB12"]
    lines = [f"{before}{line}{end}" for line in (*first, *BODY, *last)]
    size = len(first)
    masked = ["…"] * len(BODY)
    assert redact_lines(*lines) == lines[:size] + masked + lines[size + len(BODY) :]


def test_text_beside_a_key_is_kept() -> None:
    digest = redact_lines(f"key: {BEGIN}{BODY[0]}")[0]
    assert digest.startswith("key: [REDACTED:private_key:")
    text = redact_lines(BEGIN, BODY[0], f"{BODY[0]}{END} and {GITHUB}", BODY[0])
    assert text[:2] == [BEGIN, "…"]
    assert text[3] == BODY[0], "the key has ended"
    masked = ALL.line(f"{BODY[0]}{END} and {GITHUB}", 0).text
    assert f"]{END} and [REDACTED:github_token:" in masked
    coloured = ALL.line(f"\x1b[1m{BODY[0]}\x1b[0m é{END}", 0)
    assert coloured.text.startswith("\x1b[1m"), "é is of no key"
    lines = "\n".join((*BODY, END, "and words"))
    assert ALL.line(lines, 1).text.endswith(f"]\n{END}\nand words")
    assert BODY[0] not in ALL.line(lines, 1).text


def test_key_continues_after_at_most_32_other_lines() -> None:
    warning = f"warning: {PATH} is open to all"
    assert redact_lines(BEGIN, BODY[0], warning, BODY[0], "aB12") == [BEGIN, "…", warning, "…", "…"]
    assert redact_lines(BEGIN, BODY[0], *["no word"] * 32, BODY[0])[-1] == "…"
    assert redact_lines(BEGIN, BODY[0], *["no word"] * 33, BODY[0])[-1] == BODY[0]


def test_ordinary_lines_after_a_mention_of_a_key_are_kept() -> None:
    lines = [f"a.py:3: {BEGIN}", "done", "exit 0", PATH, f"commit {COMMIT}", "and", "words"]
    assert redact_lines(*lines) == lines
    lines = [f'BEGIN = "{BEGIN}"', BODY[0]]
    assert redact_lines(*lines) == lines, "in quotes it is no beginning"
    lines = [*BODY, END]
    assert redact_lines(*lines) == lines, "without a beginning there is none"


def test_putty_key_is_masked_with_its_mac() -> None:
    first, *lines = f"{PUTTY_LINES}\n{PUTTY_MAC}".splitlines()
    assert redact_lines("Comment: me", first, *lines) == ["Comment: me", first, *["…"] * len(lines)]


def test_keys_are_kept_with_known_values_only() -> None:
    lines = PEM.splitlines()
    assert redact_lines(*lines, redactor=Redactor(key=KEY, known_only=True)) == lines


@pytest.mark.parametrize("form", ["  '{}\\n' +", '  "{}",', '    "{}\\n"'])
def test_key_lines_in_string_literals_are_masked(form: str) -> None:
    lines = [form.format(line) for line in (BEGIN, *BODY, "aB12", END, "no word")]
    assert [line for line in redact_lines(*lines) if line in lines] == [lines[0], *lines[-2:]]
