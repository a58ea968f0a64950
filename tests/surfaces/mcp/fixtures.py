"""The test profile: what the conformance suite wants to find on a server, beside our own tools.

Its names and texts are prescribed by the scenarios of the suite.
"""

import asyncio
import base64
import json
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp import types
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from msgspec import Struct

from dragoman.surfaces.mcp.desk import Desk
from dragoman.surfaces.mcp.resources import Parameters, Shelf
from dragoman.surfaces.mcp.server import Context, Reply
from dragoman.surfaces.mcp.tool import Tool, Visit

GROUP = "fixtures"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

Content = types.TextContent | types.ImageContent | types.AudioContent | types.EmbeddedResource
Schema = dict[str, Any]
Run = Callable[[Visit], Awaitable[Reply]]


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _image() -> types.ImageContent:
    return types.ImageContent(data=PNG, mime_type="image/png")


def _embedded(uri: str, mime: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=mime, text=text)
    )


def _result(*content: Content) -> types.CallToolResult:
    return types.CallToolResult(content=list(content))


# --- tools that answer with one thing

_FIXED: dict[str, tuple[Content, ...]] = {
    "test_simple_text": (_text("This is a simple text response for testing."),),
    "test_image_content": (_image(),),
    "test_audio_content": (types.AudioContent(data=WAV, mime_type="audio/wav"),),
    "test_embedded_resource": (
        _embedded(
            "test://embedded-resource", "text/plain", "This is an embedded resource content."
        ),
    ),
    "test_multiple_content_types": (
        _text("Multiple content types test:"),
        _image(),
        _embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ),
}


def _fixed(content: tuple[Content, ...]) -> Run:
    async def run(_: Visit) -> Reply:
        return _result(*content)

    return run


async def _fail(_: Visit) -> Reply:
    return types.CallToolResult(
        content=[_text("This tool intentionally returns an error for testing")], is_error=True
    )


# --- tools that say something on their way


async def _log(visit: Visit) -> Reply:
    session = visit.context.session
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await session.send_log_message(
                "info", said, related_request_id=visit.context.request_id
            )
    return _result(_text("Tool with logging executed successfully"))


async def _progress(visit: Visit) -> Reply:
    for step in (0, 50, 100):
        await visit.context.session.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0)
    return _result(_text("Tool with progress executed successfully"))


# --- tools that ask the client while they run (until 2025-11-25)


