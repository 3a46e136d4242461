"""The rules of sending, from the settings: the API and the bots apply the same."""

from dataclasses import replace

from cli.settings.settings import Settings
from core.admission.quiet_hours import TenantQuietHours
from core.orders import Rules


def sending_rules(settings: Settings) -> Rules:
    """The quotas and quiet hours of the settings."""
    quiet_hours = settings.quiet_hours and replace(settings.quiet_hours, timezone=settings.timezone)
    return Rules(settings.quotas, TenantQuietHours(quiet_hours, settings.tenant_timezones))
