"""Checks of the settings: unknown keys, types, ranges and names, each with its place and a fix."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, cast

import msgspec

from dragoman.config.sections import TABLE_SECTIONS, Settings
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
    "DRAGOMAN_NOTICE_ID": "the notice of a command that a hub has called",
    "DRAGOMAN_TASK_ID": "the task of that notice",
    "DRAGOMAN_LONG_TESTS": "for the tests of this project",
    "DRAGOMAN_SEED": "the seed of their random choices",
}
"""Name -> meaning."""


# --- checks -----------------------------------------------------------------------------------

_PREFIX = "DRAGOMAN_"

_NO_SECTIONS: Mapping[str, Iterable[str]] = {}


class VariableError(SettingsError):
    """An environment variable is wrong; there is no line of a file to name."""


class SettingError(SettingsError):
    """A setting of the file is wrong."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}{problem}")
        self.setting = place


def variable_name(section: str, key: str) -> str:
    return f"{_PREFIX}{section}_{key}".replace(".", "_").upper()


def check_variables(
    environ: Mapping[str, str], known: Mapping[str, Iterable[str]], settings: Settings
) -> None:
    """Refuse variables that look like settings and are none, unless the settings themselves name
    them.
    """
    known_variables = {
        variable_name(section, key) for section, keys in known.items() for key in keys
    }
    known_variables |= RESERVED_VARIABLES.keys()
    allowed = known_variables.union(
        settings.redaction.variables, *(agent.environment for agent in settings.agents.values())
    )
    for name in environ:
        if not name.startswith(_PREFIX) or name in allowed:
            continue
        matching_sections = [
            section for section in known if name.startswith(variable_name(section, ""))
        ]
        names = {
            variable_name(section, key) for section in matching_sections for key in known[section]
        }
        shown = f"the variable {name}"
        for kind in TABLE_SECTIONS:
            if name.startswith(variable_name(kind, "")):
                raise VariableError(
                    f"{shown} is not known: what stands in [{kind}.NAME] is set in dragoman.toml "
                    "only; unset it"
                )
        if names:
            raise VariableError(f"{shown}{_unknown_setting_message(name, sorted(names))}")
        raise VariableError(
            f"{shown} is not known; {_suggest_variable(name, known_variables, known)}"
        )


def _suggest_variable(name: str, known_variables: Iterable[str], sections: Iterable[str]) -> str:
    """Suggestion for an unknown variable without a known section, or the list of sections."""
    # Compared without the prefix, by which any two look alike.
    suggestion = nearest_name(
        name.removeprefix(_PREFIX), [one.removeprefix(_PREFIX) for one in sorted(known_variables)]
    )
    if suggestion:
        return f"did you mean {_PREFIX}{suggestion}? If it is not meant for dragoman, unset it"
    named = ", ".join(sections)
    return f"settings are {_PREFIX}SECTION_KEY, with one of the sections {named}: else unset it"


def explain_validation_error(
    error: msgspec.ValidationError, from_environment: Collection[tuple[str, str]]
) -> SettingsError:
    """Error of msgspec with the setting as a person wrote it, and what would be right."""
    fault = shape_fault(error, Settings)
    # Of a list, the setting is what has a name.
    setting, _, _ = fault.path.partition("[")
    section, _, key = setting.rpartition(".")
    if (section, key) not in from_environment:
        return SettingError(setting, f": {fault.reason}")
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
            raise SettingError(full, problem)


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


def check_tables(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for kind, struct in TABLE_SECTIONS.items():
        tables = given.get(kind, {})
        if not isinstance(tables, dict) or not all(
            isinstance(table, dict) for table in cast(dict[str, Any], tables).values()
        ):
            raise SettingsError(f"{kind} has a section for each: write [{kind}.NAME] on a line")
        for name, table in cast(dict[str, dict[str, Any]], tables).items():
            refusal = check_agent(name)
            if refusal is not None:
                raise SettingsError(f"[{kind}.{name!a}]: {refusal.detail}")
            for key in table:
                _check_known(f"{kind}.{name}.{key}", key, struct.__struct_fields__, known)
            try:
                msgspec.convert(table, struct)
            except msgspec.ValidationError as error:
                fault = shape_fault(error, struct)
                place = join_path(f"{kind}.{name}", fault.path)
                raise SettingError(place, f": {fault.reason}") from error


def check_keys(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for section, values in given.items():
        if section in TABLE_SECTIONS:
            continue
        if isinstance(values, dict):
            _check_known(f"[{section}]", section, (*known, *TABLE_SECTIONS))
        else:
            _check_known(section, section, (*known, *TABLE_SECTIONS), known)
            raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
        for key, value in cast(dict[str, Any], values).items():
            inner = f"{section}.{key}"
            if inner in known:
                _check_subsection(inner, value, known)
            else:
                _check_known(inner, key, known[section], known)


def _check_subsection(section: str, values: object, known: Mapping[str, Iterable[str]]) -> None:
    if not isinstance(values, dict):
        raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
    for key in cast(dict[str, Any], values):
        _check_known(f"{section}.{key}", key, known[section], known)


def _check_known(
    shown: str,
    name: str,
    known: Iterable[str],
    elsewhere: Mapping[str, Iterable[str]] = _NO_SECTIONS,
) -> None:
    """`elsewhere`: sections that a key may belong to if no key of its own section is near."""
    names = list(known)
    if name not in names:
        raise SettingError(shown, _unknown_setting_message(name, names, elsewhere))


def _unknown_setting_message(
    name: str, names: Sequence[str], elsewhere: Mapping[str, Iterable[str]] = _NO_SECTIONS
) -> str:
    is_of_others = any(name in keys for keys in elsewhere.values())
    suggestion = "" if is_of_others else suggest(name, names)
    return (
        f" is not a setting{suggestion or _suggest_elsewhere(name, elsewhere) or ';'} known: "
        f"{', '.join(names)}"
    )


def _suggest_elsewhere(name: str, sections: Mapping[str, Iterable[str]]) -> str:
    """Suggestion of a section that has the key; empty: none comes near."""
    suggestion = nearest_name(name, [key for keys in sections.values() for key in keys])
    places = [
        f"[{section}] {suggestion}" for section, keys in sections.items() if suggestion in keys
    ]
    return f"; did you mean {' or '.join(places)}?" if places else ""
