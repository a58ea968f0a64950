"""The tests, as one package, so that they can share tests.requirements and tests.servers."""
