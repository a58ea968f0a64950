// The shapes of the HTTP API, written by docs/generate.py.

export interface AcceptedMessage {
  line?: number;
  ok?: boolean;
  dialect: string;
  type: string;
  agent: string;
  reply: unknown;
  tasks: readonly (TaskStatusAfter)[];
  warnings: readonly (string)[];
  repeated: boolean;
}

export interface Agent {
  name: string;
  role: "agent" | "coordinator" | "file" | "human" | "observer" | "orchestrator" | "system" | "trusted-file";
  registered: boolean;
  speaks: readonly (string)[];
  registeredAt: string | null;
  holds: readonly (string)[];
  waiting: number;
  lastSeen: string | null;
  tokens: number;
  hasKey: boolean;
  paused: PauseResource | null;
  activity: AgentActivity | null;
}

export interface AgentActivity {
  running: readonly (string)[];
  attempts: number;
  minutes: number;
  output: number;
  cost: number;
  idle: string | null;
}

export interface AgentCountsResource {
  attempts: number;
  finished: number;
  failures: number;
  givenUp: number;
  questions: number;
  answers: number;
  answerMs: number;
  reviews: number;
  reviewMs: number;
  tokens: number;
  cost: number;
  name: string;
}

export interface AgentPage {
  agents: readonly (Agent)[];
  next: string | null;
}

export interface AgentStatusResource {
  name: string;
  role: "agent" | "coordinator" | "file" | "human" | "observer" | "orchestrator" | "system" | "trusted-file";
  registered: boolean;
  holds: readonly (string)[];
  waiting: number;
  lastSeen: string | null;
  paused: PauseResource | null;
  sessions: readonly (SessionResource)[];
}

export interface Answer {
  fence?: number | null;
  text: string;
  question?: string;
}

export interface ApprovalResource {
  approved: boolean;
  by: string;
  at: string;
  package_hash: string;
  note: string;
}

export interface Approve {
  fence?: number | null;
  reason?: string;
}

export interface Ask {
  fence?: number | null;
  text: string;
}

export interface Assign {
  fence?: number | null;
  to: string;
  take?: boolean;
  reason?: string;
}

export interface AttentionResource {
  kind: "deadletter" | "escalation" | "gate" | "help" | "no_progress" | "paused" | "question" | "review" | "unknown_assignee" | "waits_for_input";
  task: string | null;
  agent: string | null;
  since: string;
  text: string;
  command: string;
  question: string | null;
  mail: string | null;
  handoff: string | null;
}

export interface Block {
  fence?: number | null;
  blockers: readonly (string)[];
  notes?: string;
  details?: Readonly<Record<string, unknown>>;
}

export interface Body {
}

export interface BriefingResource {
  questions: readonly (QuestionResource)[];
  answers: readonly (QuestionResource)[];
  feedback: readonly (FeedbackResource)[];
  lastAttempt: PastAttemptResource | null;
  checkpoint: CheckpointResource | null;
  log: readonly (LogLineResource)[];
}

export interface CheckResultResource {
  command: string;
  passed: boolean;
  exitCode: number | null;
  problem: string | null;
  durationMs: number;
  outputSha256: string;
  output: string;
}

export interface CheckpointList {
  checkpoints: readonly (SignedCheckpoint)[];
  invalid: number;
}

export interface CheckpointResource {
  by: string | null;
  at: string;
  reason: string;
  commit: string | null;
  description: string;
  nextSteps: string;
}

export interface ClaimBody {
  agent?: string;
  session?: string;
  ttl_ms?: number | null;
}

export interface ClaimedTask {
  agent: string;
  session: string | null;
  attempt: number;
  fence: number;
  expiresAt: string | null;
  task: TaskDetail;
  briefing?: BriefingResource | null;
  token?: string | null;
}

