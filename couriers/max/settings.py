"""The settings of MAX. The fields are ADA_MAX_TOKEN and so on."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from couriers.max import API_URL


@dataclass(frozen=True)
class Settings:
    """`ca`: the file with the root of MAX's certificate, which Python does not know."""

    token: str = field(repr=False)
    api_url: str = API_URL
    ca: Path | None = None
    timeout: timedelta = timedelta(seconds=30)  # of one request; after it the outcome is unknown
    webhook_url: str | None = field(default=None, metadata={"setting": "ADA_MAX_WEBHOOK_URL"})
    webhook_secret: str | None = field(default=None, repr=False, metadata={"setting": "ADA_MAX_WEBHOOK_SECRET"})
    most_file_mb: int = 50  # of one attachment; a larger one is not shown
    allow_private: bool = field(default=False, metadata={"setting": "ADA_WEBHOOK_ALLOW_PRIVATE"})  # addresses of files
