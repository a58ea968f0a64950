"""Notification targets: signed webhooks and commands."""
