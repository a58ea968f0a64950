"""Test profile: tools, resources and prompts that the MCP conformance suite expects of a server.

Its names and texts are prescribed by the scenarios of the suite.
"""

import asyncio
import json
import re
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

from dragoman.surfaces.mcp.server import McpContext, SdkResult
from dragoman.surfaces.mcp.tasks import EXTENSION, declares_tasks
from dragoman.surfaces.mcp.tool import Pending, Tool, ToolCall, ToolError

GROUP = "fixtures"
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="

Content = types.TextContent | types.ImageContent | types.AudioContent | types.EmbeddedResource
Schema = dict[str, Any]
Handler = Callable[[ToolCall], Awaitable[SdkResult | Pending]]


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


# --- tools with a fixed result

_FIXED_CONTENT: dict[str, tuple[Content, ...]] = {
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


def _respond_with(content: tuple[Content, ...]) -> Handler:
    async def run(_: ToolCall) -> SdkResult:
        return _result(*content)

    return run


async def _respond_with_error(_: ToolCall) -> SdkResult:
    return types.CallToolResult(
        content=[_text("This tool intentionally returns an error for testing")], is_error=True
    )


# --- tools that send notifications


async def _log_messages(call: ToolCall) -> SdkResult:
    session = call.context.session
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await session.send_log_message(
                "info", message, related_request_id=call.context.request_id
            )
    return _result(_text("Tool with logging executed successfully"))


async def _report_progress(call: ToolCall) -> SdkResult:
    for step in (0, 50, 100):
        await call.context.session.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0)
    return _result(_text("Tool with progress executed successfully"))


# --- tools that send requests to the client (until 2025-11-25)


