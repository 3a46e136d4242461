"""Files that callers upload: stored on the server, so that couriers on any machine find them (docs/decisions/0109).

    POST /v1/files ─▶ Uploads.store ─▶ id ─▶ a delivery names it ─▶ Uploads.keep ─▶ a courier: Uploads.load

Guarantees: an id stands for one name and content, so the same file is stored once, however often it is uploaded. A
file is there with all its bytes or not at all. It expires; a delivery that names it lets it live until the delivery is
due and `KEPT` longer, and so does each attempt. The files of a tenant take at most a set number of bytes.
"""

from core.uploads.uploads import KEPT, UNUSED, Upload, Uploads

__all__ = ["KEPT", "UNUSED", "Upload", "Uploads"]
