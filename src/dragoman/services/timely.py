"""What time alone asks for: one table, for a hub that runs, for `tick`, and for a hub by hand."""

from dragoman.config import Settings
from dragoman.engine.hub import Hub
from dragoman.services.clockwork import Duty
from dragoman.services.entropy import Entropy
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.services.sla import Sla
from dragoman.services.waves import Waves


def timely(hub: Hub, settings: Settings, *of_dialects: Duty) -> tuple[Duty, ...]:
    """Time-driven services in their order, including those of the dialects."""
    coordinator, teams = settings.handoffs.coordinator, settings.teamspaces
    return (
        Recovery(hub, settings.retry, coordinator, teams),
        Sla(hub, coordinator, teams, settings.agents),
        Waves(hub),
        Entropy(hub, settings.entropy),
        *of_dialects,
        Promotion(hub),
    )
