"""The table of all calls. Registration, scopes, OpenAPI and the tests walk through it; there is no second list."""

from delivery.endpoints import bulk, deliveries, health, pages
from delivery.endpoints import delivery_reports as receipts
from delivery.endpoints import queue as tasks
from delivery.endpoints import tracking as following
from delivery.http import metrics
from delivery.http.route import OpenRoute, Repeats, Route
from delivery.schemas import requests as schemas
from delivery.schemas import responses as answers

OneDelivery = "/v1/deliveries/{id}"
OneTask = "/v1/queue/tasks/{task_id}"

_LOCATION = {"Location": "The address of the delivery."}
_LINK = {"Link": "The next page, rel=next (RFC 8288); absent on the last."}

ROUTES = (
    Route("POST", "/v1/history-keys", "Get a history key before there is a delivery", "send", deliveries.reserve,
          201, answers.HistoryKeyGiven, body=schemas.KeyRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/deliveries", "Send one text to many people, now or at a set time", "send", deliveries.enqueue,
          202, answers.Accepted, body=schemas.Delivery, repeats=Repeats.OWN, headers=_LOCATION),
    Route("POST", "/v1/deliveries/bulk", "Many deliveries, one JSON document per line; answered line by line", "send",
          bulk.enqueue_many, 200, bulk.CONTENT_TYPE, repeats=Repeats.OWN,
          lines=(schemas.BulkLine, answers.LineAccepted)),
    Route("GET", "/v1/deliveries", "List deliveries, newest first", "read", deliveries.listing,
          200, answers.Deliveries, query=schemas.Listing, headers=_LINK),
    Route("GET", OneDelivery, "The history: who sent what to whom, who got it and how", "read", deliveries.show,
          200, answers.HistoryTold, query=schemas.Page, headers=_LINK),
    Route("PATCH", OneDelivery, "Move a scheduled delivery to another time", "send", deliveries.reschedule,
          200, answers.Accepted, body=schemas.Rescheduling, repeats=Repeats.STORED),
    Route("DELETE", OneDelivery, "Cancel, whole or for chosen recipients", "send", deliveries.cancel,
          200, answers.Cancelled, query=schemas.Chosen, repeats=Repeats.STORED),
    Route("POST", OneDelivery + "/retry", "Attempt anew what failed or is unknown", "send", deliveries.retry,
          202, answers.Retried, body=schemas.Retrying, optional=True, repeats=Repeats.STORED),
    Route("GET", OneDelivery + "/events", "A live stream of every change; Last-Event-ID resumes it", "read",
          following.follow, 200, following.CONTENT_TYPE, query=schemas.Following),
    Route("POST", "/v1/cancellations", "Cancel all deliveries that have something in common", "send",
          deliveries.cancel_by, 200, answers.CancelledMany, body=schemas.Cancellation, repeats=Repeats.STORED),
    Route("POST", "/v1/track", "Wait until so many channels have reported", "read", following.track,
          200, answers.Tracked, body=schemas.Tracking),
    Route("GET", "/v1/queue", "How much there is of what in the queue", "admin", tasks.stats, 200, dict),
    Route("GET", "/v1/queue/tasks", "List tasks", "admin", tasks.listing,
          200, answers.Tasks, query=schemas.TaskListing, headers=_LINK),
    Route("POST", "/v1/queue/cancellations", "End all tasks that have something in common", "admin", tasks.cancel_by,
          200, dict, body=schemas.TaskCancellation, repeats=Repeats.STORED),
    Route("GET", OneTask, "One task", "admin", tasks.peek, 200, dict),
    Route("POST", OneTask + ":bury", "Lay a task aside", "admin", tasks.bury, 200, dict, repeats=Repeats.STORED),
    Route("POST", OneTask + ":kick", "Give a buried task another life", "admin", tasks.kick,
          200, dict, repeats=Repeats.STORED),
    Route("POST", OneTask + ":cancel", "End a task", "admin", tasks.cancel, 200, dict, repeats=Repeats.STORED),
)  # fmt: skip


OPEN_ROUTES = (
    OpenRoute("GET", "/v1/receipts/sms", "A gateway's delivery report; its token is the secret",
              receipts.receive_sms, answers.Reported, schemas.Report),
    OpenRoute("POST", "/v1/receipts/sms", "The same as a form", receipts.receive_sms, answers.Reported, schemas.Report),
    OpenRoute("GET", "/livez", "Whether the process lives", health.live, answers.Alive),
    OpenRoute("GET", "/readyz", "Whether it can work", health.ready, answers.Alive),
    OpenRoute("GET", "/metrics", "Its figures, for Prometheus", health.figures, metrics.CONTENT_TYPE),
    OpenRoute("GET", "/openapi.json", "This document", pages.openapi, dict),
    OpenRoute("GET", "/docs", "This document, to read", pages.docs, pages.HTML),
    OpenRoute("GET", "/", "A page to send from and to watch", pages.front, pages.HTML),
)  # fmt: skip
