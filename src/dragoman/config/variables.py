"""Variables of the environment that are ours and no settings, in one table.

Every other one whose name begins like theirs is a setting, or a mistake.
"""

from typing import Final

NO_SETTINGS: Final = {
    "DRAGOMAN_DATA": "the data directory",
    "DRAGOMAN_URL": "where the hub is",
    "DRAGOMAN_TOKEN": "the credential that it is shown",
    "DRAGOMAN_CERT": "by what its certificate is known",
    "DRAGOMAN_AGENT": "who speaks",
    "DRAGOMAN_KEY": "the file of the key that signs",
    "DRAGOMAN_AUDIENCE": "whom a signature is for",
    "DRAGOMAN_TASK": "the task of a program that a hub has started",
    "DRAGOMAN_SESSION": "its session",
    "DRAGOMAN_FOLDER": "the folder of that task",
    "DRAGOMAN_PROMPT": "the file with what it is told",
    "DRAGOMAN_NOTICE_ID": "the notice of a command that a hub has called",
    "DRAGOMAN_TASK_ID": "the task of that notice",
    "DRAGOMAN_LONG_TESTS": "for the tests of this project",
    "DRAGOMAN_SEED": "for them, too",
}
"""Name -> meaning."""
