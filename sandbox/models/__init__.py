"""Simulates language models and speech services: OpenAI's interface, and SaluteSpeech's with its tokens.

Answers are the same for the same request. A request that the real service refuses is refused here.
"""

from sandbox.models.server import KEY, MODEL, ModelsServer

__all__ = ["KEY", "MODEL", "ModelsServer"]
