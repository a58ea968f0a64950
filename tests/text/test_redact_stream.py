"""Streaming redaction: no chunk border hides a secret, and chunks equal the whole text."""

import itertools
import json
from base64 import b64encode, encodebytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.redact import Redactor, Secret
from dragoman.text.redact.stream import MAX_CARRY_OVER
from tests.requirements import proves
from tests.text import secrets_corpus as corpus
from tests.text.test_redact import BREAKS, GITHUB, KEY, PEM, TEXTS
from tests.text.test_redact_named_values import NAMED_FORMS, POSITIONAL_FORMS, SECRET

ALL = Redactor([Secret("phrase", "tiger tiger burning bright"), Secret("pin", "zz91-zz91")], KEY)
VALUE = "drg_zz81-Tiger.Burning_42"
LINES = Redactor([Secret("value", VALUE)], KEY)

ENCODED = b64encode(f"{GITHUB} and some words".encode()).decode()
WRAPPED = "\n".join(ENCODED[at : at + 20] for at in range(0, len(ENCODED), 20))


def redact_in_chunks(text: str, *borders: int, redactor: Redactor = ALL) -> str:
    """Redact a text in chunks with these borders."""
    stream = redactor.stream()
    ends = [0, *sorted(borders), len(text)]
    released = [stream.feed(text[a:b]) for a, b in itertools.pairwise(ends)]
    return "".join((*released, stream.close()))


@proves("REDACT-STREAM")
@pytest.mark.parametrize(
    "text",
    [
        f"a line\nand {GITHUB} here\n",
        'x {"password" : "k3Jx 9-aQ w"} y',
        "curl -H 'Authorization: Bearer abcd1234efgh5678' https://u:hunter2@host/x ok",
        f"key:\n{PEM}\nafter that\n",
        "\n".join(f"app-1  | {line}" for line in f"{PEM}\nafter that\n".splitlines()),
        PEM.replace("\n", "  \n> ") + "\n> after that\n",
        PEM.replace("\n", " ") + " after that\n",
        f"{PEM.rpartition(chr(10))[0]}\\n-----BEGIN PRIVATE KEY-----no word# {'q7Xz' * 16} after",
        "we read tiger tiger burning bright today, and zz91-zz91",
        "we read tiger tiger burning brighttiger tiger burning bright today",
        "zz91-zz91Bearer eyJhbGciOiJIUzI1NiJ9 and \x1b[31mBearer eyJhbGciOiJIUzI1NiJ9",
        "\n".join(f"app-1  | {line}" for line in PEM.replace("ab12=", "ab12").splitlines()[:-1])
        + "\napp-1  | next words\n",
        f"\x1b[1mtoken\x1b[0m = \x1b]0;a b\x07{GITHUB[:12]}\x1b[31m{GITHUB[12:]}\x1b[0m done",
        "deploy --token s3Cr3t99 --now",
        "deploy --token s3C;r3t,99 --now",
        f"see\n{WRAPPED}\nnext line\n",
        "see\n" + WRAPPED.replace("\n", "  \n\n  ") + "  \nnext line\n",
        json.dumps({"k": encodebytes(PEM.encode()).decode()}) + " next",
        "é… password: hünter22x9 → ok",
    ],
)
def test_secret_split_at_any_offset_is_found(text: str) -> None:
    whole = ALL.text(text).text
    assert whole != text
    for border in range(len(text) + 1):
        assert redact_in_chunks(text, border) == whole, border
    assert redact_in_chunks(text, *range(len(text))) == whole


@proves("REDACT-STREAM")
@pytest.mark.parametrize("form", [*NAMED_FORMS, *POSITIONAL_FORMS])
def test_named_and_positional_secrets_split_at_any_offset_are_found(form: str) -> None:
    text = f"so\n{form.format(SECRET)}"
    redactor = Redactor(key=KEY)
    whole = redactor.text(text).text
    assert SECRET not in whole
    for border in range(len(text) + 1):
        assert redact_in_chunks(text, border, redactor=redactor) == whole, border


@proves("REDACT-STREAM")
@pytest.mark.parametrize(
    "text",
    [
        f"Password:\n  {SECRET} and more",
        f"Password:\n  {SECRET}          \n",
        f"token:\n  {SECRET * 20} \n",
        "cookie: " + "a=b; " * 136 + f"c={SECRET}; d={SECRET}; e={SECRET}; f={SECRET}",
        "curl " + "-x y " * 48 + f"-u b:{SECRET} -u b:{SECRET} -u b:{SECRET} -u b:{SECRET}",
        "curl " + "-x y " * 49 + f"-u 'b:{SECRET} {'and ' * 40}' -u b:{SECRET}",
    ],
)
def test_chunks_equal_the_whole_text_at_the_end_of_a_look_ahead(text: str) -> None:
    redactor = Redactor(key=KEY)
    whole = redactor.text(text).text
    for border in range(len(text) + 1):
        assert redact_in_chunks(text, border, redactor=redactor) == whole, border


@proves("REDACT-STREAM", "REDACT-NAMED")
@pytest.mark.parametrize("end", ["\\\n", "\\\r\n", "\\\r"])
@pytest.mark.parametrize("form", ["export TOKEN={} x", "deploy --api_key {}\n", "-H 'Token: {}'"])
def test_word_continued_on_the_next_line_is_one_word(form: str, end: str) -> None:
    redactor = Redactor(key=KEY)
    (plain,) = redactor.text(form.format(SECRET)).found
    for cut in range(1, len(SECRET)):
        text = form.format(f"{SECRET[:cut]}{end}{SECRET[cut:]}")
        whole = redactor.text(text).text
        assert whole == form.format(plain.placeholder)
        for border in range(len(text) + 1):
            assert redact_in_chunks(text, border, redactor=redactor) == whole, border