async def _sample(call: ToolCall) -> SdkResult:
    prompt = types.SamplingMessage(role="user", content=_text(call.arguments["prompt"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        response = await call.context.session.create_message(
            [prompt], max_tokens=100, related_request_id=call.context.request_id
        )
    text = response.content.text if isinstance(response.content, types.TextContent) else "(no text)"
    return _result(_text(f"LLM response: {text}"))


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


def _elicit_form(
    properties: Mapping[str, Schema], required: tuple[str, ...], prefix: str
) -> Handler:
    async def run(call: ToolCall) -> SdkResult:
        response = await call.context.session.elicit_form(
            call.arguments.get("message", "Please fill in"),
            _form(properties, required),
            related_request_id=call.context.request_id,
        )
        content = json.dumps(response.content or {})
        return _result(_text(f"{prefix}: action={response.action}, content={content}"))

    return run


# --- tools that request input by their result (from 2026-07-28 on)


def _form_request(message: str, properties: Mapping[str, Schema]) -> types.ElicitRequest:
    form = _form(properties, tuple(properties))
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=form)
    )


def _sampling_request(prompt: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=_text(prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


InputRequest = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest
_NAME: dict[str, Schema] = {"name": {"type": "string"}}
_OK: dict[str, Schema] = {"ok": {"type": "boolean"}}
_CAPABILITY_OF_METHOD = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class InputRounds(Struct, frozen=True):
    """Rounds of input requests; with `keeps_state`, the client carries the state."""

    rounds: tuple[dict[str, InputRequest], ...]
    keeps_state: bool = False
    only_declared: bool = False
    """Requests only what the client's capabilities allow."""

    async def run(self, call: ToolCall) -> SdkResult:
        """Return the next round, or the final result."""
        result = self.next_round(call.context)
        if result is not None:
            return result
        return _result(_text("state-ok: all of it is here"))

    def next_round(self, context: McpContext) -> types.InputRequiredResult | None:
        """Return the next input request; None when there is none."""
        params = cast(dict[str, Any], context.params or {})
        number = int(params.get("requestState") or 0)
        expected = self.rounds[number]
        responses = cast(dict[str, Any], params.get("inputResponses") or {})
        if expected.keys() <= responses.keys() and (
            number or not self.keeps_state or self._has_state(params)
        ):
            number += 1
        if number == len(self.rounds):
            return None
        requests = cast(dict[str, Any], self._select_declared(self.rounds[number], context))
        return types.InputRequiredResult(
            input_requests=requests, request_state=str(number) if self.keeps_state else None
        )

    def _has_state(self, params: Mapping[str, Any]) -> bool:
        return params.get("requestState") is not None

    def _select_declared(
        self, requests: dict[str, InputRequest], context: McpContext
    ) -> dict[str, InputRequest]:
        declared = context.session.client_capabilities
        if not self.only_declared or declared is None:
            return requests
        return {
            key: request
            for key, request in requests.items()
            if getattr(declared, _CAPABILITY_OF_METHOD[request.method], None)
        }


_NAME_REQUEST = {"user_name": _form_request("What is your name?", _NAME)}
_ALL_REQUESTS: dict[str, InputRequest] = {
    **_NAME_REQUEST,
    "greeting": _sampling_request("Generate a greeting"),
    "client_roots": types.ListRootsRequest(),
}
_CONFIRM: dict[str, InputRequest] = {"confirm": _form_request("Please confirm", _OK)}
_DIALOGUES = {
    "elicitation": InputRounds((dict(_NAME_REQUEST),)),
    "sampling": InputRounds(
        ({"capital_question": _sampling_request("What is the capital of France?")},)
    ),
    "list_roots": InputRounds(({"client_roots": types.ListRootsRequest()},)),
    "request_state": InputRounds((_CONFIRM,), keeps_state=True),
    "tampered_state": InputRounds((_CONFIRM,), keeps_state=True),
    "multiple_inputs": InputRounds((_ALL_REQUESTS,), keeps_state=True),
    "multi_round": InputRounds(
        (
            {"step1": _form_request("Step 1: What is your name?", _NAME)},
            {"step2": _form_request("Step 2: Which color?", {"color": {"type": "string"}})},
        ),
        keeps_state=True,
    ),
    "capabilities": InputRounds((_ALL_REQUESTS,), only_declared=True),
}
_PROMPT_DIALOGUE = InputRounds(
    (
        {
            "user_context": _form_request(
                "What context should the prompt use?", {"context": {"type": "string"}}
            )
        },
    )
)


async def _needs_sampling(call: ToolCall) -> SdkResult:
    declared = call.context.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs a client that can sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return _result(_text("The client can sample"))


# --- tools whose calls wait, and so may be tasks


def _wait_for(end: Handler, seconds: int = 1) -> Handler:
    """Make the handler of a call that waits so long, or as long as its arguments say."""

    async def run(call: ToolCall) -> SdkResult | Pending:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + call.arguments.get("seconds", seconds)

        async def look(call: ToolCall) -> SdkResult | Pending:
            if loop.time() >= ends_at:
                return await end(call)
            return Pending(ToolError("timeout", "it took too long"), 300, look)

        return await look(call)

    return run


async def _greet(call: ToolCall) -> SdkResult:
    return _result(_text(f"Hello, {call.arguments['name']}!"))


async def _compute(call: ToolCall) -> SdkResult:
    return _result(_text(f"Computed {call.arguments.get('label', '')}"))


async def _break_protocol(_: ToolCall) -> SdkResult:
    raise MCPError(types.INTERNAL_ERROR, "this job intentionally breaks the protocol")


async def _fail_as_task(call: ToolCall) -> SdkResult | Pending:
    if not declares_tasks(call.context):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "this tool needs a client that takes tasks",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )
    return await _wait_for(_respond_with_error)(call)


async def _greet_as_task(call: ToolCall) -> SdkResult | Pending:
    input_required = _DIALOGUES["elicitation"].next_round(call.context)
    if input_required is not None:
        return input_required
    name = call.context.params["inputResponses"]["user_name"]["content"]["name"]

    async def greet(_: ToolCall) -> SdkResult:
        return _result(_text(f"Hello, {name}!"))

    return await _wait_for(greet)(call)


# --- the tables

_BUS = InMemorySubscriptionBus()


async def _change_tools(_: ToolCall) -> SdkResult:
    await _BUS.publish(ToolsListChanged())
    return _result(_text("Tools changed"))


async def _change_prompts(_: ToolCall) -> SdkResult:
    await _BUS.publish(PromptsListChanged())
    return _result(_text("Prompts changed"))


_TEXT_ARGUMENT: Schema = {"type": "string"}
_HANDLERS: dict[str, tuple[Handler, tuple[str, ...]]] = {
    **{name: (_respond_with(content), ()) for name, content in _FIXED_CONTENT.items()},
    "test_error_handling": (_respond_with_error, ()),
    "test_tool_with_logging": (_log_messages, ()),
    "test_logging_tool": (_log_messages, ()),
    "test_tool_with_progress": (_report_progress, ()),
    "test_sampling": (_sample, ("prompt",)),
    "test_elicitation": (_elicit_form(_USER, tuple(_USER), "User response"), ("message",)),
    "test_elicitation_sep1034_defaults": (_elicit_form(_DEFAULTS, (), "Elicitation completed"), ()),
    "test_elicitation_sep1330_enums": (_elicit_form(_ENUMS, (), "Elicitation completed"), ()),
    "test_missing_capability": (_needs_sampling, ()),
    "test_streaming_elicitation": (_DIALOGUES["elicitation"].run, ()),
    "test_trigger_tool_change": (_change_tools, ()),
    "test_trigger_prompt_change": (_change_prompts, ()),
    "greet": (_greet, ("name",)),
    "slow_compute": (_wait_for(_compute, 0), ()),
    # It asks its client for nothing, as no tool of ours does.
    "confirm_delete": (_wait_for(_compute), ()),
    "failing_job": (_fail_as_task, ()),
    "protocol_error_job": (_wait_for(_break_protocol), ()),
    "test_tool_with_task": (_greet_as_task, ()),
    **{
        f"test_input_required_result_{name}": (dialogue.run, ())
        for name, dialogue in _DIALOGUES.items()
    },
}

TOOLS = tuple(
    Tool(
        name,
        "A fixture of the conformance suite.",
        _form(dict.fromkeys(arguments, _TEXT_ARGUMENT), arguments),
        run,
        GROUP,
    )
    for name, (run, arguments) in _HANDLERS.items()
)


_TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched",
}
_BINARY = "test://static-binary"
_TEMPLATE = "test://template/{id}/data"


def _list_fixtures() -> list[types.Resource]:
    texts = [types.Resource(uri=uri, name=uri, mime_type="text/plain") for uri in _TEXTS]
    return [*texts, types.Resource(uri=_BINARY, name=_BINARY, mime_type="image/png")]


def _read_fixture(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    if uri in _TEXTS:
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=_TEXTS[uri])
    if uri == _BINARY:
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    if found := re.fullmatch(r"test://template/(\w+)/data", uri):
        text = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return types.TextResourceContents(
            uri=uri, mime_type="application/json", text=json.dumps(text)
        )
    return None


def _add_resources(server: Server[Any]) -> None:
    """Add resources to those of the hub."""
    listed, templates, read = (
        server.get_request_handler(f"resources/{name}")
        for name in ("list", "templates/list", "read")
    )
    assert listed is not None
    assert templates is not None
    assert read is not None

    async def list_resources(context: McpContext, params: Any) -> types.ListResourcesResult:
        own = cast(types.ListResourcesResult, await listed.handler(context, params))
        more = _list_fixtures()
        return types.ListResourcesResult(resources=[*own.resources, *more])

    async def list_templates(context: McpContext, params: Any) -> types.ListResourceTemplatesResult:
        own = cast(types.ListResourceTemplatesResult, await templates.handler(context, params))
        more = types.ResourceTemplate(uri_template=_TEMPLATE, name="template")
        return types.ListResourceTemplatesResult(resource_templates=[*own.resource_templates, more])

    async def read_resource(
        context: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        content = _read_fixture(str(params.uri))
        if content is None:
            return cast(types.ReadResourceResult, await read.handler(context, params))
        return types.ReadResourceResult(contents=[content])

    server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
    server.add_request_handler(
        "resources/templates/list", types.PaginatedRequestParams, list_templates
    )
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read_resource)


class PromptFixture(Struct, frozen=True):
    """Prompt: its arguments and its contents."""

    arguments: tuple[str, ...]
    render: Callable[[Mapping[str, str]], tuple[Content, ...]]


_PROMPTS = {
    "test_simple_prompt": PromptFixture(
        (), lambda _: (_text("This is a simple prompt for testing."),)
    ),
    "test_prompt_with_arguments": PromptFixture(
        ("arg1", "arg2"),
        lambda arguments: (
            _text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"),
        ),
    ),
    "test_prompt_with_embedded_resource": PromptFixture(
        ("resourceUri",),
        lambda arguments: (
            _embedded(
                arguments["resourceUri"], "text/plain", "Embedded resource content for testing."
            ),
            _text("Please process the embedded resource above."),
        ),
    ),
    "test_prompt_with_image": PromptFixture(
        (), lambda _: (_image(), _text("Please analyze the image above."))
    ),
    "test_input_required_result_prompt": PromptFixture(
        (), lambda _: (_text("With your context."),)
    ),
}


async def _list_prompts(_: McpContext, __: Any) -> types.ListPromptsResult:
    prompts = [
        types.Prompt(
            name=name,
            description="A fixture of the conformance suite.",
            arguments=[
                types.PromptArgument(name=argument, required=True) for argument in prompt.arguments
            ],
        )
        for name, prompt in _PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=prompts)


async def _get_prompt(
    context: McpContext, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name == "test_input_required_result_prompt":
        input_required = _PROMPT_DIALOGUE.next_round(context)
        if input_required is not None:
            return input_required
    contents = _PROMPTS[params.name].render(params.arguments or {})
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=content) for content in contents]
    )


async def _complete(_: McpContext, __: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def _acknowledge(_: McpContext, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


def add_fixtures(server: Server[Any]) -> None:
    """Add the handlers that our own server does not have."""
    added: dict[str, tuple[Any, Any]] = {
        "prompts/list": (types.PaginatedRequestParams, _list_prompts),
        "prompts/get": (types.GetPromptRequestParams, _get_prompt),
        "completion/complete": (types.CompleteRequestParams, _complete),
        "logging/setLevel": (types.SetLevelRequestParams, _acknowledge),
        "resources/subscribe": (types.SubscribeRequestParams, _acknowledge),
        "resources/unsubscribe": (types.UnsubscribeRequestParams, _acknowledge),
        "subscriptions/listen": (types.SubscriptionsListenRequestParams, ListenHandler(_BUS)),
    }
    _add_resources(server)
    for method, (params, handler) in added.items():
        server.add_request_handler(method, params, handler)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name)
    )