export interface Complete {
  fence?: number | null;
  outcome?: "blocked" | "done" | "failed" | "limited" | "needs_review" | "partial";
  notes?: string;
  blockers?: readonly (string)[];
  details?: Readonly<Record<string, unknown>>;
  until?: string;
}

export interface CountsResource {
  attempts: number;
  finished: number;
  failures: number;
  givenUp: number;
  questions: number;
  answers: number;
  answerMs: number;
  reviews: number;
  reviewMs: number;
  tokens: number;
  cost: number;
}

export interface CreateTaskBody {
  title: string;
  id?: string | null;
  body?: string;
  ready?: boolean;
  assignee?: string;
  parent?: string;
  review_required?: boolean | null;
  priority?: "critical" | "high" | "low" | "normal";
  blocked_by?: readonly (string)[];
  discovered_from?: string;
  aliases?: readonly (string)[];
  max_attempts?: number | null;
  checks?: readonly (string)[];
}

export interface DayItemResource {
  position: number;
  at: string;
  kind: "escalated" | "failed" | "finished" | "given_up";
  about: string;
  title: string;
  agent: string;
  text: string;
}

export interface DayReportResource {
  day: string;
  numbers: NumbersResource;
  items: readonly (DayItemResource)[];
  counts: Readonly<Record<string, number>>;
  attention: readonly (AttentionResource)[];
  attentionCounts: Readonly<Record<string, number>>;
}

export interface DelegateBody {
  title: string;
  assignee: string;
  due_by: string;
  body?: string;
  priority?: "critical" | "high" | "low" | "normal";
  acceptance_criteria?: readonly (string)[];
  expected_outputs?: readonly (string)[];
  context_refs?: readonly (string)[];
  constraints?: readonly (string)[];
}

export interface DelegationResource {
  from: string;
  to: string;
  parent: string;
  state: "accepted" | "rejected" | "requested";
  dueBy: string;
  escalated: boolean;
  acceptanceCriteria: readonly (string)[];
  expectedOutputs: readonly (string)[];
  contextRefs: readonly (string)[];
  constraints: readonly (string)[];
}

export interface Edit {
  fence?: number | null;
  title?: string | null;
  body?: string | null;
  priority?: "critical" | "high" | "low" | "normal" | null;
  deadline?: string | null;
  blocked_by?: readonly (string)[];
  not_blocked_by?: readonly (string)[];
  checks?: readonly (string)[] | null;
}

export interface EntryProof {
  position: number;
  hash: string;
  checkpoint: SignedCheckpoint | null;
  path: readonly (string)[];
  verified: boolean;
}

export interface EntryResource {
  position: number;
  stream: string;
  version: number;
  type: string;
  at: string;
  actor: string;
  via: string | null;
  cause: string;
  body: unknown;
  originalText?: unknown;
  hash: string;
  withheld?: true;
}

export interface EscalationResource {
  trigger: string;
  stage: string;
  sla_configured: string;
  sla_elapsed: string;
  escalated_to: string;
  escalated_at: string;
}

export interface EventPage {
  events: readonly (EntryResource)[];
  next: number;
  gap?: Gap;
}

export interface EvidenceResource {
  attempt: number;
  passed: boolean;
  at: string;
  results: readonly (CheckResultResource)[];
}

export interface Fail {
  fence?: number | null;
  notes?: string;
  details?: Readonly<Record<string, unknown>>;
}

export interface FeedbackResource {
  text: string;
  at: string;
}

export interface Filled {
  field: string;
  value: unknown;
}

export interface Gap {
  after: number;
  until: number;
}

