"""TLS contexts for the two kinds of hubs whose certificate is not one of a public authority."""

import ssl

TlsVerification = ssl.SSLContext | bool
"""Verification of a hub's certificate; True: by the public authorities."""


def unverified_context() -> ssl.SSLContext:
    """TLS without verification: for an address of this machine, found through its own lock file."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def pinned_context(certificate: str) -> ssl.SSLContext:
    """TLS that accepts this certificate, or one signed by it, whatever the host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cafile=certificate)
    return context
