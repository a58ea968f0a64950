"""How the certificate of a hub is checked by those who know it by another way than its name."""

import ssl


def unchecked() -> ssl.SSLContext:
    """Not at all: for an address that is this machine's own, by its own lock file."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def only(certificate: str) -> ssl.SSLContext:
    """It must be the one in this file, or be signed by it, whatever name the hub is called by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cafile=certificate)
    return context