export interface HandoffDetail {
  handoff_id: string;
  status: "accepted" | "activated" | "closed" | "completed" | "draft" | "proposed" | "rejected" | "validating";
  task_id: string;
  from_agent: string;
  to_agent: string;
  title: string;
  reason: string;
  thread_id: string;
  teamspace_id: string;
  package_hash: string | null;
  handoff_chain: readonly (string)[];
  supersedes: string | null;
  superseded_by: string | null;
  initiated_at: string;
  status_since: string;
  due_by: string | null;
  escalated: boolean;
  resolved_at: string | null;
  workq_integration: string | null;
  package: Readonly<Record<string, unknown>>;
  verification_passed: readonly (string)[];
  verification_failed: readonly (string)[];
  artifacts: Readonly<Record<string, string>>;
  artifacts_left_out: readonly (string)[];
  requires_human_approval: boolean;
  approval: ApprovalResource | null;
  rejection: RejectionResource | null;
  escalations: readonly (EscalationResource)[];
  transitions: readonly (TransitionResource)[];
  notes: readonly (NoteResource)[];
}

export interface HandoffDiagnosis {
  handoff_id: string;
  status: "accepted" | "activated" | "closed" | "completed" | "draft" | "proposed" | "rejected" | "validating";
  summary: string;
  steps: readonly (NextStep)[];
  due_by: string | null;
  late: boolean;
  findings: readonly (string)[];
}

export interface HandoffPage {
  handoffs: readonly (HandoffSummary)[];
  next: number | null;
}

export interface HandoffSummary {
  handoff_id: string;
  status: "accepted" | "activated" | "closed" | "completed" | "draft" | "proposed" | "rejected" | "validating";
  task_id: string;
  from_agent: string;
  to_agent: string;
  title: string;
  reason: string;
  thread_id: string;
  teamspace_id: string;
  package_hash: string | null;
  handoff_chain: readonly (string)[];
  supersedes: string | null;
  superseded_by: string | null;
  initiated_at: string;
  status_since: string;
  due_by: string | null;
  escalated: boolean;
  resolved_at: string | null;
  workq_integration: string | null;
}

export interface HeartbeatBody {
  fence?: number | null;
}

export interface HistoryPage {
  events: readonly (EntryResource)[];
  next: number | null;
}

export interface HourResource {
  attempts: number;
  finished: number;
  failures: number;
  givenUp: number;
  questions: number;
  answers: number;
  answerMs: number;
  reviews: number;
  reviewMs: number;
  tokens: number;
  cost: number;
  at: string;
}

export interface IssuedToken {
  id: string;
  token: string;
  expiresAt: string;
}

export interface LeaseResource {
  agent: string;
  session: string | null;
  fence: number;
  ttlMs: number;
  expiresAt: string;
  heartbeats: number;
  valid: boolean;
}

export interface LeaseStatus {
  task: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review" | null;
  attempt: number;
  fence: number;
  expiresAt: string;
}

export interface LedgerProof {
  entries: number;
  streams: number;
  findings: readonly (string)[];
  durationMs: number;
}

export interface Limit {
  fence?: number | null;
  until?: string;
  reason?: string;
}

export interface Link {
  fence?: number | null;
  blocked_by?: readonly (string)[];
  parent?: string;
  discovered_from?: string;
  aliases?: readonly (string)[];
}

export interface Liveness {
  ok?: boolean;
}

export interface LogLineResource {
  at: string;
  by: string | null;
  text: string;
}

export interface Loss {
  field: string;
  value: unknown;
}

export interface MergeBody {
  into?: string;
}

export interface MissingTurns {
  attempt: number;
  first: number;
  last: number;
}

export interface Move {
  fence?: number | null;
  to: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review";
  reason?: string;
}

export interface NextStep {
  who: readonly (string)[];
  action: string;
  command: string;
}

export interface Note {
  fence?: number | null;
  text: string;
}

export interface NoteResource {
  kind: string;
  by: string;
  at: string;
  text: string;
  data: Readonly<Record<string, unknown>>;
}

export interface NumbersResource {
  at: string;
  since: string;
  total: CountsResource;
  hours: readonly (HourResource)[];
  agents: readonly (AgentCountsResource)[];
}

