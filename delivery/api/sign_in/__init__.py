"""Sign-in of users to outside services, and its pages."""
