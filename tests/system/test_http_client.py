"""HTTP client: calls checked addresses only, with a timeout, and shows no URL in errors."""

import socket
import ssl
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dragoman.core.errors import SettingsError
from dragoman.system.http_client import ForbiddenAddress, SafeHttpClient, is_public
from tests.certificate import make_certificate
from tests.notify.receiver import Answer, Receiver, drip, hang, receiving, status, text
from tests.requirements import proves

pytestmark = proves("SYSTEM-FETCH")

TIMEOUT_S = 0.3
SETTING = "notify.webhook_url"


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """Server on this machine."""
    with receiving() as server:
        yield server


def make_endpoint(receiver: Receiver, **more: Any) -> SafeHttpClient:
    return SafeHttpClient(receiver.url(path="/hook?key=1"), SETTING, ("127.0.0.1",), **more)


class FakeResolver:
    """Gives one answer after the other, and counts the calls."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.calls = 0

    def __call__(self, _: str, port: int, **__: Any) -> list[tuple[Any, ...]]:
        self.calls += 1
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
            for address in self._answers.pop(0)
        ]


def test_post_arrives_unchanged(receiver: Receiver) -> None:
    assert make_endpoint(receiver).post({"X-Say": "so"}, b"{}") == 204
    (request,) = receiver.requests
    assert request.line == "POST /hook?key=1 HTTP/1.1"
    assert request.body == b"{}"
    assert request.headers["x-say"] == "so"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_header_with_line_break_is_refused(receiver: Receiver) -> None:
    with pytest.raises(ValueError, match="line's end"):
        make_endpoint(receiver).post({"X-Say": "so\r\nX-More: no"}, b"")
    assert receiver.connections == 0


@pytest.mark.parametrize("code", [200, 302, 404, 500])
def test_status_is_returned_and_redirect_not_followed(receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code, f"Location: {receiver.url(path='/elsewhere')}")]
    assert make_endpoint(receiver).post({}, b"") == code
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0.0.0.0",  # noqa: S104  one of the ways to call this machine
        "[::1]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_any_spelling_of_localhost_is_refused(receiver: Receiver, host: str) -> None:
    with pytest.raises(ForbiddenAddress, match="allow_hosts"):
        SafeHttpClient(receiver.url(host), SETTING).post({}, b"")
    assert receiver.connections == 0


@pytest.mark.parametrize("allowed", ["localhost", "LocalHost", "localhost."])
def test_allowed_host_is_called(receiver: Receiver, allowed: str) -> None:
    assert SafeHttpClient(receiver.url("localhost"), SETTING, (allowed,)).post({}, b"") == 204


def test_allowed_host_does_not_allow_its_other_names(receiver: Receiver) -> None:
    with pytest.raises(ForbiddenAddress):
        SafeHttpClient(receiver.url("localhost"), SETTING, ("127.0.0.1",)).post({}, b"")


def test_dns_rebinding_reaches_only_the_checked_address(
    receiver: Receiver,
) -> None:
    # In the global range, but assigned to no one: nothing is there that could answer.
    resolver = FakeResolver(["2000::1"], ["127.0.0.1"])
    target = SafeHttpClient(
        receiver.url("rebinding.example"), SETTING, resolve=resolver, seconds=TIMEOUT_S
    )
    with pytest.raises(OSError, match=r".") as caught:
        target.post({}, b"")
    assert not isinstance(caught.value, ForbiddenAddress)
    assert resolver.calls == 1
    with pytest.raises(ForbiddenAddress, match=r"127\.0\.0\.1, an address that is not public"):
        target.post({}, b"")
    assert receiver.connections == 0


def test_one_forbidden_address_forbids_the_name(receiver: Receiver) -> None:
    resolver = FakeResolver(["2000::1", "127.0.0.1"])
    with pytest.raises(ForbiddenAddress):
        SafeHttpClient(receiver.url("mixed.example"), SETTING, resolve=resolver).post({}, b"")
    assert receiver.connections == 0


def test_next_address_is_tried_after_a_failure(receiver: Receiver) -> None:
    resolver = FakeResolver(["127.0.0.2", "127.0.0.1"])
    url = receiver.url("two.example")
    assert SafeHttpClient(url, SETTING, ("two.example",), resolve=resolver).post({}, b"") == 204


def test_name_without_address_is_reported(receiver: Receiver) -> None:
    with pytest.raises(ConnectionError, match="no address"):
        SafeHttpClient(receiver.url("none.example"), SETTING, resolve=FakeResolver([])).post(
            {}, b""
        )


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0.1.2.3", False),
        ("10.255.255.255", False),
        ("100.100.100.200", False),
        ("127.255.0.1", False),
        ("168.63.129.16", False),
        ("169.254.169.254", False),
        ("172.31.0.1", False),
        ("192.0.0.192", False),
        ("192.168.1.1", False),
        ("198.19.0.1", False),
        ("203.0.113.9", False),
        ("224.0.0.1", False),
        ("239.255.255.250", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::127.0.0.1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:8.8.8.8", False),
        ("64:ff9b::7f00:1", False),
        ("2001:0:7f00:1::", False),
        ("2001:db8::1", False),
        ("2002:7f00:1::", False),
        ("fd00:ec2::254", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("ff02::1", False),
        *(
            (address, False)
            for first_and_last in (
                ("0.0.0.0", "0.255.255.255"),  # noqa: S104  nothing is bound to it
                ("10.0.0.0", "10.128.0.1"),
                ("100.64.0.0", "100.127.255.255"),
                ("127.0.0.0", "127.255.255.255"),
                ("169.254.0.0", "169.254.255.255"),
                ("172.16.0.0", "172.31.255.255"),
                ("192.0.0.0", "192.0.0.255"),
                ("192.0.2.0", "192.0.2.255"),
                ("192.168.0.0", "192.168.255.255"),
                ("198.18.0.0", "198.19.255.255"),
                ("198.51.100.0", "198.51.100.255"),
                ("203.0.113.0", "203.0.113.255"),
                ("224.0.0.0", "239.255.255.255"),
                ("240.0.0.0", "255.255.255.254"),
                ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
                ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
                ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
                ("::ffff:10.0.0.1", "::ffff:169.254.169.254"),
                ("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"),
            )
            for address in first_and_last
        ),
        ("1.1.1.1", True),
        ("11.0.0.1", True),
        ("172.32.0.1", True),
        ("2606:4700::1111", True),
    ],
)
def test_address_is_public_or_not(address: str, expected: bool) -> None:
    assert is_public(address) is expected


@pytest.mark.parametrize("answer", [hang, drip])
def test_slow_answer_times_out(receiver: Receiver, answer: Answer) -> None:
    receiver.answers = [answer]
    with pytest.raises(TimeoutError, match=r"no answer within 0\.3 s"):
        make_endpoint(receiver, seconds=TIMEOUT_S).post({}, b"")
    # The server's side of the connection has ended too: no thread still reads from it.
    assert receiver.is_done.wait(10)


def test_slow_resolver_times_out(receiver: Receiver) -> None:
    may_answer = threading.Event()

    def resolve(*_: Any, **__: Any) -> list[tuple[Any, ...]]:
        may_answer.wait(10)
        return FakeResolver(["127.0.0.1"])("", receiver.port)

    with pytest.raises(TimeoutError):
        make_endpoint(receiver, resolve=resolve, seconds=TIMEOUT_S).post({}, b"")
    may_answer.set()
    for thread in threading.enumerate():
        if thread.name == "post":
            thread.join(10)
    assert receiver.connections == 0


def test_endless_body_is_read_only_in_part(receiver: Receiver) -> None:
    sent: list[int] = []

    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(1_000):
            connection.sendall(b"x" * 1_000_000)
            sent.append(1_000_000)

    receiver.answers = [flood]
    assert make_endpoint(receiver).post({}, b"") == 200
    assert receiver.is_done.wait(10)
    assert sum(sent) < 100_000_000


def test_endless_headers_are_not_read_to_their_end(receiver: Receiver) -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(1_000_000):
            connection.sendall(f"X-{number}: {'x' * 60_000}\r\n".encode())

    receiver.answers = [flood]
    with pytest.raises(ConnectionError, match="not HTTP"):
        make_endpoint(receiver).post({}, b"")
    assert receiver.is_done.wait(10)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n", b"\0" * 70_000, b"HTTP/1.1 9\r\n\r\n", b""],
    ids=["another protocol", "noise", "a bad status", "nothing"],
)
def test_non_http_answer_is_a_connection_error(receiver: Receiver, answer: bytes) -> None:
    receiver.answers = [text(answer)]
    with pytest.raises(ConnectionError):
        make_endpoint(receiver).post({}, b"")


def test_refused_connection_names_host_and_port(receiver: Receiver) -> None:
    target = make_endpoint(receiver)
    message = rf"127\.0\.0\.1 port {receiver.port} cannot be reached: Connection refused"
    receiver.close()
    with pytest.raises(ConnectionError, match=message):
        target.post({}, b"")


def test_unknown_name_is_reported() -> None:
    def resolve(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(-2, "Name or service not known")

    target = SafeHttpClient("http://nowhere.example/x", SETTING, resolve=resolve)
    message = r"nowhere\.example port 80 cannot be reached: Name or service not known"
    with pytest.raises(ConnectionError, match=message):
        target.post({}, b"")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "must begin with"),
        ("hooks.example/x", "must begin with"),
        ("ftp://hooks.example", "must begin with"),
        ("file:///etc/passwd", "must begin with"),
        ("https://", "must begin with"),
        ("https://name:s3cr3t@hooks.example", "a user or a password"),
        ("https://hooks.example:port/s3cr3t", "host or port"),
        ("https://hooks..example/s3cr3t", "host or port"),
        ("https://[::1/s3cr3t", "host or port"),
        ("https://hooks.example/s3cr3t two", "printable ASCII"),
        ("https://hooks.example/s3cr3t\u00e9", "printable ASCII"),
    ],
)
def test_invalid_url_is_refused_without_showing_it(url: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        SafeHttpClient(url, SETTING)
    assert words in caught.value.detail
    assert SETTING in caught.value.detail
    assert "s3cr3t" not in caught.value.detail


class TestTls:
    """Requests over TLS, with a certificate made for the test."""

    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        """Certificate for localhost, with its key."""
        return make_certificate(tmp_path)

    @pytest.fixture
    def server(self, certificate: Path) -> Generator[Receiver]:
        """Server with the certificate."""
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        with receiving(tls) as server:
            yield server

    def test_server_with_trusted_certificate_is_called(
        self, server: Receiver, certificate: Path
    ) -> None:
        def make_context() -> ssl.SSLContext:
            return ssl.create_default_context(cafile=str(certificate))

        url = server.url("localhost")
        assert SafeHttpClient(url, SETTING, ("localhost",), tls=make_context).post({}, b"{}") == 204
        assert server.requests[0].body == b"{}"
        wrong = SafeHttpClient(server.url(), SETTING, ("127.0.0.1",), tls=make_context)
        with pytest.raises(ssl.SSLCertVerificationError):
            wrong.post({}, b"{}")
        assert len(server.requests) == 1

    def test_server_with_untrusted_certificate_gets_nothing(self, server: Receiver) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            SafeHttpClient(server.url("localhost"), SETTING, ("localhost",)).post({}, b"secret")
        assert server.requests == []

    def test_hanging_handshake_times_out(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(TimeoutError):
                SafeHttpClient(url, SETTING, ("127.0.0.1",), seconds=TIMEOUT_S).post({}, b"")
