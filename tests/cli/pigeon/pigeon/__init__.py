"""A channel of another package: post by pigeon."""
