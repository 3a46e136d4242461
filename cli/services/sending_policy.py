"""The rules of sending, from the settings: the API and the bots apply the same."""

from dataclasses import replace

from cli.settings.settings import Settings
from core.admission.quiet_hours import TenantQuietHours
from core.orders import SendingPolicy


def sending_policy_of(settings: Settings) -> SendingPolicy:
    """Return the quotas, the quiet hours and the rights of staff of the settings."""
    quiet_hours = settings.quiet_hours and replace(settings.quiet_hours, timezone=settings.timezone)
    return SendingPolicy(
        settings.quotas, TenantQuietHours(quiet_hours, settings.tenant_timezones), settings.staff_writes_to_all
    )
