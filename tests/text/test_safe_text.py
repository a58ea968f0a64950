"""Untrusted text: no terminal control, no forged line, nothing hidden."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text import safe_text
from tests.requirements import proves

pytestmark = proves("CLI-SAFE-TEXT")

ESC = "\x1b"
ST = "\x1b\\"
BAD = "\ufffd"

# Independent of the implementation's ranges: Unicode's categories and a list of the
# characters that are drawn as nothing although their category does not say so.
STEERING_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
DRAWN_AS_NOTHING = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f"
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206f"
    "\u3164\ufeff\uffa0\ufff9\ufffa\ufffb\ufe00\ufe0d"
    "\U0001d173\U0001d17a\U000e0001\U000e0020\U000e0041\U000e007f\U000e0100\U000e01ef"
)

HOSTILE = st.text(
    st.one_of(
        st.sampled_from([*"\x1b\x07\x9b\x9c\x9d\x90\x98\x9e\x9f[]PX^_\\;?0(B8m\r\n\t ", "é"]),
        st.sampled_from(sorted(DRAWN_AS_NOTHING)),
        st.characters(),
        st.characters(categories=["Cs", "Cf"]),
    )
)


def is_allowed(character: str, *, one_line: bool) -> bool:
    if character in "\n\t":
        return not one_line
    return (
        unicodedata.category(character) not in STEERING_CATEGORIES
        and character not in DRAWN_AS_NOTHING
    )


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        pytest.param(f"{ESC}[31mred{ESC}[0m", "red", id="CSI colour"),
        pytest.param(f"{ESC}[2J{ESC}[1;1Hgone", "gone", id="CSI clear and move"),
        pytest.param(f"{ESC}[?1049hx", "x", id="CSI private mode"),
        pytest.param(f"{ESC}[0 qx", "x", id="CSI with an intermediate"),
        pytest.param("\x9b31mred", "red", id="CSI in 8 bits"),
        pytest.param(f"{ESC}]0;title\x07x", "x", id="OSC title ended by BEL"),
        pytest.param(f"{ESC}]52;c;cm0gLXJm\x07x", "x", id="OSC 52 clipboard ended by BEL"),
        pytest.param(f"{ESC}]52;c;cm0gLXJm{ST}x", "x", id="OSC 52 clipboard ended by ST"),
        pytest.param(f"{ESC}]8;;https://evil{ST}here{ESC}]8;;{ST}", "here", id="OSC 8 link"),
        pytest.param("\x9d52;c;eA==\x9cx", "x", id="OSC in 8 bits"),
        pytest.param(f"{ESC}]0;tïtle\x9cx", "x", id="OSC in 7 bits ended in 8"),
        pytest.param(f"{ESC}P+q544e{ST}x", "x", id="DCS"),
        pytest.param("\x90+q544e\x9cx", "x", id="DCS in 8 bits"),
        pytest.param(f"{ESC}Xa{ST}{ESC}^b{ST}{ESC}_c{ST}x", "x", id="SOS PM APC"),
        pytest.param("\x98a\x9c\x9eb\x9c\x9fc\x9cx", "x", id="SOS PM APC in 8 bits"),
        pytest.param(f"{ESC}cx{ESC}7x{ESC}Mx", "xxx", id="escapes of two characters"),
        pytest.param(f"{ESC}(Bx{ESC}#8x{ESC} Fx", "xxx", id="escapes of three characters"),
        pytest.param(f"x{ST}", "x", id="a stray ST"),
    ],
)
def test_complete_sequence_is_removed(hostile: str, shown: str) -> None:
    assert safe_text(hostile) == shown


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        pytest.param(ESC, BAD, id="ESC at the end"),
        pytest.param(f"{ESC}[31", f"{BAD}[31", id="CSI without its end"),
        pytest.param(f"{ESC}[3\n1m", f"{BAD}[3\n1m", id="CSI over two lines"),
        pytest.param(f"{ESC}[1é", f"{BAD}[1é", id="CSI with a strange end"),
        pytest.param(f"{ESC}]0;pay\nnext", f"{BAD}]0;pay\nnext", id="OSC without its end"),
        pytest.param(
            f"{ESC}]0;pay\nload\x07", f"{BAD}]0;pay\nload{BAD}", id="OSC that would eat a line"
        ),
        pytest.param(f"{ESC}Ppay\x07load", f"{BAD}Ppay{BAD}load", id="DCS is not ended by BEL"),
        pytest.param("\x9dpay", f"{BAD}pay", id="OSC in 8 bits without its end"),
        pytest.param(f"{ESC}]a{ESC}[31mb", f"{BAD}]ab", id="CSI inside an OSC without its end"),
        pytest.param(f"{ESC}{ESC}[m[31m", f"{BAD}[31m", id="no new sequence from what is left"),
        pytest.param(f"{ESC}é", f"{BAD}é", id="ESC before no final character"),
    ],
)
def test_broken_sequence_hides_no_text(hostile: str, shown: str) -> None:
    assert safe_text(hostile) == shown


@pytest.mark.parametrize(
    "character",
    [
        *"\x00\x07\x08\x0b\x0c\x0d\x1a\x7f\x80\x85\x9b\u2028\u2029\ud800\udfff",
        *sorted(DRAWN_AS_NOTHING),
    ],
    ids=ascii,
)
def test_control_and_invisible_characters_become_visible(character: str) -> None:
    assert safe_text(f"a{character}é") == f"a{BAD}é"


def test_lines_are_kept_unless_one_line_is_wanted() -> None:
    text = "a\r\nb\n\tc\rd"
    assert safe_text(text) == f"a\nb\n\tc{BAD}d"
    assert safe_text(text, one_line=True) == f"a\u23ceb\u23ce c{BAD}d"
    assert safe_text("ok\nlevel=error forged", one_line=True) == "ok\u23celevel=error forged"


@pytest.mark.parametrize(
    "clean",
    [
        "",
        "Fix the login page",
        "two lines\n\tand a tab",
        "Grüße, Привет, こんにちは, مرحبا, שלום, हिन्दी",
        "❤️ ☎︎ 🎉 → ⏎ � €",
        "e\u0301 no\u00a0break",
    ],
)
def test_clean_text_is_unchanged(clean: str) -> None:
    assert safe_text(clean) == clean


@given(HOSTILE, st.booleans())
def test_only_allowed_characters_come_out(text: str, one_line: bool) -> None:
    shown = safe_text(text, one_line=one_line)
    assert [c for c in shown if not is_allowed(c, one_line=one_line)] == []
    shown.encode()


@given(HOSTILE, st.booleans())
def test_safe_text_is_idempotent(text: str, one_line: bool) -> None:
    once = safe_text(text, one_line=one_line)
    assert safe_text(once, one_line=one_line) == once


@given(st.text(st.characters(categories=["L", "N", "P", "Sm", "Sc", "Zs"])))
def test_text_of_letters_is_unchanged(text: str) -> None:
    expected = "".join(BAD if c in DRAWN_AS_NOTHING else c for c in text)
    assert safe_text(text) == expected
    assert safe_text(text, one_line=True) == expected


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)), st.sampled_from("]PX^_"))
def test_payload_of_an_unterminated_string_is_shown(payload: str, kind: str) -> None:
    assert safe_text(f"{ESC}{kind}{payload}") == f"{BAD}{kind}{payload}"


def test_100_000_hostile_texts_and_their_halves_are_harmless() -> None:
    chance = random.Random(150)
    alphabet = f"{ESC}{ESC}\x07\x9b\x9c\x9d\x90[]PX^_\\;?0(Bm\r\n\té\u202e\ud800\U000e0041"
    for _ in range(100_000):
        text = "".join(chance.choices(alphabet, k=chance.randrange(12)))
        cut = chance.randrange(len(text) + 1)
        shown = safe_text(text) + safe_text(text[:cut]) + safe_text(text[cut:])
        assert all(is_allowed(c, one_line=False) for c in shown)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(f"{ESC}]" * 250_000, id="strings that never end"),
        pytest.param(f"{ESC}[" + "1" * 500_000, id="a long CSI"),
        pytest.param(f"{ESC}[1 " * 125_000, id="many CSI"),
        pytest.param(ESC + " " * 500_000, id="long intermediates"),
        pytest.param(f"{ESC}P" + "a" * 500_000, id="a long DCS"),
        pytest.param("\x9d" * 500_000, id="8-bit starts"),
    ],
)
def test_worst_case_texts_take_linear_time(hostile: str) -> None:
    # Anything worse than linear would exceed the time limit of a test run.
    assert ESC not in safe_text(hostile)
