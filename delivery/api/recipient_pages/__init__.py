"""The pages that a recipient opens by a link: to answer a question, and to choose what it receives."""
