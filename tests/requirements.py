"""Requirements of dragoman, one sentence each; a test names the ids that it proves.

`tests/architecture/test_requirements.py` fails when a requirement has no test, when a test names
none, and when a test names one that is not here. The ids are stable: a released id is never reused.
The section is a tag of the semantics (S-TASK) or the part of the system that the promise is about.
A divergence says where dragoman departs from a specification, and why.
"""

import pytest
from msgspec import Struct


class Requirement(Struct, frozen=True):
    """One requirement."""

    id: str
    section: str
    behaviour: str
    divergence: str = ""


def proves(*ids: str) -> pytest.MarkDecorator:
    """Mark a test, a class or (as `pytestmark`) a module with the requirements that it proves."""
    return pytest.mark.proves(*ids)


_MANIFEST: tuple[Requirement, ...] = (
    # --- tasks
    Requirement(
        "TASK-LIFECYCLE",
        "S-TASK",
        "Every pair of statuses is either a transition of the table or is refused as "
        "invalid_transition; done and cancelled are final.",
        divergence="cancelled and deadletter are not in AOF/1: work can be given up, or fail for "
        "good.",
    ),
    Requirement(
        "TASK-SAME-STATUS",
        "S-TASK",
        "Moving a task to the status that it has is a no-op: accepted, and no entry is added.",
    ),
    Requirement(
        "TASK-ACTIONS",
        "S-TASK",
        "Every action on a task is one row of a table, and works alike over HTTP, as an MCP tool "
        "that is called by its name, as an operation of `dragoman call`, and at the command line.",
    ),
    Requirement(
        "TASK-CLAIM-ONLY",
        "S-TASK",
        "Entering in-progress is always a claim, so no task is in progress without a lease.",
    ),
    Requirement(
        "TASK-REVIEW",
        "S-TASK",
        "review to done is for a human or an orchestrator, never for the agent of the attempt, "
        "unless no review is required.",
    ),
    Requirement(
        "REVIEW-POLICY",
        "S-TASK",
        "Whoever is reviewed does not skip the review: an agent creates a task without review, "
        "delegated or not, only where [tasks] says so, and its work for an intent of its own is "
        "reviewed; [ccos] review has the work for all intents reviewed.",
    ),
    Requirement(
        "TASK-OBSTACLE",
        "S-TASK",
        "A blocked task shows the reason of the actor that blocked it, until it is unblocked.",
    ),
    Requirement(
        "TASK-PRIORITY",
        "S-TASK",
        "The next ready task is the one of the highest priority, the oldest among equals.",
    ),
    Requirement(
        "TASK-READY",
        "S-TASK",
        "The ready queue holds exactly the tasks that are ready, due, and wait for no other task.",
    ),
    Requirement(
        "CLAIM-QUEUES",
        "S-TASK",
        "An actor that may claim for others may choose the queues: a task that is reserved for a "
        "capability goes to an agent that has it, and back to that queue when an attempt fails.",
    ),
    Requirement(
        "TASK-LINKS",
        "S-TASK",
        "A task links to others as blocked-by, parent and discovered-from; a link that would make "
        "a task wait for itself is refused.",
    ),
    Requirement(
        "TASK-UNBLOCK",
        "S-TASK",
        "A task that waits for others becomes claimable when the last of them has ended, and not "
        "before.",
    ),
    Requirement(
        "TASK-CANCEL",
        "S-TASK",
        "Cancelling ends a task from every status but done and deadletter, and invalidates the "
        "token of its holder.",
    ),
    Requirement(
        "TASK-TABLE-AS-DATA",
        "S-TASK",
        "The transition tables are data; the diagrams in the docs are generated from them and "
        "equal to the current tables.",
    ),
    Requirement(
        "TASK-LOG",
        "S-TASK",
        "A note on a task is recorded with its author and time, and shown in its work log.",
    ),
    Requirement(
        "TASK-UPDATE",
        "S-AOF-4",
        "A status update moves the task where the table allows it, with the first of blockers, "
        "notes and progress as its reason; otherwise its text becomes a line of the work log.",
    ),
    Requirement(
        "TASK-EDIT",
        "S-AOF-13",
        "An edit changes the given fields that differ, if the actor may change them; the agent "
        "of a task may change its wording.",
    ),
    Requirement(
        "TASK-ASSIGN",
        "S-OWN",
        "Held work gets another assignee only if it is taken away, which ends the attempt; under "
        "an active handoff nobody is assigned.",
    ),
    Requirement(
        "TASK-DEADLINE",
        "S-TASK",
        "A task may have a deadline, which is set, changed and removed, and shown as overdue when "
        "it has passed before the task ended.",
    ),
    Requirement(
        "TASK-UNLINK",
        "S-TASK",
        "A dependency can be removed by whoever may speak for the work; the task then waits no "
        "more for that one.",
    ),
    Requirement(
        "TASK-REOPEN",
        "S-TASK",
        "A done or cancelled task is reopened as it was before it ended, by a human or an "
        "orchestrator; what waited for it waits again.",
    ),
    Requirement(
        "TASK-WARN",
        "S-AOF-10",
        "A warning is recorded with its task and blocks nothing.",
    ),
    Requirement(
        "FILE-PRINCIPAL",
        "S-AOF-13",
        "An edited or moved file may edit, and move between backlog, ready and blocked; it "
        "neither decides a review nor switches one off, unless moves are trusted.",
    ),
    Requirement(
        "REPORT-REPEAT",
        "S-AOF-2",
        "A report of an outcome that is already applied is a no-op, before the reporter is "
        "authorized; an old token is refused nevertheless.",
    ),
    # --- delegation
    Requirement(
        "DELEGATION-REQUEST",
        "S-AOF-4",
        "A task is delegated by the holder of its parent, or by an orchestrator, coordinator or "
        "person; the same request again is a no-op, another one replaces it.",
    ),
    Requirement(
        "DELEGATION-ATOMIC",
        "S-AOF-7",
        "A task that is created with a deadline is delegated to its assignee in the same "
        "transaction, with its criteria, so that nobody can begin it without them; if the request "
        "is refused, no task is made.",
    ),
    Requirement(
        "DELEGATION-HANDED-OVER",
        "S-AOF-7",
        "While another agent has the delegated work by a handoff, its former delegate may not "
        "reject it, and its deadline stays watched.",
    ),
    Requirement(
        "DELEGATION-DEPTH",
        "S-AOF-7",
        "Delegated work cannot be delegated further, from either end of the chain.",
    ),
    Requirement(
        "DELEGATION-ANSWER",
        "S-AOF-4",
        "Only the requested agent accepts or rejects, each once; a rejection blocks a task whose "
        "work is still to be done.",
    ),
    Requirement(
        "DELEGATION-SLA",
        "S-AOF-7",
        "A delegation whose deadline passes before its task has ended is escalated, once, and "
        "the task does not move.",
    ),
    # --- agents and messages
    Requirement(
        "AGENT-REGISTRY",
        "S-ROLE",
        "Agents and people are registered by name, role and dialects; an actor gives only the "
        "roles that it may give, and an agent acts for itself only.",
    ),
    Requirement(
        "MESSAGE-REFUSED",
        "S-AOF-1",
        "A message that is no valid command is refused with the reason of its dialect and "
        "recorded with its sender, whatever it quotes.",
    ),
    Requirement(
        "MESSAGE-HEARD",
        "S-AOF-9",
        "A message that changed nothing leaves an entry with its sender and none with the task.",
    ),
    # --- names and adoption
    Requirement(
        "NAME-GRAMMAR",
        "S-NAME",
        "Ids and aliases are ASCII, matched whole: path tricks, full-width digits, a trailing "
        "newline and over-long ids are refused as invalid_id.",
    ),
    Requirement(
        "NAME-AOF-ID",
        "S-NAME",
        "Every task has an AOF id from its creation, its own id if that is one; ids are unique "
        "and never reused, also when the 999 numbers of a day are used up.",
        divergence="After 999 tasks of a day the tail is eight characters; AOF/1 knows three "
        "digits only.",
    ),
    Requirement(
        "NAME-ALIAS",
        "S-NAME",
        "A task is found by its primary id, its AOF id and any alias; a name in use is refused.",
    ),
    Requirement(
        "TASK-ADOPT",
        "S-ADOPT",
        "The first message about an unknown task of another system creates it ready, with its "
        "origin; a later one finds it, and two concurrent ones create one.",
    ),
    # --- runs
    Requirement(
        "ATTEMPT-NUMBERED",
        "S-RUN",
        "A claim creates the next attempt, makes its agent the owner, and assigns one session.",
    ),
    Requirement(
        "ATTEMPT-RESULT",
        "S-RUN",
        "A report belongs to its attempt: an old attempt's report never decides a new attempt.",
    ),
    Requirement(
        "REPORT-PENDING",
        "S-AOF-3",
        "A pending report decides nothing once its work was taken away (release, checkpoint, move, "
        "cancel, a rejected or reassigned handoff): it is dropped, and whoever takes the work is "
        "told. The end of the session and an expired lease apply it.",
    ),
    Requirement(
        "LEASE-FENCE",
        "S-RUN",
        "The fencing token rises with every claim, and no write under an old one is accepted.",
    ),
    Requirement(
        "LEASE-HEARTBEAT",
        "S-RUN",
        "The first heartbeat is written with the lease; any accepted command of the holder "
        "renews it.",
    ),
    Requirement(
        "LEASE-LOST",
        "S-RUN",
        "A worker that resumes after its TTL gets lease_lost for every write, and the new holder "
        "is not affected.",
    ),
    Requirement(
        "LEASE-LATE",
        "S-RUN",
        "Whoever has lost its lease, by time or because its work was taken away, is refused as "
        "lease_lost at every door until it claims the task again, also where the task is assigned "
        "to it; an agent that ended its attempt itself remains the owner.",
    ),
    Requirement(
        "LEASE-RECOVERY",
        "S-RUN",
        "An expired lease sends its task back to ready, or applies the result of the attempt if "
        "there is one; a renewed lease is never ended.",
    ),
    Requirement(
        "EVIDENCE-CHECKS",
        "S-TASK",
        "Checks are commands that a person names with a task, or the settings with an agent. The "
        "hub runs them in the worktree of the attempt before a completion counts, with a time "
        "limit, bounded output and the sandbox of its agent. Work whose checks have passed is "
        "proven; work whose check failed goes back with its output, and blocks its task in the "
        "end. A completion without checks is a claim.",
    ),
    Requirement(
        "ATTEMPT-QUIET",
        "S-RUN",
        "Whatever a holder writes that is on record is progress, and so is output of a program "
        "that the hub supervises; a heartbeat, a repeat and a refusal are not. An attempt without "
        "progress for quiet_ms is flagged once, after escalate_ms more it is escalated once, and "
        "it keeps its lease; the next progress ends that.",
    ),
    Requirement(
        "ATTEMPT-MAX",
        "S-RUN",
        "An attempt that takes longer than max_ms ends, whoever works: by its report if there is "
        "one, else like one whose lease is lost, though its lease is renewed. One that the hub "
        "runs is stopped first.",
    ),
    Requirement(
        "LEASE-RELEASE",
        "S-RUN",
        "A holder may release a task: it is ready immediately, and that counts as no failure.",
    ),
    Requirement(
        "LEASE-OFF-LEDGER",
        "S-RUN",
        "A heartbeat changes its lease row and adds no entry to the ledger.",
    ),
    Requirement(
        "TIME-IN-CALENDAR",
        "S-RUN",
        "Timestamps after the year 9999 are never committed: a lease that would end later is "
        "refused, and a stored one can still be shown.",
    ),
    Requirement(
        "RETRY-BACKOFF",
        "S-RUN",
        "A failed or requeued task has a backoff that grows up to a cap, and is not claimable "
        "before it is due.",
    ),
    Requirement(
        "RETRY-DEADLETTER",
        "S-RUN",
        "At the limit of attempts a task goes to the deadletter; from there it can be made ready "
        "again.",
    ),
    # --- authority
    Requirement(
        "ROLE-TABLE",
        "S-ROLE",
        "One table of role, relation and transition defines what an actor may do; every cell is "
        "tested.",
    ),
    Requirement(
        "ROLE-HOLDER",
        "S-ROLE",
        "Only the holder reports on its attempt: others get unauthorized_agent, or "
        "unassigned_task where the task has neither holder nor owner.",
    ),
    Requirement(
        "ROLE-CELLS",
        "S-ROLE",
        "Every command in every status of its task, by every role and relation, is allowed or "
        "refused as one handwritten table requires.",
    ),
    Requirement(
        "ROLE-CREDENTIALS",
        "S-ROLE",
        "Credentials are issued and revoked by people and the hub for everyone, by orchestrators "
        "for agents and observers; an agent may revoke its own.",
    ),
    Requirement(
        "IDENTITY-TOKEN",
        "S-ROLE",
        "A token authenticates its agent, in the role that the agent has now, until it expires "
        "or is revoked; an invalid token reveals nothing about existing ones.",
    ),
    Requirement(
        "IDENTITY-REVOKE",
        "S-ROLE",
        "A revocation takes effect immediately in the process that records it and within a "
        "second in every other; it covers one token or all of them, those of attempts included.",
    ),
    Requirement(
        "IDENTITY-ATTEMPT",
        "S-ROLE",
        "The token of an attempt authenticates its agent for its task only, under its fencing "
        "token only; it is sealed by the hub and not stored.",
    ),
    Requirement(
        "IDENTITY-ATTEMPT-END",
        "S-ROLE",
        "The token of an attempt is invalid when another attempt begins, and within a minute of "
        "its own end; meanwhile it changes and creates no task and reserves no file, and its "
        "letters are delivered without effect.",
    ),
    Requirement(
        "IDENTITY-LOOK",
        "identity",
        "Authentication never blocks the event loop of the hub on the store.",
    ),
    Requirement(
        "IDENTITY-OWNER",
        "identity",
        "The owner token of a data directory is created once, is readable by its owner only "
        "(0600), and is refused when others could have read it.",
    ),
    Requirement(
        "IDENTITY-SECRET",
        "identity",
        "Tokens are absent from the ledger, the files, errors and representations: only digests "
        "are stored, and a token is printed once.",
    ),
    Requirement(
        "IDENTITY-SIGNED",
        "S-CCOS-9",
        "A message signed with the registered Ed25519 key of an agent authenticates that agent, "
        "to this hub only, until it expires, and once.",
    ),
    Requirement(
        "ROLE-OWN-GATE",
        "S-ROLE",
        "No actor approves its own gate: neither a person nor an orchestrator approves its own "
        "action, nor an orchestrator what it claimed for another, and it gets a token only for "
        "agents that it may vouch for.",
    ),
    Requirement(
        "ROLE-ACTS-AS",
        "S-ROLE",
        "A person at the command line without a hub may act as any agent, and the entry names "
        "both.",
    ),
    # --- MCP
    Requirement(
        "MCP-TOOLS",
        "MCP",
        "A coding agent claims, logs, asks, completes, and recovers after a restart through "
        "tools, in both protocol versions and on both transports.",
    ),
    Requirement(
        "MCP-RESULTS",
        "MCP",
        "The result of a tool is structured, and the same as text.",
    ),
    Requirement(
        "MCP-REFUSALS",
        "MCP",
        "A refusal is a tool error with code and detail, so that a model can act on it; an "
        "unknown tool or resource is a protocol error.",
    ),
    Requirement(
        "MCP-IDENTITY",
        "MCP",
        "A tool acts for the bearer of the request's token over HTTP, and for --as or "
        "DRAGOMAN_TOKEN on stdio; a session belongs to the caller that opened it, and a token is "
        "sent to the named hub, not to a proxy.",
    ),
    Requirement(
        "MCP-DIALECTS",
        "MCP",
        "Dialects provide their tools, from the operations that have a tool description; any "
        "other message goes through `send_message`.",
    ),
    Requirement(
        "MCP-SIZE",
        "MCP",
        "The list of tools that a model is shown has ten tools in at most 6,000 bytes, with every "
        "argument described; each dialect that an agent speaks adds less than 7 KB.",
    ),
    Requirement(
        "MCP-VISIBLE",
        "MCP",
        "Its role and its dialects select the tools that an agent is shown and can call; one that "
        "is only not listed can be called by its name.",
    ),
    Requirement(
        "MCP-EFFECT",
        "MCP",
        "A call whose effect was refused, or which names nothing to change, is an error; a repeat "
        "and the same status again are not.",
    ),
    Requirement(
        "MCP-LEASES",
        "MCP",
        "The leases of a client are kept while its process, its stream or its calls show it alive, "
        "however long it is silent; those of one that has gone end, and a lost one is told with "
        "the next answer.",
    ),
    Requirement(
        "MCP-TASKS",
        "MCP",
        "A call that waits is answered with a task of the tasks extension to a client that "
        "declares it, and at the end of its wait to any other; only its caller sees the task, "
        "however it is polled it has one outcome, and a caller has a limited number of them.",
    ),
    Requirement(
        "MCP-RESOURCES",
        "MCP",
        "Tasks and their histories are resources: the newest are listed, any is read by its name.",
    ),
    Requirement(
        "MCP-DOOR",
        "MCP",
        "/mcp has the same access checks and limits as every route, and ends its streams when "
        "the hub stops.",
    ),
    Requirement(
        "MCP-STDIO",
        "MCP",
        "`dragoman mcp` serves on standard input and output, leaves all files up to date, goes "
        "through a running hub, and relays everything to a given hub address.",
    ),
    Requirement(
        "MCP-MALFORMED",
        "MCP",
        "A body at /mcp, and a line of standard input, is decoded as at every other address, "
        "within the same limits, in a thread if it is long, and with the same reason if it is no "
        "JSON.",
    ),
    # --- coding agents
    Requirement(
        "CONNECT-CLIENTS",
        "Coding agents",
        "`dragoman connect` shows and writes the MCP configuration and the instructions of each "
        "client that it knows, with a token where the hub is elsewhere.",
    ),
    Requirement(
        "CONNECT-UNTOUCHED",
        "Coding agents",
        "What is not ours in a configuration stays byte by byte, and is all that is left after "
        "--undo; a file that is broken, a link or another user's is refused.",
    ),
    Requirement(
        "AGENT-HOOKS",
        "Coding agents",
        "Hooks of Claude Code and Codex report sessions, questions and the ends of turns, give the "
        "agent its new letters at its next turn, and never stop it.",
    ),
    Requirement(
        "AGENT-PRESENCE",
        "Coding agents",
        "A session of an agent says that it works, waits for a person with its question, or is "
        "idle; what waits is among what needs a person, survives a restart, and ends with the "
        "next turn.",
    ),
    Requirement(
        "USAGE-LIMIT",
        "Coding agents",
        "An attempt that ends because its vendor's usage limit is reached is no failure: the lease "
        "is released, the agent is paused until a little after the limit, and others get the task.",
    ),
    # --- commands
    Requirement(
        "CORE-REACTIONS",
        "Core",
        "One table lists the concepts that follow each event of a task, in order; every event of "
        "a task is in it or listed as followed by none, and no reaction follows a later one.",
    ),
    Requirement(
        "CORE-PURE",
        "Core",
        "decide(command, read, now) is a pure function over frozen values: the same input gives "
        "the same events or the same refusal.",
    ),
    Requirement(
        "CORE-ALL-OR-NONE",
        "Core",
        "A tuple of commands over several streams is applied whole, each seeing the ones before "
        "it, or leaves nothing behind.",
    ),
    Requirement(
        "REFUSAL-CODES",
        "Core",
        "A refusal has a stable code and a sentence that says what to do.",
    ),
    Requirement(
        "REFUSAL-RECORDED",
        "Core",
        "A refusal is an entry in the actor's stream, never in the target's; a repeat adds none, "
        "and their number is limited.",
    ),
    Requirement(
        "IDEM-REPEAT",
        "S-IDEM",
        "A repeat under the same key gets the first answer, adds no entry, and still renews the "
        "lease.",
    ),
    Requirement(
        "IDEM-SCOPE",
        "S-IDEM",
        "A key is unique per target stream, or per actor where there is none; the same key for a "
        "different request is refused.",
    ),
    Requirement(
        "IDEM-REFUSED",
        "S-IDEM",
        "A refusal is not remembered: the same request may be tried again and may then succeed.",
    ),
    Requirement(
        "LIMIT-TEXT",
        "S-LIMIT",
        "Over-long and hostile titles, bodies and notes are refused with the limit in the "
        "answer, never silently truncated.",
    ),
    Requirement(
        "ENGINE-HANDLE",
        "Engine",
        "The asynchronous and the synchronous entry point give the same answers, and only after "
        "the commit.",
    ),
    Requirement(
        "ENGINE-BATCH-POISON",
        "Engine",
        "A command that fails in the database or the code fails alone; the others of its batch "
        "succeed.",
    ),
    Requirement(
        "ENGINE-OVERLOAD",
        "Engine",
        "A new request is refused as overloaded when too many requests wait.",
    ),
    Requirement(
        "ENGINE-ASIDE",
        "Engine",
        "Lookups for the messages of one event loop turn run together in a thread; a slow lookup "
        "delays no other caller. Long texts are parsed one at a time, in a thread of their own.",
    ),
    Requirement(
        "ENGINE-SUBSCRIBE",
        "Engine",
        "A subscriber that follows from a cursor never misses an entry and never gets one twice.",
    ),
    Requirement(
        "ENGINE-AS-OF",
        "Engine",
        "A task, and the list of tasks, can be read as of any position.",
    ),
    # --- ledger
    Requirement(
        "LEDGER-LINE",
        "Ledger",
        "An entry is one JSON line with stream, version, event name and its version, actor, "
        "cause, time, said and body; its bytes and its hash are those of the written format.",
    ),
    Requirement(
        "LEDGER-CHAIN",
        "Ledger",
        "The hash of an entry covers its line and the previous hash of its stream.",
    ),
    Requirement(
        "LEDGER-POSITION",
        "Ledger",
        "Positions are gapless, are not in the line, and are the leaf numbers of the tree.",
    ),
    Requirement(
        "LEDGER-SAID",
        "Ledger",
        "The original text and unknown fields are stored with the entry and never change a "
        "decision.",
    ),
    Requirement(
        "LEDGER-UPCAST",
        "Ledger",
        "An entry of an older event version is read through its upcasters; its stored bytes stay "
        "unchanged.",
    ),
    Requirement(
        "LEDGER-NAMES",
        "Ledger",
        "Event names, their versions and stream names are stable, and name no class or module.",
    ),
    Requirement(
        "LEDGER-RELEASED",
        "Ledger",
        "A stored ledger of each released format still verifies and replays.",
    ),
    Requirement(
        "LEDGER-TREE",
        "Ledger",
        "The Merkle root, inclusion and consistency of the ledger's tree are those of RFC 9162.",
    ),
    Requirement(
        "LEDGER-CHECKPOINT",
        "Ledger",
        "Ed25519-signed checkpoints go to checkpoints.jsonl outside the database; a forged one "
        "is found.",
    ),
    Requirement(
        "LEDGER-INCLUSION",
        "Ledger",
        "An entry is proven to be among those that a checkpoint signed by the path of RFC 9162; "
        "what was changed, cut or signed elsewhere is not.",
    ),
    Requirement(
        "VERIFY-HASHES",
        "Ledger",
        "verify checks every hash and every indexed copy, and names the first bad position: "
        "any flipped byte is found.",
    ),
    Requirement(
        "VERIFY-VIEWS",
        "Ledger",
        "verify replays the ledger into fresh views and finds any difference from the stored ones.",
    ),
    Requirement(
        "VERIFY-REMOVED",
        "Ledger",
        "verify finds a removed entry and a swapped order.",
    ),
    Requirement(
        "VERIFY-CUT-TAIL",
        "Ledger",
        "verify finds a truncated ledger with the help of a checkpoint.",
    ),
    # --- stores
    Requirement(
        "STORE-CONTRACT",
        "Stores",
        "Memory, SQLite and PostgreSQL pass one conformance suite of the store contract.",
    ),
    Requirement(
        "STORE-ATOMIC",
        "Stores",
        "Entries, state rows and indexes are written in one commit: all or none.",
    ),
    Requirement(
        "STORE-INTERLEAVE",
        "Stores",
        "Exactly one of two transactions that load before either appends wins.",
    ),
    Requirement(
        "STORE-LATE-COMMIT",
        "Stores",
        "A reader that tails the ledger never passes a position that a slow transaction commits "
        "later.",
    ),
    Requirement(
        "STORE-CLAIM-RACE",
        "Stores",
        "Exactly one of several processes that claim one task wins, always, on both databases.",
    ),
    Requirement(
        "STORE-CACHE",
        "Stores",
        "A cached state is dropped when a batch fails or another process has committed.",
    ),
    Requirement(
        "STORE-REFOLD",
        "Stores",
        "A state row of an old fold number is recomputed from its entries.",
    ),
    Requirement(
        "STORE-DURABLE",
        "Stores",
        "SQLite runs in WAL mode with synchronous=FULL, in a version without the WAL-reset bug; "
        "readers run beside the one writer.",
    ),
    Requirement(
        "STORE-MIGRATIONS",
        "Stores",
        "Migrations are numbered and run once, in one transaction.",
    ),
    Requirement(
        "STORE-URL",
        "Stores",
        "--store accepts sqlite:///path and postgresql://…; anything else is refused with the "
        "valid forms.",
    ),
    Requirement(
        "STORE-SECOND-HUB",
        "Stores",
        "A second hub process on a data directory is refused with a sentence that names the "
        "first; plain commands wait for each other.",
    ),
    Requirement(
        "STORE-CORRUPT",
        "Stores",
        "A corrupt or foreign database file gives a clear error, and is not made worse.",
    ),
    Requirement(
        "STORE-READ-ONLY",
        "Stores",
        "A read-only folder or database gives a clear error that says what to change.",
    ),
    Requirement(
        "STORE-LISTS",
        "Stores",
        "A stream may be on any number of lists, on each in the order of its first entry; the "
        "cost of a page does not depend on the length of the list, and a reader that continues "
        "from a position misses nothing.",
    ),
    Requirement(
        "STORE-SEARCH",
        "Stores",
        "The same query finds the same letters in memory, SQLite and PostgreSQL; several "
        "processes may index at once, and indexing delays no commit.",
    ),
    Requirement(
        "SEARCH-WORDS",
        "Stores",
        "A search supports words, phrases, prefixes, exclusions and OR; any other input is "
        "answered with a sentence.",
    ),
    # --- command line
    Requirement(
        "CLI-START",
        "Command line",
        "A command loads only what it needs: one that reads tasks, events or agents loads "
        "neither keys, dialects, services nor files, and --version nothing of the engine.",
    ),
    Requirement(
        "CLI-PROMISES",
        "Command line",
        "--data, --store, --json, --now and --as work on every command where they apply, also "
        "after its arguments; DIR comes from DRAGOMAN_DATA, else from the search.",
    ),
    Requirement(
        "CLI-SEARCH",
        "Command line",
        "The data directory is the nearest .dragoman of this user in the working directory or "
        "above it. init, up, import and restore make one where none is found; a named one is made "
        "by any command that writes, except mcp; every other command says that there is none.",
    ),
    Requirement(
        "CLI-EXIT",
        "Command line",
        "A command exits with 0 if it was ok, 1 if it was refused, 2 for wrong usage; with "
        "--json its answer has ok, and a refusal its code and detail.",
    ),
    Requirement(
        "CLI-NOW",
        "Command line",
        "--now fixes the hub's clock for that command, on every command.",
    ),
    Requirement(
        "CLI-INIT",
        "Command line",
        "init creates a data directory, and a second init changes nothing.",
    ),
    Requirement(
        "CLI-TASK",
        "Command line",
        "task create, list, show, move, claim, heartbeat, release, log and link do what the core "
        "does, by any name of the task.",
    ),
    Requirement(
        "CLI-TASK-ACTIONS",
        "Command line",
        "Each action on a task is a command with all of its arguments; where that makes sense it "
        "takes several tasks, prints a line or an object for each, and exits with 1 if any was "
        "refused.",
    ),
    Requirement(
        "CLI-FIND",
        "Command line",
        "task tree shows parts and what tasks wait for, task search finds tasks by words, task "
        "path the folders of a task by any of its names.",
    ),
    Requirement(
        "CLI-LOGS",
        "Command line",
        "logs prints what the program of an attempt printed, of the last attempt or another, and "
        "follows it until the attempt has ended.",
    ),
    Requirement(
        "TASK-WAIT",
        "S-TASK",
        "A ready task that not everybody can claim now says why in lists; its status stays.",
    ),
    Requirement(
        "CLI-PLAN",
        "Command line",
        "task create --file makes up to a thousand tasks of a TOML or JSONL file with their "
        "dependencies, in any order, all or none; a fault is told with its line.",
    ),
    Requirement(
        "CLI-TASK-WAIT",
        "Command line",
        "task claim --wait waits for the next task that the agent may take, task ask --wait for "
        "the answer; an end of the time and Ctrl-C leave nothing half done.",
    ),
    Requirement(
        "CLI-TICK",
        "Command line",
        "tick runs each time-driven service once, and a second tick at the same time changes "
        "nothing.",
    ),
    Requirement(
        "CLI-SEND",
        "Command line",
        "send submits one message of any dialect from a file or standard input, and prints the "
        "result; a refused one exits with 1 and the code of the dialect.",
    ),
    Requirement(
        "CLI-CALL",
        "Command line",
        "call prints the reply of an operation exactly as its dialect has it; session-end ends a "
        "session by its name, or all that have reported.",
    ),
    Requirement(
        "CLI-LINT",
        "Command line",
        "lint checks each message, or each line of a file of lines, reports each problem with "
        "its path, sends and creates nothing, and exits with 1 if anything is wrong.",
    ),
    Requirement(
        "CLI-AGENT",
        "Command line",
        "agent add registers a name with a role, without a hub; from then on the agent has that "
        "role.",
    ),
    Requirement(
        "CLI-FLEET",
        "Command line",
        "agent show and list also show, while a hub runs, what the agents that it starts are "
        "doing, or why one takes no work, as the API does; without a hub, or when it does not "
        "answer soon, they show the rest and say so.",
    ),
    Requirement(
        "CLI-FILES",
        "Command line",
        "tick reads files put into the data directory; rebuild-files rewrites all files; export "
        "and import transfer a whole data directory.",
    ),
    Requirement(
        "NOTICE-TRANSLATE",
        "Across dialects",
        "Each message of a dialect is translated to each other by one neutral notice: valid there, "
        "with its losses and filled fields; nothing is invented and nothing hidden.",
    ),
    Requirement(
        "DELIVERY-DIALECT",
        "Across dialects",
        "What concerns an agent that is registered with what it speaks reaches its mailbox and the "
        "folder deliveries/, in that dialect, once; without it nothing changes.",
    ),
    Requirement(
        "DIALECTS-MEET",
        "Across dialects",
        "What one dialect says about a task is neither lost nor mistaken in another.",
    ),
    Requirement(
        "OFFER-ANSWER",
        "Across dialects",
        "The recipient of an ACP offer accepts and activates, rejects, completes or blocks it in "
        "its own dialect; the gate is that of ACP, and where it refuses, the message is recorded "
        "and has no effect. The agent of a TaskRequest or of an AOF delegation begins, reports or "
        "rejects it in its own dialect. Help asked in one dialect is one help case, answered from "
        "any.",
    ),
    Requirement(
        "AUDIT-FORMS",
        "Across dialects",
        "AOF events and files, ACP's log and chain, SAOP transitions, CCOS Actions and the mail "
        "thread tell the same owner, lineage, status, attempt, outcome and order.",
    ),
    Requirement(
        "NOTICE-ROUND",
        "Across dialects",
        "There and back keeps every field that both dialects can express.",
    ),
    Requirement(
        "STORY-ORDER",
        "Command line",
        "The story of a task has everything about it over all its streams, in the order of the "
        "ledger, with its actor, dialect, cause and duration, and the original words.",
    ),
    Requirement(
        "STORY-PAGES",
        "Command line",
        "A story is read in pages whose cursor is a position of the ledger; no page ends within a "
        "request, and a reader does not find what is hidden from it elsewhere.",
    ),
    Requirement(
        "STORY-INERT",
        "Command line",
        "A story as Markdown, JSON or HTML holds nothing that acts, whatever agents have written; "
        "the HTML page has no script and loads nothing.",
    ),
    Requirement(
        "CLI-EVENTS",
        "Command line",
        "events lists the ledger by task, type and position, and follows it.",
    ),
    Requirement(
        "CLI-VERIFY",
        "Command line",
        "verify exits 0 on a sound ledger and 1 with the first bad position on any other; --hashes "
        "checks the hashes alone.",
    ),
    Requirement(
        "CLI-DOCTOR",
        "Command line",
        "doctor reports what is wrong with the installation and the data directory, and how to "
        "fix it.",
    ),
    Requirement(
        "CLI-VERSION",
        "Command line",
        "--version prints the version; python -m dragoman and shell completion work.",
    ),
    Requirement(
        "CLI-PAGED",
        "Command line",
        "Lists are paged, and no page reads the whole store.",
    ),
    Requirement(
        "CLI-PLAIN",
        "Command line",
        "Colours appear on a terminal only.",
    ),
    Requirement(
        "CLI-SAFE-TEXT",
        "Command line",
        "Text of agents is shown with control, escape, bidi and zero-width characters made "
        "harmless.",
    ),
    Requirement(
        "CLI-DEMO",
        "Command line",
        "demo plays one task through all five dialects (delegated, its agent killed, recovered, "
        "help by mail, a verified handoff, live turns, an approval, the proof) by a real hub and "
        "real processes, in under a minute, and leaves nothing behind unless requested.",
    ),
    # --- outgoing requests and programs
    Requirement(
        "SYSTEM-FILES",
        "System",
        "Files are opened beneath a root, which neither links nor paths can leave.",
    ),
    Requirement(
        "SYSTEM-IDS",
        "System",
        "Generated ids are time-ordered and increase, also within one millisecond.",
    ),
    Requirement(
        "SYSTEM-KEYS",
        "System",
        "Signing keys are created once, are readable by their owner only, and a bad key file is "
        "named.",
    ),
    Requirement(
        "CONFIG-ONCE",
        "System",
        "Settings come from dragoman.toml and the environment, are read once, and an invalid one "
        "is named.",
    ),
    Requirement(
        "SYSTEM-FETCH",
        "System",
        "A POST goes only to a public address that was checked, or to a host that the settings "
        "allow; it follows no redirect, ends after a bounded time, and reads a bounded answer.",
    ),
    Requirement(
        "SYSTEM-SPAWN",
        "System",
        "A program is run without a shell, with the given variables, and is ended in time with "
        "everything in its process group; its output is bounded.",
    ),
    # --- notifications
    Requirement(
        "NOTIFY-NEWS",
        "S-OUT",
        "Entering review, blocked or done (or the configured statuses) makes one notification with "
        "task, title, from, to, reason, actor and time; nothing else makes one.",
    ),
    Requirement(
        "NOTIFY-AT-LEAST-ONCE",
        "S-OUT",
        "Every notification is delivered to every target, in order, at least once and under a "
        "stable id; after a documented number of failures it is saved as failed.",
    ),
    Requirement(
        "NOTIFY-NOT-IN-THE-WAY",
        "S-OUT",
        "A target that fails, hangs or is misconfigured delays neither a transition nor another "
        "target, and a run takes a bounded time.",
    ),
    Requirement(
        "NOTIFY-WEBHOOK",
        "S-OUT",
        "A notification is posted with its id, its time and an HMAC-SHA256 over both and the body; "
        "any 2xx means delivered.",
    ),
    Requirement(
        "NOTIFY-COMMAND",
        "S-OUT",
        "A notification is passed to a program on its standard input; exit code 0 means delivered.",
    ),
    Requirement(
        "NOTIFY-SECRETS",
        "S-OUT",
        "The URL and secret of the webhook appear in no error, file, log or child process.",
    ),
    # --- faults
    Requirement(
        "CRASH-FAILPOINTS",
        "Faults",
        "A hub that is killed at any named failpoint and restarted has lost no acknowledged "
        "write, repeated none, and verifies.",
    ),
    Requirement(
        "POWER-CUT",
        "Faults",
        "A power failure at any moment, with any outcome for unsynced writes, loses no "
        "acknowledged write and repeats none, and the hub verifies.",
    ),
    Requirement(
        "POWER-TEETH",
        "Faults",
        "The power test finds lost writes where SQLite syncs less than FULL, where a new file "
        "name is not synced, and where the answer precedes the commit.",
    ),
    Requirement(
        "DISK-FULL",
        "Faults",
        "A full disk, at whatever size, refuses writes with a clear error while reads work, "
        "loses nothing acknowledged, and work continues when there is space.",
    ),
    Requirement(
        "DISK-ERROR",
        "Faults",
        "A failed read, write or sync of a disk never leads to an answer for unwritten data, and "
        "after a failed sync the writer restarts from the data on disk.",
    ),
    Requirement(
        "CRASH-CLIENTS",
        "S-FAULTS",
        "Clients that repeat what was not answered find each of their writes done once, and each "
        "repeat answered alike, when served hubs are killed under them: one on SQLite, two on one "
        "PostgreSQL.",
    ),
    Requirement(
        "CRASH-KILL",
        "Faults",
        "A hub that is killed at any moment, a thousand times in the everyday suite, has lost no "
        "acknowledged write, duplicated none and applied none in part; the ledger verifies, the "
        "views equal the replay, the files agree with the store.",
    ),
    Requirement(
        "CRASH-RECOVERY",
        "Faults",
        "A hub that is killed again during recovery ends in the same state as without the second "
        "kill.",
    ),
    Requirement(
        "CRASH-TEETH",
        "Faults",
        "Builds that answer before the commit, omit idempotency keys, ignore the fence or lose a "
        "wake-up fail the checks that the real one passes.",
    ),
    Requirement(
        "TIME-JUMPS",
        "Faults",
        "A clock that jumps a day forward or back, or stands still, loses and duplicates "
        "nothing: no lease has two holders, and work continues.",
    ),
    Requirement(
        "TIME-STOPPED-WORKER",
        "Faults",
        "A worker that was stopped for twice its TTL gets lease_lost for every write, and the "
        "next holder of its task is not disturbed.",
    ),
    Requirement(
        "INCIDENTS-OF-OTHERS",
        "Faults",
        "Reported failures of other projects with stores and leases, cited by issue number, do "
        "not happen here.",
    ),
    Requirement(
        "MODEL-REPLAY",
        "Faults",
        "The model, the implementation and the replay of the ledger agree for any sequence of "
        "commands.",
    ),
    # --- faults of PostgreSQL
    Requirement(
        "PG-CUTS",
        "Faults",
        "Connections to PostgreSQL that are cut at any byte, in either direction, lose no "
        "acknowledged write and duplicate none; a repeat under its key gets the first answer.",
    ),
    Requirement(
        "PG-KILLED",
        "Faults",
        "A PostgreSQL that is killed and restarted, under load or during lease expiry, loses no "
        "acknowledged write, duplicates none and leaves no task behind.",
    ),
    Requirement(
        "PG-PROCESSES",
        "Faults",
        "Several hub processes that claim the same tasks get each task once, while a reader that "
        "tails the ledger misses nothing and sees nothing twice.",
    ),
    Requirement(
        "PG-STOPPED",
        "Faults",
        "A hub that is suspended within a transaction blocks its task for others for a bounded "
        "time only; when it resumes, its decision is not written.",
    ),
    Requirement(
        "PG-TEETH",
        "Faults",
        "The checks find deliberately broken stores: positions of a plain sequence, an unknown "
        "outcome that is simply repeated, an answer before the commit is written.",
    ),
    Requirement(
        "STORE-SECRET",
        "S-IDEM",
        "A store knows the secret of its digests: a hub with another one is refused at opening, "
        "with the folder to copy; doctor says the same.",
    ),
    Requirement(
        "STORE-LOST",
        "Faults",
        "A missing database with signed checkpoints is not recreated by any command; all of them "
        "say how to restore it.",
    ),
    # --- plain files
    Requirement(
        "FILES-TASK-FILE",
        "S-AOF-13",
        "A task is a Markdown file with front matter, body and work log; manual edits are "
        "understood, or the invalid line is named.",
    ),
    Requirement(
        "FILES-ROUND-TRIP",
        "S-AOF-13",
        "Any text in titles and bodies is read back from its file unchanged; no text in the file "
        "can create a field, a line or a section or control a terminal.",
    ),
    Requirement(
        "FILES-ARTIFACTS",
        "S-AOF-13",
        "run.json, run_heartbeat.json, run_result.json, handoff.json and handoff.md have the "
        "form of the specification; earlier attempts are kept under attempts/N.",
    ),
    Requirement(
        "FILES-PROJECTION",
        "S-AOF-13",
        "The files of tasks, runs and events are at their paths and up to date with the ledger "
        "when the projector returns, also with concurrent projectors.",
    ),
    Requirement(
        "FILES-CRASH",
        "S-AOF-13",
        "A crash between any two file operations is repaired by the next run: all files equal an "
        "undisturbed projection, with every event line once.",
    ),
    Requirement(
        "FILES-FOLDER",
        "S-AOF-13",
        "The folder of a task moves with it; files that are being written continue, files "
        "written to the old path are merged, and nothing is ever overwritten.",
    ),
    Requirement(
        "FILES-EDITS",
        "S-AOF-13",
        "An edited or moved task file is a request: applied and recorded, or undone with a note "
        "beside it and the person's text kept; a task is never in two folders.",
    ),
    Requirement(
        "FILES-COMPARE",
        "S-AOF-13",
        "Missing, changed and surplus files are found, and a rebuild restores them.",
    ),
    Requirement(
        "FILES-INBOX",
        "S-AOF-14",
        "A file in the inbox is sent once, as the agent of its folder or as the sender that it "
        "names, and ends in processed/ or, with its reason, in rejected/; only regular files are "
        "opened.",
    ),
    Requirement(
        "FILES-BENEATH",
        "Threats",
        "Links beneath the data directory are never followed, whatever an agent creates there.",
    ),
    Requirement(
        "FILES-ARCHIVE",
        "Files",
        "A whole data directory is exported and imported verbatim, verified on both sides; a "
        "damaged archive is refused and leaves nothing behind.",
    ),
    Requirement(
        "FILES-DISK",
        "Faults",
        "A full or read-only disk leaves the answer valid, with a warning that the files lag; "
        "nothing is damaged, and the next run brings them up to date.",
    ),
    # --- dialects
    Requirement(
        "JSON-STRICT",
        "S-LIMIT",
        "Any bytes give a JSON value that every reader interprets alike, or a clean error with "
        "its path: size, depth, number of values, length of keys, duplicate keys, NaN, half "
        "surrogate pairs, UTF-8 and integers are checked.",
    ),
    Requirement(
        "JSON-LOOSE",
        "S-MAIL-4",
        "The readable part of broken JSON is parsed: any text gives a value, and never an error.",
    ),
    Requirement(
        "PATH-INSIDE",
        "Threats",
        "A path from outside is relative and stays inside, or the reason for its refusal is named.",
    ),
    Requirement(
        "DIALECT-DOORS",
        "Dialects",
        "A surface sends any message and calls any operation of any dialect without naming one; "
        "alone or with concurrent callers the answers and the entries are the same.",
    ),
    Requirement(
        "DIALECT-INSTALLED",
        "Dialects",
        "A dialect of another package is found by its entry point and served like the others; one "
        "that cannot be loaded, or repeats a name, is named at the start.",
    ),
    Requirement(
        "DIALECT-NOBODYS",
        "S-AOF-1",
        "A message of no dialect gets the same explanation on every surface: invalid JSON with "
        "its position, or how messages of the nearest dialect are recognised.",
    ),
    Requirement(
        "DIALECT-RECORD",
        "Dialects",
        "A message that a dialect recognises and refuses is recorded with its sender; an "
        "unrecognised message leaves no trace.",
    ),
    Requirement(
        "DIALECT-COMPLETE",
        "Dialects",
        "A dialect has a code for every refusal and a rendering, or a deliberate omission, for "
        "every event; each of its operations has an accepted case, a unique name and a "
        "publishable shape, and refuses invalid input with a code of the dialect.",
    ),
    # --- AOF/1
    Requirement(
        "AOF-DETECT",
        "S-AOF-1",
        "A message is found bare, under payload, message or content, as JSON text, and behind "
        "the prefix AOF/1; other text and JSON is not recognised.",
    ),
    Requirement(
        "AOF-ORDER",
        "S-AOF-2",
        "Checks run in this order: size, JSON, envelope, type, taskId, task, identity, repeat, "
        "authority, state.",
    ),
    Requirement(
        "AOF-ENVELOPE",
        "AOF/1: Protocol Envelope",
        "Every field of the envelope and of the five payloads is checked, and errors are named "
        "with their path; unknown fields are kept and change no decision.",
        divergence="Every text and list has a limit, names follow a grammar, and references stay "
        "inside: the specification leaves these open (S-LIMIT, S-NAME).",
    ),
    Requirement(
        "AOF-COMPLETION",
        "S-AOF-3",
        "A report is kept with its attempt and logged immediately; its transitions come with the "
        "end of its session, or immediately where configured; the latest report counts.",
    ),
    Requirement(
        "AOF-STATUS",
        "AOF/1: Status Update Protocol",
        "An update moves the task with the first of blockers, notes and progress as its reason; "
        "without a status, or without a transition to it, it is a line of the work log.",
    ),
    Requirement(
        "AOF-HANDOFF",
        "S-AOF-7",
        "A handoff is requested once however often it is sent, accepted, or rejected into "
        "blocked; depth, parent and deadline are checked.",
    ),
    Requirement(
        "AOF-AUTHORITY",
        "S-AOF-4",
        "Completion and status come from the holder, a request from the holder of the parent or "
        "an orchestrator, an answer from the requested agent.",
    ),
    Requirement(
        "AOF-IDENTITY",
        "S-ROLE",
        "A message never acts for anyone but its authenticated sender, whatever its fields claim.",
    ),
    Requirement(
        "AOF-REPEAT",
        "S-IDEM",
        "A message sent again, wrapped or not, gets the same answer and adds nothing; a session "
        "replayed in any order changes nothing.",
    ),
    Requirement(
        "AOF-REASONS",
        "AOF/1: Error Handling",
        "Every row of the error and conflict tables is answered with its reason and logged "
        "with its event.",
    ),
    Requirement(
        "AOF-EVENTS",
        "S-AOF-9",
        "Event lines have increasing ids, the names of the specification, actor, task and "
        "payload; one task.transitioned for each real transition, with its real from.",
    ),
    Requirement(
        "AOF-WARNINGS",
        "S-AOF-10",
        "A summary or a named handoff that is missing from the task's folder is a warning only; "
        "one that points outside is refused.",
    ),
    Requirement(
        "AOF-TOOLS",
        "S-AOF-11",
        "aof_task_complete and aof_task_update do what the messages do.",
    ),
    Requirement(
        "AOF-SESSION-END",
        "S-AOF-3",
        "The end of a session applies the reports of its attempts and touches no other; without "
        "a name only an orchestrator, coordinator or person may end all that have reported.",
    ),
    Requirement(
        "AOF-TIMES",
        "S-AOF-12",
        "sentAt and dueBy are RFC 3339 with Z or an offset; projectId is optional and kept.",
    ),
    Requirement(
        "AOF-EXAMPLES",
        "AOF/1: Examples",
        "The examples of the specification have, as messages, the effects that the specification "
        "describes.",
    ),
    Requirement(
        "AOF-FUZZ",
        "Faults",
        "Any bytes, and any mutation of a message, are answered or ignored: never an exception.",
    ),
    Requirement(
        "AOF-GUIDE",
        "Project",
        "Every message in the AOF guide passes lint --strict, every code that a message can get "
        "is explained there, and its shell commands run unchanged.",
    ),
    Requirement(
        "AOF-LINT",
        "Command line",
        "lint reports for any JSON value whether it is AOF/1, its type, and its problems.",
    ),
    # --- HTTP
    Requirement(
        "HTTP-HOST",
        "HTTP",
        "A request for a Host that is not a name of the hub, port included, gets 421 on every "
        "route.",
    ),
    Requirement(
        "HTTP-ORIGIN",
        "HTTP",
        "A request from a web page of another origin gets 403 on every route.",
    ),
    Requirement(
        "HTTP-IDENTITY",
        "HTTP",
        "Every route but health and the API description needs a token; a request may do what the "
        "bearer of its token may.",
    ),
    Requirement(
        "HTTP-METHODS",
        "HTTP",
        "GET changes nothing; another method and an unknown address are problems that name the "
        "allowed ones.",
    ),
    Requirement(
        "HTTP-RATE",
        "HTTP",
        "Each caller has a rate limit, which affects no other caller; 429 says when to retry.",
    ),
    Requirement(
        "HTTP-EXPOSURE",
        "HTTP",
        "A listening address that others can reach is refused without TLS or a declared proxy.",
    ),
    Requirement(
        "HTTP-PROBLEMS",
        "HTTP",
        "Every error is a problem document with a stable code, and every code has its status.",
    ),
    Requirement(
        "HTTP-LIMITS",
        "HTTP",
        "A body that is too long, too slow, of another type or no JSON is refused before "
        "anything is done; slow and half-open connections are closed.",
    ),
    Requirement(
        "HTTP-ACCESS",
        "HTTP",
        "Each route refuses each credential that is none, or that does not suffice: nothing is "
        "read, nothing of others is changed, and no answer is an error of the hub.",
    ),
    Requirement(
        "HTTP-ABUSES",
        "HTTP",
        "No field that names the speaker gives anybody another name: each wrong value in each of "
        "them, in each operation and message, is refused, and changes nothing.",
    ),
    Requirement(
        "HTTP-BODIES",
        "HTTP",
        "Each operation has its largest body; the bodies in flight of a caller and of all have a "
        "budget, charged before they are read: beyond it 413 or 503, and the memory comes back. "
        "A slow one gives way to others.",
    ),
    Requirement(
        "HTTP-TURNS",
        "HTTP",
        "The lines of batches, whatever they are, are decoded one batch at a time, and other "
        "requests get the event loop for as long as that took. Connections that wait are accepted "
        "many at a time.",
    ),
    Requirement(
        "HTTP-FRAMING",
        "HTTP",
        "A body is framed by a Content-Length or by `chunked` alone; anything else, which a proxy "
        "might read in another way, is refused, and the connection closed.",
    ),
    Requirement(
        "HTTP-OFFERS",
        "HTTP",
        "A request that offers a protocol upgrade is answered as if it did not, body and all.",
    ),
    Requirement(
        "HTTP-TAKING",
        "HTTP",
        "A caller that reads none of its answer or its stream is disconnected, and a slow one gets "
        "all of it.",
    ),
    Requirement(
        "HTTP-MESSAGES",
        "HTTP",
        "A message of any dialect is accepted and answered in its dialect; a batch has one "
        "answer per line, in order, and a bad line affects no other.",
    ),
    Requirement(
        "HTTP-OPERATIONS",
        "HTTP",
        "Every operation of every dialect has an address, and answers in its dialect's own form.",
    ),
    Requirement(
        "HTTP-DO",
        "HTTP",
        "Only the owner of the data directory runs commands on behalf of any name.",
    ),
    Requirement(
        "HTTP-KEYS",
        "HTTP",
        "A repeat under its Idempotency-Key changes nothing and gets the first answer.",
    ),
    Requirement(
        "HTTP-RESOURCES",
        "HTTP",
        "Tasks, runs, events and agents can be read in pages and by filters; tasks can be created, "
        " claimed, renewed, released, moved, noted, linked and reported on.",
    ),
    Requirement(
        "HTTP-WAIT",
        "HTTP",
        "Long polls wait for events and for work; a poll ends when there is a result, and a "
        "disconnected caller gets none.",
    ),
    Requirement(
        "HTTP-WORK",
        "HTTP",
        "Exactly one of many callers that wait for one task gets it.",
    ),
    Requirement(
        "HTTP-STREAM",
        "HTTP",
        "The stream delivers every selected entry once, in order, from any position on.",
    ),
    Requirement(
        "HTTP-STREAM-SLOW",
        "HTTP",
        "Readers that stop reading cost a bounded amount of memory and delay no other; one that "
        "is too far behind gets the range of positions that it misses.",
    ),
    Requirement(
        "HTTP-STREAM-LEVEL",
        "HTTP",
        "A reader that is up to date is written to without its coroutine, and gets everything "
        "once and in order, also when it falls behind and catches up.",
    ),
    Requirement(
        "HTTP-STAYS",
        "HTTP",
        "A caller has a limited share of streams, long polls and MCP sessions; a stream ends "
        "with the token that opened it.",
    ),
    Requirement(
        "HTTP-ROOM",
        "HTTP",
        "The hub accepts as many connections as it may have open files, and answers above that "
        "with an error.",
    ),
    Requirement(
        "HTTP-PROXY",
        "HTTP",
        "A connection behind a declared proxy comes from the proxy or from this machine, or is "
        "refused.",
    ),
    Requirement(
        "HTTP-OPENAPI",
        "HTTP",
        "/openapi.json describes every route, is valid OpenAPI 3.1, and holds under generated "
        "requests; /docs shows it without external resources.",
    ),
    Requirement(
        "HTTP-SESSION",
        "HTTP",
        "A one-time link or a token is exchanged for a cookie: HttpOnly, SameSite=Strict, sealed, "
        "for twelve hours, and for no longer than the token; a link works once, for a minute.",
    ),
    Requirement(
        "HTTP-SESSION-ORIGIN",
        "HTTP",
        "A cookie is good for pages of the hub alone: a request of another origin is refused, and "
        "so is one that changes something without the header of the page.",
    ),
    Requirement(
        "HTTP-VERIFY",
        "HTTP",
        "POST /v1/ledger/verify checks every hash, version and position for people and "
        "orchestrators, and names the position of what was changed.",
    ),
    Requirement(
        "HTTP-PROOF",
        "HTTP",
        "GET /v1/ledger/checkpoints lists what was signed, and GET /v1/ledger/proof proves an "
        "entry, for people and orchestrators, by a path that anybody can follow.",
    ),
    Requirement(
        "HTTP-TOKENS",
        "HTTP",
        "Whoever may manage the credentials of an agent lists its tokens, gives it one more, which "
        "is shown once, and revokes one; nobody else does.",
    ),
    Requirement(
        "WEB-FILES",
        "Dashboard",
        "The dashboard is served without a token and without a path for scripts, styles or "
        "requests from elsewhere; where it is not built, the page says how to build it.",
    ),
    Requirement(
        "WEB-BUILD",
        "Dashboard",
        "The dashboard is built where its sources have changed, and an install goes on where it "
        "cannot be built.",
    ),
    Requirement(
        "WEB-PAGES",
        "Dashboard",
        "Every page shows live data of the hub, and its buttons do what they say; a refusal is "
        "told in words where it was caused.",
    ),
    Requirement(
        "WEB-CONNECTION",
        "Dashboard",
        "A lost connection, a restart of the hub, a gap and the end of a session are told, and the "
        "page recovers without a reload.",
    ),
    Requirement(
        "WEB-SAFE-TEXT",
        "Dashboard",
        "No text of an agent is ever markup, script, style or request: it is shown as it is.",
    ),
    Requirement(
        "WEB-ACCESS",
        "Dashboard",
        "Every page has no serious finding of axe in light and dark, can be used by the keyboard, "
        "and offers what the role of the reader allows.",
    ),
    Requirement(
        "TOP-PAGES",
        "Terminal",
        "`dragoman top` shows what needs a person, who works, the board, the ledger and the story "
        "of a task, live, at 80×24 and more.",
    ),
    Requirement(
        "TOP-ACTIONS",
        "Terminal",
        "What `status` suggests for a need is a key of `dragoman top`, confirmed before it is "
        "done; a refusal is told in words, and a role that may not act is offered nothing.",
    ),
    Requirement(
        "TOP-SAFE-TEXT",
        "Terminal",
        "No text of an agent is markup or steers the terminal: it is shown as it is.",
    ),
    Requirement(
        "TOP-CONNECTION",
        "Terminal",
        "`dragoman top` tells a lost connection, a restart and missing entries, and recovers; a "
        "hub that refuses it at the start, or does not answer, ends it with the reason.",
    ),
    Requirement(
        "TOP-COMMAND",
        "Terminal",
        "`dragoman top` works through the hub here or elsewhere, and says in a sentence what it "
        "lacks: the extra, a terminal, a hub.",
    ),
    Requirement(
        "HTTP-HEALTH",
        "HTTP",
        "/healthz shows that the process is alive; /readyz reports the state of store, ledger "
        "and services; /metrics has the Prometheus format.",
    ),
    Requirement(
        "HTTP-STOP",
        "HTTP",
        "A stopping hub ends all waits, and answers the requests in progress.",
    ),
    Requirement(
        "ENGINE-HINTS",
        "Engine",
        "A listener is notified of every commit until it unsubscribes.",
    ),
    Requirement(
        "ENGINE-TAIL",
        "Engine",
        "A follower of the ledger gets the commits of this process from memory, exactly as "
        "stored, and reads everything else from the store.",
    ),
    Requirement(
        "ENGINE-SHOWN",
        "Engine",
        "Tasks and entries have one schema on every surface.",
    ),
    # --- running agents
    Requirement(
        "RUN-PROGRAM",
        "Agents",
        "An agent may be a program: started without a shell for each attempt, in the folder of "
        "its task, with its prompt on standard input or in a file, and with a token of that "
        "attempt.",
    ),
    Requirement(
        "RUN-ENVIRONMENT",
        "Agents",
        "A program gets a short list of the hub's variables and those that are named in its "
        "section, and no others.",
    ),
    Requirement(
        "RUN-SEPARATED",
        "Agents",
        "A program that is separated from the hub reaches the folders of its task, its inbox and "
        "the hub's address, and neither the hub's secrets, settings, store and environment nor "
        "the folders of other agents. A separation that cannot be kept is refused before the "
        "start; `up` and `doctor` say what separates agents.",
    ),
    Requirement(
        "RUN-USER",
        "Agents",
        "A program runs as the user that its section names, if the hub may switch users, and ends "
        "and is recovered like any other.",
    ),
    Requirement(
        "RUN-SANDBOX",
        "Agents",
        "A program runs in a sandbox of bubblewrap, with network or without: it sees the system's "
        "programs, what its section names, and its own folders and worktree at their usual paths; "
        "it gets its signals, ends with the hub, and what it leaves running ends with it.",
    ),
    Requirement(
        "RUN-DESK",
        "Agents",
        "An attempt has the folder of its task, its prompt and a log of its own; the log of an "
        "earlier attempt is kept, and no link leads out of the data directory.",
    ),
    Requirement(
        "RUN-PROMPT",
        "Agents",
        "The prompt has the task, its criteria and constraints, and an example of a report that "
        "passes lint.",
    ),
    Requirement(
        "RUN-MESSAGES",
        "Agents",
        "A line of program output that begins with AOF/1 is a message of that agent, bound to "
        "its attempt; a refusal is written to the log of the run.",
    ),
    Requirement(
        "RUN-OUTPUT",
        "Agents",
        "Output is kept line by line up to a limit, harmless for terminals and without the "
        "token; any amount of it neither blocks the program nor fills the disk, at any chunk "
        "borders.",
    ),
    Requirement(
        "RUN-BEATS",
        "Agents",
        "The lease of an agent is renewed while its program runs.",
    ),
    Requirement(
        "RUN-SESSION-END",
        "Agents",
        "The exit of a program ends its session: its report takes effect.",
    ),
    Requirement(
        "RUN-UNREPORTED",
        "Agents",
        "A program that fails without a report fails its attempt immediately; one that exits "
        "with 0 without a report moves its task to review; both are recorded as reports of the "
        "hub, in run.json and /v1/runs, and no run_result.json attributes them to the agent.",
    ),
    Requirement(
        "RUN-STOP",
        "Agents",
        "An agent that loses its lease or takes too long is stopped with its whole session: "
        "asked to terminate, then killed; processes that a program leaves in its session end with "
        "it.",
    ),
    Requirement(
        "RUN-NOT-STARTED",
        "Agents",
        "An agent that cannot be started is retried after a growing backoff; its task goes back "
        "to the queue without a failure.",
    ),
    Requirement(
        "RUN-WORKTREE",
        "Agents",
        "A task may get its own git worktree and branch, which later attempts reuse; hooks of "
        "the repository are not run.",
    ),
    Requirement(
        "RUN-REMOTE",
        "Agents",
        "An agent may be a URL: its assignment is posted to an allowed address under a stable "
        "id, its own messages renew its lease, and its report ends its session.",
    ),
    Requirement(
        "RUN-LEFTOVERS",
        "Agents",
        "Processes left by a killed hub are ended by their recorded pid and start time or by "
        "their session, never by a name; no other process is ended.",
    ),
    Requirement(
        "RUN-RECIPES",
        "Agents",
        "The recipes of the docs are settings that load; the one of the plain script runs "
        "unchanged.",
    ),
    Requirement(
        "DISPATCH-ORDER",
        "Agents",
        "The ready task of the highest priority is dispatched first when not all can run, "
        "whichever agent it is for.",
    ),
    Requirement(
        "DISPATCH-FAIR",
        "Agents",
        "Among agents that may all have a task, the one with fewer recent failures gets it, then "
        "the one that has waited longest; an agent that failed at a task gets it again only when "
        "no other may have it.",
    ),
    Requirement(
        "DISPATCH-CONCURRENCY",
        "Agents",
        "The dispatcher runs no more agents at the same time than allowed, each and in total; "
        "and it dispatches no task while any process of an earlier attempt on it is running.",
    ),
    Requirement(
        "DISPATCH-MATCH",
        "Agents",
        "A task goes to the agent that it is assigned to, to one that has the capability that it "
        "is assigned to, or, unassigned, to one that takes any.",
    ),
    Requirement(
        "DISPATCH-SHARED",
        "Agents",
        "A change of a task or its agent by another hub of the same store ends the agent that "
        "works on it here, as a local change would.",
    ),
    Requirement(
        "DISPATCH-BUDGET",
        "Agents",
        "An agent that has used up its daily attempts, minutes, output or cost is paused until "
        "the next day or until it is resumed; the pause and the question are recorded once, reach "
        "those who can resume it, and survive a restart.",
    ),
    Requirement(
        "AGENT-PAUSE",
        "Agents",
        "The hub, people and orchestrators can pause an agent; people and orchestrators resume "
        "it. It gets no more work meanwhile, and the reason is visible to all.",
    ),
    Requirement(
        "RUN-LEAVE",
        "Agents",
        "A program whose report has taken effect may run on for a grace period, and is ended then.",
    ),
    Requirement(
        "DISPATCH-STOP",
        "Agents",
        "At a stop agents may finish within a grace period; then unfinished work goes back to "
        "its queue without a failure.",
    ),
    Requirement(
        "DISPATCH-RESTART",
        "Agents",
        "Every attempt is recovered after a kill and none is duplicated: a report counts, a lost "
        "program has failed its attempt, and a claim that was not started goes back to its queue.",
    ),
    Requirement(
        "DISPATCH-STORE",
        "Faults",
        "The dispatcher reports an unavailable store and retries.",
    ),
    Requirement(
        "DISPATCH-CLOCK",
        "Faults",
        "A clock that is set back keeps leases alive; one that jumps forward ends them, and with "
        "them the agents, before another agent gets the task.",
    ),
    Requirement(
        "DISPATCH-IDLE",
        "Agents",
        "The dispatcher without agents settles the attempts of an earlier hub, and does no more.",
    ),
    Requirement(
        "SYSTEM-PROCESS",
        "System",
        "A long-running program has its own session, both of its output streams are read, and it "
        "is ended as a whole.",
    ),
    # --- the hub
    Requirement(
        "HUB-UP",
        "Hub",
        "`dragoman up` starts everything with one command, prints its address, its data "
        "directory and the next step, and drains at a signal.",
    ),
    Requirement(
        "HUB-CLI",
        "Hub",
        "Commands go through a running hub; otherwise they open the store themselves. The hub "
        "runs those that neither follow nor need its caller's terminal: they load little, and "
        "print the same as without a hub.",
    ),
    Requirement(
        "HUB-ELSEWHERE",
        "Hub",
        "With DRAGOMAN_URL and DRAGOMAN_TOKEN, or --url, commands run in a hub elsewhere as the "
        "bearer of the token: with its powers, on no file and no variable of the hub's machine. "
        "Those that follow do, those that need the disk say so.",
    ),
    Requirement(
        "HUB-RELOAD",
        "Hub",
        "`dragoman reload` and SIGHUP take over added, changed and removed agents; what runs goes "
        "on. Settings with a fault are refused with the line, and change nothing.",
    ),
    Requirement(
        "STATUS-EVERYBODY",
        "Hub",
        "`agent list` and GET /v1/agents have everybody who is registered or has spoken, and all "
        "that each holds; who is not registered is marked.",
    ),
    Requirement(
        "TASK-MERGE",
        "Hub",
        "`task diff` shows what the branch and the worktree of a task have changed; `task merge` "
        "merges it, or says why not and changes nothing, and records the commit.",
    ),
    Requirement(
        "HUB-DUTIES",
        "Hub",
        "Services run in the background at their interval and at hints; one that fails or hangs "
        "delays no other, and is reported.",
    ),
    Requirement(
        "HUB-INBOX",
        "Hub",
        "A message in the inbox is read soon, also after a round with many.",
    ),
    # --- the SDK
    Requirement(
        "SDK-WORK",
        "SDK",
        "An agent program gets its tasks one by one, waits for them without polling, reports "
        "progress, ends each in every possible way, and delegates parts of it to other agents.",
    ),
    Requirement(
        "SDK-OWNER",
        "SDK",
        "A caller that claims in the name of an agent gets a token for that attempt, and "
        "continues as the agent: on a local machine no other credential is needed.",
    ),
    Requirement(
        "SDK-LOGIN",
        "SDK",
        "A refused login raises one exception, at the first request and at any later one: it "
        "names the token by where it was found, never its value, and says what to do.",
    ),
    Requirement(
        "SDK-LEASE-TIME",
        "SDK",
        "Without a duration from the caller a lease lasts as the hub's settings say, and its "
        "heartbeats come often enough for what the hub has granted.",
    ),
    Requirement(
        "SDK-HEARTBEAT",
        "S-RUN",
        "A background heartbeat keeps the lease for as long as the work takes.",
    ),
    Requirement(
        "SDK-LEASE-LOST",
        "S-RUN",
        "Loss of the lease, or a hub that is unreachable for longer than it lasts, cancels the "
        "work on that task only, and its block raises LeaseLost.",
    ),
    Requirement(
        "SDK-LEFT",
        "SDK",
        "Work that is left by an exception or without a report has failed with a reason; a "
        "worker that is stopped releases its task; the first error is the one that is raised.",
    ),
    Requirement(
        "SDK-CRASH-SAFE",
        "S-IDEM",
        "The SDK resends a write under its original key after a lost connection, an overload or"
        " a restart of the hub, until a timeout; it takes effect once. A worker that is killed "
        "is followed by another.",
    ),
    Requirement(
        "SDK-EVENTS",
        "SDK",
        "Events are followed page by page, and resumed where a connection broke off: none is "
        "missed, none is delivered twice.",
    ),
    Requirement(
        "SDK-CALLS",
        "SDK",
        "Tasks, messages of any dialect, batches of them and operations by name are available as "
        "the hub has them, with its refusals.",
    ),
    Requirement(
        "SDK-SYNC",
        "SDK",
        "The synchronous API can do all that the asynchronous one can, and leaves no thread "
        "behind.",
    ),
    Requirement(
        "SDK-ASSIGNED",
        "SDK",
        "A program started by a hub gets the task that it was started for, with its lease "
        "renewed and watched.",
    ),
    Requirement(
        "SDK-ADDRESS",
        "SDK",
        "The hub and the token come from the caller, else the environment, else the data "
        "directory; the token of a data directory is sent to its own hub only.",
    ),
    Requirement(
        "SDK-GUIDE",
        "Project",
        "The programs of the SDK guide run unchanged, with the documented effect.",
    ),
    # --- test hub
    Requirement(
        "TESTING-HUB",
        "Testing",
        "dragoman.testing provides a hub in memory or on a temporary SQLite, with a manual clock.",
    ),
    Requirement(
        "TESTING-EXAMPLE",
        "Testing",
        "The worked example of the docs is a passing test of the crash and recovery of an agent.",
    ),
    # --- letters on the surfaces
    Requirement(
        "MAIL-FILES",
        "S-MAIL",
        "Each letter is a file mail/<thread>/NNNNNNNN-<TYPE>.md, by its position, rewritten "
        "when it is read, acked or answered; the cost does not grow with the thread.",
    ),
    Requirement(
        "MAIL-HOSTILE",
        "S-MAIL",
        "Terminal codes, bidi characters, HTML and front matter in a letter have no effect: not "
        "in its file, not on a terminal, not through any surface; a letter that is too long is "
        "refused.",
    ),
    Requirement(
        "MAIL-HTTP",
        "S-MAIL",
        "A box can be awaited over HTTP without polling and continues from a cursor; a letter "
        "sent again under its key is one letter; the stream of an agent has the letters to it.",
    ),
    Requirement(
        "CLI-MAIL",
        "S-MAIL",
        "mail send, inbox, show, thread, ack, read, search and summarize work for people and as "
        "JSON, with a filter for each of S-MAIL-6; inbox --watch shows letters as they arrive.",
    ),
    Requirement(
        "MAIL-MCP",
        "S-MAIL",
        "Tools send, show, ack and find letters; inbox has the unread ones, send accepts a "
        "letter as any message, and a thread is a resource.",
    ),
    # --- waves and reservations
    Requirement(
        "WAVE-START",
        "S-MAIL-10",
        "A wave is started by orchestrators, coordinators and people: unknown beads are adopted "
        "into backlog, ready ones are moved back to it, and running or ended ones count with "
        "their status.",
    ),
    Requirement(
        "WAVE-PARALLEL",
        "S-MAIL-10",
        "A wave releases its beads in order, and never so that more of them than its limit are "
        "ready or in progress.",
    ),
    Requirement(
        "WAVE-FILES",
        "S-MAIL-10",
        "Two beads that need the same file, of one wave or of two, are released one after the "
        "other, and neither while another holder has reserved it.",
    ),
    Requirement(
        "WAVE-BOUNDED",
        "S-MAIL-10",
        "Files of beads are compared only while a slot is free, and their number is limited.",
    ),
    Requirement(
        "WAVE-RETRIES",
        "S-MAIL-10",
        "A bead that failed more often than its wave allows for a type of failure is blocked, with "
        "the reason.",
    ),
    Requirement(
        "WAVE-COMPLETE",
        "S-MAIL-10",
        "A wave is complete when each bead is in review, done, blocked, deadletter or cancelled; "
        "that is recorded once, with counts, and sent by letter to the actor that started it.",
    ),
    Requirement(
        "WAVE-RECOVERY",
        "S-MAIL-10",
        "A wave continues from the ledger, wherever its orchestrator or the hub died.",
    ),
    Requirement(
        "WAVE-STATUS",
        "S-MAIL-10",
        "The status of a wave lists each bead and what it waits for: a slot, a file and its "
        "holder, another task, its backoff, or an agent that claims it.",
    ),
    Requirement(
        "RESERVE-TAKE",
        "S-MAIL-10",
        "Files are reserved by path or glob, for a time of at most a day; a conflict is refused "
        "as reserved and names the holder, the pattern and the end.",
    ),
    Requirement(
        "RESERVE-END",
        "S-MAIL-10",
        "A reservation ends when it is released and when it expires, and that of a bead when the "
        "bead has ended; a dead holder needs no manual cleanup.",
    ),
    Requirement(
        "RESERVE-GLOBS",
        "S-MAIL-10",
        "Two patterns conflict whenever some path matches both of them; a glob has all paths "
        "between its beginning and its end, and a plain path all that is below it, unless its "
        "name has an extension.",
    ),
    Requirement(
        "GUARD-COMMIT",
        "S-MAIL-10",
        "A git hook refuses a commit of files that another holder has reserved, names them, and "
        "allows the commit where there is no data directory; a foreign hook is never overwritten.",
    ),
    Requirement(
        "CLI-WAVE",
        "S-MAIL-10",
        "wave start, status, watch and list, and reserve take, release and list, work for people "
        "and as JSON; watch ends with the closing report.",
    ),
    # --- project
    Requirement(
        "PROJECT-IMPORTS",
        "Project",
        "Imports follow the layers downwards only, every module is listed in a layer, the pure "
        "layers import nothing that does IO, and database drivers stay in the store.",
    ),
    Requirement(
        "PROJECT-GATES",
        "Project",
        "Every gate runs even when an earlier one failed, and one failure fails the run.",
    ),
    Requirement(
        "PROJECT-REQUIREMENTS",
        "Project",
        "Every requirement has a test, and every test names a requirement.",
    ),
    Requirement(
        "PROJECT-SERVERS",
        "Project",
        "A test gets an empty schema of a real PostgreSQL, and an abandoned server is removed.",
    ),
    Requirement(
        "PROJECT-DOCS",
        "Project",
        "The commands and links of README, CONTRIBUTING and the docs work as written.",
    ),
    # --- Agent Mail: letters
    Requirement(
        "MAIL-POST",
        "S-MAIL-7",
        "A letter is in the box of each recipient, known or not, in its thread; it is read per "
        "recipient and acked once by each; limits and unauthorized callers are refused with a "
        "sentence.",
    ),
    Requirement(
        "MAIL-PAGES",
        "S-MAIL-7",
        "Boxes, threads, summaries and search results come in pages with limits on letters and "
        "bytes; a page says whether there is more, also when nothing in it fits.",
    ),
    Requirement(
        "MAIL-ACK",
        "S-MAIL-7",
        "A missing ack is escalated once after its deadline, recorded with its task, to "
        "orchestrators; answers ack the letters that they answer.",
    ),
    Requirement(
        "MAIL-ADDRESS",
        "S-MAIL-7",
        "A letter goes to names, groups and roles; without a recipient to the default recipients "
        "of its type; one to an unknown name waits, is visible, and is delivered when that name "
        "is registered.",
    ),
    Requirement(
        "MAIL-REPEAT",
        "S-IDEM",
        "The same letter again, recognised by its id or its time, gets the same answer and adds "
        "nothing; one with neither is a new letter.",
    ),
    Requirement(
        "MAIL-IDENTITY",
        "S-ROLE",
        "A letter is from its authenticated caller; any other `from` is refused and recorded.",
    ),
    Requirement(
        "MAIL-ADOPT",
        "S-ADOPT",
        "The first message of a worker about an unknown bead creates the task and claims it for "
        "the worker, each step recorded; answers never do, nor does any message where adopt = "
        "false.",
    ),
    Requirement(
        "MAIL-MEANING",
        "S-MAIL-9",
        "Each type of letter has the effect on its task that the table gives: claim, log and "
        "renew, report, retry, block, delegate.",
    ),
    Requirement(
        "MAIL-REFUSED-EFFECT",
        "S-MAIL-9",
        "A letter whose effect is refused is delivered nevertheless; the refusal is recorded and "
        "returned to its sender, as are letters without effect and letters that could not be "
        "parsed.",
    ),
    Requirement(
        "MAIL-HELP",
        "S-MAIL-9",
        "A request for help changes no status, goes to the helper and to all orchestrators, is "
        "closed only by an answer in its thread, and escalates once when none comes.",
    ),
    Requirement(
        "QUESTION-ASK",
        "S-TASK",
        "An agent asks about the task that it works on, and goes on under its lease; the question "
        "stays open after its attempt, the same one again is that one, and their number is "
        "limited.",
    ),
    Requirement(
        "QUESTION-ANSWER",
        "S-TASK",
        "People and orchestrators answer, never the one who asked or a stranger; an answer is "
        "kept with the task and sent as a HELP_RESPONSE; the same answer again is a repeat, "
        "another one is refused, and so is one to a question that was withdrawn.",
    ),
    Requirement(
        "QUESTION-WAIT",
        "S-TASK",
        "Whoever waits for the answer to a question gets it at once, wherever it was answered, and "
        "is told when none will come: the question was withdrawn, or its task has gone on.",
    ),
    Requirement(
        "OWNER",
        "S-ROLE",
        "The person at the keyboard is a person of the hub with one name: registered by the first "
        "start of a hub, with an inbox, and gets what is addressed to nobody else.",
    ),
    Requirement(
        "NOTIFY-ATTENTION",
        "S-OUT",
        "What needs a person is told once with the command that deals with it: at the hub's "
        "terminal, in the owner's inbox, and to the targets of the settings; never what a person "
        "has done, and never a flood.",
    ),
    Requirement(
        "HUB-TERMINAL",
        "docs/hub.md",
        "A running hub prints a line about the start and the end of each attempt, about questions "
        "and pauses; a burst is cut, and a setting quiets it.",
    ),
    Requirement(
        "DAY-ONE",
        "docs/first-ten-minutes.md",
        "With twenty agents of all kinds, some of which are killed, hang, fall silent, ask, spend "
        "too much or leak, a person who runs what the status suggests brings all work to its end.",
    ),
    Requirement(
        "MAIL-UNKNOWN-NAME",
        "S-MAIL-7",
        "Whoever writes to a name that nobody has is told so; the letter waits for it.",
    ),
    Requirement(
        "BRIEFING",
        "S-TASK",
        "Whatever was answered, the reasons of reviews and what the last attempt left reach the "
        "next one: in its prompt, in what a claim returns at every surface, in the task's file, "
        "and in the `meta` of a TaskRequest, everywhere the same.",
    ),
    Requirement(
        "QUESTION-BLOCKED",
        "S-TASK",
        "A blocked task has an open question, its obstacle, and becomes ready by the last answer; "
        "leaving the status ends that question, and the end of the task all of them.",
    ),
    Requirement(
        "QUESTION-HELP",
        "S-MAIL-9",
        "A request for help is an open question of its task: answered there it is answered in its "
        "thread, and the other way round; its recipients may answer it, too.",
    ),
    Requirement(
        "QUESTION-WITHDRAW",
        "S-TASK",
        "Whoever asked, a person or an orchestrator withdraws a question that needs no answer any "
        "more; the recipients of a letter that asked it are told.",
    ),
    Requirement(
        "TASK-SEND-BACK",
        "S-TASK",
        "Work in review is sent back with a reason: the task is ready for the same agent, and the "
        "reasons of its reviews are kept with it.",
    ),
    Requirement(
        "MAIL-CHECKPOINT",
        "S-MAIL-9",
        "A checkpoint releases the task without an outcome; its successor gets the commit and "
        "the next steps, in its prompt, in its worktree and wherever the task is shown.",
    ),
    Requirement(
        "MAIL-SPAWN",
        "S-MAIL-9",
        "A request for a worker, by orchestrators only, puts the task into the queue, starting "
        "at its checkpoint, and is answered with the session or with the reason for its failure.",
    ),
    Requirement(
        "ENGINE-EFFECT",
        "Engine",
        "The effect of a request is all or none by itself: a refused effect leaves the request "
        "accepted, is recorded, and is returned again to a repeat.",
    ),
    Requirement(
        "MAIL-TYPE",
        "S-MAIL-1",
        "The type of a letter is the whole word in its position, in any case, else the first "
        "whole word in capitals; anything else is UNKNOWN.",
        divergence="The parser of the specification takes any substring, so that ABANDONED was "
        "DONE.",
    ),
    Requirement(
        "MAIL-ECHO",
        "S-MAIL-1",
        "A reply that only repeats the type of the letter that it replies to is a plain letter "
        "everywhere, and its sender is notified.",
    ),
    Requirement(
        "MAIL-BEAD",
        "S-MAIL-2",
        "The bead is the one that the body names, else the one in the subject's brackets or "
        "before its colon; a disagreement is reported.",
    ),
    Requirement(
        "MAIL-FIELDS",
        "S-MAIL-3",
        "Every field of every type is parsed, from labelled lines, lists and sections, whatever "
        "the case, the bullets, the line ends and the code around them.",
    ),
    Requirement(
        "MAIL-STRICT",
        "S-MAIL-4",
        "Strict mode refuses every missing or invalid field with its name and line; lenient mode "
        "accepts everything and lists the unparsed parts.",
    ),
    Requirement(
        "MAIL-COMPOSE",
        "S-MAIL-5",
        "Every type can be composed, the result passes strict mode, and parsing it gives the "
        "same fields back, whatever text they contain.",
    ),
    Requirement(
        "MAIL-FILTERS",
        "S-MAIL-6",
        "Letters are filtered by type, bead, thread and sender, by completion, success with or "
        "without all checks, missing ack and unread.",
    ),
    Requirement(
        "MAIL-ACK-DEFAULT",
        "S-MAIL-7",
        "A letter that does not say if it wants an ack wants one if its type does.",
    ),
    Requirement(
        "MAIL-THREAD",
        "S-MAIL-8",
        "The thread of a bead has all letters about it, in their order, whatever thread their "
        "senders chose.",
    ),
    Requirement(
        "MAIL-SUMMARY",
        "S-MAIL-8",
        "The summary of a thread is made from its letters alone: counts, last state, open "
        "questions, open acks, files, commits.",
    ),
    Requirement(
        "MAIL-ROWS",
        "S-MAIL-11",
        "Rows of MCP Agent Mail servers are read like the hub's own.",
    ),
    Requirement(
        "MAIL-FUZZ",
        "S-MAIL-4",
        "The lenient parser raises on no input, and its work grows linearly with the input.",
    ),
    Requirement(
        "MAIL-LIBRARY",
        "S-MAIL-5",
        "The page of the library shows the example of the specification in Python, and it runs.",
    ),
    # --- handoffs: decisions and state
    Requirement(
        "ACP-STATES",
        "ACP §2",
        "Every pair of states of a handoff is a transition of the table or is refused as "
        "invalid_transition, which names the legal actions; every transition is an entry.",
        divergence="accepted → rejected is an addition: a recipient may change its mind before it "
        "begins (S-ACP-4).",
    ),
    Requirement(
        "ACP-CONTEXT",
        "ACP §2.3",
        "A package is offered only with a summary, a next step and at least one success criterion; "
        "the id of a handoff is used once.",
    ),
    Requirement(
        "ACP-PACKAGE-HASH",
        "S-ACP-2",
        "The package hash is that of the canonical JSON of all but the hash; a different stated "
        "hash is hash_mismatch; the package never changes afterwards.",
    ),
    Requirement(
        "ACP-ONE-ACTIVE",
        "S-ACP-6",
        "A task has at most one active handoff; a second is refused as ownership_conflict of the "
        "kind active_handoff, and one by a caller other than the owner of the kind not_owner.",
    ),
    Requirement(
        "ACP-RACE",
        "S-ACP-6",
        "Exactly one of many concurrent handoffs of one task wins, on every store; concurrent "
        "accept and reject are each answered by the state that they find, and the rejection "
        "stands.",
    ),
    Requirement(
        "ACP-TABLE",
        "ACP §3.1",
        "The table handoffs and its index idx_handoffs_task_active exist with their names and "
        "columns, follow the ledger, are checked by verify, and decide a race.",
        divergence="its default time is RFC 3339 with Z: datetime('now','utc') is wrong "
        "off UTC (S-ACP-12).",
    ),
    Requirement(
        "ACP-CHAIN",
        "S-ACP-5",
        "The chain lists the owners in order; an agent in it can get the work again only by a "
        "rejection, which pops the chain.",
    ),
    Requirement(
        "ACP-OWNER",
        "S-OWN",
        "A task stays its owner's until the handoff is activated; then a new attempt of the "
        "recipient begins and the sender's token is invalid. Meanwhile no other agent can claim "
        "it.",
    ),
    Requirement(
        "ACP-FOLLOWS-TASK",
        "S-OWN",
        "Changes of a task end or complete its handoff as S-OWN says; the coordinator is "
        "notified of a recipient whose lease expired at once, as lease_lost.",
    ),
    Requirement(
        "ACP-WHOSE-WORD",
        "S-ACP-7",
        "A handoff that a report or a checkpoint completes, in whatever dialect, is completed by "
        "its recipient, with the recipient's text, also where another actor ended the session.",
    ),
    Requirement(
        "ACP-DECIDES-GATE",
        "S-ACP-3",
        "Accept goes through validating; a failed check rejects as the system with the first "
        "reason, an inconclusive check leaves it validating, and another package is "
        "hash_mismatch.",
    ),
    Requirement(
        "ACP-APPROVAL",
        "S-ACP-9",
        "A package that needs a person is accepted only after a person other than its sender has "
        "approved this exact hash; a denial by a person rejects it as policy_violation.",
    ),
    Requirement(
        "ACP-REJECT",
        "S-ACP-4",
        "A rejection has a reason, a detail and an optional fix, is sent to the sender as "
        "system.error, and from activated re-opens the task; a sender withdraws before that.",
    ),
    Requirement(
        "ACP-CALLERS",
        "S-ACP-7",
        "Each action is for its own callers, and not_authorized for all others.",
    ),
    Requirement(
        "ACP-REDELEGATE",
        "S-ACP-15",
        "A recipient redelegates what it has accepted or activated by a new handoff in the same "
        "transaction; the chain is kept, the task is not reported done.",
    ),
    Requirement(
        "ACP-COUNTER-OFFER",
        "S-ACP-15",
        "A new handoff can supersede a rejected one of the same task, or the sender's own offer; "
        "a recipient can accept without some of the artifacts.",
    ),
    Requirement(
        "ACP-FROM-REVIEW",
        "S-ACP-17",
        "The task is in review after complete, and its owner may hand it over from there.",
    ),
    Requirement(
        "ACP-SLA",
        "S-ACP-10",
        "A state that lasts too long is escalated to the coordinator once for each entry into "
        "it, however often and by how many hubs the sweep runs, also after the hub was down or "
        "the clock was set back; the handoff does not move. One that ends before a sweep is "
        "recorded, too.",
        divergence="An extension by a coordinator starts a new clock: its end is escalated once, "
        "too.",
    ),
    Requirement(
        "ACP-COORDINATE",
        "ACP §7.3",
        "A coordinator extends the time of a state, reassigns the package, rejects and closes.",
    ),
    Requirement(
        "ACP-BESIDE",
        "S-ACP-11",
        "Updates of the work, states of a work queue and notes are stored beside the package.",
    ),
    Requirement(
        "ACP-REPEAT",
        "S-IDEM",
        "An action repeated by the same caller with the same content adds nothing, also when the "
        "handoff has advanced since; different content is no repeat.",
    ),
    Requirement(
        "ACP-GOES-ON",
        "S-OWN",
        "A recipient whose lease has ended, or whose task was blocked, continues by activating "
        "again: a new attempt under a new fencing token, in the same state.",
    ),
    Requirement(
        "ACP-DELEGATED",
        "S-OWN",
        "A task in a handoff cannot be delegated, and a task delegated to another agent cannot "
        "be handed over.",
    ),
    Requirement(
        "ACP-MODEL",
        "ACP §2",
        "Any sequence of requests gives the states, owners and chains of a simple model, and a "
        "replay gives the same.",
    ),
    Requirement(
        "BENCH-MAIL-BYTES",
        "Speed",
        "The measured letters are one of each type, with bodies of 600 bytes, and pass "
        "strict mode.",
    ),
    Requirement(
        "BENCH-RUNS",
        "Speed",
        "bench prints every pair of one run: lifecycles and completion reports beside "
        "handwritten loops, many tasks beside few, the files beside raw atomic writes.",
    ),
    Requirement(
        "BENCH-REPORT-BYTES",
        "Speed",
        "The measured completion reports have 600 bytes each, differ, and reach every task.",
    ),
    # --- handoffs: queries, audit and benchmarks
    Requirement(
        "ACP-READ",
        "S-ACP-7",
        "Handoffs are listed newest first by state, task, sender, recipient and teamspace, in "
        "bounded pages, and shown with their full history.",
    ),
    Requirement(
        "ACP-BLOCK",
        "S-OWN",
        "A task that was blocked or moved to backlog after its handoff was offered, by position "
        "in the ledger, is begun neither by its recipient nor by a reassigned one, also once it "
        "was activated: an authorized actor has to make it ready first, and diagnose says so.",
    ),
    Requirement(
        "ACP-DIAGNOSE",
        "S-ACP-10",
        "The diagnosis of every handoff says what it waits for, who has to act, by when and with "
        "which command, and which checks failed.",
    ),
    Requirement(
        "ACP-AUDIT",
        "S-ACP-13",
        "handoffs.jsonl of a teamspace holds each event of its handoffs once, in seven types of "
        "line, both the transition and the specific event; it is repaired after a crash or a torn "
        "write, compared by verify, and rewritten from the ledger.",
        divergence="The specification's row `jected` is handoff_rejected; a person's approval is a "
        "handoff_verification; lines carry more keys than the specification lists.",
    ),
    Requirement(
        "ACP-PACKAGE",
        "S-ACP-1",
        "A package has every part that the protocol names, in closed shapes; its JSON Schema "
        "(2020-12) is published by `dragoman schema acp` and accepts exactly what the shapes "
        "accept.",
        divergence="Unknown keys are refused: a misspelt requires_human_approval must not be "
        "ignored.",
    ),
    Requirement(
        "ACP-RESPONSE",
        "S-ACP-16",
        "Every action is answered in the one response form of the protocol, refused or not, over "
        "HTTP, MCP, the SDK and `dragoman call`; an ownership_conflict gives its kind.",
    ),
    Requirement(
        "ACP-GATE",
        "S-ACP-3",
        "accept checks schema, policy, artifacts, cycle and hash, lists every failure, and "
        "rejects for the first; a temporary problem or a missing approval leaves it validating, "
        "to be retried.",
    ),
    Requirement(
        "ACP-ARTIFACTS",
        "S-ACP-8",
        "Artifacts are beneath configured roots, are opened without following a link, hashed "
        "from the open file and stored as hashed; their copies are checked again at activate.",
    ),
    Requirement(
        "ACP-SECRETS",
        "S-SAOP-4",
        "A package that holds a secret is refused, when it is offered and at the gate, with the "
        "path of the secret but not its value; other texts of a handoff are masked.",
    ),
    Requirement(
        "ACP-PARTIAL",
        "S-ACP-15",
        "A recipient may exclude artifacts when it accepts; the exclusion is recorded.",
    ),
    Requirement(
        "ACP-QUERY",
        "S-ACP-7",
        "query finds handoffs by task, sides, state and teamspace in pages, or one of them as a "
        "whole, and changes nothing.",
    ),
    Requirement(
        "ACP-REPORTED",
        "S-OWN",
        "Work that its holder has reported done or blocked is not begun by the recipient of an "
        "offer before the report has taken effect; partly done work is.",
    ),
    Requirement(
        "ACP-COMPLETE-TOLD",
        "S-OWN",
        "The sender of a handoff gets one handoff.complete when the recipient's part is over, in "
        "whatever dialect that was reported, whichever actor ended the session.",
    ),
    Requirement(
        "ACP-MESSAGES",
        "S-ACP-14",
        "acp_send, acp_inbox and acp_query are the mail of the hub: twelve types, a payload of "
        "at most 4,096 bytes, and of a handoff its id and hash only.",
    ),
    Requirement(
        "ACP-WORKQ",
        "S-ACP-14",
        "The hub has a work queue with ownership and claim, and uses an external one by "
        "JSON-RPC; activate transfers items, never waits for that, and answers transferred, "
        "degraded or not_applicable.",
    ),
    Requirement(
        "ACP-TEAMSPACE",
        "S-ACP-15",
        "A teamspace with members is closed: others neither offer, receive, act nor read there, "
        "except what they are sender or recipient of since before; people and orchestrators "
        "belong everywhere, coordinators where they are named; one without members is open.",
    ),
    Requirement(
        "ACP-DIALECT",
        "S-ACP-16",
        "ACP messages are recognised, bare or wrapped, and can be checked without being sent; a "
        "sender that is not the caller is refused.",
    ),
    Requirement(
        "ACP-CLI",
        "S-ACP-7",
        "dragoman handoff lists, shows, times, verifies and diagnoses handoffs, and performs "
        "every action through the same operation as every surface, with approve and deny by "
        "people.",
    ),
    Requirement(
        "ACP-HTTP-READ",
        "S-ACP-7",
        "Handoffs can be read over HTTP: lists by state, task, sender, recipient and teamspace, "
        "one, its history, its diagnosis.",
    ),
    Requirement(
        "ACP-GUIDE",
        "S-ACP-1",
        "The guide to handoffs is correct: its shell commands run and its tables are generated "
        "from the code.",
    ),
    Requirement(
        "BENCH-HANDOFFS",
        "Speed",
        "The measured handoffs have packages of 4 KB and an artifact each, and go from the offer "
        "to the closed record.",
    ),
    # --- CCOS: delegation, the registry, the chain
    Requirement(
        "CCOS-RESULT",
        "S-CCOS-1",
        "A result has an output or an error, never both and never neither; anything else is an "
        "anomaly.",
    ),
    Requirement(
        "CCOS-RECEIPT",
        "S-CCOS-3",
        "A result counts if it answers the open request of its intent; an equal repeat is a "
        "no-op; one that is unmatched, different or late is a recorded anomaly and changes "
        "nothing.",
    ),
    Requirement(
        "CCOS-PLAIN-TASK",
        "S-CCOS-3",
        "A TaskResult about a task without an intent is the only report of its agent on an "
        "attempt: the same again is a repeat, another one is refused and changes nothing.",
    ),
    Requirement(
        "CCOS-ATTEMPT",
        "S-CCOS-3",
        "A message under an attempt's credential about another intent is an anomaly of that "
        "intent, or, if it does not exist, of its own; it counts for neither.",
    ),
    Requirement(
        "CCOS-DUE",
        "S-CCOS-4",
        "The deadline of an intent applies to each request made before it, whichever agent gets "
        "it; a candidate tried after it has as much time again.",
    ),
    Requirement(
        "CCOS-TOLD",
        "S-CCOS-1",
        "Reports and progress of the holder of an intent's task, in any dialect, appear in CCOS: "
        "a report as the output, or as the error with its kind and reason; progress as an update.",
    ),
    Requirement(
        "CCOS-PROMPT",
        "S-CCOS-4",
        "An agent of AOF/1 that gets an intent has its goal, params, constraints and deadline in "
        "its prompt and in its task's folder; none of them can forge text of the hub.",
    ),
    Requirement(
        "CCOS-OWNER",
        "S-CCOS-3",
        "A new owner of the task ends the open request without feedback, and gets a request of "
        "its own.",
    ),
    Requirement(
        "CCOS-LIFE",
        "S-CCOS-4",
        "An intent is proposed, approved or rejected with reasons, dispatched, completed, fed "
        "back and satisfied, or needs a follow-up; each step is an entry of its own.",
    ),
    Requirement(
        "CCOS-GOVERNANCE",
        "S-CCOS-4",
        "Forbidden goals, threshold, capability, trust, cost, data locality, capacity, "
        "availability and latency are checked at dispatch, by rules of the settings; a rejection "
        "has its reason, and the next candidate is tried.",
    ),
    Requirement(
        "CCOS-RETRY",
        "S-CCOS-4",
        "A failure or a timeout moves on to the next candidate, up to the limit, and then to the "
        "agent that handed the task over; then it is in the deadletter. An agent that failed an "
        "intent is not tried again unless the intent starts anew.",
    ),
    Requirement(
        "CCOS-FOLLOW-UP",
        "S-CCOS-4",
        "An intent that is delegated as a follow-up links to its predecessor, is found by it, and "
        "passes governance like any other.",
    ),
    Requirement(
        "CCOS-OTHERS",
        "S-CCOS-4",
        "An intent follows changes of its task by any other dialect in the same transaction.",
    ),
    Requirement(
        "CCOS-REWOUND",
        "S-CCOS-4, S-SAOP-10",
        "An intent follows a rewind of its task: the open request ends without feedback, the "
        "owner after the rewind gets a new request, and feedback stays counted once.",
    ),
    Requirement(
        "CCOS-PASSED-ON",
        "S-CCOS-2, S-LIMIT",
        "`meta` and unknown fields of a TaskRequest reach its agent, those of a TaskResult the "
        "readers of the intent, under a name of their own; they affect decisions only by "
        "forbidden words in them.",
    ),
    Requirement(
        "CCOS-NULLS",
        "S-CCOS-1, S-CCOS-2",
        "An optional field of an envelope that is null is absent; a required one is missing.",
    ),
    Requirement(
        "AOF-PREFIX-LINT",
        "S-AOF-1",
        "lint accepts a message behind the prefix `AOF/1 `, as the hub does.",
    ),
    Requirement(
        "CCOS-DESCRIPTOR",
        "S-CCOS-5",
        "An agent is described by skills, constraints, locations, trust, cost, latency, capacity "
        "and endpoint; it may describe itself, but cannot raise any trust, its own included.",
    ),
    Requirement(
        "CCOS-SCORE",
        "S-CCOS-5",
        "A score is the sum of published parts: skills by whole words, constraints, past "
        "results, trust, cost; ties are broken by name, and claims of a goal about agents do not "
        "count.",
    ),
    Requirement(
        "CCOS-NEWCOMERS",
        "S-CCOS-5",
        "A newcomer gets its share of work; an agent that fails loses its rank, and can regain it.",
    ),
    Requirement(
        "CCOS-FEEDBACK",
        "S-CCOS-6",
        "The outcome of a request is counted for its agent exactly once, in the same transaction.",
    ),
    Requirement(
        "CCOS-THRESHOLD",
        "S-CCOS-6",
        "The threshold falls with proven reliability and rises with failures, within bounds, and "
        "does not move before there are enough results.",
    ),
    Requirement(
        "CCOS-LEARNING",
        "S-CCOS-6",
        "The share of the best of three agents of different quality rises, and more succeeds "
        "than by chance and than by the original formula, which docs/delegation.md gives.",
    ),
    Requirement(
        "CCOS-RESEND",
        "S-CCOS-7",
        "A dispatched request is open until it is answered, under the same id after a crash, "
        "too; only one execution counts, and a different repeat is reported to its sender.",
    ),
    Requirement(
        "CCOS-DEADLINE",
        "S-CCOS-7",
        "A request whose deadline has passed fails, enforced by a service.",
    ),
    Requirement(
        "CCOS-UNWRITABLE",
        "S-CCOS-8",
        "A delegation does not happen if the ledger cannot be written.",
    ),
    Requirement(
        "CCOS-HANDS",
        "S-CCOS-5",
        "Agents that the hub starts are tried first while they have a free slot (`[agents.NAME] "
        "concurrency`); work that no agent has a slot for waits with the best of them.",
    ),
    Requirement(
        "CCOS-ROSTER",
        "S-CCOS-5",
        "The registry in memory follows the ledger, and reads only what has changed.",
    ),
    Requirement(
        "CBOR-STRICT",
        "S-LIMIT",
        "CBOR is read as strictly as JSON: the same values, the same limits, no duplicate keys; "
        "it is written in one form only.",
    ),
    Requirement(
        "CCOS-FORMS",
        "S-CCOS-2",
        "TaskRequest, TaskResult and TaskUpdate are parsed in their minimal form and with the "
        "additive fields; protocol_version is read and not written.",
    ),
    Requirement(
        "CCOS-ONE-OF",
        "S-CCOS-1",
        "A success has an output, which may be null, and no error; a failure has an error and no "
        "output; nothing else can be created, parsed or sent.",
    ),
    Requirement(
        "CCOS-CBOR",
        "S-CCOS-2",
        "A message has the same meaning as JSON and as CBOR.",
    ),
    Requirement(
        "CCOS-ACCEPTANCE",
        "S-CCOS-4",
        "The five acceptance criteria of CCOS 019, section 12, hold: hook, pluggable dispatcher, "
        "receipt, success, failure, mismatch and feedback, and the documents.",
    ),
    Requirement(
        "CCOS-DIALECT",
        "S-CCOS-3",
        "The operations of CCOS answer as docs/dialects/ccos.md lists them, refuse with codes "
        "that are mapped, and record what they refuse.",
    ),
    Requirement(
        "CCOS-CHAIN",
        "S-CCOS-8",
        "Every entry about an intent is an Action with a cause, in the history and the tree "
        "of its intent.",
    ),
    Requirement(
        "CCOS-PAYLOADS",
        "S-CCOS-4",
        "An output that is longer than the policy allows is in the ledger as a digest only, and "
        "no part of it is, in original text and traces included; a result may have 16 MiB.",
    ),
    Requirement(
        "CCOS-LINT",
        "S-CCOS-1",
        "lint reports every finding about a CCOS message with its path, and in strict mode also "
        "what the hub would refuse or not know.",
    ),
    Requirement(
        "CCOS-RUNNERS",
        "S-CCOS-7",
        "A request reaches its agent as the input of a program, by a URL, by a function or by "
        "the queue; when resent it has the same request_id, and one execution counts.",
    ),
    Requirement(
        "CCOS-CLI",
        "S-CCOS-8",
        "delegate, why, intent and agent rank have on the command line the effect of "
        "the operations.",
    ),
    Requirement(
        "CCOS-HTTP",
        "S-CCOS-7",
        "Every operation of CCOS has an address; bodies may be CBOR, and requests can be awaited "
        "by long polls.",
    ),
    Requirement(
        "CCOS-MCP",
        "S-CCOS-7",
        "An agent over MCP gets requests, reports progress, returns its results and delegates.",
    ),
    Requirement(
        "CCOS-SIGNED",
        "S-CCOS-9",
        "A result in a signed envelope is attributed to its signer, for this hub, within its "
        "time and once; a key can be replaced.",
    ),
    # --- SAOP: turns, traces, redaction, entropy, rewind
    Requirement(
        "SAOP-SHAPES",
        "S-SAOP-1",
        "Turns, events and payloads are valid or not exactly as the conformance cases say, and "
        "lint agrees; unknown keys are accepted.",
    ),
    Requirement(
        "SAOP-PARSE",
        "S-SAOP-2",
        "parse raises and safe_parse returns; both name the path of every error.",
    ),
    Requirement(
        "SAOP-VERSIONS",
        "S-SAOP-2",
        "Versions of a turn are keys of one table: an older turn is upcast to the newest shape.",
    ),
    Requirement(
        "SAOP-TYPES",
        "S-SAOP-8",
        "A new type of trace event needs one registration in the SAOP dialect and no change "
        "elsewhere; until then its type is refused by name.",
    ),
    Requirement(
        "SAOP-TABLES",
        "S-SAOP-3",
        "agent_logs and tasks exist in both databases with the seed's columns; a turn is unique by "
        "task, attempt and index, an event by its id; verify finds rows that disagree.",
    ),
    Requirement(
        "SAOP-TURNS",
        "S-SAOP-3",
        "Turns are read in the order of their index whatever the order in which they arrived, "
        "with the missing ones named; a repeat is answered and not stored, a different one is "
        "refused.",
    ),
    Requirement(
        "SAOP-LARGE",
        "S-LIMIT",
        "A SAOP thought of ten megabytes is kept whole; a turn of more than 16 MiB is refused "
        "by name, and lint has the size limits of the hub.",
    ),
    Requirement(
        "SAOP-ROLE",
        "S-ROLE",
        "The sender of a trace acts as developer, reviewer, architect or researcher if it is "
        "registered or configured so; others are refused as identity_mismatch.",
    ),
    Requirement(
        "SAOP-ADOPT",
        "S-ADOPT",
        "The first turn about an unknown task creates it and claims it for its sender.",
    ),
    Requirement(
        "SAOP-EVENTS",
        "S-SAOP-3",
        "Events are stored once and read by task, by session or by position; one without a task "
        "gets it from its session, and a session has the transitions of its work.",
    ),
    Requirement(
        "SAOP-ANOMALY",
        "S-SAOP-6",
        "A completion without its call or a second one, a call begun twice, and chunks after a "
        "final one are stored and reported as anomalies.",
    ),
    Requirement(
        "SAOP-MASKED",
        "S-SAOP-4",
        "Stored turns and events have no secrets, across the borders of chunks and of processes, "
        "too, also where one of these is killed, and are marked as masked.",
        divergence="The specification stores thoughts verbatim; secrets become placeholders here.",
    ),
    Requirement(
        "SAOP-TRANSITION",
        "S-SAOP-11",
        "An inbound TASK_TRANSITION moves a task if its to_state is a status and its sender may; "
        "else it is a trace only. Every transition in any dialect appears as one.",
    ),
    Requirement(
        "SAOP-COMMIT",
        "S-SAOP-10",
        "Every transition, and the creation of a task, carries the commit that the configured "
        "repository has checked out, whatever the message claims, read from its files and cached "
        "until they change.",
    ),
    Requirement(
        "SAOP-BUS",
        "S-SAOP-7",
        "Listeners are notified from any position on, of each event once and in order.",
    ),
    Requirement(
        "SAOP-SLOW",
        "S-SAOP-7",
        "A slow listener gets thoughts and lines merged with a mark, then is closed with its "
        "cursor; tool calls and transitions are never skipped.",
    ),
    Requirement(
        "SAOP-FLOW",
        "SAOP section 4",
        "The data flow of the specification holds step by step.",
    ),
    Requirement(
        "SAOP-ENTROPY",
        "S-SAOP-9",
        "Falling confidence, repeated errors and loops are escalated once with their evidence, "
        "and settle at another threshold; the task does not move.",
    ),
    Requirement(
        "SAOP-HTTP",
        "S-SAOP-7",
        "Turns and traces are read over HTTP, and the stream delivers live traces in their own "
        "form.",
    ),
    Requirement(
        "REWIND-STATE",
        "S-SAOP-10",
        "A rewind resets a task to its state at one of its transitions, by a new entry; history, "
        "names, links and tokens stay; it is for humans and orchestrators, and idempotent.",
    ),
    Requirement(
        "REWIND-FILES",
        "S-SAOP-10",
        "A rewind first shows what would change; then the files of that commit are on a fresh "
        "branch, and uncommitted changes stay untouched. A missing commit, a shallow "
        "clone and a dirty repository are reported.",
    ),
    Requirement(
        "CAPTURE-TRANSCRIPT",
        "Capture",
        "The session files of Claude Code and Codex become turns and events: thoughts, plans, "
        "observations, tools with durations, terminal lines; read twice or growing, each once.",
    ),
    Requirement(
        "CAPTURE-OTLP",
        "Capture",
        "Spans of OpenTelemetry's GenAI conventions become turns and events, and the trace of a "
        "task can be exported as such spans.",
    ),
    Requirement(
        "WATCH-TASK",
        "Watch",
        "watch shows live what an agent thinks, does and observes, with a hub and without one.",
    ),
    Requirement(
        "REDACT-LAYERS",
        "S-SAOP-4",
        "Values that the hub knows, credentials with a format of their own, values identified by "
        "a name, and private keys become [REDACTED:kind:digest]; also in JSON, Base64 and URLs.",
        divergence="The specification stores a thought verbatim; here it is verbatim except for "
        "secrets.",
    ),
    Requirement(
        "REDACT-KEPT",
        "S-SAOP-5",
        "Hashes, UUIDs, ids of the hub, names and words are not masked.",
    ),
    Requirement(
        "REDACT-SOURCES",
        "S-SAOP-4",
        "Every rule has a unique kind and names the public page that describes its format.",
    ),
    Requirement(
        "REDACT-PLACEHOLDER",
        "S-SAOP-4",
        "Equal secrets have equal placeholders under one key, in every spelling, and different "
        "ones under another key.",
    ),
    Requirement(
        "REDACT-KNOWN",
        "S-SAOP-4",
        "A known value is found in every spelling: plain, JSON, URL, Base64 at any alignment, "
        "hexadecimal, behind colours.",
    ),
    Requirement(
        "REDACT-TREE",
        "S-SAOP-4",
        "A JSON value is redacted in all its texts, keys included, and where a key names a "
        "secret; a value without secrets is unchanged.",
    ),
    Requirement(
        "REDACT-TWICE",
        "S-SAOP-4",
        "Redaction is idempotent: redacted text stays unchanged.",
    ),
    Requirement(
        "REDACT-LINEAR",
        "S-LIMIT",
        "Adversarial text is redacted in a time that grows linearly with its length.",
    ),
    Requirement(
        "REDACT-STREAM",
        "S-SAOP-5",
        "A text in chunks is redacted like the whole, wherever it is split; words are not held "
        "back longer than a secret could continue.",
    ),
    Requirement(
        "REDACT-REQUESTS",
        "S-SAOP-4",
        "Every request through any surface is redacted once, before it is an entry: free text of "
        "commands and the original text; its sender gets the list of masked parts.",
    ),
    Requirement(
        "REDACT-SIGNED",
        "S-SAOP-4",
        "A signed message that holds a secret is refused as policy_violation with its path, and "
        "is not altered.",
    ),
    Requirement(
        "REDACT-RUNS",
        "S-SAOP-4",
        "Secrets printed by a started program never reach its log, at any chunk borders.",
    ),
    Requirement(
        "REDACT-HUB",
        "S-SAOP-4",
        "The hub knows its own tokens and keys, the secrets of its settings and the variables "
        "that agents get, and masks them wherever they occur, its log included.",
    ),
    Requirement(
        "REDACT-CLI",
        "S-SAOP-4",
        "dragoman redact reads text of any length and any bytes, and prints it without secrets; "
        "with --json it lists the findings.",
    ),
    Requirement(
        "REDACT-DOORS",
        "S-SAOP-4",
        "Secrets of every class are masked on record, whichever field of whichever message or "
        "request brought them, and in the original of a refused one.",
    ),
    Requirement(
        "REDACT-RECALL",
        "S-SAOP-4",
        "All known values, 99 % of the prefixed and 90 % of the generic secrets of a made-up "
        "corpus are found; 95 % of the masked parts of ordinary lines are secrets.",
    ),
    # --- backup and upgrade
    Requirement(
        "BACKUP-WHOLE",
        "S-FAULTS",
        "A restored hub verifies, answers repeats of old keys as before, knows its tokens, "
        "leases and files, and signs with the same key; from either database into either.",
    ),
    Requirement(
        "BACKUP-ONLINE",
        "S-FAULTS",
        "A backup is made during writes: it has all that was acknowledged before it began, and "
        "no request in part.",
    ),
    Requirement(
        "BACKUP-KILLED",
        "S-FAULTS",
        "A backup or restore that is killed at any point leaves nothing that looks complete; the "
        "next try succeeds, or names the schema of a server that a person has to drop before.",
    ),
    Requirement(
        "BACKUP-REFUSED",
        "S-FAULTS",
        "Backup and restore overwrite nothing: no file, directory or store, and no directory in "
        "use; a damaged, foreign or newer file, and a full disk, are refused clearly and leave "
        "nothing.",
    ),
    Requirement(
        "UPGRADE-OLD",
        "S-FAULTS",
        "A filled store of an earlier schema version is migrated, verifies and can be written; "
        "one of a version that no migration leads on from is refused and unchanged.",
    ),
    Requirement(
        "UPGRADE-KILLED",
        "S-FAULTS",
        "A migration that is killed at any statement leaves the store as it was; the next start "
        "finishes it.",
    ),
    Requirement(
        "UPGRADE-FENCE",
        "S-FAULTS",
        "A process that has a store open while a newer version migrates it stops writing, and "
        "says why; a migration waits for running transactions.",
    ),
    # --- simulation, linearizability and models
    Requirement(
        "SIM-PROMISES",
        "S-RUN",
        "Simulated weeks of failing stores, killed hubs and agents that crash, repeat and are "
        "late leave every acknowledged write recorded once, and everything verifies.",
    ),
    Requirement(
        "SIM-LEASES",
        "S-RUN",
        "The same weeks give no task two holders, accept no write of an old token, and every "
        "expired lease is ended after the next round of the services.",
    ),
    Requirement(
        "SIM-LIVENESS",
        "S-RUN",
        "Every task reaches its end or waits for a person once failures stop.",
    ),
    Requirement(
        "SIM-SEED",
        "tests",
        "A simulation is determined by its seed alone: the same one gives the same ledger, in "
        "any process; a failure names it, with the last steps.",
    ),
    Requirement(
        "SIM-TEETH",
        "tests",
        "A simulation of a deliberately broken hub fails.",
    ),
    Requirement(
        "LINEAR-TASKS",
        "engine",
        "The answers to concurrent clients about a task fit one order that agrees with time and "
        "with the rules of tasks, on SQLite and on several hubs on PostgreSQL.",
    ),
    Requirement(
        "LINEAR-TEETH",
        "tests",
        "The linearizability check finds a hub that reads old states or forgets the fence.",
    ),
    Requirement(
        "MODEL-STREAMS",
        "tests",
        "The model, the implementation and the replay agree for any sequence of requests about "
        "tasks, letters and reservations together, on every store.",
    ),
    # --- handoffs and traces: copies, program output, stale thoughts
    Requirement(
        "ACP-COPIES",
        "S-ACP-8",
        "The verified copies that count are those that handoffs name which were not rejected.",
    ),
    Requirement(
        "ACP-TOLD",
        "ACP section 9.3",
        "An offer is answered with the hash of its package and its deadline, an extension with "
        "the new one; an approval that was not required is marked as such.",
    ),
    Requirement(
        "CAPTURE-AGAIN",
        "S-SAOP-3",
        "A record that is captured again after a new attempt adds only what is new, whatever its "
        "session is called by then.",
    ),
    Requirement(
        "SAOP-ENDED",
        "S-SAOP-4",
        "The carry-over of a thought that never gets its final chunk is recorded ten minutes "
        "after the last one, once, without secrets.",
    ),
    Requirement(
        "SAOP-PULSES",
        "SAOP section 2",
        "Each line of a program that the hub starts is a SANDBOX_PULSE of its task's trace, "
        "without secrets, up to a limit; the program never waits for it.",
    ),
    Requirement(
        "SAOP-STALLED",
        "S-SAOP-7",
        "A subscriber of a live trace that stops reading is disconnected with its cursor and "
        "misses nothing when it reconnects; other readers and requests are not affected.",
    ),
    Requirement(
        "SAOP-FULL",
        "S-SAOP-7",
        "A disk that is full while a trace is written loses lines that are counted and reported, "
        "or refuses the message; readers and earlier records stay intact.",
    ),
    # --- delegation and letters
    Requirement(
        "MAIL-FOREIGN-FILES",
        "S-MAIL",
        "A file among the letters that the hub did not write is named by verify if it has the "
        "name of a letter, is never read or removed, and delays no letter.",
    ),
    Requirement(
        "WAVE-ONE",
        "S-MAIL-10",
        "A bead that has not ended in a running wave cannot join another one: the refusal names "
        "that wave, and nothing of the new one happens.",
    ),
    Requirement(
        "SHAPE-WORDS",
        "S-LIMIT",
        "An error in the shape of a value gives the path and what would be valid (the possible "
        "values, the nearest name, the limits, the form).",
    ),
    Requirement(
        "SHAPE-DOORS",
        "S-LIMIT",
        "Every dialect, HTTP, MCP, the settings and lint report shape errors in these sentences; "
        "none shows those of the decoding library.",
    ),
    Requirement(
        "CCOS-REACH",
        "S-CCOS-5",
        "An agent of which only an address is known is reported as unreachable by "
        "registration, ranking and delegation, with the remedy.",
    ),
    Requirement(
        "CCOS-BOUNDED",
        "S-CCOS-8",
        "An explanation and a history are bounded, however long the chain is: "
        "they say that there is more, and the next page continues with the same causes.",
    ),
    Requirement(
        "CCOS-UPDATES",
        "S-CCOS-2",
        "Of updates of a request with one sequence number the first counts, as long as it is one "
        "of the last 64; none counts after the deadline; an intent keeps at most 10,000.",
    ),
    Requirement(
        "CCOS-CANCEL",
        "S-CCOS-4",
        "The requester of an intent may cancel it, as may people, orchestrators and "
        "coordinators; it does not count against its agent, and the intent shows that it is "
        "cancelled, by whom and why.",
    ),
    Requirement(
        "SDK-SIGNED",
        "S-CCOS-9",
        "The SDK signs every message that it sends if it has a key; the hub verifies it, and one "
        "whose answer was lost is signed anew and counts once.",
    ),
    # --- read-only operation; keys, backups and verify
    Requirement(
        "KEYS-LOST",
        "S-FAULTS",
        "Missing keys give the same two remedies in every command and in doctor: the keys from a "
        "backup, or init --new-keys, which reports what it did.",
    ),
    Requirement(
        "VERIFY-UNSIGNED",
        "S-FAULTS",
        "verify names the directory and the ledger, and reports entries that no signed "
        "checkpoint covers.",
    ),
    Requirement(
        "BACKUP-WORDS",
        "S-FAULTS",
        "A refused backup or restore has the code of its cause: bad_archive is about the file "
        "alone, and damage is described in one form.",
    ),
    Requirement(
        "IDENTITY-ROTATION",
        "S-CCOS-9",
        "A new key of an agent ends the old one at once.",
    ),
    Requirement(
        "CCOS-REOPENED",
        "S-CCOS-4",
        "An agent that failed an intent is asked again only when a person takes its task out of "
        "the deadletter and leaves it the owner.",
    ),
    # --- reading without keys, without creating files, and with lagging files
    Requirement(
        "KEYS-READING",
        "S-FAULTS",
        "Reading the store alone needs no keys; every other command is refused without the keys "
        "of the store, with the remedy, and changes nothing.",
    ),
    Requirement(
        "VERIFY-BEHIND",
        "S-FAULTS",
        "Where commits cannot be written to the files, verify says why the files were not "
        "compared with the ledger, and checks all else.",
    ),
    Requirement(
        "DOCTOR-AGREES",
        "S-FAULTS",
        "The lines of doctor are consistent: no line calls impossible what another calls "
        "possible, and no advice is given that another line says cannot be followed.",
    ),
    Requirement(
        "IDENTITY-REVOKED-KEYS",
        "S-CCOS-9",
        "Revoking all tokens of an agent revokes its signing keys, too, and says so; an agent "
        "may do that to itself.",
    ),
    # --- reports of agents and their answers
    Requirement(
        "REPORT-BLOCKED-TOLD",
        "S-AOF-3",
        "The notification of a blocked report gives the blockers in the agent's text when the "
        "report takes effect, and the task's file has them since the report.",
    ),
    Requirement(
        "MCP-REPORT-NOW",
        "S-SESSION",
        "An AOF report in a session without a name takes effect at once, on every surface: its "
        "answer gives the resulting status of the task, and so does the answer to a repeat.",
    ),
    Requirement(
        "REPORT-COST",
        "Agents",
        "The cost in a report counts, however large it is, and lint accepts it; a value that is "
        "no number from 0 on is reported.",
    ),
    Requirement(
        "HTTP-HEAD",
        "HTTP",
        "The head of a request has at most 64 KiB, also when all of it arrives at once.",
    ),
    Requirement(
        "NEAREST-NAME",
        "HTTP",
        "An unknown name is answered with the nearest known one, and where none is near, with "
        "all of them; never with an implausible one.",
    ),
    Requirement(
        "HTTP-LEFT",
        "HTTP",
        "A reader that disconnects at any moment, also with another request behind its first, "
        "leaves neither a waiter nor a line in the log.",
    ),
    # --- handoffs and intents of one task
    Requirement(
        "ACP-INTENT-ENDED",
        "S-OWN",
        "The end of a task, also by the result of an intent, ends its active handoff; activate "
        "never leaves a final state.",
    ),
    Requirement(
        "ACP-INTENT-OWNER",
        "S-OWN",
        "The task of an intent has one owner in every dialect: an agent that failed it has "
        "nothing to hand over, returned work never goes to an agent that failed it, and a task in "
        "a handoff is not delegated.",
    ),
    Requirement(
        "ACP-INTENT-POLICY",
        "S-CCOS-4",
        "The task of an intent is never handed over to an agent that the intent's policy "
        "excludes: the gate rejects it as policy_violation, activate refuses it, and both give "
        "the reason.",
    ),
    Requirement(
        "ACP-SUPERSEDED-ONCE",
        "S-ACP-15",
        "The successor of a handoff stays named by it: a second that supersedes the same one is "
        "refused, with the name of the one to supersede.",
    ),
    Requirement(
        "REWIND-HANDOFF",
        "S-SAOP-10",
        "A rewind ends the handoff of a task that is then over, or then owned by an agent other "
        "than the handoff says; the dry run says so.",
    ),
    Requirement(
        "ACP-UNOWNED",
        "S-ACP-6",
        "A task without an owner is offered by an actor that could claim it, or may make it "
        "ready: no handoff unblocks a task or takes it out of the backlog for an unauthorized "
        "actor.",
    ),
    Requirement(
        "ACP-FREE-AGAIN",
        "S-OWN, S-ADOPT",
        "A task without an owner has none again when its offer is withdrawn or rejected before "
        "it is activated; a task adopted by the offer belongs to its sender.",
    ),
    # --- files that stay true
    Requirement(
        "FILES-AS-REBUILT",
        "S-FAULTS",
        "After any sequence of operations of all dialects the projected files equal a rebuild, "
        "also where an entry of another stream changes what a file shows.",
    ),
    # --- checkpoints that are missing
    Requirement(
        "CHECKPOINT-REMOVED",
        "S-FAULTS",
        "The store knows how far checkpoints.jsonl had come: when it is shorter, another one or "
        "gone, nothing more is signed, writes go on, and up, tick, verify and doctor say so until "
        "a person accepts it.",
    ),
    # --- what else verify looks at
    Requirement(
        "VERIFY-SCHEMA",
        "S-FAULTS",
        "verify finds a table, index, view, trigger or function that is missing, changed or not "
        "of this version, on SQLite and PostgreSQL, and says where it cannot compare them.",
    ),
    Requirement(
        "VERIFY-ARTIFACTS",
        "S-ACP-8",
        "verify finds a kept copy of an artifact that is missing or changed while a handoff "
        "needs it.",
    ),
    # --- traces
    Requirement(
        "VERIFY-AS-REPLAYED",
        "S-FAULTS",
        "The state in memory after any event equals the state that verify replays from its line: "
        "numbers and defaults compare by value, in stores of earlier versions, too.",
    ),
    Requirement(
        "CAPTURE-WHOLE",
        "S-SAOP-3",
        "A session that is captured while it grows gives the same as one captured at its end: a "
        "turn is captured when the record shows its end, with --follow, too, and the events of an "
        "unknown task wait for its first turn.",
    ),
    Requirement(
        "CAPTURE-THOUGHTS",
        "S-SAOP-6",
        "The thought of a turn of a session file comes whole before the tools that follow it.",
    ),
    # --- plain files: capture, names, write errors
    Requirement(
        "FILES-LONG-NAMES",
        "S-AOF-13",
        "A file whose name leaves no room for a mark or a note is kept under a shorter name.",
    ),
    Requirement(
        "FILES-OBSTACLE",
        "S-AOF-13",
        "A write error of one task or letter stops the files of no other, is reported, and is "
        "retried by every scan.",
    ),
    Requirement(
        "FILES-RESULT-KEPT",
        "S-AOF-8",
        "A run_result.json that matches no report of any attempt is moved aside and logged, "
        "whatever its form; one that shows an earlier report is simply replaced.",
    ),
    Requirement(
        "FILES-CARRIED",
        "Files",
        "Archives include files whose name is not UTF-8, and executable bits; no other permission "
        "of a file is included.",
    ),
    Requirement(
        "DOCTOR-GIT",
        "S-SAOP-10",
        "doctor reports when no commit is found in the repository of [git]; a folder within a "
        "repository is as good as its root.",
    ),
    Requirement(
        "NAMES-ORDINARY",
        "S-SAOP-4",
        "Names of words, tickets, hashes and ids are not taken for secrets, whatever they begin "
        "with; a random credential is.",
    ),
    Requirement(
        "HUB-TROUBLE",
        "Faults",
        "/readyz answers 503 and names the service while one fails; a service that a single task "
        "holds up is named with 200. The terminal has one line at the start and one at the end of "
        "the problem; doctor says how far the files lag.",
    ),
    # --- plain files: edits, inbox, obstacles
    Requirement(
        "FILES-ONE-ANSWER",
        "S-AOF-13",
        "An edit of a task file has one answer, however much of it is recorded: it is applied or "
        "refused, reported once, and the file is rewritten.",
    ),
    Requirement(
        "FILES-COPY",
        "S-AOF-13",
        "A copy of a task file in another folder is no move while the file itself is still in "
        "its folder: it is removed, kept where it was edited, and a note says why.",
    ),
    Requirement(
        "FILES-EMPTY-BODY",
        "S-AOF-13",
        "Text typed into the file of a task without a body becomes its body, without the empty "
        "lines around it.",
    ),
    Requirement(
        "INBOX-TOLD",
        "S-AOF-14",
        "A message of the inbox that cannot be read or filed is reported as waiting or taken, "
        "and the hub stays ready.",
    ),
    Requirement(
        "INBOX-ASIDE",
        "S-AOF-14",
        "An object that was in the place of processed/ or rejected/ and was moved aside is no "
        "message.",
    ),
    Requirement(
        "FILES-PLACES",
        "S-AOF-13",
        "A link, a file or a pipe in the place of any folder of the plain files, and any "
        "non-file in the place of event lines, is moved aside and stops nothing; doctor names it.",
    ),
    Requirement(
        "FILES-REMOVED",
        "S-AOF-13",
        "A folder that its agent removes while files are written into it is created again, "
        "without an error.",
    ),
    Requirement(
        "GUARD-WORKTREES",
        "S-MAIL-10",
        "The guard checks commits in every worktree of a repository: its hook names the data "
        "directory.",
    ),
    Requirement(
        "LINT-FILES",
        "Command line",
        "Any number of files is linted at once: each finding names its file, all of them are "
        "checked, and the worst of them decides the exit code.",
    ),
    # --- damaged databases
    Requirement(
        "STORE-INSPECT",
        "S-FAULTS",
        "A database that reports damage (an index without a row of its table, for example) is "
        "reported as damaged by verify, by doctor within a bound, and by /readyz; and verify says "
        "how to get a sound one.",
    ),
    Requirement(
        "STORE-EMPTIED",
        "S-FAULTS",
        "An empty database file is treated like a missing one, by every command.",
    ),
    Requirement(
        "STORE-MOVED",
        "S-FAULTS",
        "A process whose database file was moved, removed or replaced while open writes nothing "
        "more and creates none in its place, so that no acknowledged write is lost.",
    ),
    Requirement(
        "STORE-TEXT",
        "S-FAULTS",
        "A text in the database with damaged bytes is store_corrupt to its readers, and verify "
        "names the position or the row.",
    ),
    Requirement(
        "STORE-LOG-COPIED",
        "S-FAULTS",
        "The log of a SQLite store is copied into the database by every thousandth page or so: "
        "it does not grow with what is written.",
    ),
    Requirement(
        "STORE-LOG",
        "S-FAULTS",
        "A log beside a database stays when the file is closed, until a commit: what SQLite "
        "skips in a damaged one is not lost by reading it.",
    ),
    Requirement(
        "CHECKPOINT-NEWEST",
        "S-FAULTS",
        "Invalid lines of checkpoints.jsonl stop neither writing, nor a backup, nor a restore as "
        "long as one line is valid; doctor reports those at the end.",
    ),
    Requirement(
        "STORE-CUT",
        "S-FAULTS",
        "A truncated database file is not opened; pages that are so far only in its log are not "
        "missing.",
    ),
    Requirement(
        "STORE-FLIPS",
        "S-FAULTS",
        "A flipped bit anywhere in the database file is found by verify, or changes nothing that "
        "is read.",
    ),
    Requirement(
        "VERIFY-EACH-LINE",
        "S-FAULTS",
        "An invalid checkpoint is named by its line and hides no other; the ledger is called "
        "intact only as far as valid signatures reach.",
    ),
    Requirement(
        "VERIFY-FOLD",
        "S-FAULTS",
        "A stored state of an unknown fold number is a finding.",
    ),
    # --- handoffs: complete files and logs, closed teamspaces
    Requirement(
        "ACP-CLI-OPTIONS",
        "S-ACP-16",
        "Every option of `handoff initiate` replaces its part of a package from a file.",
    ),
    Requirement(
        "ACP-CLOSED-ENTRIES",
        "S-ACP-15",
        "What handoffs in a teamspace with members say (package, notes, reasons, letters) is read "
        "at no door by others: entries of the ledger are shown to them with place, time and hash "
        "only, in pages and streams; a report that completes one stays with it.",
    ),
    Requirement(
        "ACP-CLOSED-LETTERS",
        "S-ACP-15",
        "Letters about handoffs in a teamspace with members are shown only to their senders and "
        "recipients, by every lookup, and in every ack or reply; a redelegation stays in the "
        "teamspace unless another is named.",
    ),
    Requirement(
        "ACP-CHECKPOINT",
        "S-OWN",
        "A CHECKPOINT of an activated recipient completes the handoff and leaves the task to its "
        "successor; a task that was assigned to a name stays assigned to that name.",
    ),
    Requirement(
        "ACP-CAN-ACCEPT",
        "S-ACP-7",
        "An offer to an unknown name, or to an actor whose role cannot accept, is answered with "
        "that warning at once.",
    ),
    Requirement(
        "FILES-CUT",
        "S-FAULTS",
        "The missing end of a file of lines is completed from the ledger by the next writer "
        "before anything follows, and by tick; so is an audit log, or the newest file of events, "
        "that was removed or replaced by another object. doctor names it.",
    ),
    # --- letters, waves and secrets
    Requirement(
        "MAIL-LOST-CURSOR",
        "S-MAIL-7",
        "A cursor of a box or a thread beyond the end of the ledger is reset to the end, at once "
        "and with a gap event.",
    ),
    Requirement(
        "MAIL-ACK-SEEN",
        "S-MAIL-7",
        "A letter shows its reader that it wants an ack, and if it has one: the reader's own, if "
        "one is wanted of it, and else all of them.",
    ),
    Requirement(
        "WAVE-RETRY-WORDS",
        "S-MAIL-10",
        "Retries of a wave are for known types of failure; others are refused, and the known "
        "ones named.",
    ),
    Requirement(
        "MAIL-TYPE-FILTER",
        "S-MAIL-6",
        "A box is filtered by a known type; another is refused, and the known ones named.",
    ),
    Requirement(
        "MAIL-ONE-QUERY",
        "S-MAIL-6",
        "A search has the same meaning on every surface: arguments of a command are its words "
        "with a space between them.",
    ),
    Requirement(
        "MAIL-LINKS",
        "S-MAIL-9",
        "A link or image of a letter, a subject or a title is inactive in its file, and its text "
        "can still be read.",
    ),
    Requirement(
        "REDACT-COMMON",
        "S-SAOP-4",
        "Logins of docker, .netrc, `pass:`, keys of PuTTY and hashes of bcrypt are masked, whole "
        "and in chunks; similar text is kept.",
    ),
    Requirement(
        "MAIL-ACK-WITHIN",
        "S-MAIL-7",
        "The time limit of an ack can be set on every surface; an invalid one is refused.",
    ),
    # --- missing objects; messages of the command line
    Requirement(
        "MISSING-WORDS",
        "Faults",
        "A missing object is reported with one sentence for each code, to every caller, and with "
        "a command that lists the existing ones.",
    ),
    Requirement(
        "CLI-OWN-CODES",
        "Command line",
        "A command refuses with the code of the hub, whatever dialect it uses; messages and "
        "operations of a dialect (`send`, `call`, `session-end`) are answered with the code of "
        "that dialect.",
    ),
    Requirement(
        "RESERVE-NOTHING",
        "S-MAIL-10",
        "A release of files that were not reserved says so.",
    ),
    Requirement(
        "CLI-ONE-LINE",
        "Command line",
        "A usage error is reported on one line, also where it lists the choices.",
    ),
    Requirement(
        "CLI-NO-FILE",
        "Command line",
        "An unreadable file is reported alike by every command that takes one, with exit code 2.",
    ),
    # --- services of a running hub
    Requirement(
        "HUB-ALL-DUTIES",
        "Hub",
        "A running hub runs every service that `tick` runs, and /readyz names each of them.",
    ),
    # --- secrets in names, repeats, work log authors, half-closed connections
    Requirement(
        "REDACT-NAMES",
        "S-SAOP-4",
        "A name that holds a secret is refused, by every surface, and neither the refusal nor "
        "its record has any part of it: quotes are truncated after the secret is masked.",
    ),
    Requirement(
        "REDACT-TOLD",
        "S-SAOP-4",
        "The sender of a secret gets the list of masked parts from every tool of MCP and from "
        "the SDK.",
    ),
    Requirement(
        "TASK-LOG-WHOSE",
        "S-AOF-6",
        "A line of the work log by an actor other than the holder and the owner names its "
        "author; theirs has the form of the specification.",
    ),
    Requirement(
        "IDEM-OVER",
        "S-IDEM",
        "A claim that is repeated after its attempt is over shows neither a lease nor a token.",
    ),
    # --- secrets in terminals, lists and URLs
    Requirement(
        "REDACT-LINES",
        "S-SAOP-5",
        "A private key in terminal output is masked in each of its lines, although every line is "
        "an event of its own, also across requests and processes; other lines are kept.",
    ),
    Requirement(
        "REDACT-ARGUMENTS",
        "S-SAOP-4",
        "The argument after an option that names a secret is masked in a list, as text or as "
        "JSON, however the list is written; whole and in chunks.",
    ),
    Requirement(
        "REDACT-LETTERS",
        "S-SAOP-4",
        "Random letters after the name of a secret are masked, nine of ten at least if there are "
        "sixteen; words of languages and of programs are kept.",
    ),
    Requirement(
        "REDACT-URLS",
        "S-SAOP-5",
        "Only the secret of a URL is masked, whatever its user is called and however the URL is "
        "encoded; host and path are kept.",
    ),
    Requirement(
        "REDACT-MEANT",
        "S-SAOP-4",
        "A secret is found in the escapes of JSON, HTML, URLs and programs, also nested and with "
        "every character as a number; known values always.",
    ),
    Requirement(
        "REDACT-BORDERS",
        "S-SAOP-5",
        "A terminal colour separates a secret from adjacent words, and does not hide a secret "
        "that contains it.",
    ),
    Requirement(
        "REDACT-CARRIED",
        "S-SAOP-5",
        "A secret is found in the payload of terminal sequences (OSC, DCS, SOS, PM, APC), whole "
        "and in chunks; an unterminated one holds back text only briefly.",
    ),
    Requirement(
        "REDACT-NAMED",
        "S-SAOP-4",
        "A secret is found behind its name in letters, notes, tables, fields and programs; "
        "words, types, pipes and other names are kept.",
    ),
    # --- benchmarks, surfaces and tags
    Requirement(
        "PROJECT-TAGS",
        "Project",
        "Every tag like S-TASK in the code or a test is explained on a page of the repository.",
    ),
    Requirement(
        "PROJECT-NAMES",
        "Project",
        "No module name contains a word that docs/names.md bans, and none stands in two folders "
        "unless that page gives it one meaning for both; no docstring begins with a question "
        "word.",
    ),
    Requirement(
        "PROJECT-SDIST",
        "Project",
        "A source distribution has all that its README links and its tests need, and every "
        "dependency is pinned in constraints.txt.",
    ),
    Requirement(
        "SURFACE-ALIKE",
        "Engine",
        "One script through the hub itself, the command line, HTTP and MCP gets the same answers "
        "and the same refusals, and leaves the same ledger but for ids and hashes.",
    ),
    Requirement(
        "BENCH-LIVES",
        "Speed",
        "Every measured life of a task goes from its creation to done, and every measured "
        "delegation to its feedback, by as many entries as the loop beside it writes.",
    ),
    # --- intents whose tasks a person or another dialect changes
    Requirement(
        "CCOS-DEADLINE-DOORS",
        "S-CCOS-3",
        "The deadline of a request holds on every surface: a later action of its agent, or a "
        "later claim, is an anomaly, and a decision of a person does not make it a success.",
    ),
    Requirement(
        "CCOS-GOVERNED-DOORS",
        "S-CCOS-4",
        "An agent that governance excludes cannot get the task of an intent by an edit, a claim "
        "or a review; forbidden words are searched in the current text of the task.",
    ),
    Requirement(
        "CCOS-FORBIDDEN-SINCE",
        "S-CCOS-4",
        "Words that become forbidden end a request that has not been begun, without feedback, "
        "and its task cannot be claimed; work in progress is finished.",
    ),
    Requirement(
        "CCOS-TRIES",
        "S-CCOS-4",
        "Only failures use up tries: a person's block or a handoff uses none.",
    ),
    Requirement(
        "CCOS-ANEW",
        "S-CCOS-3",
        "Rework after a review, and work that continues from a checkpoint, is another request.",
    ),
    Requirement(
        "CCOS-UNSENT",
        "S-CCOS-6",
        "A request that the hub could not deliver does not count against its agent.",
    ),
    Requirement(
        "CCOS-CAUSES",
        "S-CCOS-4",
        "The cause of a request is its approval, or the earlier request of the same agent; the "
        "cause of running out of candidates is the last rejection.",
    ),
    Requirement(
        "CCOS-TAKEN-BACK",
        "S-CCOS-4",
        "The command line does not show a withdrawal that does not concern an agent's work as "
        "its failure; it shows a renewed request, and a partial output, as such.",
    ),
    # --- stores, cursors and advice
    Requirement(
        "LOST-CURSOR",
        "Ledger",
        "Every reader with a cursor beyond the end of the ledger, as after the restore of a "
        "backup, is notified at once and continues from the end: on the command line, in pages "
        "and in streams.",
    ),
    Requirement(
        "STORE-REMEMBERED",
        "STORE-URL",
        "A data directory created by any command with --store remembers that store.",
    ),
    Requirement(
        "STORE-PRIVATE",
        "Files",
        "A SQLite store and an archive are readable by their owner only, in any folder; doctor "
        "names an existing store that others can read.",
    ),
    Requirement(
        "HTTP-READY-PRIVATE",
        "HTTP",
        "The endpoint /readyz names a failing service to a caller without a token, but not the "
        "reason.",
    ),
    Requirement(
        "ADVICE-LEADS-ON",
        "CLI-DOCTOR",
        "The advice of verify and doctor can be followed and helps: they name the obstacle, and "
        "agree with each other and with init.",
    ),
    Requirement(
        "CLOCK-SET-TOLD",
        "CLI-NOW",
        "Every entry made under --now says so, the hub's own among them.",
    ),
    Requirement(
        "HAND-HUB-DUTIES",
        "TESTING",
        "The hand hub of dragoman.testing runs every time-driven service, by the table of a "
        "running hub.",
    ),
    Requirement(
        "PG-COUNTER",
        "STORE",
        "A counter of positions that does not fit the entries is named by verify and doctor, and "
        "a write is refused before it does harm.",
    ),
    Requirement(
        "FOLLOW-AWAY",
        "S-FAULTS",
        "A follower of the ledger on the command line survives a store that is unavailable for a "
        "while, reports it once, and misses nothing.",
    ),
    # --- see
    Requirement(
        "SEE-ATTENTION",
        "STATUS",
        "What needs a person is listed until it is dealt with, the most urgent first, each with "
        "the command that deals with it: questions, unanswered help, gates, reviews, paused agents "
        "for which work waits, deadletters, assignees that do not exist, escalations.",
    ),
    Requirement(
        "SEE-STATUS",
        "STATUS",
        "The status of the whole hub is the same at every door, within the rules of who may read "
        "what: every agent that holds something or has spoken lately, registered or not, with "
        "attempt, signs of life, progress and lease; what waits, for what, and who has to act; "
        "what needs a person.",
    ),
    Requirement(
        "SEE-NUMBERS",
        "STATUS",
        "The numbers of the last days come from the ledger, whose entries are read once: what was "
        "begun, finished and failed, waits for a person and for a review, tokens and cost as "
        "agents report them; of a very long ledger they say from when on they count.",
    ),
    Requirement(
        "SEE-DAY",
        "STATUS",
        "The report of a day has its numbers, what was finished, failed, given up and escalated, "
        "and what waits for a person, within the rules of who may read what.",
    ),
    Requirement(
        "SEE-EXPORT",
        "STATUS",
        "A story and the report of a day are one HTML page each, by command line and HTTP, that "
        "opens without a hub, requests nothing and in which nothing that agents wrote acts.",
    ),
    Requirement(
        "SEE-WAIT",
        "STATUS",
        "A ready task that not everybody can claim now says why, and who has to act.",
    ),
)

REQUIREMENTS = {requirement.id: requirement for requirement in _MANIFEST}

assert len(REQUIREMENTS) == len(_MANIFEST), "two requirements share an id"
