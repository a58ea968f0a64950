"""Thin client: has a command run by a hub, and prints its reply.

The hub is the one that runs for the data directory, or one elsewhere, which --url or DRAGOMAN_URL
names. Most commands take less time to run than their modules to load, and the hub has those loaded.
So nothing but a little of the standard library is imported here. Whatever is not in order beside a
data directory is left to the command in this process, which finds out what it is and says so.
"""

import fcntl
import json
import os
import stat
import sys

from dragoman.system.data_search import find_data

TYPE_CHECKING = False  # the real one would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from socket import socket
    from typing import Any, NoReturn, TextIO

_MAX_FILE_BYTES = 65_536
_BLOCK = 65_536
_MAX_HEAD_BYTES = 65_536
_SILENCE_SECONDS = 10.0
"""A hub that is well sends something every other second, as long as a command takes."""
_TELL_SECONDS = 3.0
"""After so long a silence the caller is told what the command waits for."""
_HOOK_SECONDS = 1.5
"""A coding agent waits for its hook at every event."""
_LOCAL_OPTIONS = ("--help", "--show-completion", "--install-completion")
_VALUE_OPTIONS = ("--data", "--url", "--token-file", "--store", "--as", "--now")
"""Options before a command that are followed by a value."""
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

NEED_NO_HUB = frozenset(("lint", "schema", "redact", "translate", "guard", "mcp", "connect", "top"))
"""Commands that run in this process, whichever hub is named: they work on the caller's files, or
speak to that hub themselves."""

NEED_THE_DISK = frozenset(
    (
        *("init", "demo", "up", "open", "tick", "rewind", "verify", "doctor", "checkpoints"),
        *("rebuild-files", "export", "import", "backup", "restore", "logs", "task path"),
    )
)
"""Commands that work on the files of a data directory, which only a process beside it has."""

ELSEWHERE = (
    "this command works on the disk of a data directory, and DRAGOMAN_URL or --url names a hub "
    "elsewhere: run it on the machine of that hub, or name a data directory here with --data"
)


