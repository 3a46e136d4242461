"""The table of all operations. Registration, scopes, the OpenAPI document and the tests read it."""

from delivery.endpoints import bulk, deliveries, delivery_reports, health, pages, queue, tracking, webhooks
from delivery.endpoints.directory import contacts, groups, ownerships, supergroups, users
from delivery.http import metrics, ndjson, sse
from delivery.http.route import OpenRoute, Repeats, Route
from delivery.schemas import directory, requests, responses

Delivery = "/v1/deliveries/{id}"
Task = "/v1/queue/tasks/{task_id}"
Webhook = "/v1/webhooks/{id}"
User = "/v1/users/{id}"
Group = "/v1/groups/{id}"
Supergroup = "/v1/supergroups/{id}"
Contact = "/v1/contacts/{user}/{channel}/{address}"
Ownership = "/v1/ownerships/{user}/{kind}/{id}"

_ACCEPTED = {
    "Location": "The address of the delivery.",
    "RateLimit": "What is left of the sender's quota, if it has one.",
    "RateLimit-Policy": "The sender's quota.",
}
_NEW = {"Location": "The address of the new object."}
_LINK = {"Link": "The next page, rel=next (RFC 8288); absent on the last."}

ROUTES = (
    Route("POST", "/v1/history-keys", "Reserve a history key for a later delivery", "send", deliveries.reserve,
          201, responses.HistoryKeyResponse, body=requests.HistoryKeyRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/deliveries", "Send one text to many recipients, now or at a set time", "send",
          deliveries.enqueue, 202, responses.Accepted, body=requests.DeliveryRequest, repeats=Repeats.OWN,
          headers=_ACCEPTED),
    Route("POST", "/v1/deliveries/bulk", "Many deliveries, one JSON document per line; one response per line", "send",
          bulk.enqueue_many, 200, ndjson.CONTENT_TYPE, repeats=Repeats.OWN,
          lines=(requests.BulkLine, responses.LineAccepted)),
    Route("GET", "/v1/deliveries", "List deliveries, newest first", "read", deliveries.list_page,
          200, responses.DeliveryPage, query=requests.DeliveryQuery, headers=_LINK),
    Route("GET", Delivery, "The history of a delivery: its outcome for every recipient and channel", "read",
          deliveries.show, 200, responses.HistoryResponse, query=requests.HistoryQuery, headers=_LINK),
    Route("PATCH", Delivery, "Move a scheduled delivery to another time", "send", deliveries.reschedule,
          200, responses.Accepted, body=requests.RescheduleRequest, repeats=Repeats.STORED),
    Route("DELETE", Delivery, "Cancel a delivery, for all recipients or the given ones", "send", deliveries.cancel,
          200, responses.Cancelled, query=requests.CancelQuery, repeats=Repeats.STORED),
    Route("POST", Delivery + "/retry", "Retry failed or unknown outcomes", "send", deliveries.retry,
          202, responses.Retried, body=requests.RetryRequest, body_is_optional=True, repeats=Repeats.STORED),
    Route("GET", Delivery + "/events", "A live stream of every change; Last-Event-ID resumes it", "read",
          tracking.follow, 200, sse.CONTENT_TYPE, query=requests.EventsQuery),
    Route("POST", "/v1/cancellations", "Cancel all deliveries that have something in common", "send",
          deliveries.cancel_by, 200, responses.CancelledMany, body=requests.CancellationRequest,
          repeats=Repeats.STORED),
    Route("GET", "/v1/quota", "How much of its quota a sender has used", "read", deliveries.show_quota,
          200, responses.QuotaResponse, query=requests.QuotaQuery),
    Route("POST", "/v1/track", "Wait until a number of channels have reported", "read", tracking.track,
          200, responses.TrackResponse, body=requests.TrackRequest),
    Route("GET", "/v1/queue", "Numbers of tasks by tube and state", "operator", queue.stats, 200, dict),
    Route("GET", "/v1/queue/tasks", "List tasks", "admin", queue.list_tasks,
          200, responses.TaskPage, query=requests.TaskQuery, headers=_LINK),
    Route("POST", "/v1/queue/cancellations", "Cancel all tasks that have something in common", "admin",
          queue.cancel_by, 200, dict, body=requests.TaskCancellationRequest, repeats=Repeats.STORED),
    Route("GET", Task, "Show one task", "admin", queue.peek, 200, dict),
    Route("POST", Task + ":bury", "Set a task aside until it is kicked", "admin", queue.bury,
          200, dict, repeats=Repeats.STORED),
    Route("POST", Task + ":kick", "Make a buried task ready again", "admin", queue.kick,
          200, dict, repeats=Repeats.STORED),
    Route("POST", Task + ":cancel", "Cancel a task", "admin", queue.cancel, 200, dict, repeats=Repeats.STORED),
    Route("POST", "/v1/webhooks", "Notify an HTTP address of outcomes and ends of deliveries", "manage",
          webhooks.create, 201, responses.WebhookCreated, body=requests.WebhookRequest, repeats=Repeats.STORED),
    Route("GET", "/v1/webhooks", "List the webhooks", "manage", webhooks.list_all, 200, responses.WebhookList),
    Route("DELETE", Webhook, "Delete a webhook and the messages that wait for it", "manage", webhooks.delete,
          200, responses.WebhookDeleted, repeats=Repeats.STORED),
    Route("POST", Webhook + "/test", "Send a test message to a webhook at once", "manage", webhooks.test,
          200, responses.WebhookAttempt, repeats=Repeats.STORED),
    Route("GET", Webhook + "/attempts", "What waits for a webhook, and the last attempts", "manage",
          webhooks.attempts, 200, responses.WebhookAttempts),
    Route("POST", Webhook + "/replay", "Send the messages again that were given up", "manage", webhooks.replay,
          202, responses.WebhookReplayed, repeats=Repeats.STORED),
    Route("POST", "/v1/users", "Add a person", "manage", users.create,
          201, directory.UserResponse, body=directory.UserRequest, repeats=Repeats.STORED, headers=_NEW),
    Route("GET", "/v1/users", "List people: all, or by e-mail address, contact, group, role", "manage",
          users.list_page, 200, directory.UserPage, query=directory.UserQuery, headers=_LINK),
    Route("GET", User, "Show one person", "manage", users.show, 200, directory.UserResponse),
    Route("PATCH", User, "Change some fields of a person", "manage", users.update,
          200, directory.UserResponse, body=directory.UserPatch, repeats=Repeats.STORED),
    Route("DELETE", User, "Delete a person with its contacts, memberships and ownerships", "manage", users.delete,
          204, repeats=Repeats.STORED),
    Route("POST", "/v1/contacts", "Add a contact to a person", "manage", contacts.add,
          201, directory.ContactResponse, body=directory.ContactRequest, repeats=Repeats.STORED),
    Route("GET", "/v1/contacts", "List the contacts of a person", "manage", contacts.list_all,
          200, directory.ContactList, query=directory.OfUserQuery),
    Route("DELETE", Contact, "Remove one contact of a person", "manage", contacts.remove,
          204, repeats=Repeats.STORED),
    Route("POST", "/v1/groups", "Add a group with its first members", "manage", groups.create,
          201, directory.GroupResponse, body=directory.GroupRequest, repeats=Repeats.STORED, headers=_NEW),
    Route("GET", "/v1/groups", "List groups", "manage", groups.list_page,
          200, directory.GroupPage, query=directory.PageQuery, headers=_LINK),
    Route("GET", Group, "Show one group", "manage", groups.show, 200, directory.GroupResponse),
    Route("PATCH", Group, "Change some fields of a group", "manage", groups.update,
          200, directory.GroupResponse, body=directory.GroupPatch, repeats=Repeats.STORED),
    Route("DELETE", Group, "Delete a group; its members stay", "manage", groups.delete, 204, repeats=Repeats.STORED),
    Route("GET", Group + "/members", "List the members of a group", "manage", groups.list_members,
          200, directory.UserPage, query=directory.PageQuery, headers=_LINK),
    Route("PUT", Group + "/members/{user}", "Add a person to a group", "manage", groups.add_member,
          204, repeats=Repeats.STORED),
    Route("DELETE", Group + "/members/{user}", "Take a person out of a group", "manage", groups.remove_member,
          204, repeats=Repeats.STORED),
    Route("POST", "/v1/supergroups", "Add a supergroup of existing groups", "manage", supergroups.create,
          201, directory.SupergroupResponse, body=directory.SupergroupRequest, repeats=Repeats.STORED, headers=_NEW),
    Route("GET", "/v1/supergroups", "List supergroups", "manage", supergroups.list_page,
          200, directory.SupergroupPage, query=directory.PageQuery, headers=_LINK),
    Route("GET", Supergroup, "Show one supergroup with its groups", "manage", supergroups.show,
          200, directory.SupergroupResponse),
    Route("PATCH", Supergroup, "Change the title of a supergroup", "manage", supergroups.update,
          200, directory.SupergroupResponse, body=directory.SupergroupPatch, repeats=Repeats.STORED),
    Route("DELETE", Supergroup, "Delete a supergroup; its groups stay", "manage", supergroups.delete,
          204, repeats=Repeats.STORED),
    Route("PUT", Supergroup + "/groups/{group}", "Add a group to a supergroup; each of its owners must own the group",
          "manage", supergroups.add_group, 204, repeats=Repeats.STORED),
    Route("DELETE", Supergroup + "/groups/{group}", "Take a group out of a supergroup", "manage",
          supergroups.remove_group, 204, repeats=Repeats.STORED),
    Route("GET", "/v1/ownerships", "List what a person owns", "manage", ownerships.list_all,
          200, directory.OwnershipList, query=directory.OfUserQuery),
    Route("PUT", Ownership, "Let a person write to a group or supergroup", "manage", ownerships.add,
          204, repeats=Repeats.STORED),
    Route("DELETE", Ownership, "Withdraw an ownership; for a group also supergroups that contain it", "manage",
          ownerships.remove, 204, repeats=Repeats.STORED),
)  # fmt: skip


OPEN_ROUTES = (
    OpenRoute("GET", "/v1/receipts/sms", "A delivery report of an SMS gateway; its token is the secret",
              delivery_reports.receive_sms, responses.DeliveryReportResponse, requests.DeliveryReportQuery),
    OpenRoute("POST", "/v1/receipts/sms", "The same as a form",
              delivery_reports.receive_sms, responses.DeliveryReportResponse, requests.DeliveryReportQuery),
    OpenRoute("GET", "/livez", "Whether the process is alive", health.live, responses.HealthResponse),
    OpenRoute("GET", "/readyz", "Whether the process can serve requests", health.ready, responses.ReadinessResponse),
    OpenRoute("GET", "/metrics", "Metrics for Prometheus", health.show_metrics, metrics.CONTENT_TYPE),
    OpenRoute("GET", "/openapi.json", "This document", pages.openapi, dict),
    OpenRoute("GET", "/docs", "This document as a page", pages.docs, pages.HTML),
    OpenRoute("GET", "/", "A page to send messages and to watch their delivery", pages.front, pages.HTML),
)  # fmt: skip
