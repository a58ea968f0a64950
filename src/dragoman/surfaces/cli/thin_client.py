"""Thin client: has a command run by the hub that runs for the data directory, and prints its reply.

Most commands take less time to run than their modules to load, and the hub has those loaded. So
nothing but a little of the standard library is imported here. Whatever is not in order is left to
the command in this process, which finds out what it is and says so.
"""

import fcntl
import json
import os
import socket
import stat
import sys

TYPE_CHECKING = False  # the real one would cost more than the rest of this module
if TYPE_CHECKING:
    from typing import Any, TextIO

_DEFAULT_DATA = ".dragoman"
_MAX_FILE_BYTES = 65_536
_BLOCK = 65_536
_TIMEOUT_SECONDS = 120.0
_LOCAL_OPTIONS = ("--help", "--show-completion", "--install-completion")
_TERMINAL_VARIABLES = (
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LINES",
    "NO_COLOR",
    "TERM",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
"""Variables that decide how a terminal is written to."""


class UnknownOutcome(Exception):
    """The hub has got a command, and its answer is missing."""


def run_in_hub(args: list[str]) -> int | None:
    """Run a command in the hub and print its output; the exit code, or None: run it here."""
    data = _find_data(args)
    if not data or not args or any(option in args for option in _LOCAL_OPTIONS):
        return None
    hub = _find_hub(data)
    if hub is None:
        return None
    try:
        request = _describe_call(args, data)
    except (OSError, ValueError):
        return None
    try:
        reply = _exchange(*hub, request)
        while reply and "wanted" in reply:
            wanted = reply["wanted"]
            _check_named(wanted["source"], args, request["inputs"])
            request["inputs"][wanted["source"]] = _read_input(**wanted)
            reply = _exchange(*hub, request)
    except (OSError, ValueError):
        reply = None
    except UnknownOutcome as error:
        reply = {"code": 1, "output": [_failure(str(error), is_json="--json" in args)]}
    if reply is None or not reply.get("runs_here", True):
        _restore_standard_input(request["inputs"].get("-"))
        return None
    return _print_reply(reply)


# --- data directory and hub -------------------------------------------------------------------


def _find_data(args: list[str]) -> str:
    """Path of the data directory, as the command will find it, too."""
    data = os.environ.get("DRAGOMAN_DATA") or _DEFAULT_DATA
    for at, argument in enumerate(args):
        if argument == "--":
            break
        if argument == "--data":
            data = args[at + 1] if at + 1 < len(args) else ""
        elif argument.startswith("--data="):
            data = argument.removeprefix("--data=")
    return data


def _find_hub(data: str) -> tuple[str, str] | None:
    """URL of the running hub and the owner's token; None: no hub runs, or something is wrong."""
    try:
        lock = _open_regular(f"{data}/hub.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = json.loads(os.read(lock, _MAX_FILE_BYTES))
            url, token = dict(holder).get("url", ""), _read_token(f"{data}/token")
            return (url, token) if url and token else None
        finally:
            os.close(lock)
    except (OSError, ValueError, TypeError):
        pass
    return None


def _open_regular(path: str) -> int:
    # Only files of the caller's own. Non-blocking, so that a pipe cannot hang the command.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise OSError
    return descriptor


def _read_token(path: str) -> str:
    """Token of the owner; empty if others could read it, or it is none."""
    descriptor = _open_regular(path)
    try:
        is_private = not os.fstat(descriptor).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        token = os.read(descriptor, _MAX_FILE_BYTES).decode("ascii").removesuffix("\n")
    finally:
        os.close(descriptor)
    is_token = token.startswith("drgo_") and token.replace("-", "_").isidentifier()
    return token if is_private and is_token else ""


# --- request ----------------------------------------------------------------------------------


def _describe_call(args: list[str], data: str) -> "dict[str, Any]":
    """The command with all that it takes from its process."""
    terminals = [stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)]
    environ = {name: os.environ[name] for name in _TERMINAL_VARIABLES if name in os.environ}
    if any(terminals) and environ.get("TERM", "").lower() not in ("dumb", "unknown"):
        for descriptor in range(3):
            try:
                size = os.get_terminal_size(descriptor)
            except OSError:
                continue
            environ.setdefault("COLUMNS", str(size.columns))
            environ.setdefault("LINES", str(size.lines))
            break
    return {
        "args": args,
        "data": data,
        "folder": os.getcwd(),
        "user": os.getuid(),
        "terminals": terminals,
        "encoding": getattr(sys.stdout, "encoding", None) or "utf-8",
        "environ": environ,
        "inputs": {},
    }


def _check_named(source: str, args: list[str], read: "dict[str, str]") -> None:
    """Refuse to read what the command does not name, whoever answers in the place of the hub."""
    is_named = any(source in (argument, argument.partition("=")[2]) for argument in args)
    if source in read or not (source == "-" or is_named):
        raise ValueError


def _read_input(source: str, max_bytes: int) -> str:
    """Up to `max_bytes` of a file or standard input; one character for each byte."""
    if source == "-":
        if sys.stdin is None:
            raise OSError
        return sys.stdin.buffer.read(max_bytes).decode("latin-1")
    with open(source, "rb") as file:
        return file.read(max_bytes).decode("latin-1")


def _restore_standard_input(read: str | None) -> None:
    """Let the command here read what was read for the hub."""
    if read is not None:
        import io

        sys.stdin = io.TextIOWrapper(io.BytesIO(read.encode("latin-1")))


def _exchange(url: str, token: str, request: "dict[str, Any]") -> "dict[str, Any] | None":
    """Post a command; its reply, or None: the hub does not run it."""
    body = json.dumps(request).encode()
    scheme, _, address = url.partition("://")
    host, _, port = address.rpartition(":")
    head = (
        f"POST /v1/internal/cli HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    # A host name in bytes needs no table of international names.
    name: Any = host.strip("[]").encode()
    connected = socket.create_connection((name, int(port)), _TIMEOUT_SECONDS)
    answer = bytearray()
    with connected as plain, _encrypt(plain) if scheme == "https" else plain as connection:
        connection.sendall(head.encode() + body)
        try:
            while block := connection.recv(_BLOCK):
                answer += block
        except TimeoutError:
            raise UnknownOutcome(
                f"the hub at {url} did not answer within {_TIMEOUT_SECONDS:g} s; it may still "
                "carry out the request: check its effect before you repeat it"
            ) from None
        except OSError:
            pass
    answer_head, _, content = bytes(answer).partition(b"\r\n\r\n")
    status = answer_head.split(None, 2)[1:2]
    if status and status not in ([b"200"], [b"500"]):
        return None
    try:
        reply = json.loads(content)
    except ValueError:
        reply = None
    if reply is None or status == [b"500"]:
        raise UnknownOutcome(
            f"the hub at {url} failed before it answered; the request may have been done: check "
            "its effect before you repeat it"
        )
    return reply


def _encrypt(connection: socket.socket) -> socket.socket:
    """TLS without verification: for an address of this machine, found through its own lock file."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection)


# --- output -----------------------------------------------------------------------------------


def _failure(detail: str, *, is_json: bool) -> tuple[int, str]:
    code = "store_unavailable"
    if is_json:
        return 1, json.dumps({"ok": False, "code": code, "detail": detail}) + "\n"
    return 2, f"{code}: {detail}\n"


def _print_reply(reply: "dict[str, Any]") -> int:
    """Print the output of a command; its exit code."""
    sys.stdout, sys.stderr = make_printable(sys.stdout), make_printable(sys.stderr)
    try:
        for number, text in reply.get("output", ()):
            (sys.stdout if number == 1 else sys.stderr).write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        redirect_to_devnull(sys.stdout)
        return 0
    except OSError as error:
        redirect_to_devnull(sys.stdout)
        sys.stderr.write(f"the answer could not be printed: {error.strerror}\n")
        return 1
    return reply.get("code", 0)


def make_printable(stream: "TextIO | None") -> "TextIO":
    """Make a stream accept any character; /dev/null where the caller has closed it."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        # A terminal that cannot show a character shows its code point, rather than nothing.
        reconfigure(errors="backslashreplace")
    return stream


def redirect_to_devnull(stream: "TextIO") -> None:
    """Send what is still to be flushed to /dev/null, so that the exit prints no complaint."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
