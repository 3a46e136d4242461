"""Webhooks: a tenant's HTTP addresses that are notified of outcomes and of ends of deliveries.

    lua/delivery/modules/outcome.lua ─▶ events:{s} ─▶ event_reader ─▶ tube `webhooks` ─▶ sender ─▶ http_client ─▶ the
    receiver
                                               ▲                                  │
                                          catch_up (from the histories)           └▶ again later, or a dead letter

Guarantees: an event that was written while a webhook existed is sent at least once, also if processes or the server are
killed; its `webhook-id` is the same each time. A receiver that is slow or down delays no other one, and what waits for
it is bounded. No request goes to a private address unless the operator permits it.

Neighbours: `core.deliveries` (events, histories) and `core.queue` (tasks, retries) below; `delivery/` manages webhooks
through `registry.Webhooks`, `cli` runs `runtime.WebhookRuntime`. Guide for receivers: docs/webhooks.md.
"""