export interface PastAttemptResource {
  attempt: number;
  agent: string;
  outcome: "blocked" | "done" | "failed" | "needs_review" | "partial" | null;
  notes: string;
  blockers: readonly (string)[];
  by: string | null;
  endedAt: string | null;
  reason: string | null;
}

export interface PauseBody {
  reason?: string;
}

export interface PauseResource {
  reason: string;
  since: string;
  until: string | null;
}

export interface Permissions {
  write: boolean;
  answer: boolean;
  pause: boolean;
  credentials: boolean;
}

export interface QuestionDetail {
  id: string;
  kind: "ask" | "blocked" | "help";
  text: string;
  askedBy: string | null;
  askedAt: string;
  attempt: number;
  mail: string | null;
  answer: string | null;
  answeredBy: string | null;
  answeredAt: string | null;
  task: string;
  state: "answered" | "closed" | "open" | "withdrawn";
  closedBy: string | null;
}

export interface QuestionResource {
  id: string;
  kind: "ask" | "blocked" | "help";
  text: string;
  askedBy: string | null;
  askedAt: string;
  attempt: number;
  mail: string | null;
  answer: string | null;
  answeredBy: string | null;
  answeredAt: string | null;
}

export interface QuestionedTask {
  id: string;
  aofId: string;
  title: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review";
  priority: "critical" | "high" | "low" | "normal";
  assignee: string | null;
  reservedFor: string | null;
  reviewRequired: boolean;
  parent: string | null;
  children: readonly (string)[];
  blockedBy: readonly (string)[];
  waitsFor: readonly (string)[];
  waitReason: string | null;
  obstacle: string | null;
  blocks: readonly (string)[];
  discoveredFrom: string | null;
  discovered: readonly (string)[];
  aliases: readonly (string)[];
  origin: string | null;
  attempt: number;
  fence: number;
  maxAttempts: number;
  deadline: string | null;
  overdue: boolean;
  failures: number;
  notes: number;
  notBefore: string | null;
  createdAt: string;
  updatedAt: string;
  lastTransitionAt: string;
  lease: LeaseResource | null;
  report: ReportResource | null;
  delegation: DelegationResource | null;
  delegationDepth: number;
  handoff: string | null;
  handoffChain: readonly (string)[];
  warnings: number;
  checkpoint: CheckpointResource | null;
  questions: readonly (QuestionResource)[];
  checks: readonly (string)[];
  proven: boolean;
  body: string;
  answers: readonly (QuestionResource)[];
  feedback: readonly (FeedbackResource)[];
  evidence: EvidenceResource | null;
  question: string;
}

export interface Readiness {
  ready: boolean;
  store: string;
  ledger: string;
  services: Readonly<Record<string, string>>;
}

export interface RejectionResource {
  reason: "capability_mismatch" | "capacity_unavailable" | "hash_mismatch" | "missing_artifact" | "other" | "ownership_conflict" | "policy_violation" | "schema_invalid" | "success_criteria_ambiguous" | "timeout_risk";
  detail: string;
  suggested_fix: string | null;
  by: string;
  at: string;
}

export interface Release {
  fence?: number | null;
  reason?: string;
}

export interface ReloadedSettings {
  added: readonly (string)[];
  changed: readonly (string)[];
  removed: readonly (string)[];
  needs_restart: readonly (string)[];
}

export interface Reopen {
  fence?: number | null;
  reason?: string;
}

export interface Report {
  fence?: number | null;
  outcome: "blocked" | "done" | "failed" | "limited" | "needs_review" | "partial";
  notes?: string;
  blockers?: readonly (string)[];
  details?: Readonly<Record<string, unknown>>;
  apply?: boolean;
  until?: string;
}

export interface ReportResource {
  outcome: "blocked" | "done" | "failed" | "needs_review" | "partial";
  notes: string;
  blockers: readonly (string)[];
  attempt: number;
  agent: string;
  by: string | null;
  at: string;
}

export interface Retry {
  fence?: number | null;
  reason?: string;
}

