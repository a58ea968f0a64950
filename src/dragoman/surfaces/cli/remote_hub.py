"""Hub elsewhere that a command in this process speaks to: its address, token and certificate."""

from typing import TYPE_CHECKING

from dragoman.config import environment
from dragoman.core.errors import SettingsError
from dragoman.text.error_messages import describe_exception

if TYPE_CHECKING:
    from dragoman.system.tls import TlsVerification

URL, TOKEN, CERT = "DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_CERT"
"""Variables that name a hub elsewhere; the thin client sets them from --url and --token-file."""


def load_trust() -> "TlsVerification":
    """Load the certificate that DRAGOMAN_CERT names; else the public authorities decide."""
    from dragoman.system.tls import pinned_context

    certificate = environment().get(CERT, "")
    try:
        return pinned_context(certificate) if certificate else True
    except OSError as error:
        raise SettingsError(
            f"{CERT}: {certificate} is no certificate that can be read: {describe_exception(error)}"
        ) from None
