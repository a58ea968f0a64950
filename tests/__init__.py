"""The tests, as one package, so that they may share tests.requirements and tests.servers."""
