"""URL of a store: our parameters, refused ones, and no password in any message."""

import pytest

from dragoman.core.errors import SettingsError, StoreUnavailable
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import connect, parse_url
from dragoman.system.clock import new_id
from tests.requirements import proves
from tests.store.postgres.conftest import Admin

pytestmark = proves("STORE-URL")


def test_schema_is_taken_from_the_url() -> None:
    address = parse_url("postgresql://u:p@db.example:5433/hub?schema=team_1&sslmode=require")

    assert address.schema == "team_1"
    assert {key: address.settings[key] for key in ("user", "password", "host", "port")} == {
        "user": "u",
        "password": "p",
        "host": "db.example",
        "port": "5433",
    }
    assert address.settings["sslmode"] == "require"
    assert "schema" not in address.settings


def test_url_settings_override_defaults() -> None:
    default = parse_url("postgresql:///hub")
    explicit = parse_url("postgresql:///hub?connect_timeout=3&application_name=mine")

    assert default.schema == "dragoman"
    assert (default.settings["connect_timeout"], default.settings["application_name"]) == (
        10,
        "dragoman",
    )
    assert (explicit.settings["connect_timeout"], explicit.settings["application_name"]) == (
        "3",
        "mine",
    )


@pytest.mark.parametrize(
    "schema",
    ["", "Team", "1st", "a-b", "a%20b", "a;b", "a%22b", "ä", "a" * 64, "pg_temp", "team%0A"],
)
def test_invalid_schema_name_is_refused(schema: str) -> None:
    with pytest.raises(SettingsError, match="cannot be the schema"):
        parse_url(f"postgresql:///hub?schema={schema}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hun%ter2@host/db",
        "postgresql://u:hunter2@host/db?unknown=1",
        "postgresql://u:hunter2@[::1/db",
        "hunter2",
    ],
)
def test_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SettingsError, match="cannot be understood") as caught:
        parse_url(url)

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("port", ["1", "port"])
def test_unreachable_server_is_named_without_the_password(port: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        PostgresStore.open(f"postgresql://u:hunter2@127.0.0.1:{port}/hub?schema=team", new_id)

    message = str(caught.value)
    assert f"127.0.0.1:{port} (database hub, schema team) cannot be reached" in message
    assert "hunter2" not in message


def test_every_connection_is_in_our_schema_with_timeouts(postgres_url: str, schema: str) -> None:
    with connect(parse_url(postgres_url)) as connection:
        settings = {
            name: connection.execute(f"SHOW {name}".encode()).fetchone()
            for name in (
                "search_path",
                "application_name",
                "idle_in_transaction_session_timeout",
                "transaction_timeout",
                "plan_cache_mode",
                "synchronous_commit",
            )
        }

    assert settings == {
        "search_path": (f"{schema}, pg_catalog",),
        "application_name": ("dragoman",),
        "idle_in_transaction_session_timeout": ("30s",),
        "transaction_timeout": ("1min",),
        "plan_cache_mode": ("force_generic_plan",),
        # The server of the tests has it off.
        "synchronous_commit": ("on",),
    }


@pytest.mark.parametrize("chosen", ["local", "remote_write", "on", "remote_apply"])
def test_durable_commit_setting_is_left_unchanged(postgres_url: str, chosen: str) -> None:
    address = parse_url(f"{postgres_url}&options=-csynchronous_commit%3D{chosen}")
    with connect(address) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (chosen,)


def test_missing_right_to_create_a_schema_is_reported(
    admin: Admin, postgres_server: str, schema: str
) -> None:
    admin.execute(f"CREATE ROLE guest_{schema} LOGIN".encode())
    url = postgres_server.replace("postgres:@", f"guest_{schema}@")
    try:
        with pytest.raises(StoreUnavailable, match="may not do that"):
            PostgresStore.open(f"{url}&schema=forbidden_{schema[:20]}", new_id)
    finally:
        admin.execute(f"DROP ROLE guest_{schema}".encode())
