"""Example files of the specification of AOF/1, byte for byte."""

RESULT = """\
{
  "taskId": "TASK-2026-02-09-057",
  "agentId": "swe-backend",
  "completedAt": "2026-02-09T21:10:00.000Z",
  "outcome": "done",
  "summaryRef": "outputs/summary.md",
  "handoffRef": "outputs/handoff.md",
  "deliverables": ["src/foo.ts", "src/bar.ts"],
  "tests": {
    "total": 120,
    "passed": 120,
    "failed": 0
  },
  "blockers": [],
  "notes": "All acceptance criteria met. Tests passing."
}
"""