class HubFailure(Exception):
    """The hub did not do what was asked, or nobody knows whether it did."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class _NotOffered(Exception):
    """The hub does not run the command for this caller."""


def run_in_hub(args: list[str]) -> int | None:
    """Run a command in a hub and print its output; the exit code, or None: run it here."""
    if not args or any(option in args for option in _LOCAL_OPTIONS):
        return None
    options, command, rest = _split_options(args)
    named = options.get("--data")
    url = options.get("--url") or ("" if named else os.environ.get("DRAGOMAN_URL", ""))
    is_hook = command == "hook"
    try:
        if is_hook:
            _limit_time(_HOOK_SECONDS)
        if url:
            return _run_elsewhere(url, options, command, rest)
        return _run_beside(rest, named or os.environ.get("DRAGOMAN_DATA") or "")
    except HubFailure as error:
        failure = _failure(error.code, f"{error}", is_json="--json" in args)
        return 1 if _print_output([failure]) is None and not is_hook else 0
    finally:
        if is_hook:
            _limit_time(0)


def _limit_time(seconds: float) -> None:
    """Give up on the hub after this time; 0: never."""
    import signal

    def give_up(*_: object) -> "NoReturn":
        raise HubFailure("store_unavailable", f"the hub has not answered a hook in {seconds:g} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _split_options(args: list[str]) -> "tuple[dict[str, str], str, list[str]]":
    """Options that name a hub, the first word of the command, and all arguments but --url and
    --token-file."""
    options: dict[str, str] = {}
    rest: list[str] = []
    command, at = "", 0
    while at < len(args):
        argument = args[at]
        if argument == "--":
            rest += args[at:]
            break
        name, sign, value = argument.partition("=")
        taken = 1
        if name in _VALUE_OPTIONS and not sign:
            value = args[at + 1] if at + 1 < len(args) else ""
            taken = 2
        if name in ("--data", "--url", "--token-file"):
            options[name] = value
        elif not (argument.startswith("-") or command):
            command = argument
        if name not in ("--url", "--token-file"):
            rest += args[at : at + taken]
        at += taken
    return options, command, rest


# --- a hub beside the data directory ----------------------------------------------------------


def _run_beside(args: list[str], named: str) -> int | None:
    data = named or find_data()[0]
    hub = _find_hub(data) if data else None
    if hub is None:
        return None
    request = _describe_call(args)
    try:
        request["local"] = {
            "data": data,
            "names_data": bool(named),
            "folder": os.getcwd(),
            "user": os.getuid(),
        }
        return _run(hub, request)
    except (OSError, ValueError, _NotOffered):
        _restore_standard_input(request["inputs"].get("-"))
        return None


class _Hub:
    """Address of a hub, and the token to show there."""

    def __init__(self, url: str, token: str, *, process: int = 0, certificate: str = "") -> None:
        self.url = url
        self.token = token
        self.process = process
        """Its process id, if it runs on this machine."""
        self.certificate = certificate
        self.scheme, _, rest = url.partition("://")
        self.authority, _, self.path = rest.rstrip("/").partition("/")
        host, colon, port = self.authority.rpartition(":")
        if not colon or self.authority.endswith("]"):
            host, port = self.authority, "443" if self.scheme == "https" else "80"
        self.host = host.strip("[]")
        self.port = int(port) if port.isdigit() and len(port) < 6 else 0
        is_plain = url.isascii() and url.isprintable() and not set(rest) & set(' @?#"<>\\')
        is_address = bool(host) and 0 < self.port < 65_536
        self.is_valid = self.scheme in ("http", "https") and is_plain and is_address

    def connect(self) -> "socket":
        """Open a connection; OSError if there is none."""
        # A host name in bytes needs no table of international names.
        name: Any = self.host.encode()
        from socket import create_connection

        plain = create_connection((name, self.port), _SILENCE_SECONDS)
        if self.scheme != "https":
            return plain
        import ssl

        from dragoman.system.tls import pinned_context, unverified_context

        if self.process:
            context = unverified_context()
        elif self.certificate:
            context = pinned_context(self.certificate)
        else:
            context = ssl.create_default_context()
        return context.wrap_socket(plain, server_hostname=self.host)


def _find_hub(data: str) -> _Hub | None:
    """The running hub, with the owner's token; None: no hub runs, or something is wrong."""
    try:
        lock = _open_regular(f"{data}/hub.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = dict(json.loads(os.read(lock, _MAX_FILE_BYTES)))
            url, token = holder.get("url", ""), _read_token(f"{data}/token")
            hub = _Hub(url, token, process=holder.get("pid", 0)) if url and token else None
            return hub if hub is not None and hub.is_valid else None
        finally:
            os.close(lock)
    except (OSError, ValueError, TypeError, AttributeError):
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


# --- a hub elsewhere --------------------------------------------------------------------------


def _run_elsewhere(
    url: str, options: "dict[str, str]", command: str, args: list[str]
) -> int | None:
    is_typed = "--url" in options
    if is_typed and "--data" in options:
        raise HubFailure("invalid_settings", "--url and --data name two hubs: give one of them")
    if not {command, _first_two_words(command, args)}.isdisjoint(NEED_THE_DISK):
        if is_typed or not os.environ.get("DRAGOMAN_DATA"):
            raise HubFailure("invalid_settings", ELSEWHERE)
        return None
    token = _token_elsewhere(options.get("--token-file", ""))
    if url.rstrip("/") != os.environ.get("DRAGOMAN_URL", "").rstrip("/"):
        # A certificate in the environment is that of the hub there.
        os.environ.pop("DRAGOMAN_CERT", None)
    if command in NEED_NO_HUB or not command:
        os.environ.update({"DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token})
        return None
    hub = _Hub(url, token, certificate=os.environ.get("DRAGOMAN_CERT", ""))
    _check_complete(hub)
    request = _describe_call(args)
    if is_typed:
        request["url"] = url
    try:
        return _run(hub, request)
    except OSError as error:
        raise HubFailure("bad_file", f"{error.filename} cannot be read: {error.strerror}") from None
    except _NotOffered:
        raise HubFailure(
            "invalid_settings",
            f"the hub at {url} does not run this command for callers elsewhere (--now, --store and "
            "files of the hub are for its own machine): run it there",
        ) from None
    except ValueError as error:
        raise HubFailure("bad_answer", f"what answers at {url} is no hub: {error}") from None


def _first_two_words(command: str, args: list[str]) -> str:
    """A command of a group with its group, such as `task path`."""
    return " ".join(args[args.index(command) :][:2]) if command else ""


def _check_complete(hub: _Hub) -> None:
    if not hub.is_valid:
        raise HubFailure(
            "invalid_settings",
            f"{hub.url!a} is not the url of a hub: write it like http://127.0.0.1:4747",
        )
    if not hub.token:
        raise HubFailure(
            "unauthenticated",
            f"there is no token for the hub at {hub.url}: set DRAGOMAN_TOKEN, or name the file "
            "that has it with --token-file (`dragoman agent add NAME` prints one)",
        )


def _token_elsewhere(file: str) -> str:
    """Token for a hub elsewhere; empty if there is none."""
    token = os.environ.get("DRAGOMAN_TOKEN", "")
    if file:
        try:
            with open(file, "rb") as opened:
                token = opened.read(_MAX_FILE_BYTES).decode("latin-1").strip()
        except OSError as error:
            raise HubFailure(
                "invalid_settings", f"--token-file {file} cannot be read: {error.strerror}"
            ) from None
    if not (token.isascii() and token.isprintable() and " " not in token):
        source = f"--token-file {file}" if file else "DRAGOMAN_TOKEN"
        raise HubFailure("unauthenticated", f"{source} holds no token: copy it anew")
    return token


# --- request ----------------------------------------------------------------------------------


def _describe_call(args: list[str]) -> "dict[str, Any]":
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
        "terminals": terminals,
        "encoding": getattr(sys.stdout, "encoding", None) or "utf-8",
        "environ": environ,
        "inputs": {},
    }


def _check_named(source: str, args: list[str], read: "dict[str, str]") -> None:
    """Refuse to read what the command does not name, whoever answers in the place of the hub."""
    is_named = any(source in (argument, argument.partition("=")[2]) for argument in args)
    if source in read or not (source == "-" or is_named):
        raise ValueError("it wants a file that the command does not name")


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


# --- exchange ---------------------------------------------------------------------------------


def _run(hub: _Hub, request: "dict[str, Any]") -> int:
    """Run a command and print its output as it comes; its exit code."""
    while True:
        for part in _exchange(hub, request):
            if "wanted" in part:
                wanted = part["wanted"]
                _check_named(wanted["source"], request["args"], request["inputs"])
                request["inputs"][wanted["source"]] = _read_input(**wanted)
                break
            if not part.get("runs_here", True):
                raise _NotOffered
            failed = _print_output(part.get("output", ()))
            if failed is not None:
                return failed
            if "code" in part:
                return part["code"]


def _exchange(hub: _Hub, request: "dict[str, Any]") -> "Iterator[dict[str, Any]]":
    """Post a command; the parts of its reply, of which the last one says that it is."""
    try:
        connection = hub.connect()
    except OSError as error:
        _fail_to_connect(hub, error)
    with connection:
        rest, has_come = b"", False
        for block in _post(hub, connection, json.dumps(request).encode()):
            *lines, rest = (rest + block).split(b"\n")
            for line in filter(None, lines):
                has_come = True
                yield json.loads(line)
        part = _parse_whole(rest)
        if part is None:
            raise _unknown_outcome(
                hub, "ended the connection" if has_come else "failed before it answered"
            )
        yield part


def _parse_whole(line: bytes) -> "dict[str, Any] | None":
    """Parse a line that no line feed ends; None if it was cut off."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _post(hub: _Hub, connection: "socket", body: bytes) -> "Iterator[bytes]":
    """Send the request; the content of the response, as it comes."""
    path = f"/{hub.path}/v1/internal/cli" if hub.path else "/v1/internal/cli"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {hub.authority}\r\nConnection: close\r\n"
        f"Authorization: Bearer {hub.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    blocks = _blocks(hub, connection, head.encode() + body)
    received = b""
    while b"\r\n\r\n" not in received:
        block = next(blocks, b"")
        received += block
        if not block or len(received) > _MAX_HEAD_BYTES:
            raise _unknown_outcome(hub, "failed before it answered")
    answer_head, _, start = received.partition(b"\r\n\r\n")
    status = answer_head.split(None, 2)[1:2]
    is_chunked = b"transfer-encoding: chunked" in answer_head.lower()
    content = _dechunked(start, blocks) if is_chunked else _joined(start, blocks)
    if status != [b"200"]:
        _fail_with(hub, status, b"".join(content))
    return content


def _blocks(hub: _Hub, connection: "socket", request: bytes) -> "Iterator[bytes]":
    """Blocks that the hub sends to a request, until it hangs up."""
    is_sent = is_told = False
    while True:
        try:
            if not is_sent:
                connection.sendall(request)
                is_sent = True
            connection.settimeout(_SILENCE_SECONDS - _TELL_SECONDS if is_told else _TELL_SECONDS)
            block = connection.recv(_BLOCK)
            is_told = False
        except TimeoutError:
            if is_sent and not is_told:
                is_told = True
                limit = f"{_SILENCE_SECONDS:g} s in all"
                _print_output([(2, f"the hub at {hub.url} is silent; waiting for it, {limit}\n")])
                continue
            raise _unknown_outcome(
                hub, f"has given no sign of life for {_SILENCE_SECONDS:g} s", is_silent=True
            ) from None
        except OSError:
            return
        if not block:
            return
        yield block


def _joined(start: bytes, blocks: "Iterator[bytes]") -> "Iterator[bytes]":
    yield start
    yield from blocks


def _dechunked(start: bytes, blocks: "Iterator[bytes]") -> "Iterator[bytes]":
    """The content of a body in chunks, as far as it has come."""
    held = start
    while True:
        line, found, behind = held.partition(b"\r\n")
        size = int(line.partition(b";")[0] or b"0", 16) if found else 0
        if found and len(behind) >= size + 2:
            if not size:
                return
            yield behind[:size]
            held = behind[size + 2 :]
            continue
        block = next(blocks, b"")
        if not block:
            return
        held += block


def _fail_to_connect(hub: _Hub, error: OSError) -> "NoReturn":
    if hub.process and not isinstance(error, TimeoutError):
        raise error  # it has just ended: the command goes on without it
    reason = getattr(error, "verify_message", "") or error.strerror or "it takes no connection"
    if hasattr(error, "verify_message"):
        reason = f"its certificate is not trusted here ({reason}); DRAGOMAN_CERT names its file"
    raise HubFailure(
        "hub_unreachable",
        f"the hub at {hub.url} cannot be reached: {reason}. Nothing was done; is it running, and "
        "is this its address?",
    )


def _unknown_outcome(hub: _Hub, event: str, *, is_silent: bool = False) -> HubFailure:
    """The hub has got a command, and its answer is missing."""
    process = f" (process {hub.process})" if hub.process else ""
    advice = (
        f": it hangs, or was stopped (`kill -CONT {hub.process}` lets a stopped one go on)"
        if is_silent and hub.process
        else ""
    )
    return HubFailure(
        "store_unavailable",
        f"the hub at {hub.url}{process} {event}{advice}. A command that writes may have been done, "
        "or may still be: check its effect before you repeat it; one with --key can be sent again "
        "as it was, and is done once",
    )


def _fail_with(hub: _Hub, status: list[bytes], content: bytes) -> "NoReturn":
    """Report what the hub, or what stands before it, has answered instead of running a command."""
    if status == [b"500"]:
        raise _unknown_outcome(hub, "failed before it answered")
    if hub.process:
        raise _NotOffered
    try:
        problem = json.loads(content)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, TypeError, KeyError):
        shown = b" ".join(status).decode("ascii", "replace") or "nothing that is HTTP"
        raise HubFailure(
            "bad_answer",
            f"what answers at {hub.url} is no hub of this version: it answered {shown}",
        ) from None
    if code == "unauthenticated":
        detail = f"the hub at {hub.url} does not know this token (DRAGOMAN_TOKEN or --token-file)"
    raise HubFailure(code, detail)


# --- output -----------------------------------------------------------------------------------


def _failure(code: str, detail: str, *, is_json: bool) -> tuple[int, str]:
    if is_json:
        return 1, json.dumps({"ok": False, "code": code, "detail": detail}) + "\n"
    return 2, f"{code}: {detail}\n"


def _print_output(output: "Iterable[tuple[int, str]]") -> int | None:
    """Print output of a command; the exit code that ends it, if it cannot be printed."""
    sys.stdout, sys.stderr = make_printable(sys.stdout), make_printable(sys.stderr)
    try:
        for number, text in output:
            (sys.stdout if number == 1 else sys.stderr).write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        redirect_to_devnull(sys.stdout)
        return 0
    except OSError as error:
        redirect_to_devnull(sys.stdout)
        sys.stderr.write(f"the answer could not be printed: {error.strerror}\n")
        return 1
    return None


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
