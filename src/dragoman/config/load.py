"""Loads the settings: a TOML file overlaid by environment variables, once, at the start."""

import os
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.config.sections import TABLE_SECTIONS, Settings, section_keys
from dragoman.config.store_url import resolve_url
from dragoman.core.errors import SettingsError
from dragoman.core.ids import check_agent
from dragoman.core.limits import (
    LEASE_RANGE_MS,
    MAX_ATTEMPTS,
    MAX_POLICY_RULES,
    MAX_PRICE,
    MAX_STORED_OUTPUT_BYTES,
    MAX_TRIES,
    WAIT_RANGE_MS,
    check_count,
)
from dragoman.core.timestamps import format_duration
from dragoman.text.error_messages import join_path, nearest_name, shape_fault, suggest

# --- ranges of numbers ------------------------------------------------------------------------

_MAX_DELAY_MS = 365 * 86_400_000

_DAY_MS = 86_400_000

_UNLIMITED = 10**12

RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("tasks", "max_attempts"): (1, MAX_ATTEMPTS),
    ("leases", "ttl_ms"): LEASE_RANGE_MS,
    ("attempts", "max_ms"): (0, _MAX_DELAY_MS),
    ("attempts", "quiet_ms"): (0, _MAX_DELAY_MS),
    ("attempts", "escalate_ms"): (0, _MAX_DELAY_MS),
    ("agentmail", "ttl_ms"): LEASE_RANGE_MS,
    ("agentmail", "ack_within_ms"): WAIT_RANGE_MS,
    ("agentmail", "spawn_within_ms"): WAIT_RANGE_MS,
    ("handoffs", "ttl_ms"): LEASE_RANGE_MS,
    ("handoffs", "proposed_ms"): WAIT_RANGE_MS,
    ("handoffs", "validating_ms"): WAIT_RANGE_MS,
    ("handoffs", "accepted_ms"): WAIT_RANGE_MS,
    ("handoffs", "activated_ms"): WAIT_RANGE_MS,
    ("handoffs", "max_artifact_bytes"): (0, _UNLIMITED),
    ("handoffs", "max_package_bytes"): (0, _UNLIMITED),
    ("ccos", "max_agents"): (1, MAX_TRIES),
    ("ccos", "request_ms"): WAIT_RANGE_MS,
    ("ccos", "max_output_bytes"): (0, MAX_STORED_OUTPUT_BYTES),
    ("ccos.policy", "cost_ceiling"): (0, MAX_PRICE),
    ("saop", "ttl_ms"): LEASE_RANGE_MS,
    ("saop", "max_turn_bytes"): (1_024, 2**30),
    ("entropy", "window"): (2, 1_000),
    ("entropy", "min_turns"): (2, 1_000),
    ("entropy", "max_fall"): (0, 1),
    ("entropy", "settled_fall"): (-1, 1),
    ("entropy", "max_repeats"): (2, 1_000),
    ("entropy", "max_cycles"): (2, 100),
    ("retry", "base_ms"): (0, _MAX_DELAY_MS),
    ("retry", "cap_ms"): (0, _MAX_DELAY_MS),
    ("http", "port"): (0, 65_535),
    ("http", "rate_per_second"): (0, _UNLIMITED),
    ("http", "burst"): (1, _UNLIMITED),
    ("http", "max_body"): (1_024, 2**31),
    ("hub", "drain_ms"): (0, _DAY_MS),
    ("checks", "timeout_ms"): (1_000, _DAY_MS),
    ("checks", "output_bytes"): (1_000, 100_000_000),
    ("checks", "concurrency"): (1, 100),
    ("dispatch", "concurrency"): (1, 10_000),
    ("dispatch", "poll_ms"): (10, _DAY_MS),
    ("dispatch", "stop_grace_ms"): (0, _DAY_MS),
    ("dispatch", "exit_grace_ms"): (0, _DAY_MS),
    ("agents", "concurrency"): (1, 10_000),
    ("agents", "attempt_ms"): (0, _MAX_DELAY_MS),
    ("agents", "output_bytes"): (0, _UNLIMITED),
    ("agents", "max_trace_lines"): (0, 1_000_000),
    ("agents", "attempts_per_day"): (0, _UNLIMITED),
    ("agents", "minutes_per_day"): (0, _UNLIMITED),
    ("agents", "output_per_day"): (0, _UNLIMITED),
    ("agents", "cost_per_day"): (0, _UNLIMITED),
}
"""Section (or kind of table) and key -> smallest and largest value of a number."""


# --- variables that are no settings -----------------------------------------------------------

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
    "DRAGOMAN_NOTIFICATION_ID": "the notification of a command that a hub has called",
    "DRAGOMAN_CHECK": "the output file of a check that a hub runs",
    "DRAGOMAN_TASK_ID": "the task of that notification",
    "DRAGOMAN_LONG_TESTS": "for the tests of this project",
    "DRAGOMAN_SEED": "the seed of their random choices",
}
"""Name -> meaning."""