async def _sample(visit: Visit) -> Reply:
    prompt = types.SamplingMessage(role="user", content=_text(visit.arguments["prompt"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer = await visit.context.session.create_message(
            [prompt], max_tokens=100, related_request_id=visit.context.request_id
        )
    said = answer.content.text if isinstance(answer.content, types.TextContent) else "(no text)"
    return _result(_text(f"LLM response: {said}"))


_USER = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
_DEFAULTS: dict[str, Schema] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [
    {"const": f"value{number}", "title": f"{name} Option"}
    for number, name in enumerate(("First", "Second", "Third"), 1)
]
_ENUMS: dict[str, Schema] = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


def _form(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    form: Schema = {"type": "object", "properties": dict(properties)}
    return form | ({"required": list(required)} if required else {})


def _elicit(properties: Mapping[str, Schema], required: tuple[str, ...], says: str) -> Run:
    async def run(visit: Visit) -> Reply:
        answer = await visit.context.session.elicit_form(
            visit.arguments.get("message", "Please fill in"),
            _form(properties, required),
            related_request_id=visit.context.request_id,
        )
        content = json.dumps(answer.content or {})
        return _result(_text(f"{says}: action={answer.action}, content={content}"))

    return run


# --- tools that ask the client by their result (from 2026-07-28 on)


def _ask_form(message: str, properties: Mapping[str, Schema]) -> types.ElicitRequest:
    form = _form(properties, tuple(properties))
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=form)
    )


def _ask_model(prompt: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=_text(prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


Ask = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest
_NAME: dict[str, Schema] = {"name": {"type": "string"}}
_OK: dict[str, Schema] = {"ok": {"type": "boolean"}}
_NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class Talk(Struct, frozen=True):
    """What is asked for, round by round; with `keeps`, the state travels with the client."""

    rounds: tuple[dict[str, Ask], ...]
    keeps: bool = False
    only_declared: bool = False
    """Whether the client is asked only for what it says that it can do."""

    async def run(self, visit: Visit) -> Reply:
        """The next round, or the end."""
        given = self.next_of(visit.context)
        if given is not None:
            return given
        return _result(_text("state-ok: all of it is here"))

    def next_of(self, context: Context) -> types.InputRequiredResult | None:
        """What is still to be asked for; None: nothing."""
        params = cast(dict[str, Any], context.params or {})
        number = int(params.get("requestState") or 0)
        wanted = self.rounds[number]
        answers = cast(dict[str, Any], params.get("inputResponses") or {})
        if wanted.keys() <= answers.keys() and (number or not self.keeps or self._kept(params)):
            number += 1
        if number == len(self.rounds):
            return None
        asked = cast(dict[str, Any], self._fit(self.rounds[number], context))
        return types.InputRequiredResult(
            input_requests=asked, request_state=str(number) if self.keeps else None
        )

    def _kept(self, params: Mapping[str, Any]) -> bool:
        return params.get("requestState") is not None

    def _fit(self, asked: dict[str, Ask], context: Context) -> dict[str, Ask]:
        declared = context.session.client_capabilities
        if not self.only_declared or declared is None:
            return asked
        return {
            key: one for key, one in asked.items() if getattr(declared, _NEEDS[one.method], None)
        }


_WHO = {"user_name": _ask_form("What is your name?", _NAME)}
_ALL_THREE: dict[str, Ask] = {
    **_WHO,
    "greeting": _ask_model("Generate a greeting"),
    "client_roots": types.ListRootsRequest(),
}
_CONFIRM: dict[str, Ask] = {"confirm": _ask_form("Please confirm", _OK)}
_TALKS = {
    "elicitation": Talk((dict(_WHO),)),
    "sampling": Talk(({"capital_question": _ask_model("What is the capital of France?")},)),
    "list_roots": Talk(({"client_roots": types.ListRootsRequest()},)),
    "request_state": Talk((_CONFIRM,), keeps=True),
    "tampered_state": Talk((_CONFIRM,), keeps=True),
    "multiple_inputs": Talk((_ALL_THREE,), keeps=True),
    "multi_round": Talk(
        (
            {"step1": _ask_form("Step 1: What is your name?", _NAME)},
            {"step2": _ask_form("Step 2: Which color?", {"color": {"type": "string"}})},
        ),
        keeps=True,
    ),
    "capabilities": Talk((_ALL_THREE,), only_declared=True),
}
_PROMPT_TALK = Talk(
    (
        {
            "user_context": _ask_form(
                "What context should the prompt use?", {"context": {"type": "string"}}
            )
        },
    )
)


async def _needs_sampling(visit: Visit) -> Reply:
    declared = visit.context.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs a client that can sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return _result(_text("The client can sample"))


# --- the tables

_BUS = InMemorySubscriptionBus()


async def _change_tools(_: Visit) -> Reply:
    await _BUS.publish(ToolsListChanged())
    return _result(_text("Tools changed"))


async def _change_prompts(_: Visit) -> Reply:
    await _BUS.publish(PromptsListChanged())
    return _result(_text("Prompts changed"))


_TEXT_ARGUMENT: Schema = {"type": "string"}
_RUNS: dict[str, tuple[Run, tuple[str, ...]]] = {
    **{name: (_fixed(content), ()) for name, content in _FIXED.items()},
    "test_error_handling": (_fail, ()),
    "test_tool_with_logging": (_log, ()),
    "test_logging_tool": (_log, ()),
    "test_tool_with_progress": (_progress, ()),
    "test_sampling": (_sample, ("prompt",)),
    "test_elicitation": (_elicit(_USER, tuple(_USER), "User response"), ("message",)),
    "test_elicitation_sep1034_defaults": (_elicit(_DEFAULTS, (), "Elicitation completed"), ()),
    "test_elicitation_sep1330_enums": (_elicit(_ENUMS, (), "Elicitation completed"), ()),
    "test_missing_capability": (_needs_sampling, ()),
    "test_streaming_elicitation": (_TALKS["elicitation"].run, ()),
    "test_trigger_tool_change": (_change_tools, ()),
    "test_trigger_prompt_change": (_change_prompts, ()),
    **{f"test_input_required_result_{name}": (talk.run, ()) for name, talk in _TALKS.items()},
}

TOOLS = tuple(
    Tool(
        name,
        "A fixture of the conformance suite.",
        _form(dict.fromkeys(arguments, _TEXT_ARGUMENT), arguments),
        run,
        GROUP,
    )
    for name, (run, arguments) in _RUNS.items()
)


def _template(_: Desk, parameters: Parameters) -> str:
    number = parameters["id"]
    return json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})


def _png(_: Desk, __: Parameters) -> bytes:
    return base64.b64decode(PNG)


SHELVES = (
    Shelf(
        "test://static-text",
        "static-text",
        "A text.",
        lambda _, __: "This is the content of the static text resource.",
        "text/plain",
    ),
    Shelf("test://static-binary", "static-binary", "An image.", _png, "image/png"),
    Shelf("test://template/{id}/data", "template", "Data by a number.", _template),
    Shelf("test://watched-resource", "watched", "A text.", lambda _, __: "Watched", "text/plain"),
)


class Sheet(Struct, frozen=True):
    """A prompt: its arguments, and what it says."""

    arguments: tuple[str, ...]
    says: Callable[[Mapping[str, str]], tuple[Content, ...]]


_SHEETS = {
    "test_simple_prompt": Sheet((), lambda _: (_text("This is a simple prompt for testing."),)),
    "test_prompt_with_arguments": Sheet(
        ("arg1", "arg2"),
        lambda given: (
            _text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"),
        ),
    ),
    "test_prompt_with_embedded_resource": Sheet(
        ("resourceUri",),
        lambda given: (
            _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
            _text("Please process the embedded resource above."),
        ),
    ),
    "test_prompt_with_image": Sheet(
        (), lambda _: (_image(), _text("Please analyze the image above."))
    ),
    "test_input_required_result_prompt": Sheet((), lambda _: (_text("With your context."),)),
}


async def _list_prompts(_: Context, __: Any) -> types.ListPromptsResult:
    prompts = [
        types.Prompt(
            name=name,
            description="A fixture of the conformance suite.",
            arguments=[types.PromptArgument(name=one, required=True) for one in sheet.arguments],
        )
        for name, sheet in _SHEETS.items()
    ]
    return types.ListPromptsResult(prompts=prompts)


async def _get_prompt(
    context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name == "test_input_required_result_prompt":
        asked = _PROMPT_TALK.next_of(context)
        if asked is not None:
            return asked
    said = _SHEETS[params.name].says(params.arguments or {})
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=content) for content in said]
    )


async def _complete(_: Context, __: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def _nothing(_: Context, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


def equip(server: Server[Any]) -> None:
    """Add what a server of ours does not offer."""
    added: dict[str, tuple[Any, Any]] = {
        "prompts/list": (types.PaginatedRequestParams, _list_prompts),
        "prompts/get": (types.GetPromptRequestParams, _get_prompt),
        "completion/complete": (types.CompleteRequestParams, _complete),
        "logging/setLevel": (types.SetLevelRequestParams, _nothing),
        "resources/subscribe": (types.SubscribeRequestParams, _nothing),
        "resources/unsubscribe": (types.UnsubscribeRequestParams, _nothing),
        "subscriptions/listen": (types.SubscriptionsListenRequestParams, ListenHandler(_BUS)),
    }
    for method, (params, handler) in added.items():
        server.add_request_handler(method, params, handler)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name)
    )
