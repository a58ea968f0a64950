"""A POST goes to an address that was checked, is answered soon or not at all, and tells no URL."""

import socket
import ssl
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dragoman.core.errors import SettingsError
from dragoman.system.fetch import Endpoint, ForbiddenAddress, closed_kind
from tests.certificate import make_certificate
from tests.notify.receiver import Answer, Receiver, drip, hang, receiving, status, text
from tests.requirements import proves

pytestmark = proves("SYSTEM-FETCH")

SOON = 0.3
SETTING = "notify.webhook_url"


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """Give a server on this machine."""
    with receiving() as server:
        yield server


def endpoint(receiver: Receiver, **more: Any) -> Endpoint:
    return Endpoint(receiver.url(path="/hook?key=1"), SETTING, ("127.0.0.1",), **more)


class Resolver:
    """Gives one answer after the other, and counts how often it was asked."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, _: str, port: int, **__: Any) -> list[tuple[Any, ...]]:
        self.asked += 1
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
            for address in self._answers.pop(0)
        ]


def test_what_is_posted_arrives_as_it_is(receiver: Receiver) -> None:
    assert endpoint(receiver).post({"X-Say": "so"}, b"{}") == 204
    (request,) = receiver.requests
    assert request.line == "POST /hook?key=1 HTTP/1.1"
    assert request.body == b"{}"
    assert request.headers["x-say"] == "so"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_header_cannot_make_another_one(receiver: Receiver) -> None:
    with pytest.raises(ValueError, match="line's end"):
        endpoint(receiver).post({"X-Say": "so\r\nX-More: no"}, b"")
    assert receiver.connections == 0


@pytest.mark.parametrize("code", [200, 302, 404, 500])
def test_the_status_is_told_and_no_redirect_is_followed(receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code, f"Location: {receiver.url(path='/elsewhere')}")]
    assert endpoint(receiver).post({}, b"") == code
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
def test_no_way_to_write_this_machine_is_called(receiver: Receiver, host: str) -> None:
    with pytest.raises(ForbiddenAddress, match="allow_hosts"):
        Endpoint(receiver.url(host), SETTING).post({}, b"")
    assert receiver.connections == 0


@pytest.mark.parametrize("allowed", ["localhost", "LocalHost", "localhost."])
def test_a_host_that_is_allowed_by_name_is_called(receiver: Receiver, allowed: str) -> None:
    assert Endpoint(receiver.url("localhost"), SETTING, (allowed,)).post({}, b"") == 204


def test_allowing_one_host_allows_no_other_name_of_it(receiver: Receiver) -> None:
    with pytest.raises(ForbiddenAddress):
        Endpoint(receiver.url("localhost"), SETTING, ("127.0.0.1",)).post({}, b"")


def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_called(
    receiver: Receiver,
) -> None:
    # In the global range, but given to nobody: nothing is there that could answer.
    resolver = Resolver(["2000::1"], ["127.0.0.1"])
    target = Endpoint(receiver.url("rebinding.example"), SETTING, resolve=resolver, seconds=SOON)
    with pytest.raises(OSError, match=r".") as caught:
        target.post({}, b"")
    assert not isinstance(caught.value, ForbiddenAddress)
    assert resolver.asked == 1
    with pytest.raises(
        ForbiddenAddress, match=r"127\.0\.0\.1, an address that is not public \(loopback\)"
    ):
        target.post({}, b"")
    assert receiver.connections == 0


def test_one_closed_address_among_open_ones_closes_all(receiver: Receiver) -> None:
    resolver = Resolver(["2000::1", "127.0.0.1"])
    with pytest.raises(ForbiddenAddress):
        Endpoint(receiver.url("mixed.example"), SETTING, resolve=resolver).post({}, b"")
    assert receiver.connections == 0


def test_the_next_address_is_tried_when_one_does_not_answer(receiver: Receiver) -> None:
    resolver = Resolver(["127.0.0.2", "127.0.0.1"])
    url = receiver.url("two.example")
    assert Endpoint(url, SETTING, ("two.example",), resolve=resolver).post({}, b"") == 204


def test_a_name_without_an_address_is_told(receiver: Receiver) -> None:
    with pytest.raises(ConnectionError, match="no address"):
        Endpoint(receiver.url("none.example"), SETTING, resolve=Resolver([])).post({}, b"")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.1.2.3", "local"),
        ("10.255.255.255", "private"),
        ("100.100.100.200", "private"),
        ("127.255.0.1", "loopback"),
        ("168.63.129.16", "metadata"),
        ("169.254.169.254", "link-local"),
        ("172.31.0.1", "private"),
        ("192.0.0.192", "reserved"),
        ("192.168.1.1", "private"),
        ("198.19.0.1", "reserved"),
        ("203.0.113.9", "reserved"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "reserved"),
        ("::1", "loopback"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("64:ff9b::7f00:1", "reserved"),
        ("2001:0:7f00:1::", "reserved"),
        ("2001:db8::1", "reserved"),
        ("2002:7f00:1::", "reserved"),
        ("fd00:ec2::254", "private"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "reserved"),
        ("ff02::1", "multicast"),
        ("1.1.1.1", ""),
        ("11.0.0.1", ""),
        ("172.32.0.1", ""),
        ("2606:4700::1111", ""),
    ],
)
def test_every_address_is_open_or_has_a_kind(address: str, kind: str) -> None:
    assert closed_kind(address) == kind


@pytest.mark.parametrize("answer", [hang, drip])
def test_who_does_not_answer_in_time_is_left(receiver: Receiver, answer: Answer) -> None:
    receiver.answers = [answer]
    with pytest.raises(TimeoutError, match=r"no answer within 0\.3 s"):
        endpoint(receiver, seconds=SOON).post({}, b"")
    # The server's side of the connection has ended too: nobody is left reading from it.
    assert receiver.is_done.wait(10)


def test_a_resolver_that_answers_too_late_leads_nowhere(receiver: Receiver) -> None:
    go_on = threading.Event()

    def resolve(*_: Any, **__: Any) -> list[tuple[Any, ...]]:
        go_on.wait(10)
        return Resolver(["127.0.0.1"])("", receiver.port)

    with pytest.raises(TimeoutError):
        endpoint(receiver, resolve=resolve, seconds=SOON).post({}, b"")
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "post":
            thread.join(10)
    assert receiver.connections == 0


def test_of_an_endless_answer_only_the_beginning_is_read(receiver: Receiver) -> None:
    sent: list[int] = []

    def flood(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(1_000):
            line.sendall(b"x" * 1_000_000)
            sent.append(1_000_000)

    receiver.answers = [flood]
    assert endpoint(receiver).post({}, b"") == 200
    assert receiver.is_done.wait(10)
    assert sum(sent) < 100_000_000


def test_endless_headers_are_not_read_to_their_end(receiver: Receiver) -> None:
    def flood(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(1_000_000):
            line.sendall(f"X-{number}: {'x' * 60_000}\r\n".encode())

    receiver.answers = [flood]
    assert endpoint(receiver).post({}, b"") == 200
    assert receiver.is_done.wait(10)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n", b"\0" * 70_000, b"HTTP/1.1 9\r\n\r\n", b""],
    ids=["another protocol", "noise", "a bad status", "nothing"],
)
def test_what_is_not_http_is_an_error_and_no_crash(receiver: Receiver, answer: bytes) -> None:
    receiver.answers = [text(answer)]
    with pytest.raises(ConnectionError):
        endpoint(receiver).post({}, b"")


def test_nobody_there_is_told_with_the_place(receiver: Receiver) -> None:
    target = endpoint(receiver)
    place = rf"127\.0\.0\.1 port {receiver.port} cannot be reached: Connection refused"
    receiver.close()
    with pytest.raises(ConnectionError, match=place):
        target.post({}, b"")


def test_a_name_that_nobody_knows_is_told() -> None:
    def resolve(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(-2, "Name or service not known")

    target = Endpoint("http://nowhere.example/x", SETTING, resolve=resolve)
    place = r"nowhere\.example port 80 cannot be reached: Name or service not known"
    with pytest.raises(ConnectionError, match=place):
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
def test_a_url_that_cannot_be_used_is_named_and_not_shown(url: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Endpoint(url, SETTING)
    assert words in caught.value.detail
    assert SETTING in caught.value.detail
    assert "s3cr3t" not in caught.value.detail


class TestTls:
    """Over TLS, with a certificate that is made for the test."""

    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        """Make one for localhost, with its key."""
        return make_certificate(tmp_path)

    @pytest.fixture
    def server(self, certificate: Path) -> Generator[Receiver]:
        """Give a server that shows the certificate."""
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        with receiving(tls) as server:
            yield server

    def test_a_server_that_proves_its_name_is_spoken_to(
        self, server: Receiver, certificate: Path
    ) -> None:
        def trusting() -> ssl.SSLContext:
            return ssl.create_default_context(cafile=str(certificate))

        url = server.url("localhost")
        assert Endpoint(url, SETTING, ("localhost",), tls=trusting).post({}, b"{}") == 204
        assert server.requests[0].body == b"{}"
        wrong = Endpoint(server.url(), SETTING, ("127.0.0.1",), tls=trusting)
        with pytest.raises(ssl.SSLCertVerificationError):
            wrong.post({}, b"{}")
        assert len(server.requests) == 1

    def test_a_server_that_nobody_vouches_for_gets_nothing(self, server: Receiver) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            Endpoint(server.url("localhost"), SETTING, ("localhost",)).post({}, b"secret")
        assert server.requests == []

    def test_a_handshake_that_hangs_is_left(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(TimeoutError):
                Endpoint(url, SETTING, ("127.0.0.1",), seconds=SOON).post({}, b"")