# --- checks -----------------------------------------------------------------------------------

_PREFIX = "DRAGOMAN_"


class VariableError(SettingsError):
    """An environment variable is wrong, and not the file."""


def variable_name(section: str, key: str) -> str:
    return f"{_PREFIX}{section}_{key}".replace(".", "_").upper()


def check_variables(
    environ: Mapping[str, str], known: Mapping[str, Iterable[str]], settings: Settings
) -> None:
    """Refuse variables that look like settings and are none, unless the settings themselves name
    them.
    """
    variables = {variable_name(section, key) for section, keys in known.items() for key in keys}
    variables |= RESERVED_VARIABLES.keys()
    allowed = variables.union(
        settings.redaction.variables, *(agent.environment for agent in settings.agents.values())
    )
    for name in environ:
        if name.startswith(_PREFIX) and name not in allowed:
            # Compared without the prefix, by which any two look alike.
            names = [one.removeprefix(_PREFIX) for one in sorted(variables)]
            near = nearest_name(name.removeprefix(_PREFIX), names)
            hint = f"did you mean {_PREFIX}{near}? Else unset it" if near else "unset it"
            raise VariableError(
                f"the variable {name} is not known; {hint} (a setting is {_PREFIX}SECTION_KEY; "
                "sections with a name of yours stand in dragoman.toml only)"
            )


def explain_validation_error(
    error: msgspec.ValidationError, from_environment: Collection[tuple[str, str]]
) -> SettingsError:
    """Error of msgspec with the setting as a person wrote it, and what would be right."""
    fault = shape_fault(error, Settings)
    # Of a list, the setting is what has a name.
    setting, _, _ = fault.path.partition("[")
    section, _, key = setting.rpartition(".")
    if (section, key) not in from_environment:
        return SettingsError(f"{setting}: {fault.reason}")
    fault = shape_fault(error, Settings, is_text=True)
    return VariableError(f"the variable {variable_name(section, key)}: {fault.reason}")


def check_ranges(settings: Settings, from_environment: Collection[tuple[str, str]]) -> None:
    for (section, key), (least, most) in RANGES.items():
        part: Any = attrgetter(section)(settings)
        named = part.items() if section in TABLE_SECTIONS else [("", part)]
        for name, one in named:
            value = getattr(one, key)
            if value is None or least <= value <= most:  # this also finds NaN
                continue
            in_units = (
                f" ({format_duration(int(least))} to {format_duration(int(most))})"
                if key.endswith("_ms")
                else ""
            )
            full = ".".join(filter(None, (section, name, key)))
            problem = f" is {value}; it must be from {least} to {most}{in_units}"
            if (section, key) in from_environment:
                raise VariableError(f"the variable {variable_name(section, key)}{problem}")
            raise SettingsError(f"{full}{problem}")


def check_policy(settings: Settings) -> None:
    """Refuse a policy that is so long that every delegation would be refused later."""
    policy = settings.ccos.policy
    for key in ("data_locality", "required_skills", "forbidden_goals"):
        refusal = check_count(key, getattr(policy, key), MAX_POLICY_RULES)
        if refusal is not None:
            raise SettingsError(f"ccos.policy.{refusal.detail}")


def check_names(settings: Settings) -> None:
    mail = settings.agentmail
    named = [("agentmail.helper", mail.helper), ("agentmail.spawner", mail.spawner)]
    named.append(("handoffs.coordinator", settings.handoffs.coordinator))
    named.append(("owner.name", settings.owner.name))
    for space, team in settings.teamspaces.items():
        for key, names in (("members", team.members), ("coordinators", team.coordinators)):
            named += [(f"teamspaces.{space}.{key}", name) for name in names]
    for group, one in settings.groups.items():
        named += [(f"groups.{group}.members", name) for name in one.members]
    for agent, agent_settings in settings.agents.items():
        named += [(f"agents.{agent}.capabilities", name) for name in agent_settings.capabilities]
    for key, name in named:
        refusal = check_agent(name)
        if refusal is not None:
            raise SettingsError(f"{key}: {refusal.detail}")


def check_keys(given: Mapping[str, Any], shape: type[Struct] = Settings, place: str = "") -> None:
    """Check the names of sections and keys, and the types in sections with a name of their own."""
    known = {field.name: field.type for field in msgspec.structs.fields(shape)}
    for key, value in given.items():
        inner = join_path(place, key)
        if key not in known:
            raise SettingsError(f"{inner} is not a setting{_suggest_or_list(key, known)}")
        if not place and key in TABLE_SECTIONS:
            _check_tables(key, value)
        elif isinstance(known[key], type) and issubclass(known[key], Struct):
            if not isinstance(value, dict):
                raise SettingsError(f"{inner} is a section: write [{inner}] on a line of its own")
            check_keys(cast(dict[str, Any], value), known[key], inner)


