"""Deciders of handoffs (ACP): work passes from one owner to the next with a verified package."""
