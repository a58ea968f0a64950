"""Output of a program, at any chunk borders: the same lines and messages, and a bounded log."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agents.program_output import MessageFormat, Output
from dragoman.text.redact import Redactor, Secret
from tests.requirements import proves

PREFIX = b"AOF/1 "
START = 1_770_647_400_000
LIMIT = 1_000_000


class OutputRecorder:
    """An output with the log, pulses and messages that it produced."""

    def __init__(
        self, max_log: int = LIMIT, max_message: int = 100, max_pulse: int = LIMIT
    ) -> None:
        self.log_chunks = list[bytes]()
        self.pulses = list[str]()
        self.output = Output(
            self.log_chunks.append,
            max_log,
            lambda: START,
            Redactor([Secret("word", "secret")]),
            MessageFormat((PREFIX,), max_message, max_pulse),
        )
        self.output.on_lines = lambda pulses: self.pulses.extend(one.line for one in pulses)
        self.messages = list[bytes]()

    def print(self, *blocks: bytes) -> None:
        """Feed these chunks, then the end of the output."""
        for block in (*blocks, b""):
            self.messages += self.output.feed("out", block)

    @property
    def lines(self) -> list[str]:
        """Lines of the log, without their times."""
        return [line.split(" ", 1)[1] for line in b"".join(self.log_chunks).decode().splitlines()]


def split_at(data: bytes, offsets: list[int]) -> list[bytes]:
    """Split data at these offsets."""
    ends = sorted({offset % (len(data) + 1) for offset in offsets} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@proves("RUN-OUTPUT")
def test_line_becomes_a_sandbox_pulse() -> None:
    pulse = OutputRecorder().output.make_pulse("the \x1b[31m[REDACTED:word:0a1b2c3d]\x1b[0m word")
    assert msgspec.json.decode(msgspec.json.encode(pulse)) == {
        "type": "SANDBOX_PULSE",
        "line": pulse.line,
        "masked": True,
        "timestamp": "2026-02-09T14:30:00.000Z",
    }
    assert "\x1b" not in pulse.line
    assert not OutputRecorder().output.make_pulse("plain").masked


@proves("RUN-OUTPUT")
@given(
    blocks=st.lists(
        st.sampled_from([b"AOF/1 {}", b"AOF", b"/1 x", b"\n", b"secret", b"\r\n", b"\xe2"])
    ),
    offsets=st.lists(st.integers(0, 200), max_size=6),
)
def test_chunk_borders_do_not_change_lines_and_messages(
    blocks: list[bytes], offsets: list[int]
) -> None:
    whole, pieces = OutputRecorder(), OutputRecorder()
    whole.print(b"".join(blocks))
    pieces.print(*split_at(b"".join(blocks), offsets))
    assert pieces.lines == whole.lines
    assert pieces.messages == whole.messages
    assert "secret" not in "".join(whole.lines)


@proves("CCOS-PAYLOADS")
def test_pulse_of_a_too_long_line_gives_only_its_size() -> None:
    recorder = OutputRecorder(max_pulse=11)
    recorder.print(b"AOF/1 short\nAOF/1 longer\nno message\nnor is this\xc3\xa9\n")
    sizes = [f"[dragoman] a line of {n} bytes: its content is left out" for n in (12, 13)]
    assert recorder.pulses == ["AOF/1 short", sizes[0], "no message", sizes[1]]
    assert (
        recorder.lines[1] == "out AOF/1 longer"
    )  # the log of the program is no part of the ledger


@proves("RUN-OUTPUT", "RUN-MESSAGES")
@given(offsets=st.lists(st.integers(0, 400), max_size=6))
def test_messages_beyond_the_log_limit_are_still_parsed(offsets: list[int]) -> None:
    recorder = OutputRecorder(max_log=10)
    data = b"too much\nx AOF/1 no\nAOF/1 {1}\nnoise\n" + b"y" * 50 + b"\nAOF/1 {2}\nAOF/1 {3}"
    recorder.print(*split_at(data, offsets))
    assert recorder.messages == [b"AOF/1 {1}", b"AOF/1 {2}", b"AOF/1 {3}"]
    assert recorder.lines == ["hub the limit is reached: later output is not logged"]
    assert recorder.output.byte_count == len(data)


@proves("RUN-OUTPUT")
def test_long_lines_are_truncated_and_messages_kept_one_byte_past_their_limit() -> None:
    recorder = OutputRecorder(max_message=100_000)
    recorder.print(b"x" * 1_000_000 + b"\n" + PREFIX + b"x" * 1_000_000 + b"\n")
    assert [len(line) for line in recorder.lines] == [16_384 + 6] * 2
    assert all(line.endswith(" …") for line in recorder.lines)
    assert [len(message) for message in recorder.messages] == [100_001]


@proves("RUN-OUTPUT")
def test_stderr_is_logged_and_never_parsed_as_messages() -> None:
    recorder = OutputRecorder()
    assert recorder.output.feed("err", b"AOF/1 {}\n") == []
    assert recorder.lines == ["err AOF/1 {}"]


@proves("RUN-OUTPUT")
def test_hub_answers_in_the_log_are_bounded_but_the_exit_note_is_kept() -> None:
    recorder = OutputRecorder(max_log=1)
    for _ in range(5_000):
        recorder.output.log_reply("refused")
    recorder.output.note("exit code 3")
    assert len(recorder.lines) < 1_002
    no_more = "hub no more answers to messages are logged"
    assert recorder.lines[-3:] == ["hub refused", no_more, "hub exit code 3"]


@proves("RUN-OUTPUT")
def test_full_disk_loses_only_the_log() -> None:
    def raise_disk_full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    messages = MessageFormat((PREFIX,), 100, 100)
    output = Output(raise_disk_full, LIMIT, lambda: START, Redactor(), messages)
    output.note("begun")
    assert output.feed("out", b"hello\nAOF/1 {}\n") == [b"AOF/1 {}"]
    assert output.feed("out", b"AOF/1 {2}\n") == [b"AOF/1 {2}"]


@proves("RUN-OUTPUT")
@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202e", "\x00"])
def test_terminal_controls_are_removed_from_the_log(hostile: str) -> None:
    recorder = OutputRecorder()
    recorder.print(f"before{hostile}after\n".encode())
    assert recorder.lines[0].removeprefix("out ") in ("beforeafter", "before\ufffdafter")


@proves("REDACT-RUNS")
@given(offsets=st.lists(st.integers(0, 4_000), max_size=8))
def test_secrets_are_redacted_from_the_log_at_any_chunk_border(
    offsets: list[int],
) -> None:
    token, body = "ghp_" + "a1B2" * 9, "MIIEowIBAAKCAQEA" + "q7Xz" * 12
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n{body}\n-----END PRIVATE KEY-----"
    push = f"push \x1b[31m{token[:9]}\x1b[0m{token[9:]} ok"
    text = f"begun\n{push}\n{key}\nsecret\nended\npassword: k3Jx9aQw"
    recorder = OutputRecorder()
    recorder.print(*split_at(text.encode(), offsets))
    kinds = [line.partition(":")[2].partition(":")[0] for line in recorder.lines]
    assert kinds == ["", "github_token", "private_key", "word", "", " [REDACTED"]
    assert recorder.lines[0] == "out begun"
    assert recorder.lines[-1].startswith("out password: [REDACTED:password:")


@proves("REDACT-RUNS")
def test_secret_at_the_truncation_of_a_long_line_is_not_shown_in_part() -> None:
    recorder = OutputRecorder()
    recorder.print(b"x " * 8_185 + b"ghp_" + b"a1B2" * 9 + b"\n")
    assert "a1B2" not in recorder.lines[0]
