"""The stores of scenarios: people, promo codes, requests, and the results of steps."""