@proves("REDACT-STREAM")
@pytest.mark.parametrize("end", BREAKS)
def test_known_value_broken_by_lines_is_found_at_any_offset(end: str) -> None:
    text = (
        f"it is drg_{end}{VALUE[4:]} or drg_{end} é {VALUE[:7]}{end}{VALUE[7:15]}{end}{VALUE[15:]}"
        f" and {VALUE[:9]}{end}on"
    )
    whole = LINES.text(text).text
    assert whole.count("REDACTED") == 2
    for border in range(len(text) + 1):
        assert redact_in_chunks(text, border, redactor=LINES) == whole, border
    assert redact_in_chunks(text, *range(len(text)), redactor=LINES) == whole


@proves("REDACT-STREAM")
def test_only_a_line_that_ends_with_the_start_of_a_known_value_is_held() -> None:
    stream = LINES.stream()
    assert [stream.feed(line) for line in ("a line d\n", "drg_z \n")] == ["a line d\n", ""]
    assert stream.feed("another\n") == "drg_z \nanother\n"
    assert "".join(stream.feed("drg_\n") for _ in range(20)) == "drg_\n" * 19


@proves("REDACT-STREAM")
def test_each_kind_of_credential_split_at_any_offset_is_found() -> None:
    for case in corpus.prefixed(each=1):
        text = f"it is {case.secret} ."
        whole = ALL.text(text).text
        for border in range(6, len(text) - 1, 3):
            assert redact_in_chunks(text, border) == whole, (case.kind, border)


@proves("REDACT-STREAM")
@given(TEXTS, st.data())
def test_chunks_equal_the_whole_text(text: str, data: st.DataObject) -> None:
    borders = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    assert redact_in_chunks(text, *borders) == ALL.text(text).text


@proves("REDACT-STREAM")
def test_words_are_released_when_no_secret_can_follow() -> None:
    stream = ALL.stream()
    assert stream.feed("I think that the ") == ""  # a known value has white space in it
    plain = Redactor(key=KEY).stream()
    assert plain.feed("I think that the ") == "I think that the "
    assert plain.feed("rest is plain\nin password: ") == "rest is plain\n"
    assert (plain.feed("hunter22x\n"), plain.carry_over) == ("", "in password: hunter22x\n")
    # Words that name a secret wait for three more lines.
    assert [plain.feed("a line\n") for _ in range(2)] == ["", ""]
    released = "in password: hunter22x\na line\na line\na line\n"
    assert plain.feed("a line\n") == Redactor(key=KEY).text(released).text
    assert sum(plain.found.values()) == 1
    assert plain.feed("token " + "word " * 300).startswith("token word")


@proves("REDACT-STREAM")
def test_key_is_released_when_it_ends() -> None:
    stream = Redactor(key=KEY).stream()
    lines = PEM.splitlines(keepends=True)
    assert [stream.feed(line) for line in lines] == [""] * len(lines)
    out = stream.feed("\n" + "next\n" * 4)
    assert out.startswith("[REDACTED:private_key:")
    assert out.endswith("]" + "\nnext" * 4 + "\n")
    assert list(stream.found.values()) == [1]


@proves("REDACT-STREAM")
def test_carry_over_can_be_continued_by_another_stream() -> None:
    first = ALL.stream()
    out = first.feed(f"see {GITHUB[:20]}")
    second = ALL.stream(first.carry_over)
    out += second.feed(GITHUB[20:] + " end") + second.close()
    assert out == ALL.text(f"see {GITHUB} end").text


@proves("REDACT-STREAM")
def test_text_without_a_break_is_released_at_the_carry_over_limit() -> None:
    stream = Redactor(key=KEY).stream()
    out = stream.feed("x/" * MAX_CARRY_OVER)
    assert 0 < len(out) < 2 * MAX_CARRY_OVER
    assert len(stream.carry_over) <= MAX_CARRY_OVER
    secret = f"={GITHUB}=" + "y/" * 3_000
    out = stream.feed("a." * 30_000 + secret) + stream.feed("x/" * MAX_CARRY_OVER) + stream.close()
    assert GITHUB[:12] not in out
    giant = "ghp_" + "a1B2" * MAX_CARRY_OVER
    other = Redactor(key=KEY).stream()
    out = other.feed(giant) + other.close()
    assert "a1B2" * 3 not in out


@proves("REDACT-STREAM")
def test_forced_release_keeps_secrets_with_their_names() -> None:
    for before in range(MAX_CARRY_OVER - 30, MAX_CARRY_OVER + 30, 3):
        stream = Redactor(key=KEY).stream()
        text = "a." * (before // 2) + ",password=xK9mP2vQ7rT4w," + "y/" * 2_048
        assert "xK9mP2" not in stream.feed(text) + stream.close()
    stream = Redactor(key=KEY).stream()
    open_end = "a." * 31_000 + ",password=" + "xK9mP2vQ7rT4w" * 400
    out = stream.feed(open_end) + stream.feed("xK9mP2vQ7rT4w") + stream.close()
    assert "xK9mP2" not in out
