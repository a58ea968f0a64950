"""Time-driven services in one table, for a running hub, for `tick`, and for a test hub."""

from dragoman.config import Settings
from dragoman.engine.hub import Hub
from dragoman.services.entropy import EntropyService
from dragoman.services.lease_expiry import LeaseExpiry
from dragoman.services.retry_promotion import RetryPromotion
from dragoman.services.scheduler import Service
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
