"""What the web console uses besides: who is signed in."""
