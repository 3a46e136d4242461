"""Commands that run one part of Ada by itself."""
