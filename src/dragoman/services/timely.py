"""What time alone asks for: one table, for a hub that runs, for `tick`, and for a hub by hand."""

from dragoman.config import Settings
from dragoman.engine.hub import Hub
from dragoman.services.clockwork import Service
from dragoman.services.entropy import EntropyService
from dragoman.services.promotion import RetryPromotion
from dragoman.services.recovery import LeaseExpiry
from dragoman.services.sla import SlaService
from dragoman.services.waves import WaveService


def time_driven_services(
    hub: Hub, settings: Settings, *dialect_services: Service
) -> tuple[Service, ...]:
    """Time-driven services in their order, including those of the dialects."""
    coordinator, teams = settings.handoffs.coordinator, settings.teamspaces
    return (
        LeaseExpiry(hub, settings.retry, coordinator, teams),
        SlaService(hub, coordinator, teams, settings.agents),
        WaveService(hub),
        EntropyService(hub, settings.entropy),
        *dialect_services,
        RetryPromotion(hub),
    )
