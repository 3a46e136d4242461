"""SCIM 2.0 (RFC 7643, RFC 7644): an identity provider keeps its people and groups in the directory. `endpoints` imports
no library; what needs scim2-models is imported by the first request.
"""
