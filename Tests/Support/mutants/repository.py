"""Deliberate defects of Sources/Repository that the tests must detect, by the laws that they break.

The laws are in Sources/Repository/Repository.docc/Laws.md.
"""

from mutant import mutants_of

mutant = mutants_of("Repository")

ATTEMPTS = "Core/SyncCore+Attempts.swift"
COMMIT = "Core/RecordCommit.swift"
EVICTION = "Core/EvictionState.swift"
FEED = "Core/SyncCore+Feed.swift"
JUDGEMENT = "Core/ReplyJudgement.swift"
KEY_STATE = "Core/KeyState.swift"
KEY_STATES = "Core/KeyStates.swift"
LANES = "Core/MutationLanes.swift"
LEAD = "Core/Lead.swift"
LEDGER = "Core/MutationLedger.swift"
MUTATIONS = "Core/SyncCore+Mutations.swift"
QUEUE = "Core/MutationQueue.swift"
REPLIES = "Core/SyncCore+Replies.swift"
STATE = "Core/SyncState.swift"
VERSIONS = "Core/VersionBarriers.swift"
ENGINE_LEAD = "Engine/SyncEngine+Lead.swift"
ENGINE_LOADS = "Engine/SyncEngine+Loads.swift"
ENGINE_MUTATIONS = "Engine/SyncEngine+Mutations.swift"
ENGINE_STORE = "Engine/SyncEngine+Store.swift"
ENGINE_SUSPENSION = "Engine/SyncEngine+Suspension.swift"
ENGINE_USERS = "Engine/SyncEngine+Users.swift"
USER_DATA = "Users/UserData.swift"

