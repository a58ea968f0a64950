"""Runners: start agents as programs, at URLs, or as functions of this process."""
