"""What a program prints, however it is cut: the same lines, the same messages, a bounded log."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agents.output import Messages, Output
from dragoman.text.redact import Redactor, Secret
from tests.requirements import proves

PREFIX = b"AOF/1 "
START = 1_770_647_400_000
LIMIT = 1_000_000


class Printed:
    """An output and what was kept of it."""

    def __init__(self, most: int = LIMIT, most_message: int = 100, most_told: int = LIMIT) -> None:
        self.kept = list[bytes]()
        self.told = list[str]()
        self.output = Output(
            self.kept.append,
            most,
            lambda: START,
            Redactor([Secret("word", "secret")]),
            Messages((PREFIX,), most_message, most_told),
        )
        self.output.tell = lambda pulses: self.told.extend(one.line for one in pulses)
        self.messages = list[bytes]()

    def print(self, *blocks: bytes) -> None:
        """The program says this, and ends."""
        for block in (*blocks, b""):
            self.messages += self.output.take("out", block)

    @property
    def lines(self) -> list[str]:
        """The lines of the log, without their times."""
        return [line.split(" ", 1)[1] for line in b"".join(self.kept).decode().splitlines()]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@proves("RUN-OUTPUT")
def test_a_line_is_a_sandbox_pulse() -> None:
    pulse = Printed().output.pulse("the \x1b[31m[REDACTED:word:0a1b2c3d]\x1b[0m word")
    assert msgspec.json.decode(msgspec.json.encode(pulse)) == {
        "type": "SANDBOX_PULSE",
        "line": pulse.line,
        "masked": True,
        "timestamp": "2026-02-09T14:30:00.000Z",
    }
    assert "\x1b" not in pulse.line
    assert not Printed().output.pulse("plain").masked


@proves("RUN-OUTPUT")
@given(
    said=st.lists(
        st.sampled_from([b"AOF/1 {}", b"AOF", b"/1 x", b"\n", b"secret", b"\r\n", b"\xe2"])
    ),
    places=st.lists(st.integers(0, 200), max_size=6),
)
def test_it_does_not_matter_how_it_is_cut(said: list[bytes], places: list[int]) -> None:
    whole, pieces = Printed(), Printed()
    whole.print(b"".join(said))
    pieces.print(*cut(b"".join(said), places))
    assert pieces.lines == whole.lines
    assert pieces.messages == whole.messages
    assert "secret" not in "".join(whole.lines)


@proves("CCOS-PAYLOADS")
def test_of_a_line_with_more_than_may_be_kept_only_its_size_is_told() -> None:
    printed = Printed(most_told=11)
    printed.print(b"AOF/1 short\nAOF/1 longer\nno message\nnor is this\xc3\xa9\n")
    sizes = [f"[dragoman] a line of {n} bytes: what it says is not told here" for n in (12, 13)]
    assert printed.told == ["AOF/1 short", sizes[0], "no message", sizes[1]]
    assert printed.lines[1] == "out AOF/1 longer"  # the log of the program is no part of the ledger


@proves("RUN-OUTPUT", "RUN-MESSAGES")
@given(places=st.lists(st.integers(0, 400), max_size=6))
def test_beyond_the_limit_messages_are_still_heard_however_they_are_cut(places: list[int]) -> None:
    printed = Printed(most=10)
    data = b"too much\nx AOF/1 no\nAOF/1 {1}\nnoise\n" + b"y" * 50 + b"\nAOF/1 {2}\nAOF/1 {3}"
    printed.print(*cut(data, places))
    assert printed.messages == [b"AOF/1 {1}", b"AOF/1 {2}", b"AOF/1 {3}"]
    assert printed.lines == ["hub the limit is reached: no more is kept"]
    assert printed.output.said == len(data)


@proves("RUN-OUTPUT")
def test_a_line_is_kept_up_to_its_limit_and_a_message_one_byte_beyond_it() -> None:
    printed = Printed(most_message=100_000)
    printed.print(b"x" * 1_000_000 + b"\n" + PREFIX + b"x" * 1_000_000 + b"\n")
    assert [len(line) for line in printed.lines] == [16_384 + 6] * 2
    assert all(line.endswith(" …") for line in printed.lines)
    assert [len(message) for message in printed.messages] == [100_001]


@proves("RUN-OUTPUT")
def test_errors_are_kept_and_never_taken_for_messages() -> None:
    printed = Printed()
    assert printed.output.take("err", b"AOF/1 {}\n") == []
    assert printed.lines == ["err AOF/1 {}"]


@proves("RUN-OUTPUT")
def test_what_the_hub_says_to_messages_is_bounded_too_but_not_how_it_ended() -> None:
    printed = Printed(most=1)
    for _ in range(5_000):
        printed.output.answer("refused")
    printed.output.note("exit code 3")
    assert len(printed.lines) < 1_002
    no_more = "hub no more is kept of what the hub says to messages"
    assert printed.lines[-3:] == ["hub refused", no_more, "hub exit code 3"]


@proves("RUN-OUTPUT")
def test_a_full_disk_loses_the_log_and_nothing_else() -> None:
    def full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    messages = Messages((PREFIX,), 100, 100)
    output = Output(full, LIMIT, lambda: START, Redactor(), messages)
    output.note("begun")
    assert output.take("out", b"hello\nAOF/1 {}\n") == [b"AOF/1 {}"]
    assert output.take("out", b"AOF/1 {2}\n") == [b"AOF/1 {2}"]


@proves("RUN-OUTPUT")
@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\u202e", "\x00"])
def test_nothing_in_it_steers_a_terminal(hostile: str) -> None:
    printed = Printed()
    printed.print(f"before{hostile}after\n".encode())
    assert printed.lines[0].removeprefix("out ") in ("beforeafter", "before\ufffdafter")


@proves("REDACT-RUNS")
@given(places=st.lists(st.integers(0, 4_000), max_size=8))
def test_no_secret_of_an_agent_reaches_the_log_however_its_output_is_cut(
    places: list[int],
) -> None:
    token, body = "ghp_" + "a1B2" * 9, "MIIEowIBAAKCAQEA" + "q7Xz" * 12
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n{body}\n-----END PRIVATE KEY-----"
    push = f"push \x1b[31m{token[:9]}\x1b[0m{token[9:]} ok"
    said = f"begun\n{push}\n{key}\nsecret\nended\npassword: k3Jx9aQw"
    printed = Printed()
    printed.print(*cut(said.encode(), places))
    kinds = [line.partition(":")[2].partition(":")[0] for line in printed.lines]
    assert kinds == ["", "github_token", "private_key", "word", "", " [REDACTED"]
    assert printed.lines[0] == "out begun"
    assert printed.lines[-1].startswith("out password: [REDACTED:password:")


@proves("REDACT-RUNS")
def test_a_secret_where_a_long_line_is_cut_is_not_shown_in_part() -> None:
    printed = Printed()
    printed.print(b"x " * 8_185 + b"ghp_" + b"a1B2" * 9 + b"\n")
    assert "a1B2" not in printed.lines[0]