MUTANTS = [
    mutant(
        "confirmed-mutation-applied-again",
        "the base changes in one step with the mutations that it includes (L1)",
        (
            STATE,
            "    for id in write.confirmed { pending.remove(id) }\n",
            "    for id in write.confirmed.prefix(1) { pending.remove(id) }\n",
        ),
    ),
    mutant(
        "external-value-applied-after-its-mutations-end",
        "the base changes in one step with the mutations that it includes (L1)",
        (
            FEED,
            "      if case .unusable = change { unusableValues.insert(change.key) }\n"
            "      receiveValue(change, isBeginning: isBeginning(change.key))\n",
            "      if case .unusable = change { unusableValues.insert(change.key) }\n",
        ),
        (
            FEED,
            "  private mutating func receiveValue(",
            "  mutating func applyValues(_ transaction: StoreTransaction, isBeginning: (StoreKeyName) -> Bool) {\n"
            "    for change in transaction.changes where change.key.collection == name {\n"
            "      receiveValue(change, isBeginning: isBeginning(change.key))\n    }\n  }\n\n"
            "  private mutating func receiveValue(",
        ),
        (
            ENGINE_STORE,
            "    (feed.beginnings, feed.voidBeginnings) = (beginnings, voids)\n",
            "    update { core in\n"
            "      for case .committed(let transaction) in elements {\n"
            "        core.applyValues(transaction) { beginnings.contains(.key($0)) }\n      }\n    }\n"
            "    (feed.beginnings, feed.voidBeginnings) = (beginnings, voids)\n",
        ),
    ),
    mutant(
        "restart-after-each-conflict",
        "the work of a change is linear in the number of pending mutations (L1)",
        (STATE, "      continuesAfterConflicts = true\n", "      continuesAfterConflicts = false\n"),
    ),
    mutant(
        "second-mutation-published-later",
        "a mutation is visible before anything is written or sent (L2)",
        (
            MUTATIONS,
            "    touch(keyID)\n    do throws(MutationConflict) {\n",
            "    if !(keys[keyID]?.state.isPending ?? false) { touch(keyID) }\n    do throws(MutationConflict) {\n",
        ),
    ),
    mutant(
        "old-fetch-accepted-after-a-confirmation",
        "a reply that began before the last acceptance isn't stored (L3)",
        (
            VERSIONS,
            "-> Bool { request.number > lastChange }\n",
            "-> Bool { request.number > lastReplacement }\n",
        ),
    ),
    mutant(
        "old-reply-accepted-after-an-external-value",
        "a reply that began before another process stored a value isn't stored (L3)",
        (
            STATE,
            "      let replacedAt = versions.now()\n      versions.recordReplacement(at: replacedAt)\n"
            "      writing?.replacedAt = replacedAt\n",
            "",
        ),
    ),
    mutant(
        "base-not-required",
        "a reply is stored only if the value that it was judged against is still stored (L3)",
        (REPLIES, "    batch.requireFound(write.baseTag, of: storeKey)\n", ""),
    ),
    mutant(
        "external-value-without-pending-mutations",
        "a pending mutation stays visible on an external value (L4)",
        (
            STATE,
            "    (base, self.revision, showsEmpty) = (stored, revision, false)\n    invalidateVisible()\n",
            "    (base, self.revision, showsEmpty) = (stored, revision, false)\n"
            "    (folded, needsFold) = (stored?.value, false)\n"
            "    visibleVersion += 1\n",
        ),
    ),
    mutant(
        "hidden-until-the-fetch",
        "a mutation whose reply isn't accepted stays visible until the base includes it (L4)",
        (
            JUDGEMENT,
            "        pending.setPhase(.confirmed(at: arrivedAt), of: id)\n",
            "        pending.remove(id)\n        partialWrite.keepsVisible = false\n",
        ),
    ),
    mutant(
        "newest-mutation-first",
        "the mutations of a lane are sent in order (L5)",
        (
            LANES,
            "    lanes[laneID, default: Lane(userID: userID)].waiting.append(id)\n",
            "    lanes[laneID, default: Lane(userID: userID)].waiting.prepend(id)\n",
        ),
    ),
    mutant(
        "failed-mutation-sent-last",
        "the mutations of a lane are sent in order (L5)",
        (
            LANES,
            "    lanes[laneID]?.waiting.prepend(id)\n    lanes[laneID]?.failures += 1\n",
            "    lanes[laneID]?.waiting.append(id)\n    lanes[laneID]?.failures += 1\n",
        ),
    ),
    mutant(
        "ordered-by-clock",
        "the order of mutations doesn't depend on clocks (L5)",
        (
            LEDGER,
            "    fileprivate var position: (UInt64, UInt64) { (record.sequence, additionNumber) }\n",
            "    fileprivate var position: (UInt64, UInt64) {\n"
            "      if record.sequence == .max { return (.max, additionNumber) }\n"
            "      return (UInt64(max(0, madeAt.timeIntervalSince1970 * 1000)), additionNumber)\n"
            "    }\n",
        ),
    ),
    mutant(
        "new-id-at-each-attempt",
        "all attempts of a mutation have the same id (L6)",
        (
            ENGINE_MUTATIONS,
            "sending.send(entry.mutation, entry.key, entry.id)",
            "sending.send(\n"
            "        entry.mutation, entry.key, entry.record.attempts > 1 ? MutationID() : entry.id)",
        ),
    ),
    mutant(
        "requeued-under-a-new-id",
        "a mutation that the server may have applied is requeued under its id (L6)",
        (
            ENGINE_MUTATIONS,
            "entry, by: entry.mutation, as: entry.record.isOutcomeUnknown ? entry.id : MutationID())\n",
            "entry, by: entry.mutation, as: MutationID())\n",
        ),
    ),
    mutant(
        "repeated-reply-trusted",
        "a reply that may repeat the reply to an earlier attempt isn't stored (L6)",
        (ATTEMPTS, "isTrusted: !entry.record.isOutcomeUnknown)", "isTrusted: true)"),
    ),
    mutant(
        "sent-before-its-record",
        "a mutation is durable before it is sent (L7)",
        (LANES, "    if !isDurable { blocked.insert(id) }\n", ""),
    ),
    mutant(
        "records-removed-in-a-second-commit",
        "one commit stores a value and removes the records of the mutations that it includes (L8)",
        (REPLIES, "    for mutation in write.confirmed { batch.remove(recordKeys.record(mutation)) }\n", ""),
        (
            ENGINE_LOADS,
            "      let commit = try await commit(batch)\n",
            "      var removals = StoreBatch()\n"
            "      for mutation in write.confirmed { removals.remove(recordKeys.record(mutation)) }\n"
            "      if !write.confirmed.isEmpty { try await self.commit(removals) }\n"
            "      let commit = try await commit(batch)\n",
        ),
    ),
    mutant(
        "sign-in-awaited-by-all-users",
        "only the lanes of the user who has to sign in wait (L9)",
        (
            LANES,
            "        if usersNeedingSignIn.contains(lane.userID) {\n          lanes[laneID]?.status = .needsSignIn\n",
            "        if !usersNeedingSignIn.isEmpty {\n          lanes[laneID]?.status = .needsSignIn\n",
        ),
    ),
    mutant(
        "values-of-all-users-erased",
        "a sign-out erases only the data of its user (L9)",
        (
            USER_DATA,
            "    case valueCollection: return key.id.map { user.owns(storeID: $0, as: Key.self) } ?? false\n",
            "    case valueCollection: return true\n",
        ),
    ),
    mutant(
        "reply-stored-after-a-sign-out",
        "no process stores a value of a user after the user's sign-out (L10)",
        (REPLIES, "    requirement(of: id.key.userID)?.add(to: &batch)\n", ""),
    ),
    mutant(
        "mutation-added-after-a-sign-out",
        "no process stores a mutation of a user after the user's sign-out (L10)",
        (COMMIT, "        requirement.add(to: &batch)\n", ""),
    ),
    mutant(
        "earlier-sign-in-prevails",
        "a sign-in that began before a sign-out doesn't undo it (L10)",
        (ENGINE_USERS, "        if record.signOutCount != count { break }\n", ""),
    ),
    mutant(
        "one-mutation-too-many",
        "a mutation that would exceed the limits of the queue isn't made (L11)",
        (
            QUEUE,
            "    guard ledger.count + held.count < limits.maximumCount,",
            "    guard ledger.count + held.count <= limits.maximumCount,",
        ),
    ),
    mutant(
        "one-value-too-many",
        "the stored values don't exceed the limits of the eviction policy (L11)",
        (
            EVICTION,
            "    policy.maximumCount.map { count > $0 } ?? false ||",
            "    policy.maximumCount.map { count > $0 + 1 } ?? false ||",
        ),
    ),
    mutant(
        "evicted-after-the-call",
        "a call that stores a value evicts others before it returns (L11)",
        (
            ENGINE_LOADS,
            "      if let value = write.value { await makeRoom(afterSaving: value, id, commit) }\n",
            "",
        ),
    ),
    mutant(
        "idle-keys-kept",
        "the state of a key that nothing uses is released (L11)",
        (
            KEY_STATES,
            "    while idleKeys.count > Self.idleLimit, let key = idleKeys.removeFirst() {\n",
            "    while idleKeys.count > 16 * Self.idleLimit, let key = idleKeys.removeFirst() {\n",
        ),
    ),
    mutant(
        "external-value-held-while-a-write-hangs",
        "a write that hangs doesn't keep the values of other processes from the observers (L12)",
        (
            FEED,
            "      guard let stored = change.stored(for: state.storeKey) else { return }\n",
            "      guard !state.isWriting, let stored = change.stored(for: state.storeKey) else { return }\n",
        ),
    ),
    mutant(
        "slot-of-a-slow-send-lost",
        "a slow send delays no other lane for longer than its time limit (L12)",
        (
            LANES,
            "    slots[kind, default: Slots()].usedCount -= 1\n    lanes[laneID]?.isSlow = isSlow\n",
            "    if !isSlow { slots[kind, default: Slots()].usedCount -= 1 }\n    lanes[laneID]?.isSlow = isSlow\n",
        ),
    ),
    mutant(
        "lane-stuck-after-its-backoff",
        "the queue drains while the server can be reached (L12)",
        (
            LANES,
            "    lanes[backOff.lane]?.wasResumedAfterFetch = isAfterFetch\n    makeReadyOrForget(backOff.lane)\n",
            "    lanes[backOff.lane]?.wasResumedAfterFetch = isAfterFetch\n",
        ),
    ),
    mutant(
        "confirmed-mutation-not-pending",
        "isPending is true while the base doesn't include a mutation (L13)",
        (
            STATE,
            "  var isPending: Bool { !pending.isEmpty }\n",
            "  var isPending: Bool {\n"
            "    pending.all.contains { if case .confirmed = $0.phase { false } else { true } }\n"
            "  }\n",
        ),
    ),
    mutant(
        "cancelled-reported-as-confirmed",
        "a call is never confirmed for a mutation that was cancelled (L13)",
        (
            FEED,
            "withdrawals.contains(id) ? .failure(.cancelled)",
            "withdrawals.count > 99 ? .failure(.cancelled)",
        ),
    ),
    mutant(
        "quarantined-reported-as-confirmed",
        "a call doesn't return 'confirmed' for a mutation whose record was quarantined (L13)",
        (
            FEED,
            "    if let error { end(id, .failure(.store(error))) }\n",
            "    if let error, queue[id] != nil { end(id, .failure(.store(error))) }\n",
        ),
    ),
    mutant(
        "not-fetched-after-a-rejected-reply",
        "the value is fetched again after a reply that isn't accepted (L14)",
        (REPLIES, "    if keys[id]?.state.needsWholeValue ?? false { fetchWhole(id) }\n", ""),
    ),
    mutant(
        "rejected-fetch-not-repeated",
        "a fetched value that may be older than the stored one is fetched again (L14)",
        (
            REPLIES,
            "    endFetches(write.rejected, .success(false))\n",
            "    endFetches(write.rejected, .success(true))\n",
        ),
    ),
    mutant(
        "verdict-not-stored-before-the-next-send",
        "a mutation isn't sent before the verdict on an earlier one of its lane is stored (L5)",
        (ENGINE_MUTATIONS, "      try await storeVerdicts(in: dequeued.lane)\n", ""),
    ),
    mutant(
        "sent-past-a-held-mutation",
        "no mutation is sent that comes after one that this program can't read (L15)",
        (
            LANES,
            "{ !blocked.contains(id) && !held.contains(id) }\n",
            "{ !blocked.contains(id) }\n",
        ),
    ),
    mutant(
        "held-mutation-not-counted",
        "a mutation that this program can't read counts (L15)",
        (
            KEY_STATE,
            "      isPending: state.isPending || hasHeldMutation,\n",
            "      isPending: state.isPending,\n",
        ),
    ),
    mutant(
        "confirmed-with-an-unreadable-value-hidden",
        "a change stays visible when a newer program confirms it with a value that this one can't read (L15)",
        (FEED, "    if isIncluded, !shared.withdrawals.contains(id) {", "    if isIncluded, revision == 0 {"),
    ),
    mutant(
        "record-written-over-another-repository's",
        "a repository writes a record only over the version that it knows (L6)",
        (COMMIT, "    if requirements[key.keyName] == nil { batch.require(tag, of: key) }\n", ""),
    ),
    mutant(
        "back-off-forgotten-at-launch",
        "the delay after a failed attempt goes on after a relaunch and in other processes (L16)",
        (
            QUEUE,
            "    resumeBackOff(of: entry.id, entry.record, in: entry.lane, at: now)\n",
            "",
        ),
    ),
    mutant(
        "lease-kept",
        "a repository that has sent everything releases the lock (L16)",
        (LEAD, "Duration { .milliseconds(250) }\n", "Duration { .seconds(250) }\n"),
    ),
    mutant(
        "marks-kept-without-a-lease",
        "the next leader takes no waiting mutation for one that was being sent (L16)",
        (
            ENGINE_LEAD,
            "    await storeStandings()\n    guard update({ $0.mayRest(",
            "    guard update({ $0.mayRest(",
        ),
    ),
    mutant(
        "lease-kept-while-suspended",
        "a suspended repository holds no lock (L16)",
        (
            ENGINE_LEAD,
            "    guard core.lead.isHeld, core.queue.isSuspended else { return }\n"
            "    lease = nil\n    update { $0.releaseLead(yields: false) }\n",
            "",
        ),
    ),
    mutant(
        "store-kept-open-while-suspended",
        "the store is suspended with the last of its repositories (L16)",
        (ENGINE_SUSPENSION, "    await suspension.store.suspend()\n", ""),
    ),
    mutant(
        "fetches-end-every-backoff",
        "fetches that succeed make no loop of attempts that fail (L12)",
        (LANES, "lanes[backOff.lane]?.wasResumedAfterFetch = isAfterFetch\n", "_ = isAfterFetch\n"),
    ),
    mutant(
        "every-lane-tries-in-an-outage",
        "while the server can't be reached, one lane at a time tries (L12)",
        (LANES, "kind == .suspect || outage.isActive ? 1", "kind == .suspect ? 1"),
    ),
]
