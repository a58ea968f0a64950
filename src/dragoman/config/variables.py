"""Variables of the environment that are ours and no settings, in one table.

Every other one whose name begins like theirs is a setting, or a mistake.
"""

from typing import Final

RESERVED_VARIABLES: Final = {
    "DRAGOMAN_DATA": "the data directory",
    "DRAGOMAN_URL": "the address of the hub",
    "DRAGOMAN_TOKEN": "the token for the hub",
    "DRAGOMAN_CERT": "the certificate that the hub is trusted by",
    "DRAGOMAN_AGENT": "the name of the caller",
    "DRAGOMAN_KEY": "the file of the signing key",
    "DRAGOMAN_AUDIENCE": "the hub that a signature is for",
    "DRAGOMAN_TASK": "the task of a program that a hub has started",
    "DRAGOMAN_SESSION": "the session of that program",
    "DRAGOMAN_FOLDER": "the folder of that task",
    "DRAGOMAN_PROMPT": "the file of its prompt",
    "DRAGOMAN_NOTICE_ID": "the notice of a command that a hub has called",
    "DRAGOMAN_TASK_ID": "the task of that notice",
    "DRAGOMAN_LONG_TESTS": "for the tests of this project",
    "DRAGOMAN_SEED": "the seed of their random choices",
}
"""Name -> meaning."""
