"""What dragoman promises, one line each; a test names the lines that it proves.

`tests/architecture/test_requirements.py` fails when a requirement has no test, when a test names
none, and when a test names one that is not here. The ids are stable: a released id is never reused.
The section is a tag of the semantics (S-TASK) or the part of the system that the promise is about.
A divergence says where we depart from what a specification says, and why.
"""

import pytest
from msgspec import Struct


class Requirement(Struct, frozen=True):
    """One promise."""

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
        divergence="cancelled and deadletter are not in AOF/1: work can be given up, and "
        "can fail for good.",
    ),
    Requirement(
        "TASK-SAME-STATUS",
        "S-TASK",
        "Moving a task to the status that it has is a no-op: accepted, and no entry is added.",
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
        "TASK-OBSTACLE",
        "S-TASK",
        "A blocked task shows what is in its way, in the words of whoever has stopped it, until it "
        "goes on.",
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
        "Whoever may claim for others may choose the queues: a task that is reserved for a "
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
        "Cancelling ends a task from every status but done and deadletter, and its holder's token "
        "is dead.",
    ),
    Requirement(
        "TASK-TABLE-AS-DATA",
        "S-TASK",
        "The transition tables are data; the diagrams in the docs are printed from them and "
        "are equal to what the tables say now.",
    ),
    Requirement(
        "TASK-LOG",
        "S-TASK",
        "A note is added to a task's work log with its author and time.",
    ),
    Requirement(
        "TASK-UPDATE",
        "S-AOF-4",
        "A status update moves the task where the table has the way, for the first reason of "
        "blockers, notes, progress; otherwise its words become a line of the work log.",
    ),
    Requirement(
        "TASK-EDIT",
        "S-AOF-13",
        "An edit changes what is given and differs, by whoever may change that field; a task's "
        "agent may change its wording.",
    ),
    Requirement(
        "TASK-WARN",
        "S-AOF-10",
        "A warning is recorded with its task and stands in nobody's way.",
    ),
    Requirement(
        "FILE-PRINCIPAL",
        "S-AOF-13",
        "An edited or moved file may edit, and move between backlog, ready and blocked; it judges "
        "no review and switches none off, unless moves are trusted.",
    ),
    Requirement(
        "REPORT-REPEAT",
        "S-AOF-2",
        "A report of what has come about already is a no-op, before it is asked who reports; an "
        "old token is refused all the same.",
    ),
    # --- delegation
    Requirement(
        "DELEGATION-REQUEST",
        "S-AOF-4",
        "A task is delegated by the holder of its parent, or by who runs the show; the same "
        "request again is a no-op, another one replaces it.",
    ),
    Requirement(
        "DELEGATION-DEPTH",
        "S-AOF-7",
        "Delegated work is not delegated on, from whichever end the chain would be made.",
    ),
    Requirement(
        "DELEGATION-ANSWER",
        "S-AOF-4",
        "Only the agent that was asked accepts or rejects, each once; a rejection blocks a task "
        "whose work is still to be done.",
    ),
    Requirement(
        "DELEGATION-SLA",
        "S-AOF-7",
        "A delegation whose deadline passes before its task has ended is escalated, once, and "
        "nothing moves by that.",
    ),
    # --- who is known
    Requirement(
        "AGENT-REGISTRY",
        "S-ROLE",
        "Agents and people are known by name, role and dialects; nobody gives a role that it may "
        "not give, and an agent speaks for itself only.",
    ),
    Requirement(
        "MESSAGE-REFUSED",
        "S-AOF-1",
        "A message that is no command is refused by its dialect's reason and recorded with its "
        "sender, whatever it quotes.",
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
        "Every task has an AOF id from birth, its own if it is one; ids are unique and never "
        "reused, "
        "also when a day's 999 numbers are used up.",
        divergence="After 999 tasks of a day the tail is eight characters; AOF/1 knows three "
        "digits only.",
    ),
    Requirement(
        "NAME-ALIAS",
        "S-NAME",
        "A task is found by its primary id, its AOF id and any alias; a name that is taken is "
        "refused.",
    ),
    Requirement(
        "TASK-ADOPT",
        "S-ADOPT",
        "The first word about an unknown task born elsewhere creates it ready, with its origin; "
        "a later one finds it, and two at once create one.",
    ),
    # --- runs
    Requirement(
        "ATTEMPT-NUMBERED",
        "S-RUN",
        "A claim creates the next attempt, makes its agent the owner, and gives it one session.",
    ),
    Requirement(
        "ATTEMPT-RESULT",
        "S-RUN",
        "A result belongs to its attempt: an old attempt's result never decides a new attempt.",
    ),
    Requirement(
        "LEASE-FENCE",
        "S-RUN",
        "The fencing token rises with every claim, and no write under an old one is accepted.",
    ),
    Requirement(
        "LEASE-HEARTBEAT",
        "S-RUN",
        "The first heartbeat is written with the lease; any accepted word of the holder renews it.",
    ),
    Requirement(
        "LEASE-LOST",
        "S-RUN",
        "A worker stopped past its TTL that comes back gets lease_lost for every write, and the "
        "new holder does not notice.",
    ),
    Requirement(
        "LEASE-RECOVERY",
        "S-RUN",
        "A lease that has run out sends its task back to ready, or applies the attempt's result if "
        "there is one; a renewed lease is never taken away.",
    ),
    Requirement(
        "LEASE-RELEASE",
        "S-RUN",
        "A holder may give a task back: it is ready at once, and that counts as no failure.",
    ),
    Requirement(
        "LEASE-OFF-LEDGER",
        "S-RUN",
        "A heartbeat changes its lease row and adds no entry to the ledger.",
    ),
    Requirement(
        "TIME-IN-CALENDAR",
        "S-RUN",
        "No moment that has no date is committed: a lease that would end after the year 9999 is "
        "refused, and one that is stored already can be shown.",
    ),
    Requirement(
        "RETRY-BACKOFF",
        "S-RUN",
        "A failed or reclaimed task rests, longer each time up to a cap, and is not handed out "
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
        "One table of role, relation and transition says who may do what; every cell is tested.",
    ),
    Requirement(
        "ROLE-HOLDER",
        "S-ROLE",
        "Only the holder reports on its attempt: others get unauthorized_agent, and "
        "unassigned_task "
        "where nobody holds or owns the task.",
    ),
    Requirement(
        "ROLE-CELLS",
        "S-ROLE",
        "Every command in every status of its task, asked by every role and relation, is allowed "
        "or refused as one table written by hand says.",
    ),
    Requirement(
        "ROLE-CREDENTIALS",
        "S-ROLE",
        "Credentials are given and taken by people and the hub for everyone, by orchestrators for "
        "agents and observers; an agent may take back its own.",
    ),
    Requirement(
        "IDENTITY-TOKEN",
        "S-ROLE",
        "A token speaks for its agent, in the role that the agent has now, until it ends or is "
        "revoked; whoever shows another one learns nothing about those that exist.",
    ),
    Requirement(
        "IDENTITY-REVOKE",
        "S-ROLE",
        "A revocation counts at once in the process that records it and within a second in every "
        "other; one token or all of them, those of attempts included.",
    ),
    Requirement(
        "IDENTITY-ATTEMPT",
        "S-ROLE",
        "The token of an attempt speaks for its agent about its task only, under its fencing token "
        "only; it is sealed by the hub and stored nowhere.",
    ),
    Requirement(
        "IDENTITY-ATTEMPT-END",
        "S-ROLE",
        "The token of an attempt is dead when another attempt begins, and within a minute of its "
        "own end; meanwhile it changes no task, makes none and reserves no file, and its letters "
        "are delivered without effect.",
    ),
    Requirement(
        "IDENTITY-LOOK",
        "identity",
        "Whoever shows a token never makes the hub's loop wait for the store, and who invents "
        "names costs one look a second for each.",
    ),
    Requirement(
        "IDENTITY-OWNER",
        "identity",
        "The data directory's own token is made once, is its owner's alone (0600), and is refused "
        "when others could have read it.",
    ),
    Requirement(
        "IDENTITY-SECRET",
        "identity",
        "No token is in the ledger, the files, an error or a representation: only digests are "
        "kept, and a token is printed once.",
    ),
    Requirement(
        "IDENTITY-SIGNED",
        "S-CCOS-9",
        "A message signed with an agent's registered Ed25519 key speaks for that agent, to this "
        "hub only, until it ends, and once.",
    ),
    Requirement(
        "ROLE-OWN-GATE",
        "S-ROLE",
        "Nobody approves their own gate: neither a person nor an orchestrator approves what they "
        "did themselves, nor an orchestrator what it claimed for another, and it gets a token only "
        "for whom it may vouch for.",
    ),
    Requirement(
        "ROLE-ACTS-AS",
        "S-ROLE",
        "Without a hub the person at the command line may act as any agent, and the entry says "
        "who acted as whom.",
    ),
    # --- MCP
    Requirement(
        "MCP-TOOLS",
        "MCP",
        "A coding agent claims, logs, asks, completes, and looks after a restart, through tools, "
        "in both protocol versions and on both transports.",
    ),
    Requirement(
        "MCP-RESULTS",
        "MCP",
        "What a tool answers is structured, and the same as text.",
    ),
    Requirement(
        "MCP-REFUSALS",
        "MCP",
        "A refusal is an error of the tool with our code and detail, so that a model can act on "
        "it; a tool or resource that does not exist is an error of the protocol.",
    ),
    Requirement(
        "MCP-IDENTITY",
        "MCP",
        "Over HTTP a tool speaks for the bearer of the request's token, on stdio for --as or "
        "DRAGOMAN_TOKEN; a session belongs to whoever began it, and a token is shown to the hub "
        "that is named, not to a proxy.",
    ),
    Requirement(
        "MCP-DIALECTS",
        "MCP",
        "Dialects bring their tools along, from the operations that say what they are for; any "
        "other message goes through `send`.",
    ),
    Requirement(
        "MCP-SIZE",
        "MCP",
        "The list of our own tools has less than 10 KB, and each dialect adds less than 6 KB.",
    ),
    Requirement(
        "MCP-PROFILES",
        "MCP",
        "A profile chooses the tools that an agent sees and can call; without one, its role and "
        "the dialects that it speaks do.",
    ),
    Requirement(
        "MCP-RESOURCES",
        "MCP",
        "Tasks and their histories are resources: listed in pages, and read by any name.",
    ),
    Requirement(
        "MCP-DOOR",
        "MCP",
        "/mcp is behind the same guard as every route, takes no more than the hub takes, and ends "
        "its streams when the hub stops.",
    ),
    Requirement(
        "MCP-STDIO",
        "MCP",
        "`dragoman mcp` serves on standard input and output, leaves all files level, goes through "
        "a hub that runs, passes everything on where it is told a hub's address, and answers all "
        "that it has read before it leaves.",
    ),
    Requirement(
        "MCP-MALFORMED",
        "MCP",
        "What is no JSON or no message of JSON-RPC is answered with -32700 or -32600 and the id "
        "null, in the same words over HTTP and on standard output; so is a request whose id is no "
        "id. An empty line on standard input says nothing.",
    ),
    # --- commands
    Requirement(
        "CORE-PURE",
        "Core",
        "decide(command, read, now) is a pure function over frozen values: the same input gives "
        "the same events or the same refusal.",
    ),
    Requirement(
        "CORE-ALL-OR-NONE",
        "Core",
        "A tuple of commands over several streams happens whole, each seeing the ones before it, "
        "or leaves nothing behind.",
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
        "A repeat under the same key answers as the first time did, adds no entry, and still "
        "renews "
        "the lease.",
    ),
    Requirement(
        "IDEM-SCOPE",
        "S-IDEM",
        "A key is unique per target stream, or per actor where there is none; the same key for "
        "something else is refused.",
    ),
    Requirement(
        "IDEM-REFUSED",
        "S-IDEM",
        "A refusal is not remembered: the same request may be tried again and may then succeed.",
    ),
    Requirement(
        "LIMIT-TEXT",
        "S-LIMIT",
        "Over-long and hostile titles, bodies and notes are refused with the limit in the answer, "
        "never cut in silence.",
    ),
    Requirement(
        "ENGINE-HANDLE",
        "Engine",
        "The asynchronous and the synchronous door answer alike, and only after the commit.",
    ),
    Requirement(
        "ENGINE-BATCH-POISON",
        "Engine",
        "A command that the database or the code cannot bear fails alone; the others of its "
        "batch succeed.",
    ),
    Requirement(
        "ENGINE-OVERLOAD",
        "Engine",
        "When too many requests wait, a new one is refused as overloaded rather than queued for "
        "ever.",
    ),
    Requirement(
        "ENGINE-ASIDE",
        "Engine",
        "What has to be looked up for messages of one turn of an event loop is looked up beside "
        "it, together; what may take long keeps nobody else waiting.",
    ),
    Requirement(
        "ENGINE-SUBSCRIBE",
        "Engine",
        "A subscriber that follows from a cursor never misses an entry and never sees one twice.",
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
        "An entry is one JSON line with stream, version, event name and its version, actor, cause, "
        "time, said and body; its bytes and its hash are those of the written format.",
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
        "The original words and unknown fields are kept with the entry and never change a "
        "decision.",
    ),
    Requirement(
        "LEDGER-UPCAST",
        "Ledger",
        "An entry of an older event version is read through its upcasters; its stored bytes stay "
        "as "
        "they were.",
    ),
    Requirement(
        "LEDGER-NAMES",
        "Ledger",
        "Event names, their versions and stream names are ours, stable, and name no class or "
        "module.",
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
        "verify finds a cut tail with the help of a checkpoint.",
    ),
    # --- stores
    Requirement(
        "STORE-CONTRACT",
        "Stores",
        "Memory, SQLite and PostgreSQL pass one conformance suite of the contract in domain verbs.",
    ),
    Requirement(
        "STORE-ATOMIC",
        "Stores",
        "Entries, state rows and indexes are written in one commit: all or none.",
    ),
    Requirement(
        "STORE-INTERLEAVE",
        "Stores",
        "When two transactions load before either appends, exactly one wins.",
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
        "When several processes claim one task, exactly one wins, always, on both databases.",
    ),
    Requirement(
        "STORE-CACHE",
        "Stores",
        "A cached state is dropped when a batch fails or another process has committed.",
    ),
    Requirement(
        "STORE-REFOLD",
        "Stores",
        "A state row of an old fold number is folded again from its entries.",
    ),
    Requirement(
        "STORE-DURABLE",
        "Stores",
        "SQLite runs in WAL with synchronous=FULL, in a version without the WAL-reset bug; readers "
        "work beside the one writer.",
    ),
    Requirement(
        "STORE-MIGRATIONS",
        "Stores",
        "Migrations are numbered and run once; all of them applied give exactly schema.sql.",
    ),
    Requirement(
        "STORE-URL",
        "Stores",
        "--store takes sqlite:///path and postgresql://…; anything else is refused with the forms "
        "that are understood.",
    ),
    Requirement(
        "STORE-SECOND-HUB",
        "Stores",
        "A second process that wants to be the hub of a data directory is refused with a sentence "
        "that says who holds it; plain commands wait for each other.",
    ),
    Requirement(
        "STORE-CORRUPT",
        "Stores",
        "A corrupt or foreign database file gets a clear word, and nothing is made worse.",
    ),
    Requirement(
        "STORE-READ-ONLY",
        "Stores",
        "A read-only folder or database gets a clear word that says what to change.",
    ),
    Requirement(
        "STORE-LISTS",
        "Stores",
        "A stream stands on any number of lists, on each where its first entry stands; a page "
        "costs the same however long the list, and a reader that goes on from a place misses "
        "nothing.",
    ),
    Requirement(
        "STORE-SEARCH",
        "Stores",
        "The same words are found in memory, SQLite and PostgreSQL; several processes may index at "
        "once, and none of it is on the way of a commit.",
    ),
    Requirement(
        "SEARCH-WORDS",
        "Stores",
        "A search knows words, phrases, beginnings, exclusions and OR; whatever else is typed is "
        "answered with a sentence.",
    ),
    # --- command line
    Requirement(
        "CLI-START",
        "Command line",
        "A command loads only what it needs: one that reads tasks, events or agents loads neither "
        "keys, dialects, duties nor files, and --version nothing of the engine.",
    ),
    Requirement(
        "CLI-PROMISES",
        "Command line",
        "--data, --store, --json, --now and --as work on every command where they make sense, also "
        "after its arguments; DIR comes from DRAGOMAN_DATA, else ./.dragoman.",
    ),
    Requirement(
        "CLI-EXIT",
        "Command line",
        "Exit 0 is ok, 1 refused, 2 wrong usage; with --json an answer has ok, and a refusal its "
        "code and detail.",
    ),
    Requirement(
        "CLI-NOW",
        "Command line",
        "--now fixes the hub's clock for that command, on every command.",
    ),
    Requirement(
        "CLI-INIT",
        "Command line",
        "init makes a data directory, and a second init changes nothing.",
    ),
    Requirement(
        "CLI-TASK",
        "Command line",
        "task create, list, show, move, claim, heartbeat, release, log and link do what the core "
        "does, by any name of the task.",
    ),
    Requirement(
        "CLI-TICK",
        "Command line",
        "tick runs each time-driven duty once, and a second tick at the same time changes nothing.",
    ),
    Requirement(
        "CLI-SEND",
        "Command line",
        "send takes one message of any dialect from a file or standard input, and says what came "
        "of it; a refused one ends with 1 and the dialect's code.",
    ),
    Requirement(
        "CLI-CALL",
        "Command line",
        "call prints an operation's reply exactly as its dialect has it; session-end ends a "
        "session by its name, or all that have reported.",
    ),
    Requirement(
        "CLI-LINT",
        "Command line",
        "lint answers each message, and of lines each line, with what is wrong and where, sends "
        "nothing, makes nothing, and ends with 1 if anything is wrong.",
    ),
    Requirement(
        "CLI-AGENT",
        "Command line",
        "agent add makes a name known in a role, without a hub; from then on it speaks in it.",
    ),
    Requirement(
        "CLI-FLEET",
        "Command line",
        "While a hub runs, agent show and list also tell what the agents do that it starts, or why "
        "one takes no work, as the API has it; without a hub, or when it does not answer soon, "
        "they tell all else and say so.",
    ),
    Requirement(
        "CLI-FILES",
        "Command line",
        "watch-files takes what is put beside the ledger as it comes; rebuild-files writes all "
        "files anew; export and import carry a whole data directory.",
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
        "doctor says what is wrong with the installation and the data directory, and what to do.",
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
        "Agents' text is shown with control, escape, bidi and zero-width characters made harmless.",
    ),
    Requirement(
        "CLI-DEMO",
        "Command line",
        "demo plays an AOF story (dispatch, progress, handoff, crashes, recovery, review) under a "
        "simulated clock, the same each time, and leaves nothing behind unless it is told to.",
    ),
    # --- the outside
    Requirement(
        "SYSTEM-FILES",
        "System",
        "Files are opened beneath a root that no link and no path leaves.",
    ),
    Requirement(
        "SYSTEM-IDS",
        "System",
        "Ids that we make are time-ordered and rise, also within one millisecond.",
    ),
    Requirement(
        "SYSTEM-KEYS",
        "System",
        "Signing keys are made once, are readable by their owner only, and a bad key file is "
        "named.",
    ),
    Requirement(
        "CONFIG-ONCE",
        "System",
        "Settings come from dragoman.toml and the environment, are read once, and a wrong one is "
        "named.",
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
        "A program is run without a shell, with the variables it was given, and is ended in time "
        "with everything in its process group; its output is bounded.",
    ),
    # --- notifications
    Requirement(
        "NOTIFY-NEWS",
        "S-OUT",
        "Entering review, blocked or done (or the statuses that are set) makes one notice, which "
        "names task, title, from, to, reason, actor and time; nothing else makes one.",
    ),
    Requirement(
        "NOTIFY-AT-LEAST-ONCE",
        "S-OUT",
        "Every notice is delivered to every target, in order, at least once and under an id that "
        "stays; after a documented number of failures it is written down as given up.",
    ),
    Requirement(
        "NOTIFY-NOT-IN-THE-WAY",
        "S-OUT",
        "A target that fails, hangs or is set up wrongly delays neither a transition nor another "
        "target, and a run takes a bounded time.",
    ),
    Requirement(
        "NOTIFY-WEBHOOK",
        "S-OUT",
        "A notice is posted with its id, its time and an HMAC-SHA256 over both and the body; any "
        "2xx means that it has arrived.",
    ),
    Requirement(
        "NOTIFY-COMMAND",
        "S-OUT",
        "A notice is given to a program on its standard input; exit code 0 means that it has "
        "arrived.",
    ),
    Requirement(
        "NOTIFY-SECRETS",
        "S-OUT",
        "The webhook's URL and secret appear in no error, file, log or child process.",
    ),
    # --- faults
    Requirement(
        "CRASH-FAILPOINTS",
        "Faults",
        "Killed at any named failpoint and started again, the hub has lost no acknowledged write, "
        "repeated none, and verifies.",
    ),
    Requirement(
        "POWER-CUT",
        "Faults",
        "Whenever the power goes, and whatever a disk makes of what was not synced, the hub has "
        "lost no acknowledged write, repeats none, and verifies.",
    ),
    Requirement(
        "POWER-TEETH",
        "Faults",
        "The power test finds lost writes where SQLite syncs less than FULL, where a new name is "
        "not synced, and where the answer comes before the commit.",
    ),
    Requirement(
        "DISK-FULL",
        "Faults",
        "On a full disk, at whatever size, writes are refused with a clear word, reads work, "
        "nothing acknowledged is lost, and work goes on when there is space.",
    ),
    Requirement(
        "DISK-ERROR",
        "Faults",
        "Whichever read, write or sync of a disk fails: no answer is given for what is not on it, "
        "and after a failed sync the writer begins anew from what is.",
    ),
    Requirement(
        "CRASH-KILL",
        "Faults",
        "Killed at any moment, a thousand times in the everyday suite, the hub has lost no "
        "acknowledged write, doubled none and half done none; the ledger verifies, the views equal "
        "the replay, the files agree with the store.",
    ),
    Requirement(
        "CRASH-RECOVERY",
        "Faults",
        "Killed again while it recovers from a kill, the hub is as it would have been without.",
    ),
    Requirement(
        "CRASH-TEETH",
        "Faults",
        "Builds that answer before the commit, ask without keys, ignore the fence or lose a "
        "wake-up are found out by the same checks that ours passes.",
    ),
    Requirement(
        "TIME-JUMPS",
        "Faults",
        "A hub's clock that jumps a day forward or back, or stands still, loses and doubles "
        "nothing: no lease has two holders, and work goes on.",
    ),
    Requirement(
        "TIME-STOPPED-WORKER",
        "Faults",
        "A worker that was stopped for twice its TTL finds every write refused as lease_lost, and "
        "whoever has its task by then is not disturbed.",
    ),
    Requirement(
        "INCIDENTS-OF-OTHERS",
        "Faults",
        "Failures that others had with stores and leases, told by the number under which they "
        "were reported, do not happen here.",
    ),
    Requirement(
        "MODEL-REPLAY",
        "Faults",
        "For any sequence of commands the model, the implementation and the replay of the ledger "
        "agree.",
    ),
    # --- faults of PostgreSQL
    Requirement(
        "PG-CUTS",
        "Faults",
        "Connections to PostgreSQL that are cut at any byte, in either direction, lose nothing that"
        " was acknowledged and double nothing; who repeats a key gets the first answer.",
    ),
    Requirement(
        "PG-KILLED",
        "Faults",
        "A PostgreSQL that is killed and started again, under load or during a recovery, loses "
        "nothing that was acknowledged, doubles nothing and leaves no task behind.",
    ),
    Requirement(
        "PG-PROCESSES",
        "Faults",
        "Of several hub processes that claim the same tasks one wins each, while a reader that "
        "tails the ledger misses nothing and sees nothing twice.",
    ),
    Requirement(
        "PG-STOPPED",
        "Faults",
        "A hub that is stopped within a transaction keeps others from its task for a bounded time "
        "only; when it goes on, what it had decided is not written.",
    ),
    Requirement(
        "PG-TEETH",
        "Faults",
        "The checks find stores that are broken on purpose: positions of a plain sequence, an "
        "unknown outcome that is simply done again, an answer before the commit is written.",
    ),
    Requirement(
        "STORE-SECRET",
        "S-IDEM",
        "A store knows which secret its digests are keyed with: a hub with another one is refused "
        "at opening and told which folder to copy; doctor says the same.",
    ),
    Requirement(
        "STORE-LOST",
        "Faults",
        "A database that was signed for and is gone is not made anew by any command; all of them "
        "say how it comes back.",
    ),
    # --- the plain-files face
    Requirement(
        "FILES-TASK-FILE",
        "S-AOF-13",
        "A task is a Markdown file with front matter, body and work log; what people type by hand "
        "is understood, or the line that cannot be is named.",
    ),
    Requirement(
        "FILES-ROUND-TRIP",
        "S-AOF-13",
        "Any text in titles, bodies, notes and blockers comes back from its file as it was, and "
        "can neither make a field, a line or a section nor steer a terminal.",
    ),
    Requirement(
        "FILES-ARTIFACTS",
        "S-AOF-13",
        "run.json, run_heartbeat.json, run_result.json, handoff.json and handoff.md are written as "
        "the specification shows them; earlier attempts are kept under attempts/N.",
    ),
    Requirement(
        "FILES-PROJECTION",
        "S-AOF-13",
        "The files of tasks, runs and events lie at their paths and are level with the ledger "
        "when the projector returns, whoever else projects at the same time.",
    ),
    Requirement(
        "FILES-CRASH",
        "S-AOF-13",
        "After a crash between any two file operations the next run brings all files to what an "
        "undisturbed projection writes, and every event line stands there once.",
    ),
    Requirement(
        "FILES-FOLDER",
        "S-AOF-13",
        "A task's folder moves with it; a file that is being written goes on, what was written to "
        "the old path is merged, and nothing is ever overwritten.",
    ),
    Requirement(
        "FILES-EDITS",
        "S-AOF-13",
        "An edited or moved task file is a request: applied and recorded, or undone with a note "
        "beside it and the person's text kept; a task never stands in two folders.",
    ),
    Requirement(
        "FILES-COMPARE",
        "S-AOF-13",
        "Files that are missing, changed or surplus are found, and a rebuild restores them.",
    ),
    Requirement(
        "FILES-INBOX",
        "S-AOF-14",
        "A file in the inbox is sent once, as its folder's agent or as the sender that it names, "
        "and ends in processed/ or, with its reason, in rejected/; what is not a plain file is "
        "never opened.",
    ),
    Requirement(
        "FILES-BENEATH",
        "Threats",
        "No link beneath the data directory is followed, whatever an agent puts there.",
    ),
    Requirement(
        "FILES-ARCHIVE",
        "Files",
        "A whole data directory is exported and imported verbatim, verified on both sides; a "
        "damaged archive is refused with its first bad item and leaves nothing behind.",
    ),
    Requirement(
        "FILES-DISK",
        "Faults",
        "On a full or read-only disk the answer stands and a warning says that the files lag; "
        "nothing is damaged, and the next run brings them level.",
    ),
    # --- dialects
    Requirement(
        "JSON-STRICT",
        "S-LIMIT",
        "Any bytes give a JSON value that every reader understands alike, or a clean error with "
        "its place: size, depth, number of values, length of keys, keys that stand twice, NaN, "
        "half surrogate pairs, UTF-8 and whole numbers are checked.",
    ),
    Requirement(
        "JSON-LOOSE",
        "S-MAIL-4",
        "Of JSON that is broken, the rest can be read: any text gives a value, and never an error.",
    ),
    Requirement(
        "PATH-INSIDE",
        "Threats",
        "A path from outside is relative and leads downwards, or the reason why not is named.",
    ),
    Requirement(
        "DIALECT-DOORS",
        "Dialects",
        "A door sends any message and calls any operation of any dialect without naming one; "
        "alone or together with other callers the answers and the entries are the same.",
    ),
    Requirement(
        "DIALECT-NOBODYS",
        "S-AOF-1",
        "Of a message that is nobody's every door says the same: that it is no JSON and where, or "
        "what a message of each dialect that is meant is known by.",
    ),
    Requirement(
        "DIALECT-RECORD",
        "Dialects",
        "What a dialect claims and cannot carry out is refused and recorded with its speaker; what "
        "no dialect claims leaves no trace.",
    ),
    Requirement(
        "DIALECT-COMPLETE",
        "Dialects",
        "A dialect has a word for every refusal and a rendering, or a silence on purpose, for "
        "every event; each of its operations has a case that is a yes, a name of its own and a "
        "shape that can be published, and refuses nonsense with a code of the dialect.",
    ),
    # --- AOF/1
    Requirement(
        "AOF-DETECT",
        "S-AOF-1",
        "A message is found bare, under payload, message or content, as JSON text, and behind the "
        "prefix AOF/1; other text and JSON is not ours.",
    ),
    Requirement(
        "AOF-ORDER",
        "S-AOF-2",
        "Checks come in this order: size, JSON, envelope, type, taskId, task, identity, already "
        "there, authority, state.",
    ),
    Requirement(
        "AOF-ENVELOPE",
        "AOF/1: Protocol Envelope",
        "Every field of the envelope and of the five payloads is checked, and what is wrong is "
        "named with its path; unknown fields are kept and decide nothing.",
        divergence="Every text and list has a bound, names follow a grammar, and references lead "
        "downwards: the specification leaves these open (S-LIMIT, S-NAME).",
    ),
    Requirement(
        "AOF-COMPLETION",
        "S-AOF-3",
        "A report is kept with its attempt and logged at once; its transitions come with the end "
        "of its session, or at once where that is configured; the latest report counts.",
    ),
    Requirement(
        "AOF-STATUS",
        "AOF/1: Status Update Protocol",
        "An update moves the task with the first of blockers, notes and progress as its reason; "
        "without a status, or without a way there, it is a line of the work log.",
    ),
    Requirement(
        "AOF-HANDOFF",
        "S-AOF-7",
        "A handoff is requested once however often it is sent, accepted, or rejected into blocked; "
        "depth, parent and deadline are checked.",
    ),
    Requirement(
        "AOF-AUTHORITY",
        "S-AOF-4",
        "Completion and status come from the holder, a request from the parent's holder or an "
        "orchestrator, an answer from the agent that was asked.",
    ),
    Requirement(
        "AOF-IDENTITY",
        "S-ROLE",
        "No message speaks for somebody else than its speaker, in whatever field it tries.",
    ),
    Requirement(
        "AOF-REPEAT",
        "S-IDEM",
        "A message sent again, wrapped or not, is answered as before and adds nothing; a session "
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
        "Event lines have rising ids, the specification's names, actor, task and payload; one "
        "task.transitioned for each real transition, with its real from.",
    ),
    Requirement(
        "AOF-WARNINGS",
        "S-AOF-10",
        "A summary or a named handoff that is not in the task's folder is a warning and no "
        "obstacle; one that points outside is refused.",
    ),
    Requirement(
        "AOF-TOOLS",
        "S-AOF-11",
        "aof_task_complete and aof_task_update do what the messages do.",
    ),
    Requirement(
        "AOF-SESSION-END",
        "S-AOF-3",
        "The end of a session applies what its attempts have reported and touches no other; "
        "without a name only whoever runs the show may end all that have reported.",
    ),
    Requirement(
        "AOF-TIMES",
        "S-AOF-12",
        "sentAt and dueBy are RFC 3339 with Z or an offset; projectId is optional and kept.",
    ),
    Requirement(
        "AOF-EXAMPLES",
        "AOF/1: Examples",
        "The specification's examples do as messages what the specification says that they do.",
    ),
    Requirement(
        "AOF-FUZZ",
        "Faults",
        "Any bytes, and any mutation of a message, are answered or ignored: never an exception.",
    ),
    Requirement(
        "AOF-GUIDE",
        "Project",
        "Every message in the AOF guide passes lint --strict, every code that a message can meet "
        "is explained there, and its shell commands run as they stand.",
    ),
    Requirement(
        "AOF-LINT",
        "Command line",
        "lint says of any JSON value whether it is AOF/1, of which type, and all that is wrong.",
    ),
    # --- the door for programs
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
        "Every route but health and the description of the API wants a token; what it may do is "
        "what its bearer may.",
    ),
    Requirement(
        "HTTP-METHODS",
        "HTTP",
        "GET changes nothing; another method and an unknown address are problems that say what is "
        "taken.",
    ),
    Requirement(
        "HTTP-RATE",
        "HTTP",
        "Each caller may ask so often and no more; others are not concerned; 429 says when to come "
        "back.",
    ),
    Requirement(
        "HTTP-EXPOSURE",
        "HTTP",
        "An address that others can reach is refused without TLS or a declared proxy.",
    ),
    Requirement(
        "HTTP-PROBLEMS",
        "HTTP",
        "Every error is a problem document with a stable code, and every code has its status.",
    ),
    Requirement(
        "HTTP-LIMITS",
        "HTTP",
        "A body that is too long, too slow, of another type or no JSON is refused before anything "
        "is done; slow and half-open connections are cut.",
    ),
    Requirement(
        "HTTP-OFFERS",
        "HTTP",
        "A request that offers to speak another protocol is answered as if it did not, body and "
        "all.",
    ),
    Requirement(
        "HTTP-BEHIND",
        "HTTP",
        "What cannot be understood behind a request takes the place of no answer: all that was "
        "asked for before is answered, and then the connection ends.",
    ),
    Requirement(
        "HTTP-TAKING",
        "HTTP",
        "A caller that takes nothing of its answer is cut off, one that takes it slowly gets all "
        "of it, and the reader of a stream may take its time.",
    ),
    Requirement(
        "HTTP-MESSAGES",
        "HTTP",
        "A message of any dialect is taken and answered in its dialect; a batch has one answer per "
        "line, in order, and a bad line spoils no other.",
    ),
    Requirement(
        "HTTP-OPERATIONS",
        "HTTP",
        "Every operation of every dialect has an address, and answers in its dialect's own form.",
    ),
    Requirement(
        "HTTP-DO",
        "HTTP",
        "The owner of the data directory runs commands in anybody's name, and nobody else does.",
    ),
    Requirement(
        "HTTP-KEYS",
        "HTTP",
        "An Idempotency-Key makes a repeat do nothing and answer as before.",
    ),
    Requirement(
        "HTTP-RESOURCES",
        "HTTP",
        "Tasks, runs, events and agents can be read in pages, by filters, and with ETags; tasks "
        "can be made, claimed, kept alive, given back, moved, noted, linked and reported on.",
    ),
    Requirement(
        "HTTP-WAIT",
        "HTTP",
        "Events and work can be waited for; a wait ends when there is something, and a caller that "
        "has gone gets nothing.",
    ),
    Requirement(
        "HTTP-WORK",
        "HTTP",
        "Of many who wait for one task exactly one gets it.",
    ),
    Requirement(
        "HTTP-STREAM",
        "HTTP",
        "The stream tells every wanted entry once, in order, from any position on.",
    ),
    Requirement(
        "HTTP-STREAM-SLOW",
        "HTTP",
        "Readers that do not read cost a bounded amount of memory and slow nobody; one that is too "
        "far behind is told which positions it misses.",
    ),
    Requirement(
        "HTTP-STREAM-LEVEL",
        "HTTP",
        "A reader that is level is written to without its coroutine, and sees everything once and "
        "in order also when it falls behind and comes up again.",
    ),
    Requirement(
        "HTTP-STAYS",
        "HTTP",
        "One caller cannot take all streams and waits, nor all sessions of MCP; a stream ends with "
        "the token that opened it.",
    ),
    Requirement(
        "HTTP-ROOM",
        "HTTP",
        "The hub takes as many connections as it may have open files, says so above that, and "
        "keeps none idle when they are scarce.",
    ),
    Requirement(
        "HTTP-CORS",
        "HTTP",
        "Pages of an allowed origin can call every address from a browser and read the answers; "
        "others are told nothing that would let them.",
    ),
    Requirement(
        "HTTP-PROXY",
        "HTTP",
        "Behind a declared proxy a connection comes from it or from this machine, or is refused.",
    ),
    Requirement(
        "HTTP-OPENAPI",
        "HTTP",
        "/openapi.json describes every route, is valid OpenAPI 3.1, and the API does what it says "
        "under generated requests; /docs shows it without anything from elsewhere.",
    ),
    Requirement(
        "HTTP-HEALTH",
        "HTTP",
        "/healthz says that the process lives; /readyz tells the truth about store, ledger and "
        "duties; /metrics counts in Prometheus' format.",
    ),
    Requirement(
        "HTTP-STOP",
        "HTTP",
        "A hub that stops sends away whoever waits, and answers what is under way.",
    ),
    Requirement(
        "ENGINE-HINTS",
        "Engine",
        "Whoever listens is told of every commit, until it no longer wants to be.",
    ),
    Requirement(
        "ENGINE-TAIL",
        "Engine",
        "Whoever follows the ledger gets what this process has just committed without reading it "
        "back, exactly as the store has it, and reads the store for everything else.",
    ),
    Requirement(
        "ENGINE-SHOWN",
        "Engine",
        "Tasks and entries have one shape for every door.",
    ),
    # --- running agents
    Requirement(
        "RUN-PROGRAM",
        "Agents",
        "An agent may be a program: started without a shell for each attempt, in the task's own "
        "folder, with its prompt on standard input or in a file, and with a token of that "
        "attempt.",
    ),
    Requirement(
        "RUN-ENVIRONMENT",
        "Agents",
        "Of the hub's variables a program gets a short list and those that are named in its "
        "section; no other reaches it.",
    ),
    Requirement(
        "RUN-DESK",
        "Agents",
        "An attempt has the task's folder, its prompt and a log of its own; the log of an "
        "earlier attempt is kept, and no link leads out of the data directory.",
    ),
    Requirement(
        "RUN-PROMPT",
        "Agents",
        "The prompt holds the task, what was agreed on, and an example of a report that passes "
        "lint.",
    ),
    Requirement(
        "RUN-MESSAGES",
        "Agents",
        "A line of a program's output that begins with AOF/1 is a message of that agent, bound "
        "to its attempt; what is refused stands in the log of the run.",
    ),
    Requirement(
        "RUN-OUTPUT",
        "Agents",
        "Output is kept line by line up to a limit, harmless for terminals and without the "
        "token; any amount of it neither holds the program up nor fills the disk, however it is "
        "cut.",
    ),
    Requirement(
        "RUN-BEATS",
        "Agents",
        "While its program lives, an agent's lease is renewed.",
    ),
    Requirement(
        "RUN-SESSION-END",
        "Agents",
        "The exit of a program is the end of its session: what it reported takes effect.",
    ),
    Requirement(
        "RUN-UNREPORTED",
        "Agents",
        "A program that fails without a report has failed its attempt at once; one that ends "
        "well without a report leaves its task to a review; either is on record as the hub's word, "
        "which run.json and /v1/runs tell, and no run_result.json says that the agent reported.",
    ),
    Requirement(
        "RUN-STOP",
        "Agents",
        "Whoever loses its lease or takes too long is ended with its whole session: asked, then "
        "killed; what a program leaves in its session ends with it.",
    ),
    Requirement(
        "RUN-NOT-STARTED",
        "Agents",
        "An agent that cannot be started rests, longer each time; its task goes back to the "
        "queue and has not failed.",
    ),
    Requirement(
        "RUN-WORKTREE",
        "Agents",
        "A task may get a git worktree and a branch of its own, which later attempts find "
        "again; hooks of the repository are not run.",
    ),
    Requirement(
        "RUN-REMOTE",
        "Agents",
        "An agent may be a URL: its assignment is posted to an allowed address under a stable "
        "id, its own messages keep its lease, and its report ends its session.",
    ),
    Requirement(
        "RUN-LEFTOVERS",
        "Agents",
        "What a killed hub has left running is ended by its recorded number and start or by its "
        "session, never by a name; nobody else is.",
    ),
    Requirement(
        "RUN-RECIPES",
        "Agents",
        "The recipes of the docs are settings that load; the one of the plain script runs as it "
        "stands.",
    ),
    Requirement(
        "DISPATCH-ORDER",
        "Agents",
        "When not all can run, the most urgent ready task is given out first, whichever agent "
        "it is for.",
    ),
    Requirement(
        "DISPATCH-FAIR",
        "Agents",
        "Of agents that may all have a task, whoever has failed less often of late gets it, then "
        "whoever waits longest, also after a restart; and who has failed at a task gets it again "
        "only when nobody else may have it.",
    ),
    Requirement(
        "DISPATCH-CONCURRENCY",
        "Agents",
        "No more agents work at the same time than are allowed, each and all together; and no "
        "task is given out while anything of an earlier attempt on it is still running.",
    ),
    Requirement(
        "DISPATCH-MATCH",
        "Agents",
        "A task goes to the agent that it is assigned to, to one that has the capability that "
        "it is assigned to, or, unassigned, to one that takes any.",
    ),
    Requirement(
        "DISPATCH-SHARED",
        "Agents",
        "What another hub of the same store does to a task, or to its agent, ends the agent that "
        "works on it here as if it had been done here.",
    ),
    Requirement(
        "DISPATCH-BUDGET",
        "Agents",
        "An agent that has used up its attempts, minutes, output or cost of a day pauses until "
        "the next or until somebody lets it go on; the pause and the question are recorded once, "
        "reach those who can answer, and survive a restart. What runs counts already.",
    ),
    Requirement(
        "AGENT-PAUSE",
        "Agents",
        "The hub, people and orchestrators can pause an agent; people and orchestrators let it go "
        "on. Nothing is started for it meanwhile, and everybody sees why.",
    ),
    Requirement(
        "RUN-LEAVE",
        "Agents",
        "A program whose report has taken effect may go on for a while, and is ended then.",
    ),
    Requirement(
        "DISPATCH-STOP",
        "Agents",
        "At a stop agents may finish for a while; then what is unfinished goes back to its "
        "queue without a failure, or is kept for its agent.",
    ),
    Requirement(
        "DISPATCH-RESTART",
        "Agents",
        "After a kill everything is recovered and nothing is doubled: a report counts, a lost "
        "program has failed its attempt, what never began begins in its attempt.",
    ),
    Requirement(
        "DISPATCH-STORE",
        "Faults",
        "While the store is away the dispatcher says so and asks again.",
    ),
    Requirement(
        "DISPATCH-CLOCK",
        "Faults",
        "A clock that is set back keeps leases alive; one that jumps forward ends them, and with "
        "them the agents, before anybody else gets the task.",
    ),
    Requirement(
        "DISPATCH-IDLE",
        "Agents",
        "Without agents the dispatcher settles what an earlier hub has left, and does no more.",
    ),
    Requirement(
        "SYSTEM-PROCESS",
        "System",
        "A program that runs for a while has a session of its own, is heard on both of its ways, "
        "and is ended as a whole.",
    ),
    # --- the hub
    Requirement(
        "HUB-UP",
        "Hub",
        "`dragoman up` starts everything from one command, says where it listens, where the data "
        "is and what to do next, and drains at a signal.",
    ),
    Requirement(
        "HUB-CLI",
        "Hub",
        "While a hub runs, commands go through it; otherwise they open the store themselves.",
    ),
    Requirement(
        "HUB-DUTIES",
        "Hub",
        "Duties run in the background at their pace and at a hint; one that fails or hangs holds "
        "up no other, and is told.",
    ),
    Requirement(
        "HUB-INBOX",
        "Hub",
        "A message that is put into the inbox is taken soon, also after a round that had many.",
    ),
    # --- the SDK
    Requirement(
        "SDK-WORK",
        "SDK",
        "An agent's program gets its tasks one by one, waits for them without polling, says how it "
        "goes, ends each in every way there is, and hands parts of it to other agents.",
    ),
    Requirement(
        "SDK-OWNER",
        "SDK",
        "Whoever claims in an agent's name is given a token for that attempt, and goes on as the "
        "agent: on one's own machine nothing asks for more.",
    ),
    Requirement(
        "SDK-HEARTBEAT",
        "S-RUN",
        "A heartbeat in the background keeps the lease for as long as the work takes.",
    ),
    Requirement(
        "SDK-LEASE-LOST",
        "S-RUN",
        "When the lease is lost, or the hub stays away for longer than it lasts, whoever works on "
        "that task, and nobody else, is cancelled, and its block raises LeaseLost.",
    ),
    Requirement(
        "SDK-LEFT",
        "SDK",
        "Work that is left by an exception or without a word has failed and says why; a worker "
        "that is stopped gives its task back; what went wrong first is what is raised.",
    ),
    Requirement(
        "SDK-CRASH-SAFE",
        "S-IDEM",
        "A write is sent again under the key that it had from the start, after a lost connection, "
        "an overload or a restart of the hub, for as long as there is patience; it happens once. A "
        "worker that is killed is followed by another.",
    ),
    Requirement(
        "SDK-EVENTS",
        "SDK",
        "Events are followed by a stream that is taken up where it broke off, or by pages where no "
        "stream gets through: none is missed, none comes twice.",
    ),
    Requirement(
        "SDK-CALLS",
        "SDK",
        "Tasks, messages of any dialect, batches of them and operations by name, as the hub has "
        "them, with its refusals.",
    ),
    Requirement(
        "SDK-SYNC",
        "SDK",
        "The face without an event loop can say all that the other can, and leaves no thread "
        "behind.",
    ),
    Requirement(
        "SDK-ASSIGNED",
        "SDK",
        "A program that a hub has started gets the task it was started for, alive and watched.",
    ),
    Requirement(
        "SDK-ADDRESS",
        "SDK",
        "The hub and the token are what the caller says, else the environment, else the data "
        "directory; the token of a data directory is shown to its own hub only.",
    ),
    Requirement(
        "SDK-GUIDE",
        "Project",
        "The programs of the SDK's guide run as they stand, and do what it says.",
    ),
    # --- for people who test their agents
    Requirement(
        "TESTING-HUB",
        "Testing",
        "dragoman.testing gives a hub in memory or on a temporary SQLite, with a clock moved by "
        "hand.",
    ),
    Requirement(
        "TESTING-EXAMPLE",
        "Testing",
        "The worked example of the docs is itself a test of an agent's crash and recovery.",
    ),
    # --- letters at the doors
    Requirement(
        "MAIL-FILES",
        "S-MAIL",
        "Each letter is a file mail/<thread>/NNNN-<TYPE>.md, numbered in its thread, written anew "
        "when it is read, acked or answered; its cost does not grow with the thread.",
    ),
    Requirement(
        "MAIL-HOSTILE",
        "S-MAIL",
        "No terminal code, bidi character, HTML or front matter in a letter acts: not in its file, "
        "not on a terminal, not through any door; a letter that is too long is refused.",
    ),
    Requirement(
        "MAIL-HTTP",
        "S-MAIL",
        "A box is waited for over HTTP without polling and goes on from a cursor; a letter sent "
        "again under its key is one letter; a stream of an agent has the letters to it.",
    ),
    Requirement(
        "CLI-MAIL",
        "S-MAIL",
        "mail send, inbox, show, thread, ack, read, search and summarize, for people and as JSON, "
        "with a filter for each of S-MAIL-6; inbox --watch tells letters as they come.",
    ),
    Requirement(
        "MAIL-MCP",
        "S-MAIL",
        "Tools send, show, ack and find letters; inbox has the unread ones, send takes a letter as "
        "any message, and a thread is a resource.",
    ),
    # --- waves and reservations
    Requirement(
        "WAVE-START",
        "S-MAIL-10",
        "A wave is started by orchestrators, coordinators and people: unknown beads are "
        "adopted and "
        "held back, ready ones are put back, and those that run or have ended count as they stand.",
    ),
    Requirement(
        "WAVE-PARALLEL",
        "S-MAIL-10",
        "A wave lets its beads go in order, and never so that more of them than its "
        "limit are ready "
        "or in progress.",
    ),
    Requirement(
        "WAVE-FILES",
        "S-MAIL-10",
        "Two beads that want the same file, of one wave or of two, are let go one after the other, "
        "and neither while somebody else has reserved it exclusively.",
    ),
    Requirement(
        "WAVE-BOUNDED",
        "S-MAIL-10",
        "What a wave's next step costs grows with its beads and files, not with their pairs.",
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
        "that is recorded once, with counts, and told by letter to whoever started it.",
    ),
    Requirement(
        "WAVE-RECOVERY",
        "S-MAIL-10",
        "A wave goes on from the ledger, wherever its orchestrator or the hub died.",
    ),
    Requirement(
        "WAVE-STATUS",
        "S-MAIL-10",
        "The status of a wave names each bead and what it waits for: a slot, a file and "
        "who has it, "
        "another task, its rest, or somebody to claim it.",
    ),
    Requirement(
        "RESERVE-TAKE",
        "S-MAIL-10",
        "Files are reserved by path or glob, shared or exclusively, for a time; a conflict is "
        "refused as reserved and names the holder, the pattern and until when.",
    ),
    Requirement(
        "RESERVE-END",
        "S-MAIL-10",
        "A reservation ends when it is released, when its time is over, and when the "
        "attempt that it was taken for has ended; nobody has to clean up after a holder that died.",
    ),
    Requirement(
        "RESERVE-SHARE",
        "S-MAIL-10",
        "An agent has a share of what can be reserved, for a day at most, and never everything: "
        "it cannot stop the waves and the other agents.",
    ),
    Requirement(
        "RESERVE-GLOBS",
        "S-MAIL-10",
        "Two patterns conflict exactly when some path is meant by both of them; a plain path "
        "means all that is below it, unless its name has an ending.",
    ),
    Requirement(
        "GUARD-COMMIT",
        "S-MAIL-10",
        "A git hook refuses a commit of files that somebody else has reserved exclusively, names "
        "them, and lets pass where there is no hub; a hook of somebody else is never overwritten.",
    ),
    Requirement(
        "CLI-WAVE",
        "S-MAIL-10",
        "wave start, status, watch and list, and reserve take, renew, release and list, for people "
        "and as JSON; watch ends with the closing report.",
    ),
    # --- the project itself
    Requirement(
        "PROJECT-IMPORTS",
        "Project",
        "Imports go down the house only, every module has its place in the list, the pure rooms "
        "touch nothing outside, and database drivers stay in the store.",
    ),
    Requirement(
        "PROJECT-GATES",
        "Project",
        "Every gate runs even when an earlier one failed, and one failure fails the whole.",
    ),
    Requirement(
        "PROJECT-REQUIREMENTS",
        "Project",
        "Every requirement has a test, and every test names a requirement.",
    ),
    Requirement(
        "PROJECT-SERVERS",
        "Project",
        "A test gets an empty schema of a real PostgreSQL, and an abandoned server is swept away.",
    ),
    Requirement(
        "PROJECT-DOCS",
        "Project",
        "The commands and links of README, CONTRIBUTING and the docs work as they are written.",
    ),
    # --- Agent Mail: letters as such
    Requirement(
        "MAIL-POST",
        "S-MAIL-7",
        "A letter lies in the box of each recipient, known or not, in its thread; it is read per "
        "recipient and acked once by each; limits and wrong callers are refused with a sentence.",
    ),
    Requirement(
        "MAIL-PAGES",
        "S-MAIL-7",
        "Boxes, threads, summaries and what is found come in pages that are bounded in letters and "
        "bytes; a page says whether it goes on, also when nothing in it fits.",
    ),
    Requirement(
        "MAIL-ACK",
        "S-MAIL-7",
        "An ack that does not come in time is told once, on record with its task, to "
        "orchestrators; "
        "answers ack what they answer.",
    ),
    Requirement(
        "MAIL-ADDRESS",
        "S-MAIL-7",
        "A letter goes to names, groups and roles; without a recipient to whoever letters of its "
        "type go to; one to somebody unknown waits, is visible, and is there when that one comes.",
    ),
    Requirement(
        "MAIL-REPEAT",
        "S-IDEM",
        "The same letter again, told by its id or its time, is answered as before and "
        "adds nothing; "
        "one with neither is a new letter.",
    ),
    Requirement(
        "MAIL-IDENTITY",
        "S-ROLE",
        "A letter is from its caller; any other `from` is refused and recorded.",
    ),
    Requirement(
        "MAIL-ADOPT",
        "S-ADOPT",
        "The first word of a worker about an unknown bead makes the task and claims it for the "
        "worker, each step recorded; answers never do, nor does anything where adopt = false.",
    ),
    Requirement(
        "MAIL-MEANING",
        "S-MAIL-9",
        "Each type of letter asks of its task what the table says: claim, log and renew, report, "
        "retry, block, hand on.",
    ),
    Requirement(
        "MAIL-REFUSED-EFFECT",
        "S-MAIL-9",
        "A letter whose effect is refused is delivered all the same; the refusal is recorded and "
        "told to its sender, as is what changed nothing and what could not be read.",
    ),
    Requirement(
        "MAIL-HELP",
        "S-MAIL-9",
        "A request for help changes no status, goes to the helper and to all orchestrators, is "
        "closed by an answer in its thread and by nothing else, and escalates once when "
        "none comes.",
    ),
    Requirement(
        "MAIL-CHECKPOINT",
        "S-MAIL-9",
        "A checkpoint gives the task back without an outcome; its successor gets the "
        "commit and the "
        "next steps, in its prompt, in its worktree and wherever the task is shown.",
    ),
    Requirement(
        "MAIL-SPAWN",
        "S-MAIL-9",
        "A request for a worker, by orchestrators only, puts the task into the queue, from its "
        "checkpoint on, and is answered with the session or with the reason why there is none.",
    ),
    Requirement(
        "ENGINE-EFFECT",
        "Engine",
        "What is to follow from a request is all or none by itself: refused, it leaves the request "
        "as it is, is recorded, and is told again to a repeat.",
    ),
    Requirement(
        "MAIL-TYPE",
        "S-MAIL-1",
        "A letter's type is the whole word in its place, in any case, else the first whole word in "
        "capitals; anything else is UNKNOWN.",
        divergence="The specification's parser takes any substring, so that ABANDONED was DONE.",
    ),
    Requirement(
        "MAIL-ECHO",
        "S-MAIL-1",
        "A reply that only repeats the type of what it replies to is a plain letter wherever it is "
        "looked at, and its sender is told.",
    ),
    Requirement(
        "MAIL-BEAD",
        "S-MAIL-2",
        "The bead is the one that the body names, else the one in the subject's brackets or before "
        "its colon; a disagreement is told.",
    ),
    Requirement(
        "MAIL-FIELDS",
        "S-MAIL-3",
        "Every field of every type is read, from labelled lines, lists and sections, whatever the "
        "case, the bullets, the line ends and the code around them.",
    ),
    Requirement(
        "MAIL-STRICT",
        "S-MAIL-4",
        "Strict refuses whatever is missing or wrong with a name and its line; lenient takes "
        "everything and lists what it could not read.",
    ),
    Requirement(
        "MAIL-COMPOSE",
        "S-MAIL-5",
        "Every type can be written, what was written passes strict mode, and reading it gives the "
        "same fields back, whatever text stands in them.",
    ),
    Requirement(
        "MAIL-FILTERS",
        "S-MAIL-6",
        "Letters are sifted by type, bead, thread and sender, by completion, success with or "
        "without all checks, missing ack and unread.",
    ),
    Requirement(
        "MAIL-ACK-DEFAULT",
        "S-MAIL-7",
        "A letter that does not say whether it wants an ack wants one if its type does.",
    ),
    Requirement(
        "MAIL-MODEL",
        "S-MAIL-8",
        "A program of the settings puts a thread into words when a person or an orchestrator asks "
        "for it; there is none by default, and one that fails leaves the summary as it is.",
    ),
    Requirement(
        "MAIL-THREAD",
        "S-MAIL-8",
        "The thread of a bead has all letters about it, in their order, wherever their senders put "
        "them.",
    ),
    Requirement(
        "MAIL-SUMMARY",
        "S-MAIL-8",
        "A thread is summed up from its letters alone: counts, last state, open questions, open "
        "acks, files, commits.",
    ),
    Requirement(
        "MAIL-ROWS",
        "S-MAIL-11",
        "Rows of MCP Agent Mail servers are read like our own.",
    ),
    Requirement(
        "MAIL-FUZZ",
        "S-MAIL-4",
        "No input of any kind makes the lenient reader raise, and its work grows with the input's "
        "length, not faster.",
    ),
    Requirement(
        "MAIL-LIBRARY",
        "S-MAIL-5",
        "The library's page shows the specification's example in Python, and it runs.",
    ),
    # --- handoffs: what is decided and kept
    Requirement(
        "ACP-STATES",
        "ACP §2",
        "Every pair of states of a handoff is a transition of the table or is refused as "
        "invalid_transition, which names the actions that there are; every transition is an entry.",
        divergence="accepted → rejected is ours: a recipient may change its mind before it begins "
        "(S-ACP-4).",
    ),
    Requirement(
        "ACP-CONTEXT",
        "ACP §2.3",
        "Nothing leaves draft without a summary, a next step and at least one success criterion; a "
        "draft is written over as often as its sender likes, and by nobody else.",
    ),
    Requirement(
        "ACP-PACKAGE-HASH",
        "S-ACP-2",
        "The package hash is that of the canonical JSON of all but the hash; a stated hash that is "
        "another is hash_mismatch; the package never changes after it.",
    ),
    Requirement(
        "ACP-ONE-ACTIVE",
        "S-ACP-6",
        "A task has at most one handoff under way; a second is refused as ownership_conflict of "
        "the kind active_handoff, and by others than the owner of the kind not_owner.",
    ),
    Requirement(
        "ACP-RACE",
        "S-ACP-6",
        "Of many that hand one task over at once exactly one wins, on every store; accept and "
        "reject at once are each an answer to their moment, and the rejection stands.",
    ),
    Requirement(
        "ACP-TABLE",
        "ACP §3.1",
        "The table handoffs and its index idx_handoffs_task_active exist with their names and "
        "columns, follow the ledger, are checked by verify, and have the last word in a race.",
        divergence="its default time is RFC 3339 with Z: datetime('now','utc') is wrong "
        "off UTC (S-ACP-12).",
    ),
    Requirement(
        "ACP-CHAIN",
        "S-ACP-5",
        "The chain holds the owners, the first one first; nobody in it can get the work again but "
        "by a rejection, which pops the chain.",
    ),
    Requirement(
        "ACP-OWNER",
        "S-OWN",
        "Until it is activated a task stays its owner's; then a new attempt of the recipient "
        "begins and the sender's token is dead. Meanwhile nobody else can claim it.",
    ),
    Requirement(
        "ACP-FOLLOWS-TASK",
        "S-OWN",
        "What happens to a task ends or completes its handoff as S-OWN says; a recipient that goes "
        "silent is told to the coordinator at once, as lease_lost.",
    ),
    Requirement(
        "ACP-WHOSE-WORD",
        "S-ACP-7",
        "A handoff that a report or a checkpoint completes, in whatever dialect, is completed by "
        "its recipient, in the words of that, also where somebody else has ended the session.",
    ),
    Requirement(
        "ACP-DECIDES-GATE",
        "S-ACP-3",
        "Accept goes through validating; what failed rejects by the system with the first reason, "
        "what could not be checked leaves it validating, and another package is hash_mismatch.",
    ),
    Requirement(
        "ACP-APPROVAL",
        "S-ACP-9",
        "A package that needs a person is accepted only after a person other than its sender has "
        "approved this very hash; a person who denies rejects it as policy_violation.",
    ),
    Requirement(
        "ACP-REJECT",
        "S-ACP-4",
        "A rejection has a reason, a detail and perhaps a fix, is told to the sender as "
        "system.error, and from activated re-opens the task; a sender withdraws before that.",
    ),
    Requirement(
        "ACP-CALLERS",
        "S-ACP-7",
        "Each action is for its own callers, and not_authorized for everybody else.",
    ),
    Requirement(
        "ACP-REDELEGATE",
        "S-ACP-15",
        "A recipient hands on what it has accepted or activated by a new handoff in the same "
        "transaction; the chain is kept, the task is not reported done.",
    ),
    Requirement(
        "ACP-PASSED-BACK",
        "S-ACP-5",
        "Whoever has passed work on in vain may offer it, in the place of that, to the one who had "
        "it before; activated, it is as if it had never gone on from there.",
        divergence="S-ACP-5 has work go back by reject alone; passing it on (S-ACP-15) ends the "
        "handoff that could be rejected.",
    ),
    Requirement(
        "ACP-COUNTER-OFFER",
        "S-ACP-15",
        "A new handoff can supersede a rejected one of the same task, or the sender's own offer; "
        "artifacts can be left out of what is accepted.",
    ),
    Requirement(
        "ACP-FROM-REVIEW",
        "S-ACP-17",
        "After complete the task is in review, and its owner may hand it on from there.",
    ),
    Requirement(
        "ACP-SLA",
        "S-ACP-10",
        "A state that lasts too long is told to the coordinator once for each entry into it, "
        "however often and by how many the sweep is run, also after the hub was down or the clock "
        "went back; nothing moves by it. One that ends before anybody has looked is on record too.",
        divergence="more time by a coordinator is a new clock: when it is over that is told too, "
        "once.",
    ),
    Requirement(
        "ACP-COORDINATE",
        "ACP §7.3",
        "A coordinator gives a state more time, reassigns the package, rejects and closes.",
    ),
    Requirement(
        "ACP-BESIDE",
        "S-ACP-11",
        "Updates of the work, states of a work queue and notes stand beside the package.",
    ),
    Requirement(
        "ACP-REPEAT",
        "S-IDEM",
        "An action repeated by the same caller in the same words adds nothing, also when the "
        "handoff has gone on since; other words are no repeat.",
    ),
    Requirement(
        "ACP-GOES-ON",
        "S-OWN",
        "A recipient whose lease has ended, or whose task was blocked, goes on by activating "
        "again: a new attempt under a new fencing token, and no other state.",
    ),
    Requirement(
        "ACP-DRAFT-PARTS",
        "S-ACP-1",
        "Parts of a draft that are written at once are all kept, and what was not read is not "
        "offered.",
    ),
    Requirement(
        "ACP-DELEGATED",
        "S-OWN",
        "What is handed over is not delegated, and what is delegated to another is not handed "
        "over.",
    ),
    Requirement(
        "ACP-MODEL",
        "ACP §2",
        "Whatever is asked for in whatever order: the states, owners and chains are those of a "
        "simple model, and a replay gives the same.",
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
        "bench prints every pair of one run: lifecycles and completion reports beside hand-written "
        "loops, many tasks beside few, the files beside raw atomic writes.",
    ),
    Requirement(
        "BENCH-REPORT-BYTES",
        "Speed",
        "The measured completion reports have 600 bytes each, differ, and reach every task.",
    ),
    # --- handoffs: how they are read, audited and measured
    Requirement(
        "ACP-READ",
        "S-ACP-7",
        "Handoffs are listed newest first by state, task, sender, recipient and teamspace, a "
        "bounded page at a time, and shown with everything that was said about them; a draft is "
        "shown to its sender only.",
    ),
    Requirement(
        "ACP-BLOCK",
        "S-OWN",
        "What was blocked or put aside after a handoff was offered, by its place in the ledger, is "
        "begun neither by its recipient nor by whom it is reassigned to, also once it was "
        "activated: whoever may has to make the task ready first, and diagnose says so.",
    ),
    Requirement(
        "ACP-WAYS",
        "S-ACP-7",
        "Every way that a refusal about a handoff names is open to whoever reads it: the hub has "
        "tried it. Who else has to act is named with a role, or a name, that may.",
    ),
    Requirement(
        "ACP-DIAGNOSE",
        "S-ACP-10",
        "Of every handoff it can be said what it waits for, who has to act, by when and with which "
        "command, and what else stands in its way.",
    ),
    Requirement(
        "ACP-AUDIT",
        "S-ACP-13",
        "handoffs.jsonl of a teamspace holds each event of its handoffs once, in seven types of "
        "line, both the transition and the specific event; it is made good after a crash or a torn "
        "write, compared by verify, and written anew from the ledger.",
        divergence="The specification's row `jected` is handoff_rejected; a person's approval is a "
        "handoff_verification; lines carry more keys than the specification lists.",
    ),
    Requirement(
        "ACP-AUDIT-REPLAY",
        "S-ACP-13",
        "Replaying handoffs.jsonl into nothing gives the same state of every handoff, the same "
        "owner and the same chain as the ledger; a line that cannot be true is named.",
    ),
    Requirement(
        "ACP-PACKAGE",
        "S-ACP-1",
        "A package has every part that the protocol names, in closed shapes; its JSON Schema "
        "(2020-12) is published by `dragoman schema acp` and says yes and no where the shapes do.",
        divergence="Keys that are not known are refused: a misspelt requires_human_approval must "
        "not pass for none.",
    ),
    Requirement(
        "ACP-DRAFT",
        "S-ACP-1",
        "A draft is made step by step, checked, and offered; nobody but its sender sees it, and "
        "without summary, next step and a criterion it stays one.",
    ),
    Requirement(
        "ACP-RESPONSE",
        "S-ACP-16",
        "Every action is answered in the one response form of the protocol, refused or not, over "
        "HTTP, MCP, the SDK and `dragoman call`; an ownership_conflict says of which kind it is.",
    ),
    Requirement(
        "ACP-GATE",
        "S-ACP-3",
        "accept checks schema, policy, artifacts, cycle and hash, lists every failure, and rejects "
        "for the first; passing trouble or a missing approval leaves it validating, to try again.",
    ),
    Requirement(
        "ACP-ARTIFACTS",
        "S-ACP-8",
        "Artifacts lie beneath configured roots, are opened without following a link, hashed from "
        "the open file and kept as they were hashed; their copies are checked again at activate.",
    ),
    Requirement(
        "ACP-SECRETS",
        "S-SAOP-4",
        "A package that holds a secret is refused, when it is offered and at the gate, with the "
        "place of the secret and without it; other texts of a handoff are masked.",
    ),
    Requirement(
        "ACP-PARTIAL",
        "S-ACP-15",
        "A recipient may leave artifacts out when it accepts; what it left out is on record.",
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
        "offer before that has taken effect; what is partly done is.",
    ),
    Requirement(
        "ACP-COMPLETE-TOLD",
        "S-OWN",
        "The sender of a handoff gets one handoff.complete when the recipient's part is over, in "
        "whatever dialect that was said, and whoever ended the session.",
    ),
    Requirement(
        "ACP-MESSAGES",
        "S-ACP-14",
        "acp_send, acp_inbox and acp_query are the mail of the hub: twelve types, a payload of at "
        "most 4,096 bytes, and of a handoff its id and hash only.",
    ),
    Requirement(
        "ACP-WORKQ",
        "S-ACP-14",
        "The hub has a work queue with ownership and claim, and speaks to one outside by JSON-RPC; "
        "activate hands items on, never waits for that, and says transferred, degraded or "
        "not_applicable.",
    ),
    Requirement(
        "ACP-TEAMSPACE",
        "S-ACP-15",
        "A teamspace with members is theirs: others neither offer, receive, act nor see there, but "
        "for what they are sender or recipient of since before; people and orchestrators belong "
        "everywhere, coordinators where they are named; one without members is everyone's.",
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
        "dragoman handoff lists, shows, times, verifies and diagnoses handoffs, and takes every "
        "step of one through the same operation as every door, with approve and deny by people.",
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
        "The guide to handoffs tells the truth: its shell commands run and its tables are printed "
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
        "A result counts if it answers the open request of its intent; an equal repeat is a no-op; "
        "one that is unmatched, different or late is an anomaly on record and changes nothing.",
    ),
    Requirement(
        "CCOS-PLAIN-TASK",
        "S-CCOS-3",
        "A TaskResult about a task that is no intent's is its agent's one word on an attempt: the "
        "same again is a repeat, another one is refused and changes nothing.",
    ),
    Requirement(
        "CCOS-ATTEMPT",
        "S-CCOS-3",
        "What an attempt's credential says about another intent than its own is an anomaly of that "
        "intent, or, where there is none, of its own; it counts for neither.",
    ),
    Requirement(
        "CCOS-DUE",
        "S-CCOS-4",
        "The moment that an intent is delegated with stands for each request that is made before "
        "it, whoever is asked; who is tried after it has as much time again.",
    ),
    Requirement(
        "CCOS-TOLD",
        "S-CCOS-1",
        "What the holder of an intent's task says in any dialect is told as CCOS does: its report "
        "as the output, or as the error with its kind and reason; its progress as an update.",
    ),
    Requirement(
        "CCOS-PROMPT",
        "S-CCOS-4",
        "An agent of AOF/1 that is given an intent is told its goal, params, constraints and "
        "deadline, in its prompt and in its task's folder; none of them speaks for the hub.",
    ),
    Requirement(
        "CCOS-OWNER",
        "S-CCOS-3",
        "When the task has another owner, the open request ends without feedback, and the owner "
        "has one.",
    ),
    Requirement(
        "CCOS-LIFE",
        "S-CCOS-4",
        "An intent is proposed, approved or rejected with reasons, dispatched, completed, fed back "
        "and satisfied, or needs somebody to follow it up; each step is an entry of its own.",
    ),
    Requirement(
        "CCOS-GOVERNANCE",
        "S-CCOS-4",
        "Forbidden goals, threshold, capability, trust, cost, data locality, capacity, "
        "availability and latency are checked when work is given out, by rules of the settings; a "
        "no has its reason, and the next candidate is tried.",
    ),
    Requirement(
        "CCOS-RETRY",
        "S-CCOS-4",
        "A failure or a timeout goes on to the next candidate, up to the limit, and then to "
        "whoever has handed the task over; then it is in the deadletter. Whoever failed an intent "
        "is not tried again unless it begins anew.",
    ),
    Requirement(
        "CCOS-FOLLOW-UP",
        "S-CCOS-4",
        "An intent that follows another one up is linked with it, both ways, and passes governance "
        "like any other.",
    ),
    Requirement(
        "CCOS-OTHERS",
        "S-CCOS-4",
        "Whatever is said about the task of an intent in another dialect, the intent follows in "
        "the same transaction.",
    ),
    Requirement(
        "CCOS-REWOUND",
        "S-CCOS-4, S-SAOP-10",
        "An intent follows its task when that is rewound: the open request ends without feedback, "
        "whoever has the task then is asked anew, and what was learned stays learned once.",
    ),
    Requirement(
        "CCOS-PASSED-ON",
        "S-CCOS-2, S-LIMIT",
        "`meta` and unknown fields of a TaskRequest reach its agent, those of a TaskResult whoever "
        "looks at the intent, under a name of their own; they decide nothing but that forbidden "
        "words are found in them.",
    ),
    Requirement(
        "CCOS-NULLS",
        "S-CCOS-1, S-CCOS-2",
        "An optional field of an envelope that is null is not there; a needed one is missing.",
    ),
    Requirement(
        "ACP-LATE",
        "acp 5.1, S-ACP-10",
        "A deadline that has passed is told to whoever validates or offers a package, and is no "
        "reason to refuse it: its recipient may.",
    ),
    Requirement(
        "AOF-PREFIX-LINT",
        "S-AOF-1",
        "lint takes a message behind the prefix `AOF/1 `, as the hub does.",
    ),
    Requirement(
        "CCOS-DESCRIPTOR",
        "S-CCOS-5",
        "An agent is described by skills, constraints, places, trust, cost, latency, capacity and "
        "how it is reached; it may describe itself, but raises nobody's trust, its own included.",
    ),
    Requirement(
        "CCOS-SCORE",
        "S-CCOS-5",
        "A score is the sum of parts that are told: skills by whole words, constraints, what its "
        "results prove, trust, cost; ties go by name, and nothing that a goal says about agents "
        "counts.",
    ),
    Requirement(
        "CCOS-NEWCOMERS",
        "S-CCOS-5",
        "A newcomer gets its share of work; whoever fails loses its place, and can win it back.",
    ),
    Requirement(
        "CCOS-FEEDBACK",
        "S-CCOS-6",
        "What came of a request is counted for its agent exactly once, in the same transaction.",
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
        "With three agents of different quality the share of the best one rises, and more succeeds "
        "than by chance and than by the formula of the origin, which docs/delegation.md gives.",
    ),
    Requirement(
        "CCOS-RESEND",
        "S-CCOS-7",
        "A request that was dispatched is open until it is answered, under the same id after a "
        "crash too; only one execution counts, and a repeat that says something else is told so.",
    ),
    Requirement(
        "CCOS-DEADLINE",
        "S-CCOS-7",
        "A request whose deadline has passed fails by that, and a duty sees to it.",
    ),
    Requirement(
        "CCOS-UNWRITABLE",
        "S-CCOS-8",
        "If the ledger cannot be written, the delegation does not happen.",
    ),
    Requirement(
        "CCOS-HANDS",
        "S-CCOS-5",
        "Of agents that the hub starts, those with a hand free (`[agents.NAME] concurrency`) are "
        "asked first; what nobody has one free for waits with the best of them.",
    ),
    Requirement(
        "CCOS-ROSTER",
        "S-CCOS-5",
        "The registry in memory follows the ledger, and reads only what has changed.",
    ),
    Requirement(
        "CBOR-STRICT",
        "S-LIMIT",
        "CBOR is read as strictly as JSON: the same values, the same bounds, no key twice; it is "
        "written in one form only.",
    ),
    Requirement(
        "CCOS-FORMS",
        "S-CCOS-2",
        "TaskRequest, TaskResult and TaskUpdate are read in their minimal form and with the "
        "additive fields; protocol_version is read and not written.",
    ),
    Requirement(
        "CCOS-ONE-OF",
        "S-CCOS-1",
        "A success has an output, which may be null, and no error; a failure has an error and no "
        "output; nothing else can be made, read or sent.",
    ),
    Requirement(
        "CCOS-CBOR",
        "S-CCOS-2",
        "A message is the same whether it comes as JSON or as CBOR.",
    ),
    Requirement(
        "CCOS-CARDS",
        "S-CCOS-5",
        "Agents are discovered from A2A agent cards, by file or URL; a card says what an agent can "
        "do, and nothing about how far it is trusted.",
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
        "Every entry about an intent is an Action with a cause; Actions are asked for by intent, "
        "plan, type, time, parent and agent.",
    ),
    Requirement(
        "CCOS-PAYLOADS",
        "S-CCOS-4",
        "An output that is longer than policy says stands in the ledger as a digest only, and a "
        "piece of it not at all, in original words and traces too; a result may have 16 MiB.",
    ),
    Requirement(
        "CCOS-LINT",
        "S-CCOS-1",
        "lint tells every finding about a message of CCOS with its place, and strictly also what "
        "the hub would refuse or not know.",
    ),
    Requirement(
        "CCOS-RUNNERS",
        "S-CCOS-7",
        "A request reaches its agent as a program's input, by a URL, by a function or by the "
        "queue; handed over again it has the same request_id, and one execution counts.",
    ),
    Requirement(
        "CCOS-CLI",
        "S-CCOS-8",
        "delegate, why, intent and agent rank|discover do on the command line what the operations "
        "do; why --export and verify --chain prove one chain alone, offline.",
    ),
    Requirement(
        "CCOS-HTTP",
        "S-CCOS-7",
        "Every operation of CCOS has an address; bodies may be CBOR, and whoever asks for requests "
        "may wait for them.",
    ),
    Requirement(
        "CCOS-MCP",
        "S-CCOS-7",
        "An agent at MCP is given requests, says how it goes, hands its results in and delegates.",
    ),
    Requirement(
        "CCOS-SIGNED",
        "S-CCOS-9",
        "A result in a signed envelope is its signer's, for this hub, in its time and once; a key "
        "can be replaced.",
    ),
    Requirement(
        "LEDGER-PROOF",
        "S-CCOS-8",
        "A leaf of the ledger's tree proves its place by its neighbours alone, as RFC 9162 says.",
    ),
    Requirement(
        "CHAIN-FILE",
        "S-CCOS-8",
        "One stream in a file proves itself without the ledger: any change shows, up to a signed "
        "checkpoint even a chain that was written anew.",
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
        "parse raises and safe_parse returns; both name every place that is wrong.",
    ),
    Requirement(
        "SAOP-VERSIONS",
        "S-SAOP-2",
        "Versions of a turn are keys of one table: an older turn is lifted to the newest shape.",
    ),
    Requirement(
        "SAOP-TYPES",
        "S-SAOP-8",
        "A new type of event is one registration and needs no change elsewhere; until then its "
        "type is refused by name.",
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
        "Turns are read in the order of their index whatever the order in which they came, with "
        "the missing ones named; a repeat is answered and not stored, other words are refused.",
    ),
    Requirement(
        "SAOP-LARGE",
        "S-LIMIT",
        "A thought of ten megabytes is kept whole; a turn of more than 16 MiB is refused by name, "
        "and lint takes of each kind what the door takes.",
    ),
    Requirement(
        "SAOP-ROLE",
        "S-ROLE",
        "Who speaks as developer, reviewer, architect or researcher is who is registered so or "
        "named so; others are refused as identity_mismatch.",
    ),
    Requirement(
        "SAOP-ADOPT",
        "S-ADOPT",
        "The first turn about an unknown task makes it one and claims it for its sender.",
    ),
    Requirement(
        "SAOP-EVENTS",
        "S-SAOP-3",
        "Events are kept once and read by task, by session or by position; one without a task gets "
        "it from its session, and a session has the moves of the work that was done in it.",
    ),
    Requirement(
        "SAOP-ANOMALY",
        "S-SAOP-6",
        "A completion without its call or a second one, a call begun twice, and words after a "
        "final chunk are kept and told as anomalies.",
    ),
    Requirement(
        "SAOP-MASKED",
        "S-SAOP-4",
        "What is stored of turns and events has no secrets, over the borders of chunks and of "
        "processes too, also where one of these is killed, and says that it is masked.",
        divergence="The specification stores thoughts verbatim; secrets become placeholders here.",
    ),
    Requirement(
        "SAOP-TRANSITION",
        "S-SAOP-11",
        "An inbound TASK_TRANSITION moves a task if its to_state is a status and its sender may; "
        "else it is a trace only. Every move in any dialect is told as one.",
    ),
    Requirement(
        "SAOP-COMMIT",
        "S-SAOP-10",
        "Every move, and the beginning of a task, carries the commit that the configured "
        "repository has checked out, whatever is said of it, read from its files and remembered "
        "until they change.",
    ),
    Requirement(
        "SAOP-BUS",
        "S-SAOP-7",
        "Listeners are told from any position on, each event once and in order.",
    ),
    Requirement(
        "SAOP-SLOW",
        "S-SAOP-7",
        "A slow listener gets thoughts and lines put together with a mark, then is closed with its "
        "cursor; calls of tools and moves are never skipped.",
    ),
    Requirement(
        "SAOP-FLOW",
        "SAOP section 4",
        "The data flow of the specification holds step by step.",
    ),
    Requirement(
        "SAOP-ENTROPY",
        "S-SAOP-9",
        "Falling confidence, repeated errors and loops are told once with their evidence, and "
        "settle behind another threshold; nothing moves by it.",
    ),
    Requirement(
        "SAOP-HTTP",
        "S-SAOP-7",
        "Turns and traces are read over HTTP, and the stream tells traces live in their own form.",
    ),
    Requirement(
        "REWIND-STATE",
        "S-SAOP-10",
        "A rewind makes a task what it was at one of its transitions, by a new entry; history, "
        "names, links and tokens stay; a human or an orchestrator may, and twice is once.",
    ),
    Requirement(
        "REWIND-FILES",
        "S-SAOP-10",
        "A rewind shows what would change first; then the files of that commit stand on a fresh "
        "branch or worktree, and nothing uncommitted is touched. A missing commit, a shallow clone "
        "and a dirty repository are told in words.",
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
        "Spans of OpenTelemetry's GenAI conventions become turns and events, and a task's trace "
        "can be sent on as such spans.",
    ),
    Requirement(
        "WATCH-TASK",
        "Watch",
        "watch shows what an agent thinks, does and observes as it happens, beside a hub and "
        "without one; the screen is drawn anew a few times a second, however much comes.",
    ),
    Requirement(
        "REDACT-LAYERS",
        "S-SAOP-4",
        "Values that the hub knows, credentials with a form of their own, values that a name "
        "tells, and private keys become [REDACTED:kind:digest]; also in JSON, Base64 and URLs.",
        divergence="As specified a thought is verbatim; ours is verbatim except for secrets.",
    ),
    Requirement(
        "REDACT-KEPT",
        "S-SAOP-5",
        "Hashes, UUIDs, our own ids, names and words are not masked.",
    ),
    Requirement(
        "REDACT-SOURCES",
        "S-SAOP-4",
        "Every rule has a kind of its own and names the public page that describes its format.",
    ),
    Requirement(
        "REDACT-PLACEHOLDER",
        "S-SAOP-4",
        "Equal secrets have equal placeholders under one key, however they are written, and "
        "different ones under another key.",
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
        "A JSON value is redacted in all its texts, keys included, and where a key names a secret; "
        "what has none is left as it is.",
    ),
    Requirement(
        "REDACT-TWICE",
        "S-SAOP-4",
        "Text that was redacted once stays as it is.",
    ),
    Requirement(
        "REDACT-LINEAR",
        "S-LIMIT",
        "Text that is made to be slow is redacted in a time that grows with its length.",
    ),
    Requirement(
        "REDACT-STREAM",
        "S-SAOP-5",
        "A text that comes in pieces becomes what the whole would, wherever it is cut; words are "
        "not held back longer than a secret could go on.",
    ),
    Requirement(
        "REDACT-REQUESTS",
        "S-SAOP-4",
        "Whatever is asked for through any door is redacted once, before it is an entry: free text "
        "of commands and the original words; who sent it is told what was masked.",
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
        "No secret that a started program prints reaches its log, however its output is cut.",
    ),
    Requirement(
        "REDACT-HUB",
        "S-SAOP-4",
        "The hub knows its own tokens and keys, the secrets of its settings and the variables that "
        "agents are given, and masks them wherever they turn up, its log included.",
    ),
    Requirement(
        "REDACT-CLI",
        "S-SAOP-4",
        "dragoman redact takes text of any length and any bytes as it comes, and gives it out "
        "without secrets; with --json it says what was found.",
    ),
    Requirement(
        "REDACT-RECALL",
        "S-SAOP-4",
        "Of a corpus of made-up secrets all known values, 99 % of the prefixed and 90 % of the "
        "generic ones are found; of what is masked in ordinary lines 95 % was a secret.",
    ),
    # --- backup and upgrade
    Requirement(
        "BACKUP-WHOLE",
        "S-FAULTS",
        "A restored hub verifies, answers repeats of old keys as before, knows its tokens, leases "
        "and files, and signs on under the same key; from either database into either.",
    ),
    Requirement(
        "BACKUP-ONLINE",
        "S-FAULTS",
        "A backup is made while others write: all that was acknowledged before it began is in it, "
        "and no request is half in it.",
    ),
    Requirement(
        "BACKUP-KILLED",
        "S-FAULTS",
        "A backup or restore that is killed anywhere leaves nothing that passes for a whole one; "
        "the next try succeeds.",
    ),
    Requirement(
        "BACKUP-REFUSED",
        "S-FAULTS",
        "Nothing is overwritten: not a file, a directory, a store, nor what a hub works on; a "
        "damaged, foreign or newer file, and a full disk, are refused clearly and leave nothing.",
    ),
    Requirement(
        "UPGRADE-OLD",
        "S-FAULTS",
        "A store of every earlier schema, filled with a ledger of then, is brought up to date, "
        "verifies and can be written.",
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
        "A process that has a store open while a newer version migrates it writes no more, and "
        "says why; a migration waits for transactions that have begun.",
    ),
    # --- machines that find the unexpected
    Requirement(
        "SIM-PROMISES",
        "S-RUN",
        "In simulated weeks of failing stores, killed hubs and agents that crash, repeat and come "
        "late, all that was acknowledged is on record once, and everything verifies.",
    ),
    Requirement(
        "SIM-LEASES",
        "S-RUN",
        "In the same weeks no task has two holders, no old token writes, and every lease that ran "
        "out is over after the next round of the duties.",
    ),
    Requirement(
        "SIM-LIVENESS",
        "S-RUN",
        "Once nothing fails any more, every task comes to its end or waits for a person.",
    ),
    Requirement(
        "SIM-SEED",
        "tests",
        "A simulation follows from its seed alone: the same one gives the same ledger, in any "
        "process; a failure names it, with the last steps.",
    ),
    Requirement(
        "SIM-TEETH",
        "tests",
        "A simulation of a hub that is broken on purpose fails.",
    ),
    Requirement(
        "LINEAR-TASKS",
        "engine",
        "What concurrent clients are told about a task can be put into one order that fits the "
        "time and the rules of tasks, on SQLite and on several hubs on PostgreSQL.",
    ),
    Requirement(
        "LINEAR-TEETH",
        "tests",
        "The check for such an order finds a hub that reads old states or forgets the fence.",
    ),
    Requirement(
        "MODEL-STREAMS",
        "tests",
        "For any sequence of requests about tasks, letters and reservations together the model, "
        "the implementation and the replay agree, on every store.",
    ),
    # --- Handoffs and traces: copies, drafts, lines of programs, thoughts without an end
    Requirement(
        "ACP-DISCARD",
        "S-ACP-1",
        "A draft is listed, shown, checked, offered and thrown away by its sender, at every door; "
        "of one that was thrown away nothing is left but its id.",
    ),
    Requirement(
        "ACP-FORESEEN",
        "S-ACP-8",
        "Who offers files that the gate would turn down is told so at once, without their being "
        "read; the gate decides when the offer is accepted.",
    ),
    Requirement(
        "ACP-COPIES",
        "S-ACP-8",
        "Verified copies that no handoff but rejected ones names are removed when nobody has taken "
        "them for a week, and never while somebody takes them.",
    ),
    Requirement(
        "ACP-ROW",
        "ACP section 3.1",
        "The proof of one handoff sees a row of the table handoffs that was falsified.",
    ),
    Requirement(
        "ACP-TOLD",
        "ACP section 9.3",
        "An offer is answered with the hash of its package and its time, more time with the new "
        "one; an approval that nobody asked for is said to be one.",
    ),
    Requirement(
        "CAPTURE-AGAIN",
        "S-SAOP-3",
        "A record that is taken over again after a new attempt adds what has come since, and "
        "nothing twice, whatever its session is called by then.",
    ),
    Requirement(
        "SAOP-ENDED",
        "S-SAOP-4",
        "What was held back of a thought that never gets its final chunk is told ten minutes after "
        "the last one, once, without secrets.",
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
        "A socket that stops reading a trace is cut with its cursor and misses nothing when it "
        "comes again; other readers and the door do not notice.",
    ),
    Requirement(
        "SAOP-FULL",
        "S-SAOP-7",
        "A disk that is full while a trace is written costs lines that are counted and told, or "
        "refuses what is sent; readers and what was recorded before stay as they are.",
    ),
    # --- delegation and letters, finished
    Requirement(
        "MAIL-FOREIGN-FILES",
        "S-MAIL",
        "A file among the letters that the hub did not write is named by verify if it has the name "
        "of a letter, is never read or removed, and holds up no letter.",
    ),
    Requirement(
        "WAVE-ONE",
        "S-MAIL-10",
        "A bead that has still to end in a wave that runs is not taken into another one: the "
        "refusal names that wave, and nothing of the new one happens.",
    ),
    Requirement(
        "MAIL-SHORT-IDS",
        "S-MAIL-7",
        "A letter is shown, read and acked by the beginning of its id, also in capitals, if it is "
        "the only one that begins so; else the letters that could be meant are named.",
    ),
    Requirement(
        "SHAPE-WORDS",
        "S-LIMIT",
        "What is wrong with the shape of a value is told in words: the path of its place, and what "
        "would be right (the values that there are, the nearest name, the bounds, the form).",
    ),
    Requirement(
        "SHAPE-DOORS",
        "S-LIMIT",
        "Every dialect, HTTP, MCP, the settings and lint tell what is wrong with a shape in these "
        "words; none answers in those of the library that reads shapes.",
    ),
    Requirement(
        "CCOS-REACH",
        "S-CCOS-5",
        "Of an agent of which only an address is known, discovery, ranking and delegation say that "
        "nothing reaches it, and what to do.",
    ),
    Requirement(
        "CCOS-BOUNDED",
        "S-CCOS-8",
        "A story, a history and a page of Actions have an end, however long the chain is: they say "
        "that there is more, and the page behind goes on with the same causes.",
    ),
    Requirement(
        "CCOS-UPDATES",
        "S-CCOS-2",
        "Of the updates of a request with one sequence number the first counts; after the deadline "
        "none does; an intent keeps at most 10,000.",
    ),
    Requirement(
        "CCOS-CANCEL",
        "S-CCOS-4",
        "Whoever wanted an intent may cancel it, as a person and whoever runs the show; nothing is "
        "held against its agent, and what is shown says that it is cancelled, by whom and why.",
    ),
    Requirement(
        "SDK-SIGNED",
        "S-CCOS-9",
        "With a key the SDK signs every message that it sends; the hub opens it, and one whose "
        "answer was lost is signed anew and counts once.",
    ),
    # --- reading where nothing can be written; keys, backups and verify as fresh users met them
    Requirement(
        "STORE-READ-STILL",
        "S-FAULTS",
        "Where nothing can be written (read-only, or full to the last byte) and no hub runs, "
        "reading commands and backup work, unless a log is to be taken in or somebody begins to "
        "write: that is said, and nothing is shown that may be mixed up.",
    ),
    Requirement(
        "KEYS-LOST",
        "S-FAULTS",
        "Where keys are gone, every command and doctor say the same two ways out: the keys out of "
        "a backup, or init --new-keys, which says what it did.",
    ),
    Requirement(
        "VERIFY-UNSIGNED",
        "S-FAULTS",
        "verify names the directory and the ledger, and does not call good what nothing signed "
        "covers without saying so.",
    ),
    Requirement(
        "BACKUP-WORDS",
        "S-FAULTS",
        "A refused backup or restore has the code of its cause: bad_archive is about the file "
        "alone, and what is damaged is said in one form of words.",
    ),
    Requirement(
        "IDENTITY-ROTATION",
        "S-CCOS-9",
        "A new key of an agent ends the old one at once, or after an overlap that was asked for.",
    ),
    Requirement(
        "CCOS-REOPENED",
        "S-CCOS-4",
        "Whoever failed an intent is asked again when a person takes its task out of the "
        "deadletter and leaves it the owner; else nobody who failed it is.",
    ),
    # --- reading without keys, without making a file, and behind the ledger
    Requirement(
        "KEYS-READING",
        "S-FAULTS",
        "What only reads needs no keys; verify needs the public one alone, and what writes, signs, "
        "knows tokens or makes a backup is refused without the keys of its store, with the remedy.",
    ),
    Requirement(
        "VERIFY-BEHIND",
        "S-FAULTS",
        "Where what was committed cannot be written to the files, verify compares them as far as "
        "they have come, says how far that is and why it is no damage, and finds other changes.",
    ),
    Requirement(
        "DOCTOR-AGREES",
        "S-FAULTS",
        "The lines of doctor agree with each other: what one calls possible none calls impossible, "
        "and no advice is given that another line says cannot be followed.",
    ),
    Requirement(
        "IDENTITY-REVOKED-KEYS",
        "S-CCOS-9",
        "Whoever takes all tokens of an agent back ends the keys that it signs with too, and is "
        "told; an agent may do that to itself.",
    ),
    # --- what agents report, and what they are told of it
    Requirement(
        "REPORT-BLOCKED-TOLD",
        "S-AOF-3",
        "When a report of blocked takes effect, the notice says what blocks the work in the "
        "agent's words, and the task's file has had them since the report.",
    ),
    Requirement(
        "MCP-REPORT-NOW",
        "S-SESSION",
        "An AOF report in a stay without a name takes effect at once, at every door: its answer "
        "says where the task stands then, and so does the answer to a repeat.",
    ),
    Requirement(
        "REPORT-COST",
        "Agents",
        "The cost that a report names counts, however large it is, and lint takes it for what it "
        "is; one that is no number from 0 on is pointed out.",
    ),
    Requirement(
        "HTTP-HEAD",
        "HTTP",
        "The head of a request has at most 64 KiB, also when all of it comes at once.",
    ),
    Requirement(
        "NEAREST-NAME",
        "HTTP",
        "Whoever writes a name that is not known is told the nearest that is, and where none is "
        "near, all of them; never one that it cannot have meant.",
    ),
    Requirement(
        "HTTP-OLDER",
        "HTTP",
        "To an HTTP before 1.1, which knows no chunks, an answer without a length is sent bare and "
        "ends with its connection.",
    ),
    Requirement(
        "HTTP-LEFT",
        "HTTP",
        "A reader that leaves at any moment, also with another request behind its first, leaves "
        "nothing: no seat, no line in the log.",
    ),
    # Handoffs and intents of one task
    Requirement(
        "ACP-INTENT-ENDED",
        "S-OWN",
        "Whatever ends a task, the result of an intent too, ends the handoff under way; activate "
        "never leaves a final state.",
    ),
    Requirement(
        "ACP-INTENT-OWNER",
        "S-OWN",
        "The task of an intent has one owner, whoever says so: who fails it has nothing to hand "
        "over, what comes back goes to nobody who failed it, and what is on its way is not "
        "delegated.",
    ),
    Requirement(
        "ACP-INTENT-POLICY",
        "S-CCOS-4",
        "The task of an intent is handed over to nobody whom the intent's policy excludes: the "
        "gate rejects it as policy_violation, activate refuses it, and both say why.",
    ),
    Requirement(
        "ACP-SUPERSEDED-ONCE",
        "S-ACP-15",
        "What has taken the place of a handoff stays named by it: a second that supersedes the "
        "same one is refused, with the name of the one to supersede.",
    ),
    Requirement(
        "REWIND-HANDOFF",
        "S-SAOP-10",
        "A rewind ends the handoff of a task that is over then, or not with whom it is by the "
        "handoff; the dry run says so.",
    ),
    Requirement(
        "ACP-UNOWNED",
        "S-ACP-6",
        "A task that nobody has is offered by whoever could take it, or may make it ready: no "
        "handoff lifts a block or takes work out of the backlog for a stranger.",
    ),
    Requirement(
        "ACP-FREE-AGAIN",
        "S-OWN, S-ADOPT",
        "A task that nobody had is nobody's again when its offer is withdrawn or rejected before "
        "anybody has begun; what was adopted by the offer is its sender's.",
    ),
    # --- traces, as a fresh user found them
    Requirement(
        "VERIFY-AS-REPLAYED",
        "S-FAULTS",
        "What a state is in memory after any event is what verify replays from its line: numbers "
        "and defaults count by what they mean, in stores that were written before too.",
    ),
    Requirement(
        "CAPTURE-WHOLE",
        "S-SAOP-3",
        "A session that is taken over while it grows gives the same as one that is taken over at "
        "its end: a turn is taken when the record says that it is over, with --follow too, and the "
        "events of a task that is not known yet wait for its first turn.",
    ),
    Requirement(
        "CAPTURE-THOUGHTS",
        "S-SAOP-6",
        "The thought of a turn of a session file is told whole before the tools that follow it.",
    ),
    # --- plain files, as a demanding user found them
    Requirement(
        "FILES-LONG-NAMES",
        "S-AOF-13",
        "A file whose name leaves no room for a mark or a note is kept under a shorter one.",
    ),
    Requirement(
        "FILES-OBSTACLE",
        "S-AOF-13",
        "What cannot be written of one task or letter stops the files of no other, is told, and is "
        "tried again by every look around.",
    ),
    Requirement(
        "FILES-RESULT-KEPT",
        "S-AOF-8",
        "A run_result.json that says what no attempt has reported is kept beside its place and "
        "logged, whatever its form; one that shows an earlier report is simply replaced.",
    ),
    Requirement(
        "FILES-CARRIED",
        "Files",
        "Archives and backups carry files whose name is not UTF-8, who may execute a file, and "
        "empty folders within a task's own; no other right of a file goes along.",
    ),
    Requirement(
        "DOCTOR-GIT",
        "S-SAOP-10",
        "doctor says when no commit is found where [git] repository points; a folder within a "
        "repository is as good as its root.",
    ),
    Requirement(
        "NAMES-ORDINARY",
        "S-SAOP-4",
        "Names of words, tickets, hashes and ids are not taken for secrets, whatever they begin "
        "with; a credential that chance has made is.",
    ),
    Requirement(
        "HUB-TROUBLE",
        "Faults",
        "While a duty of the hub does not do its work /readyz answers 503 and says which; what one "
        "task holds up is named there too, with 200. The terminal has one line about it and one "
        "when it is well again; doctor says how far the files lag.",
    ),
    # --- plain files, as fresh users found them
    Requirement(
        "FILES-ONE-ANSWER",
        "S-AOF-13",
        "A task file has one answer, whatever is recorded of what was typed in it: it is taken "
        "over or refused, told once, and written anew.",
    ),
    Requirement(
        "FILES-COPY",
        "S-AOF-13",
        "A copy of a task file in another folder is no move while the file itself stands where it "
        "stood: it is taken away, kept where it was edited, and a note says why.",
    ),
    Requirement(
        "FILES-EMPTY-BODY",
        "S-AOF-13",
        "Text that is typed into the file of a task without a body is that text, without the empty "
        "lines that stood there.",
    ),
    Requirement(
        "INBOX-TOLD",
        "S-AOF-14",
        "Of a message of the inbox that cannot be read or filed it is told whether it waits or was "
        "taken, and the hub stays ready.",
    ),
    Requirement(
        "INBOX-ASIDE",
        "S-AOF-14",
        "What stood in the place of processed/ or rejected/ and was put aside is no message.",
    ),
    Requirement(
        "FILES-PLACES",
        "S-AOF-13",
        "A link, a file or a pipe in the place of any folder of the plain files, and whatever is "
        "no file in the place of event lines, is put aside and stops nothing; doctor names what "
        "stands in the place of a folder.",
    ),
    Requirement(
        "FILES-REMOVED",
        "S-AOF-13",
        "A folder that its agent removes while files are written into it is made again, and no "
        "trouble.",
    ),
    Requirement(
        "GUARD-WORKTREES",
        "S-MAIL-10",
        "The guard checks commits in every worktree of a repository: it asks the hub that started "
        "the agent, or the data directory of the repository itself.",
    ),
    Requirement(
        "LINT-FILES",
        "Command line",
        "Any number of files is linted at once: each is named in what is found, all of them are "
        "checked, and the worst of them decides how the command ends.",
    ),
    # --- damaged databases
    Requirement(
        "STORE-INSPECT",
        "S-FAULTS",
        "A database that says of itself that it is damaged (an index without a row of its table, "
        "for example) is called damaged by verify, by doctor within a bound, and by /readyz; and "
        "verify says how a sound one is made.",
    ),
    Requirement(
        "STORE-EMPTIED",
        "S-FAULTS",
        "A database file that is empty is treated like one that is gone, by every command.",
    ),
    Requirement(
        "STORE-MOVED",
        "S-FAULTS",
        "A process whose database file was moved, removed or replaced under it writes nothing more "
        "and makes none in its place: what it acknowledged would be lost.",
    ),
    Requirement(
        "STORE-TEXT",
        "S-FAULTS",
        "A text in the database whose bytes were damaged is store_corrupt to whoever reads it, and "
        "verify names the position or the row.",
    ),
    Requirement(
        "STORE-LOG-COPIED",
        "S-FAULTS",
        "The log of a store in a file is copied into it beside whoever writes, who waits for "
        "little of that; it has an end, and what cannot be copied stays in it.",
    ),
    Requirement(
        "STORE-LOG",
        "S-FAULTS",
        "A log that lies beside a database stays when the file is closed, until somebody has "
        "committed: what SQLite passes over in a damaged one is not lost by being read.",
    ),
    Requirement(
        "CHECKPOINT-NEWEST",
        "S-FAULTS",
        "Lines of checkpoints.jsonl that do not hold stop neither writing, nor a backup, nor a "
        "restore as long as one does; doctor tells of those at the end.",
    ),
    Requirement(
        "STORE-CUT",
        "S-FAULTS",
        "A database file that lacks its last bytes is not opened; what is only in its log yet is "
        "not missing.",
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
        "A spoiled checkpoint is named by its line and hides no other; the ledger is called whole "
        "only as far as good signatures reach.",
    ),
    Requirement(
        "VERIFY-FOLD",
        "S-FAULTS",
        "A stored state that was folded by rules that nobody has is a finding.",
    ),
    # --- handoffs as a demanding user met them: whole files, whole logs, closed teamspaces
    Requirement(
        "ACP-CLI-OPTIONS",
        "S-ACP-16",
        "Of a package in a file every option of `handoff initiate` writes its part anew.",
    ),
    Requirement(
        "ACP-CLOSED-LETTERS",
        "S-ACP-15",
        "Letters about handoffs in a teamspace with members are shown to nobody else but who wrote "
        "or got them, by no lookup, and by no ack or reply to one; what is passed on stays there "
        "unless another is named.",
    ),
    Requirement(
        "ACP-CHECKPOINT",
        "S-OWN",
        "A CHECKPOINT of an activated recipient completes the handoff and leaves the task to "
        "whoever goes on; a task that was given to somebody by name waits for the same name.",
    ),
    Requirement(
        "ACP-CAN-ACCEPT",
        "S-ACP-7",
        "Whoever offers work to a name that nobody bears, or to somebody whose role can accept "
        "nothing, is told so at once, and so is who asks why it does not go on.",
    ),
    Requirement(
        "ACP-FINAL-ARTIFACTS",
        "S-ACP-8",
        "The files that finished work is said to have come to are looked at as the gate looks at "
        "its own; what is wrong with them is told in warnings, and the work is done all the same.",
    ),
    Requirement(
        "ACP-AUDIT-WORDS",
        "S-ACP-13",
        "A replay names every audit line whose words are not its event's, and every one that is "
        "missing; beside a ledger every line is compared with it, and without one it is said what "
        "cannot be checked.",
    ),
    Requirement(
        "FILES-CUT",
        "S-FAULTS",
        "What was cut off from a file of lines is completed from the ledger by the next writer "
        "before anything follows, and by tick; so is an audit log, or the newest file of events, "
        "that was removed, or such a file in whose place something else stands. Doctor names it.",
    ),
    # --- letters, waves and secrets, as a fresh user found them
    Requirement(
        "MAIL-LOST-CURSOR",
        "S-MAIL-7",
        "A cursor of a box or a thread beyond the ledger's end is brought back to the end, at once "
        "and with a gap that says so.",
    ),
    Requirement(
        "MAIL-ACK-SEEN",
        "S-MAIL-7",
        "Whoever looks at a letter sees that it wants an ack, and whether it has one: its own, if "
        "one is wanted of it, and else all of them.",
    ),
    Requirement(
        "WAVE-RETRY-WORDS",
        "S-MAIL-10",
        "Retries of a wave are for types of failure that there are; others are refused, and the "
        "known ones named.",
    ),
    Requirement(
        "MAIL-TYPE-FILTER",
        "S-MAIL-6",
        "A box is asked for a type that there is; another is refused, and the known ones named.",
    ),
    Requirement(
        "MAIL-ONE-QUERY",
        "S-MAIL-6",
        "A search means the same at every door: arguments of a command are its words with a space "
        "between them.",
    ),
    Requirement(
        "MAIL-LINKS",
        "S-MAIL-9",
        "No link or image of a letter is live in its file, and its words can still be read.",
    ),
    Requirement(
        "REDACT-COMMON",
        "S-SAOP-4",
        "Logins of docker, .netrc, `pass:`, keys of PuTTY and hashes of bcrypt are masked, whole "
        "and in pieces; what only looks like them stays.",
    ),
    Requirement(
        "MAIL-ACK-WITHIN",
        "S-MAIL-7",
        "How long an ack may take can be said at every door; what is no such time is refused.",
    ),
    # --- one sentence and one code for what is not there; words of the command line
    Requirement(
        "MISSING-WORDS",
        "Faults",
        "What is not there is told in one sentence for each code, whoever looks for it, and with a "
        "command that shows what is.",
    ),
    Requirement(
        "CLI-OWN-CODES",
        "Command line",
        "A command refuses by the hub's code, whatever dialect it asks in; what is said in a "
        "dialect (`send`, `call`, `session-end`) is answered by the code of that.",
    ),
    Requirement(
        "RESERVE-NOTHING",
        "S-MAIL-10",
        "Whoever gives files back without having reserved any is told so, and whoever renews what "
        "is over is refused.",
    ),
    Requirement(
        "CLI-ONE-LINE",
        "Command line",
        "What was not understood is told on one line, also where it lists the choices.",
    ),
    Requirement(
        "CLI-NO-FILE",
        "Command line",
        "A file that cannot be read is told alike by every command that is given one, and ends it "
        "with 2.",
    ),
    # --- the duties of a hub that runs
    Requirement(
        "HUB-ALL-DUTIES",
        "Hub",
        "A hub that runs does every duty that `tick` does, and /readyz names each of them.",
    ),
    # --- what is told of secrets and repeats, who writes into a work log, half-closed connections
    Requirement(
        "REDACT-NAMES",
        "S-SAOP-4",
        "A name that holds a secret is refused, by every door, and neither the refusal nor its "
        "record has any part of it: what is quoted is cut when the secret is out.",
    ),
    Requirement(
        "REDACT-TOLD",
        "S-SAOP-4",
        "Who sends a secret is told what was masked by every tool of MCP and by the SDK.",
    ),
    Requirement(
        "TASK-LOG-WHOSE",
        "S-AOF-6",
        "A line of the work log that is neither of the holder nor of the owner says whose it is; "
        "theirs is as the specification shows it.",
    ),
    Requirement(
        "IDEM-OVER",
        "S-IDEM",
        "A claim that is repeated after its attempt is over shows neither a lease nor a token.",
    ),
    Requirement(
        "HTTP-HALF-CLOSED",
        "HTTP",
        "A request that is whole is answered though its caller has shut its sending side; whoever "
        "waits by it, or reads a stream, has gone.",
    ),
    # --- secrets in terminals, lists and URLs, as a fresh user found them
    Requirement(
        "REDACT-LINES",
        "S-SAOP-5",
        "A private key that a terminal shows is masked in each of its lines, although every line "
        "is an event of its own, also over requests and processes; other lines stay.",
    ),
    Requirement(
        "REDACT-ARGUMENTS",
        "S-SAOP-4",
        "In a list of arguments, as text or as JSON, the word behind an option that names a secret "
        "is masked, however the list is written; whole and in pieces.",
    ),
    Requirement(
        "REDACT-LETTERS",
        "S-SAOP-4",
        "Letters that chance has put behind the name of a secret are masked, nine of ten at least "
        "if there are sixteen; words of languages and of programs stay.",
    ),
    Requirement(
        "REDACT-URLS",
        "S-SAOP-5",
        "Of a URL only the secret is masked, whatever its user is called and however the URL is "
        "encoded; host and path stay.",
    ),
    Requirement(
        "REDACT-MEANT",
        "S-SAOP-4",
        "A secret is found with its signs written as JSON, HTML, URLs and programs write them, "
        "also one in another and all of them as numbers; known values always.",
    ),
    Requirement(
        "REDACT-BORDERS",
        "S-SAOP-5",
        "A colour parts a secret from the words beside it, and hides none that it stands in.",
    ),
    Requirement(
        "REDACT-CARRIED",
        "S-SAOP-5",
        "A secret is found in what a sequence of a terminal carries (OSC, DCS, SOS, PM, APC), "
        "whole and in pieces; one without an end holds nothing back for long.",
    ),
    Requirement(
        "REDACT-NAMED",
        "S-SAOP-4",
        "A secret is found behind its name in letters, notes, tables, fields and programs; words, "
        "types, pipes and other names stay.",
    ),
    # --- tests with teeth: what is measured happens, doors agree, tags lead somewhere
    Requirement(
        "PROJECT-TAGS",
        "Project",
        "Every tag like S-TASK that the code or a test names stands in a page of the repository.",
    ),
    Requirement(
        "PROJECT-NAMES",
        "Project",
        "No module name contains a word that the glossary bans, and none stands in two folders "
        "unless the glossary gives it one meaning for both.",
    ),
    Requirement(
        "PROJECT-SDIST",
        "Project",
        "A source distribution has all that its README leads to and its tests run, and every "
        "dependency has a kept version in constraints.txt.",
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
        "delegation to what was learned from it, by as many entries as the loop beside it writes.",
    ),
    # --- intents whose tasks a person or another dialect touches
    Requirement(
        "CCOS-DEADLINE-DOORS",
        "S-CCOS-3",
        "The deadline of a request stands at every door: what its agent does later, or whoever "
        "would begin, is an anomaly, and a person's word does not make it a success.",
    ),
    Requirement(
        "CCOS-GOVERNED-DOORS",
        "S-CCOS-4",
        "Nobody has the task of an intent by an edit, a claim or a review whom governance keeps it "
        "from; forbidden words are looked for in what the task says by then.",
    ),
    Requirement(
        "CCOS-FORBIDDEN-SINCE",
        "S-CCOS-4",
        "Words that come to be forbidden end the request for what nobody has begun, without "
        "feedback, and its task is nobody's to claim; what is under way is brought to its end.",
    ),
    Requirement(
        "CCOS-TRIES",
        "S-CCOS-4",
        "Only who has failed was tried: a person's block or a handoff uses up none of the tries.",
    ),
    Requirement(
        "CCOS-ANEW",
        "S-CCOS-3",
        "What a reviewer sends back, and what goes on from a checkpoint, is another request.",
    ),
    Requirement(
        "CCOS-UNSENT",
        "S-CCOS-6",
        "A request that the hub has to hand over and has not does not count against its agent.",
    ),
    Requirement(
        "CCOS-CAUSES",
        "S-CCOS-4",
        "Whoever is asked hangs on its approval, or on the request that it had before; that nobody "
        "is left hangs on the last no.",
    ),
    Requirement(
        "CCOS-TAKEN-BACK",
        "S-CCOS-4",
        "What says nothing about an agent is not told as its failure; who is asked anew, and of "
        "what there is only a piece, is told as that.",
    ),
    # --- foundation and stores, as a fresh user found them
    Requirement(
        "LOST-CURSOR",
        "Ledger",
        "Every reader with a cursor beyond the ledger's end, as after the restore of a backup, is "
        "told so at once and goes on from the end: on the command line, in pages and in streams.",
    ),
    Requirement(
        "STORE-REMEMBERED",
        "STORE-URL",
        "Whatever command makes a data directory with --store, the directory remembers that store.",
    ),
    Requirement(
        "STORE-PRIVATE",
        "Files",
        "A SQLite store and an archive are their owner's alone, wherever they lie; doctor names a "
        "store of before that others can read.",
    ),
    Requirement(
        "HTTP-READY-PRIVATE",
        "HTTP",
        "Without a token /readyz tells which duty is in trouble, and not why.",
    ),
    Requirement(
        "ADVICE-LEADS-ON",
        "CLI-DOCTOR",
        "What verify and doctor advise can be done and helps: they name what stands in the way, "
        "and agree with each other and with init.",
    ),
    Requirement(
        "CLOCK-SET-TOLD",
        "CLI-NOW",
        "Every entry that came about under --now says so, the hub's own among them.",
    ),
    Requirement(
        "HAND-HUB-DUTIES",
        "TESTING",
        "A hub by hand does every duty that time asks for, by the table that a hub that runs has.",
    ),
    Requirement(
        "PG-COUNTER",
        "STORE",
        "A counter of positions that does not fit the entries is named by verify and doctor, and a "
        "write is refused before it does harm.",
    ),
    Requirement(
        "FOLLOW-AWAY",
        "S-FAULTS",
        "Whoever follows the ledger on the command line outlives a store that is away for a while, "
        "is told so once, and misses nothing.",
    ),
)

REQUIREMENTS = {requirement.id: requirement for requirement in _MANIFEST}

assert len(REQUIREMENTS) == len(_MANIFEST), "two requirements share an id"
