"""Whether the process is alive and ready, and the proof of its identity."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from core.admission.server_proof import NONCE
from delivery.schemas.requests import RequestModel


class ProofQuery(RequestModel, frozen=True):
    """The challenge of the proof: 128 random bits of the client."""

    nonce: Annotated[str, Meta(pattern=NONCE)]


class HealthResponse(Struct):
    """The process is alive, or ready."""

    status: str


class ServerProof(Struct):
    """HMAC-SHA-256 of the nonce and the address of the connection, with the key of the data directory, in hex."""

    proof: str


class ReadinessResponse(Struct, omit_defaults=True):
    """The process can serve requests. `degraded`: it can, but couriers start late, because the server lacks a setting,
    or the store has lost data.

    `missing` says which setting and why; `changed` what this check has set; `lost` what was lost and what to do.
    """

    status: Literal["ok", "degraded"]
    missing: str = ""
    changed: str = ""
    lost: str = ""
