"""Secrets in the payload of terminal sequences: titles, links, the clipboard."""

from base64 import b64encode

import pytest

from dragoman.text.redact import Redactor, Secret
from tests.requirements import proves
from tests.text.test_redact import GITHUB, KEY
from tests.text.test_redact_stream import redact_in_chunks

PHRASE = "correct horse battery"
ALL = Redactor([Secret("phrase", PHRASE)], KEY)
PASSWORD = "hG7skPq2x9"
SECRETS = {
    "a link": (f"\x1b]8;;https://ci:{PASSWORD}@h/7\x1b\\run 7\x1b]8;;\x1b\\ ok\n", PASSWORD),
    "a title": (f"so \x1b]0;{GITHUB}\x07 ok\n", GITHUB),
    "a title of one character": (f"so \x9d0;{GITHUB}\x9c ok\n", GITHUB),
    "a title with a name": (f"so \x1b]2;password: {PASSWORD} there\x1b\\ok\n", PASSWORD),
    "a title with something unseen": (f"\x1b]0;{GITHUB[:9]}\u200b{GITHUB[9:]}\x07", GITHUB[9:]),
    "the clipboard": (f"\x1b]52;c;{b64encode(f'u:{GITHUB}'.encode()).decode()}\x07", "YTFCMmEx"),
    "a string of the device": (f"so \x1bP{GITHUB}\x1b\\ok", GITHUB),
    "of an application": (f"so \x1b_{GITHUB}\x1b\\ok", GITHUB),
    "a private message": (f"so \x1b^{GITHUB}\x9cok", GITHUB),
    "others beside each other": (f"\x1bX{GITHUB}\x1b\\\x1b^{GITHUB}\x1b\\", GITHUB),
    "one for tmux": (f"\x1bPtmux;\x1b\x1b]0;{GITHUB}\x07\x1b\\", GITHUB),
    "one without an end": (f"so \x1bP{GITHUB} and \x1b]0;password={PASSWORD} so\nok", PASSWORD),
    "one in JSON": (rf"{{\"x\": \"\u001bP{GITHUB}\u001b\\\\\"}}", GITHUB),
    "a long one": ("\x1b]0;" + "word " * 300 + f"password: {PASSWORD} {'so ' * 400}\x07", PASSWORD),
    "a known value": (f"so \x1b]0;{PHRASE}\x07\x1bP{PHRASE}\x1b\\ \x1b_a {PHRASE}\x1b\\", PHRASE),
}


@proves("REDACT-CARRIED")
@pytest.mark.parametrize("position", SECRETS)
def test_payload_of_a_terminal_sequence_is_redacted_whole_and_in_chunks(position: str) -> None:
    text, secret = SECRETS[position]
    whole = ALL.text(text).text
    assert secret in text
    assert secret not in whole
    assert ALL.text(whole).text == whole
    for border in range(0, len(text) + 1, 1 + len(text) // 200):
        assert redact_in_chunks(text, border, redactor=ALL) == whole, border
    assert redact_in_chunks(text, *range(len(text)), redactor=ALL) == whole


@proves("REDACT-CARRIED")
def test_only_the_secret_is_masked_with_the_same_digest_as_elsewhere() -> None:
    masked = ALL.text(f"\x1b]8;;https://ci:{PASSWORD}@h/7\x1b\\run 7\x1b]8;;\x1b\\ ok\n")
    (plain,) = ALL.text(f"https://ci:{PASSWORD}@h").found
    assert masked.text == (
        f"\x1b]8;;https://ci:{plain.placeholder}@h/7\x1b\\run 7\x1b]8;;\x1b\\ ok\n"
    )


@proves("REDACT-CARRIED", "REDACT-KNOWN")
def test_known_values_in_sequences_are_found_with_known_values_only() -> None:
    known = Redactor([Secret("phrase", PHRASE)], KEY, known_only=True)
    text = f"\x1b]0;{PHRASE} {GITHUB}\x07"
    (found,) = known.text(text).found
    assert known.text(text).text == text.replace(PHRASE, found.placeholder)


@proves("REDACT-CARRIED")
def test_secret_split_by_a_sequence_is_found() -> None:
    masked = ALL.text(f"{GITHUB[:9]}\x1b]0;a title\x07{GITHUB[9:]}")
    assert masked.text == masked.found[0].placeholder
    assert masked.found[0].digest == ALL.text(GITHUB).found[0].digest


@proves("REDACT-CARRIED", "REDACT-STREAM")
def test_unterminated_sequence_does_not_hold_back_later_text() -> None:
    stream = Redactor(key=KEY).stream()
    released = len(stream.feed("so \x1b]0;"))
    for count in range(1, 1_001):
        released += len(stream.feed("word "))
        assert len("so \x1b]0;") + 5 * count - released < 2_000
    assert stream.feed("\n") + stream.close()
