"""What may be wrong with settings, told where it stands and with what would be right."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec

from dragoman.config.ranges import RANGES
from dragoman.config.sections import TABLES, Settings
from dragoman.config.variables import NO_SETTINGS
from dragoman.core.errors import SettingsError
from dragoman.core.ids import check_agent
from dragoman.core.limits import RULES, check_count
from dragoman.core.moments import duration
from dragoman.text.nearest import meant, nearest
from dragoman.text.shape_words import below, shape_fault

_PREFIX = "DRAGOMAN_"
_NOWHERE: Mapping[str, Iterable[str]] = {}


class VariableError(SettingsError):
    """An environment variable is wrong; there is no line of a file to name."""


class PlacedError(SettingsError):
    """A setting of the file is wrong."""

    def __init__(self, place: str, said: str) -> None:
        super().__init__(f"{place}{said}")
        self.place = place


def variable(section: str, key: str) -> str:
    return f"{_PREFIX}{section}_{key}".replace(".", "_").upper()


def check_variables(
    environ: Mapping[str, str], known: Mapping[str, Iterable[str]], settings: Settings
) -> None:
    """Refuse variables that look like settings and are none, unless the settings themselves name
    them.
    """
    ours = {variable(section, key) for section, keys in known.items() for key in keys}
    ours |= NO_SETTINGS.keys()
    allowed = ours.union(
        settings.redaction.variables, *(agent.environment for agent in settings.agents.values())
    )
    for name in environ:
        if not name.startswith(_PREFIX) or name in allowed:
            continue
        begun = [section for section in known if name.startswith(variable(section, ""))]
        names = {variable(section, key) for section in begun for key in known[section]}
        shown = f"the variable {name}"
        for kind in TABLES:
            if name.startswith(variable(kind, "")):
                raise VariableError(
                    f"{shown} is not known: what stands in [{kind}.NAME] is set in dragoman.toml "
                    "only; unset it"
                )
        if names:
            raise VariableError(f"{shown}{_not_known(name, sorted(names))}")
        raise VariableError(f"{shown} is not known; {_nearest_of(name, ours, known)}")


def _nearest_of(name: str, ours: Iterable[str], sections: Iterable[str]) -> str:
    """Suggestion for an unknown variable without a known section, or the list of sections."""
    # Compared without the prefix, by which any two look alike.
    near = nearest(name.removeprefix(_PREFIX), [one.removeprefix(_PREFIX) for one in sorted(ours)])
    if near:
        return f"did you mean {_PREFIX}{near}? If it is not meant for dragoman, unset it"
    named = ", ".join(sections)
    return f"settings are {_PREFIX}SECTION_KEY, with one of the sections {named}: else unset it"


def explained(error: msgspec.ValidationError, said: Collection[tuple[str, str]]) -> SettingsError:
    """Error of msgspec with the setting as a person wrote it, and what would be right."""
    fault = shape_fault(error, Settings)
    # Of a list, the setting is what has a name.
    place, _, _ = fault.path.partition("[")
    section, _, key = place.rpartition(".")
    if (section, key) not in said:
        return PlacedError(place, f": {fault.reason}")
    fault = shape_fault(error, Settings, is_text=True)
    return VariableError(f"the variable {variable(section, key)}: {fault.reason}")


def check_ranges(settings: Settings, said: Collection[tuple[str, str]]) -> None:
    for (section, key), (least, most) in RANGES.items():
        part: Any = attrgetter(section)(settings)
        named = part.items() if section in TABLES else [("", part)]
        for name, one in named:
            value = getattr(one, key)
            if value is None or least <= value <= most:  # this also finds NaN
                continue
            in_units = (
                f" ({duration(int(least))} to {duration(int(most))})" if key.endswith("_ms") else ""
            )
            full = ".".join(filter(None, (section, name, key)))
            wrong = f" is {value}; it must be from {least} to {most}{in_units}"
            if (section, key) in said:
                raise VariableError(f"the variable {variable(section, key)}{wrong}")
            raise PlacedError(full, wrong)


def check_policy(settings: Settings) -> None:
    """Refuse a policy that is so long that every delegation would be refused later."""
    policy = settings.ccos.policy
    for key in ("data_locality", "required_skills", "forbidden_goals"):
        refusal = check_count(key, getattr(policy, key), RULES)
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
    for agent, its in settings.agents.items():
        named += [(f"agents.{agent}.capabilities", name) for name in its.capabilities]
    for key, name in named:
        malformed = check_agent(name)
        if malformed is not None:
            raise SettingsError(f"{key}: {malformed.detail}")


def check_tables(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for kind, struct in TABLES.items():
        tables = given.get(kind, {})
        if not isinstance(tables, dict) or not all(
            isinstance(table, dict) for table in cast(dict[str, Any], tables).values()
        ):
            raise SettingsError(f"{kind} has a section for each: write [{kind}.NAME] on a line")
        for name, table in cast(dict[str, dict[str, Any]], tables).items():
            malformed = check_agent(name)
            if malformed is not None:
                raise SettingsError(f"[{kind}.{name!a}]: {malformed.detail}")
            for key in table:
                _check_known(f"{kind}.{name}.{key}", key, struct.__struct_fields__, known)
            try:
                msgspec.convert(table, struct)
            except msgspec.ValidationError as error:
                fault = shape_fault(error, struct)
                place = below(f"{kind}.{name}", fault.path)
                raise PlacedError(place, f": {fault.reason}") from error


def check_keys(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for section, values in given.items():
        if section in TABLES:
            continue
        if isinstance(values, dict):
            _check_known(f"[{section}]", section, (*known, *TABLES))
        else:
            _check_known(section, section, (*known, *TABLES), known)
            raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
        for key, value in cast(dict[str, Any], values).items():
            inner = f"{section}.{key}"
            if inner in known:
                _check_inner(inner, value, known)
            else:
                _check_known(inner, key, known[section], known)


def _check_inner(section: str, values: object, known: Mapping[str, Iterable[str]]) -> None:
    if not isinstance(values, dict):
        raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
    for key in cast(dict[str, Any], values):
        _check_known(f"{section}.{key}", key, known[section], known)


def _check_known(
    shown: str,
    name: str,
    known: Iterable[str],
    elsewhere: Mapping[str, Iterable[str]] = _NOWHERE,
) -> None:
    """`elsewhere`: sections that a key may belong to if no key of its own section is near."""
    names = list(known)
    if name not in names:
        raise PlacedError(shown, _not_known(name, names, elsewhere))


def _not_known(
    name: str, names: Sequence[str], elsewhere: Mapping[str, Iterable[str]] = _NOWHERE
) -> str:
    is_of_others = any(name in keys for keys in elsewhere.values())
    own = "" if is_of_others else meant(name, names)
    return f" is not a setting{own or _meant_of(name, elsewhere) or ';'} known: {', '.join(names)}"


def _meant_of(name: str, sections: Mapping[str, Iterable[str]]) -> str:
    """Suggestion of a section that has the key; empty: none comes near."""
    near = nearest(name, [key for keys in sections.values() for key in keys])
    places = [f"[{section}] {near}" for section, keys in sections.items() if near in keys]
    return f"; did you mean {' or '.join(places)}?" if places else ""
