"""The operations, written once for sync and async callers: no client, no clock, no print."""
