"""VK as a community: the client, its errors, Bots Long Poll, the reader of events.

Source: dev.vk.com.
"""

CHANNEL = "vk"