export interface Run {
  attempt: number;
  agent: string;
  fence: number;
  status: "completed" | "expired" | "released" | "running";
  startedAt: string;
  endedAt: string | null;
  reason: string | null;
  ttlMs: number;
  report: ReportResource | null;
}

export interface Runs {
  task: string;
  runs: readonly (Run)[];
  next: number | null;
}

export interface SendBack {
  fence?: number | null;
  reason: string;
}

export interface Session {
  name: string;
  role: "agent" | "coordinator" | "file" | "human" | "observer" | "orchestrator" | "system" | "trusted-file";
  owner: boolean;
  expiresAt: string | null;
  may: Permissions;
}

export interface SessionResource {
  session: string;
  state: "ended" | "idle" | "waiting" | "working";
  since: string;
  text: string | null;
}

export interface SignInBody {
  code?: string;
  token?: string;
}

export interface SignInLink {
  path: string;
  expiresAt: string;
}

export interface Signature {
  alg: "ed25519";
  agent: string;
  nonce: string;
  audience: string;
  expires: string;
  value: string;
  key?: string;
}

export interface SignedCheckpoint {
  ledger: string;
  size: number;
  root: string;
  peaks: readonly (string)[];
  at: string;
  key: string;
  signature: string;
}

export interface SignedMessage {
  envelope: Readonly<Record<string, unknown>>;
  signature: Signature;
}

export interface StatusResource {
  at: string;
  position: number;
  counts: Readonly<Record<string, number>>;
  claimable: number;
  reserved: number;
  attention: readonly (AttentionResource)[];
  attentionCounts: Readonly<Record<string, number>>;
  working: readonly (WorkingResource)[];
  waiting: readonly (WaitingResource)[];
  agents: readonly (AgentStatusResource)[];
}

export interface StoryItemResource {
  position: number;
  at: string;
  kind: "attempt" | "delegation" | "handoff" | "intent" | "letter" | "question" | "task" | "terminal" | "thought" | "tool" | "trace" | "turn" | "work_item";
  type: string;
  dialect: string | null;
  actor: string;
  via: string | null;
  title: string;
  text: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review" | null;
  attempt: number | null;
  cause: string;
  duration_ms: number | null;
  stream: string;
  original?: unknown;
}

export interface StoryPage {
  task: TaskDetail;
  items: readonly (StoryItemResource)[];
  next: number | null;
}

export interface TaskDetail {
  id: string;
  aofId: string;
  title: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review";
  priority: "critical" | "high" | "low" | "normal";
  assignee: string | null;
  reservedFor: string | null;
  reviewRequired: boolean;
  parent: string | null;
  children: readonly (string)[];
  blockedBy: readonly (string)[];
  waitsFor: readonly (string)[];
  waitReason: string | null;
  obstacle: string | null;
  blocks: readonly (string)[];
  discoveredFrom: string | null;
  discovered: readonly (string)[];
  aliases: readonly (string)[];
  origin: string | null;
  attempt: number;
  fence: number;
  maxAttempts: number;
  deadline: string | null;
  overdue: boolean;
  failures: number;
  notes: number;
  notBefore: string | null;
  createdAt: string;
  updatedAt: string;
  lastTransitionAt: string;
  lease: LeaseResource | null;
  report: ReportResource | null;
  delegation: DelegationResource | null;
  delegationDepth: number;
  handoff: string | null;
  handoffChain: readonly (string)[];
  warnings: number;
  checkpoint: CheckpointResource | null;
  questions: readonly (QuestionResource)[];
  checks: readonly (string)[];
  proven: boolean;
  body: string;
  answers: readonly (QuestionResource)[];
  feedback: readonly (FeedbackResource)[];
  evidence: EvidenceResource | null;
}

export interface TaskDiff {
  task: string;
  branch: string;
  commit: string;
  into: string;
  base: string;
  patch: string;
  uncommittedPatch: string;
  uncommitted: readonly (string)[];
  isComplete: boolean;
}

