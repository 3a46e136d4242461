"""The channel web-push: notifications of browsers, which people switch on at the page behind a link (RFC 8030)."""
