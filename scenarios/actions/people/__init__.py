"""Actions about people: their record, promo codes and requests."""