export interface TaskMerge {
  task: string;
  branch: string;
  commit: string;
  into: string;
  merged: string;
}

export interface TaskPage {
  tasks: readonly (TaskSummary)[];
  next: number | null;
}

export interface TaskStatusAfter {
  id: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review" | null;
}

export interface TaskSummary {
  id: string;
  aofId: string;
  title: string;
  status: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review";
  priority: "critical" | "high" | "low" | "normal";
  assignee: string | null;
  reservedFor: string | null;
  reviewRequired: boolean;
  parent: string | null;
  children: readonly (string)[];
  blockedBy: readonly (string)[];
  waitsFor: readonly (string)[];
  waitReason: string | null;
  obstacle: string | null;
  blocks: readonly (string)[];
  discoveredFrom: string | null;
  discovered: readonly (string)[];
  aliases: readonly (string)[];
  origin: string | null;
  attempt: number;
  fence: number;
  maxAttempts: number;
  deadline: string | null;
  overdue: boolean;
  failures: number;
  notes: number;
  notBefore: string | null;
  createdAt: string;
  updatedAt: string;
  lastTransitionAt: string;
  lease: LeaseResource | null;
  report: ReportResource | null;
  delegation: DelegationResource | null;
  delegationDepth: number;
  handoff: string | null;
  handoffChain: readonly (string)[];
  warnings: number;
  checkpoint: CheckpointResource | null;
  questions: readonly (QuestionResource)[];
  checks: readonly (string)[];
  proven: boolean;
}

export interface TokenBody {
  days?: number;
}

export interface TokenPage {
  tokens: readonly (TokenResource)[];
}

export interface TokenResource {
  id: string;
  state: "expired" | "good" | "revoked";
  issuedAt: string;
  expiresAt: string;
}

export interface TracePage {
  task: string;
  events: readonly (TraceRow)[];
  next: number;
  gap?: Gap;
}

export interface TraceRow {
  position: number;
  masked: boolean;
  event: Readonly<Record<string, unknown>>;
}

export interface TransitionResource {
  to_status: "accepted" | "activated" | "closed" | "completed" | "draft" | "proposed" | "rejected" | "validating";
  by: string;
  at: string;
  note: string;
}

export interface Translated {
  from: string;
  to: string;
  kind: string;
  message: Readonly<Record<string, unknown>>;
  losses: readonly (Loss)[];
  filled: readonly (Filled)[];
  is_notice: boolean;
}

export interface TranslationBody {
  from: string;
  to: string;
  message: Readonly<Record<string, unknown>> | string;
}

export interface TurnPage {
  task: string;
  turns: readonly (TurnRow)[];
  gaps: readonly (number)[];
  missing: readonly (MissingTurns)[];
  more: boolean;
  cursor: string;
}

export interface TurnRow {
  position: number;
  attempt: number;
  masked: boolean;
  recorded_at: string;
  envelope: Readonly<Record<string, unknown>>;
  by?: string;
  after_attempt?: number | null;
}

export interface Update {
  fence?: number | null;
  to?: "backlog" | "blocked" | "cancelled" | "deadletter" | "done" | "in-progress" | "ready" | "review" | null;
  progress?: string;
  notes?: string;
  blockers?: readonly (string)[];
}

export interface WaitForWorkBody {
  agent?: string;
  session?: string;
  ttl_ms?: number | null;
  wait_ms?: number;
}

export interface WaitingResource {
  task: string;
  title: string;
  since: string;
  kind: "backoff" | "dependency" | "handoff" | "reserved";
  reason: string;
  actors: readonly (string)[];
}

export interface Withdraw {
  fence?: number | null;
  question: string;
}

export interface WorkingResource {
  task: string;
  title: string;
  agent: string;
  attempt: number;
  since: string;
  lastSign: string | null;
  lastProgress: string;
  leaseUntil: string | null;
  leaseValid: boolean;
}
