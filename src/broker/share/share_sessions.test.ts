/** Share sessions by the names of those who open them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ShareSessions } from "./share_sessions.ts";

test("sessions of different members are different, whatever characters their names have", () => {
  const sessions = new ShareSessions({ sessionsMax: () => 10, onLost: () => {} });
  const members = [
    { memberId: "a", groupId: "b\0c" },
    { memberId: "a\0b", groupId: "c" },
    { memberId: "1:a", groupId: "b" },
    { memberId: "1", groupId: ":ab" },
  ];
  const places = [{ topicId: "01".repeat(16), partition: 0 }];
  const ended = new AbortController().signal;
  for (const member of members) {
    const opening = { ...member, epoch: 0, hasAcknowledgements: false, forgotten: [] };
    assert.ok(sessions.open({ ...opening, places, ended }).ok);
  }
  assert.equal(sessions.size, members.length);
  assert.equal(sessions.end(members[0]!).length, 1);
  assert.equal(sessions.acknowledge(members[1]!, 1), null, "the others go on");
});
