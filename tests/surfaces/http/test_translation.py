"""`POST /v1/translate`: a message of one dialect in another."""

from docs.translation_examples import EXAMPLES
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer


@proves("NOTICE-TRANSLATE")
def test_message_is_translated_with_its_losses(server: HubServer) -> None:
    message = EXAMPLES["aof"]["completion.report partial"]
    made = server.post(
        "/v1/translate", {"from": "aof", "to": "agentmail", "message": message}, by="ada"
    )
    assert (made["from"], made["to"], made["kind"]) == ("aof", "agentmail", "checkpoint")
    assert made["message"]["subject"].endswith("CHECKPOINT")
    assert {"field": "outcome", "value": "partial"} in made["losses"]
    assert made["is_notice"] is False


@proves("NOTICE-TRANSLATE")
def test_bad_dialects_and_messages_are_problems(server: HubServer) -> None:
    body = {"from": "acp", "to": "aof", "message": {"action": "query"}}
    refused = server.request("POST", "/v1/translate", body)
    assert (refused.status, refused.json["code"]) == (422, "not_expressible")
    assert server.request("POST", "/v1/translate", {**body, "to": "x"}).json["path"] == "to"
    assert server.request("POST", "/v1/translate", {**body, "message": 3}).status == 422
