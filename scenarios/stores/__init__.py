"""What scenarios store of people, promo codes, requests, and the results of steps."""