def _suggest_or_list(key: str, known: Iterable[str]) -> str:
    return f"{suggest(key, known) or ';'} known: {', '.join(known)}"


def _check_tables(kind: str, tables: object) -> None:
    struct = TABLE_SECTIONS[kind]
    named = cast(dict[str, Any], tables) if isinstance(tables, dict) else {"": None}
    for name, table in named.items():
        if not isinstance(table, dict):
            raise SettingsError(f"{kind} has a section for each: write [{kind}.NAME] on a line")
        refusal = check_agent(name)
        if refusal is not None:
            raise SettingsError(f"[{kind}.{name!a}]: {refusal.detail}")
        check_keys(cast(dict[str, Any], table), struct, f"{kind}.{name}")
        try:
            msgspec.convert(table, struct)
        except msgspec.ValidationError as error:
            fault = shape_fault(error, struct)
            raise SettingsError(f"{join_path(f'{kind}.{name}', fault.path)}: {fault.reason}") from (
                error
            )


# --- file and environment ---------------------------------------------------------------------


def environment() -> Mapping[str, str]:
    """Environment variables of this process; read once, at the start."""
    return os.environ


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    names = (
        variable_name(section, key) for section, keys in section_keys().items() for key in keys
    )
    return {name: environ[name] for name in names if name in environ}


def load_settings(data: Path, environ: Mapping[str, str], file: Path | None = None) -> Settings:
    """Load the settings of a data directory, or of another file; without a file, the defaults.

    Relative paths in them begin at the data directory.
    """
    settings = _load_file(data, environ, file)
    url = resolve_url(data, settings.store.url)
    return replace(settings, store=replace(settings.store, url=url))


def _load_file(data: Path, environ: Mapping[str, str], file: Path | None) -> Settings:
    path = file or _settings_path(data)
    try:
        text = read_settings_text(path)
    except FileNotFoundError as error:
        if file is not None:
            raise SettingsError(f"there is no file {file}") from error
        text = ""
    try:
        return _with_secret_file(parse_settings(text, environ), data)
    except VariableError:
        raise
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.detail}") from error


def parse_settings(text: str, environ: Mapping[str, str]) -> Settings:
    """Parse settings from TOML, overlaid by variables named DRAGOMAN_<SECTION>_<KEY>.

    In a variable the words of a list are separated by commas.
    """
    values = parse_toml(text)
    has_variables = any(
        name.startswith(_PREFIX) and name not in RESERVED_VARIABLES for name in environ
    )
    # The keys are looked up in the types of all sections, which takes longer than all else here.
    known: Mapping[str, Mapping[str, Any]] = section_keys() if has_variables else {}
    check_keys(values)
    _convert(values)
    from_environment = set[tuple[str, str]]()
    for section, keys in known.items():
        for key, kind in keys.items():
            value = environ.get(variable_name(section, key))
            if value is not None:
                part = values
                for name in section.split("."):
                    part = part.setdefault(name, {})
                part[key] = _split_list(value) if kind is tuple else value
                from_environment.add((section, key))
    # Variables are text, which is converted to the type of the setting.
    settings = _convert(values, from_environment, strict=False)
    check_variables(environ, known, settings)
    check_ranges(settings, from_environment)
    check_names(settings)
    check_policy(settings)
    return settings


def _convert(
    values: Mapping[str, Any],
    from_environment: Collection[tuple[str, str]] = (),
    *,
    strict: bool = True,
) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=strict)
    except msgspec.ValidationError as error:
        raise explain_validation_error(error, from_environment) from error


def _settings_path(data: Path) -> Path:
    """Path of a directory's settings, which need not exist."""
    path = data / "dragoman.toml"
    if path.is_symlink() and not path.exists():
        raise SettingsError(
            f"{path} is a link to {path.readlink()}, where there is nothing: put the file back, or "
            "remove the link"
        )
    return path


def _split_list(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _with_secret_file(settings: Settings, data: Path) -> Settings:
    """Settings with the secret that a file holds, if they name one."""
    notify = settings.notify
    if not notify.webhook_secret_file:
        return settings
    if notify.webhook_secret:
        raise SettingsError("notify has webhook_secret and webhook_secret_file: keep one of them")
    path = data / notify.webhook_secret_file
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"notify.webhook_secret_file {path} cannot be read: {why}") from None
    return replace(settings, notify=replace(notify, webhook_secret=secret))


# --- TOML -------------------------------------------------------------------------------------


def read_settings_text(path: Path) -> str:
    """Read the file; FileNotFoundError where there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}; look at its rights and at the disk"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line} is not UTF-8: save the file as UTF-8") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; SettingsError with the line if it is invalid, without the line itself, which may
    hold a secret."""
    if not text:
        return {}
    import tomllib  # noqa: PLC0415  a directory without settings needs none

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"this is not valid TOML: {error}") from None
