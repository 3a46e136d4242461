"""Endpoints that only the web console uses: its sessions."""
