"""The page on which a recipient answers the question of a delivery by a link."""
