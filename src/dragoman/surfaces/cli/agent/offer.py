"""What an agent offers, as `dragoman agent add` is told it: skills, terms, how it is reached."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from dragoman.core.commands import DescribeAgent
from dragoman.core.offers import Trust
from dragoman.surfaces.cli.call import raise_usage_error
from dragoman.surfaces.cli.values import parse_time_span

if TYPE_CHECKING:
    from dragoman.core.states.standing import Reputation


def parse_price(text: str) -> float:
    """Parse a number that is not negative."""
    try:
        price = float(text)
    except ValueError:
        raise ValueError(f"{text!a} is not a number") from None
    if not 0 <= price < float("inf"):
        raise ValueError(f"{text!a} is not a price: use 0 or more")
    return price


def _text_option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, show_default=False, help=text)


SkillOption = Annotated[
    list[str] | None,
    _text_option("--skill", "WORDS", "A skill, which goals can name; repeatable."),
]
ConstraintOption = Annotated[
    list[str] | None,
    _text_option("--constraint", "WORD", "A constraint that it satisfies; repeatable."),
]
LocalityOption = Annotated[
    list[str] | None,
    _text_option("--locality", "PLACE", "A location of data that it works on; repeatable."),
]
TrustOption = Annotated[
    Trust | None,
    typer.Option("--trust", show_default=False, help="How far it is trusted, T0 to T2; else T1."),
]
DiscoveredTrustOption = Annotated[
    Trust | None,
    typer.Option("--trust", show_default=False, help="How far it is trusted, T0 to T2; else T0."),
]
CostOption = Annotated[
    float | None,
    typer.Option(
        "--cost",
        metavar="N",
        parser=parse_price,
        show_default=False,
        help="What a piece of work costs, in a unit of your own.",
    ),
]
LatencyOption = Annotated[
    int | None,
    typer.Option(
        "--latency",
        metavar="TIME",
        parser=parse_time_span,
        show_default=False,
        help="How long it usually takes: 30s, 5m.",
    ),
]
CapacityOption = Annotated[
    int | None,
    typer.Option(
        "--capacity", metavar="N", min=0, show_default=False, help="How many requests at a time."
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--reach", metavar="URL", show_default=False, help="Where it is, if elsewhere."),
]


class CapabilityOptions(Struct, frozen=True):
    """Capabilities from the options of a command; None where an option was left out."""

    skills: list[str] | None = None
    constraints: list[str] | None = None
    locality: list[str] | None = None
    trust: Trust | None = None
    cost: float | None = None
    latency_ms: int | None = None
    capacity: int | None = None
    reach: str | None = None

    def to_command(self, name: str, standing: "Reputation | None") -> DescribeAgent | None:
        """Build the command that describes the agent; options left out keep their values. None: no
        option."""
        # An option that may be repeated is an empty list where it is left out.
        given_values = {
            key: value for key, value in _field_items(self) if value not in (None, [], ())
        }
        if not given_values:
            return None
        descriptor = standing.descriptor if standing is not None else None
        existing = dict(_field_items(descriptor)) if descriptor is not None else {}
        merged: dict[str, Any] = existing | given_values
        if "skills" not in merged:
            raise_usage_error("name its skills with --skill WORDS: work is assigned by them")
        for key in ("skills", "constraints", "locality"):
            merged[key] = tuple(merged.get(key, ()))
        return DescribeAgent(name, **merged)


def _field_items(struct: Struct) -> list[tuple[str, Any]]:
    return [(name, getattr(struct, name)) for name in struct.__struct_fields__]
