internal import Multicast

/// Watches a store for external changes, reads those of observed keys, and publishes them.
///
/// ``WatchState`` decides which names to read. A checker belongs to one store and is used in its isolation only.
final class ChangeChecker<Backend: StoreBackend> {
  private let contents: StoreContents<Backend>
  private var watch = WatchState()
  /// Schedules a call of ``checkForChanges(takesReport:)``.
  private var wake: @Sendable () -> Void = {}
  /// The failure of the last check, which is reported once until a check succeeds.
  ///
  /// An observer of the events may write to a file in the store's folder, and so cause the next check.
  private var reportedFailure: StoreError?
  /// The unpublished reads of external changes, which the current attempt of ``CommitQueue`` has made.
  private var checksOfAttempt: [any AnyCheck] = []
  /// Whether changes were reported that no check has read since.
  private var needsCheck = false
  /// Whether a report was dismissed in the current attempt of ``CommitQueue``, because it seemed to be of the attempt's
  /// own removals.
  private var hasDismissedReport = false
  /// The names of the keys of durable commits that aren't recorded yet.
  ///
  /// A check doesn't read these names, because it would mistake the commits' changes for external ones. A later check
  /// reads them.
  var unrecordedNames: Set<String> = []

  init(_ contents: StoreContents<Backend>) {
    self.contents = contents
  }

  /// Starts to watch, unless the watch has already started.
  ///
  /// If the store is suspended, the watch starts when it is resumed.
  ///
  /// - Parameter wake: Called on any thread; schedules a call of ``checkForChanges(takesReport:)``.
  func startWatching(waking wake: @escaping @Sendable () -> Void) {
    self.wake = wake
    watch.request()
    startWatching()
  }

  /// Whether the watch has started, and hasn't broken since.
  var isWatching: Bool { watch.isWatching }

  /// Starts the watch if it hasn't started yet or has broken, and then checks all observed keys.
  ///
  /// Does nothing while no observer has needed the watch, or the store is suspended.
  func startWatching() {
    guard watch.mustBegin else { return }
    do throws(StoreError) {
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.startWatching(wake)
      }
    } catch {
      // No call fails because of this, and the next observer tries again.
      contents.send(.watchingFailed(error))
      return
    }
    watch.begin()
    checkForChanges(takesReport: false)
  }

  /// Suspends the store: ends the watch, and closes the backend now and after each use.
  ///
  /// No other call may be in progress.
  func suspend() {
    if watch.suspend() { contents.beginClosingBackend() }
  }

  /// Ends a suspension.
  ///
  /// After the last one, it starts the watch again, and checks all observed keys.
  func resume() {
    guard watch.resume() else { return }
    contents.endClosingBackend()
    startWatching()
    // Even if the watch can't begin, the observers receive what has changed during the suspension.
    if watch.mustBegin { checkForChanges(takesReport: false) }
  }

  /// Reads the external changes of observed keys, and publishes them.
  ///
  /// Does nothing while the store is suspended, because a check opens the backend and nobody has asked for it. The check
  /// at the end of the suspension reads all observed keys.
  ///
  /// - Parameter takesReport: Whether to take the backend's report of external changes first.
  func checkForChanges(takesReport: Bool = true) {
    if watch.isSuspended { return }
    do throws(StoreError) {
      publish(try readChanges(takesReport: takesReport, mayRepeat: takesReport))
      reportedFailure = nil
    } catch {
      if error != reportedFailure { contents.send(.watchingFailed(error)) }
      reportedFailure = error
      if !watch.isWatching { startWatching() }
    }
  }

  /// Reads the external changes of observed keys, and publishes them, in a call that fails if that does.
  ///
  /// Without a watch, nothing reports them, so all observed keys are read.
  func catchUp() throws(StoreError) {
    if !watch.isWatching { watch.report(.unknown) }
    publish(try readChanges(takesReport: watch.isWatching, mayRepeat: true))
  }

  /// Reads the external changes of observed keys in a snapshot.
  ///
  /// If the snapshot can't begin, it doesn't take the report. The report is then taken without a snapshot, because a
  /// backend need not wake the store again before that. But the report may include a change that was made after the
  /// failure, such as the return of a missing folder, and then no other report of that change follows. So the changes
  /// are read once more. If that fails too, the backend reports every later change.
  ///
  /// - Parameters:
  ///   - takesReport: Whether to take the backend's report of external changes first.
  ///   - mayRepeat: Whether to take the report and to read once more if the snapshot can't begin.
  private func readChanges(takesReport: Bool, mayRepeat: Bool) throws(StoreError) -> [any AnyCheck] {
    var plan: WatchState.Plan?
    do throws(StoreError) {
      return try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          // If the backend has called this closure before, it has discarded what that call read.
          if let plan { watch.markUnread(plan) }
          if takesReport { try takeReport(&backend) }
          let newPlan = takePlan()
          plan = newPlan
          return try readObserved(newPlan, from: &backend)
        }
      }
    } catch {
      if let plan { watch.markUnread(plan) }
      // If a server can't be reached, each attempt takes as long as the timeout. The backend of the server wakes the
      // store again anyway.
      guard mayRepeat, plan == nil, watch.isWatching, takesReportOfChanges(), !error.isLostConnection else {
        throw error
      }
    }
    return try readChanges(takesReport: takesReport, mayRepeat: false)
  }

  /// Takes the report of external changes after a failure.
  ///
  /// - Returns: Whether there may be changes; `false` also if the watch has broken.
  private func takesReportOfChanges() -> Bool {
    do throws(StoreError) {
      let changes = try contents.withBackend { (backend: inout Backend) throws(StoreError) in try takeReport(&backend) }
      return changes != .names([])
    } catch {
      // The caller reports the failure, and then the watch is started again.
      return false
    }
  }

  /// Reads the external changes from before the first commit of an attempt, under the commit's lock or in its
  /// transaction.
  ///
  /// Without this, only a part of an external commit would be read and sent: the keys that the first commit of the
  /// attempt changes or requires itself.
  ///
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only. Other errors are reported as events, and the commit
  ///   continues.
  func readExternalChanges(from backend: inout Backend) throws(StoreError) {
    guard watch.isWatching else { return }
    var plan: WatchState.Plan?
    do throws(StoreError) {
      try takeReport(&backend)
      let newPlan = takePlan()
      plan = newPlan
      checksOfAttempt += try readObserved(newPlan, from: &backend)
    } catch {
      if case .corruptStore = error { throw error }
      contents.send(.watchingFailed(error))
      if let plan { watch.markUnread(plan) }
      needsCheck = true
    }
  }

  /// Takes the report of external changes before a commit that isn't the first of its attempt.
  ///
  /// It only checks whether all reported names are names that the attempt has removed and that are still missing. It
  /// doesn't reconcile any changes. The earlier commits of the attempt aren't recorded yet, so their changes would be
  /// mistaken for external ones.
  ///
  /// - Parameters:
  ///   - backend: The backend.
  ///   - removed: The names that the attempt has removed so far, which a backend may report too.
  /// - Returns: Whether there may be external changes, so that the commit must wait for another attempt; `false` also
  ///   if the store isn't being watched, or after an error that isn't thrown.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only.
  func findsExternalChanges(
    with backend: inout Backend, besides removed: Set<String>
  ) throws(StoreError) -> Bool {
    guard watch.isWatching else { return false }
    do throws(StoreError) {
      let changes = try takeReport(&backend)
      if case .names(let names) = changes {
        var areOwnRemovals = removed.isSuperset(of: names)
        for name in names where areOwnRemovals { areOwnRemovals = try backend.read(name) == nil }
        if areOwnRemovals {
          if !names.isEmpty { hasDismissedReport = true }
          return false
        }
      }
      needsCheck = true
      return true
    } catch {
      if case .corruptStore = error { throw error }
      contents.send(.watchingFailed(error))
      needsCheck = true
      return false
    }
  }

  /// Discards the reads of external changes, because they are of a store that was quarantined.
  func discardChecksOfAttempt() {
    checksOfAttempt = []
  }

  /// Publishes the external changes that an attempt has read, before its own commits are recorded.
  func publishChecksOfAttempt() {
    let checks = checksOfAttempt
    checksOfAttempt = []
    publish(checks)
  }

  /// Records that an attempt has ended.
  ///
  /// If a commit of the attempt wasn't made, a dismissed report may have been of a removal by another process. So a
  /// check reads the reported names after all.
  func endAttempt(madeAll: Bool) {
    if hasDismissedReport, !madeAll { needsCheck = true }
    hasDismissedReport = false
  }

  /// Schedules a check of the reported changes if no attempt has read them, because nothing else would read them.
  func wakeIfCheckIsNeeded() {
    if needsCheck { wake() }
  }

  /// Sends the change that a read of one key has found.
  ///
  /// The external commit that made the change may have changed other keys too. Observers of the whole collection
  /// receive a commit as one element, so the other external changes are read and recorded first.
  func publish<Value>(_ slot: Slot<Value>) {
    if slot.topic.hasUnsent, slot.topic.isCollectionObserved || slot.topic.isFed { checkForChanges() }
    contents.flush()
  }

  /// Records the read of an observed key, quarantines corrupt bytes, and reports an unusable value as an event.
  ///
  /// - Returns: `false` if the whole store turned out to be corrupt, so that the read is out of date.
  @discardableResult
  func reconcile<Value>(_ result: ReadResult<Value>, ofObserved slot: Slot<Value>) -> Bool {
    if case .corrupt(let bytes, let reason) = result {
      // Bytes that could not be quarantined before are left alone. Each attempt to quarantine them would wake the
      // store, which would then try again.
      if slot.topic.isUnusable(Fingerprint(bytes), slot.id) { return true }
      do throws(StoreError) {
        _ = try contents.quarantine(bytes, of: slot, reason: reason)
      } catch {
        if case .corruptStore = error { return false }
        contents.send(.watchingFailed(error))
      }
      return true
    }
    // A backend may repeat the decision whether to make a commit, so an attempt may read a key several times before it
    // records the reads. If an earlier read found a change, and this one found the bytes from before the change, this
    // one hasn't decoded their value, because they were still the last recorded bytes. So the key is read again.
    if case .unchanged(let edition) = result, slot.topic.edition(of: slot.id)?.fingerprint != edition.fingerprint {
      markUnread(slot)
      wake()
      return true
    }
    if contents.reconcile(result, slot).hidesNewValue { contents.report(result, slot) }
    if case .unreadable = result { markUnread(slot) }
    return true
  }

  /// Records that a key could not be read.
  ///
  /// No report says when it becomes readable, so the next check reads it again.
  func markUnread<Value>(_ slot: Slot<Value>) {
    watch.markUnread(slot.name)
  }

  private func takePlan() -> WatchState.Plan {
    needsCheck = false
    return watch.takePlan()
  }

  /// Takes and records the backend's report of external changes, and returns it.
  ///
  /// An error ends the watch.
  @discardableResult
  private func takeReport(_ backend: inout Backend) throws(StoreError) -> ExternalChanges {
    do throws(StoreError) {
      let changes = try backend.takeExternalChanges()
      watch.report(changes)
      return changes
    } catch {
      watch.end()
      throw error
    }
  }

  /// Reads the observed names of a plan, and groups the reads by commit.
  private func readObserved(
    _ plan: WatchState.Plan, from backend: inout Backend
  ) throws(StoreError) -> [any AnyCheck] {
    var checks: [any AnyCheck] = []
    var seenNames: Set<String> = []
    var longNames = LongNames()
    for name in try plan.names + (plan.includesAllObserved ? contents.topics.observedNames(&backend) : []) {
      guard seenNames.insert(name).inserted, let keyName = try key(named: name, &longNames, &backend),
        let topic = contents.topics[keyName.collection], topic.isObserved(keyName.id)
      else { continue }
      if unrecordedNames.contains(name) {
        watch.markUnread(name)
        needsCheck = true
        continue
      }
      checks.append(try makeCheck(of: keyName, named: name, in: topic, &backend))
    }
    return checks.groupedByCommit()
  }

  /// The keys whose values may be missing and whose encoded names don't contain their ids, by these names, of the
  /// collections for which a check needed them.
  private typealias LongNames = [String: [String: StoreKeyName]]

  /// Returns the key with an encoded name, or `nil` if no observer can know the key.
  private func key(
    named name: String, _ longNames: inout LongNames, _ backend: inout Backend
  ) throws(StoreError) -> StoreKeyName? {
    guard let longName = LongKeyName(name) else { return StoreKeyName(encoded: name) }
    guard let topic = contents.topics[longName.collection] else { return nil }
    if let key = try StoreKeyName.stored(under: name, in: &backend) { return key }
    // The value was removed, and its id with it. The observers know the value only if the topic does.
    if longNames[longName.collection] == nil {
      var keys: [String: StoreKeyName] = [:]
      for key in topic.storedKeys {
        let name = try key.encoded()
        if LongKeyName.isLong(name) { keys[name] = key }
      }
      longNames[longName.collection] = keys
    }
    return longNames[longName.collection]?[name]
  }

  private func makeCheck<T: AnyTopic>(
    of keyName: StoreKeyName, named name: String, in topic: T, _ backend: inout Backend
  ) throws(StoreError) -> any AnyCheck {
    let slot = topic.typed.slot(StoreKey(keyName), named: name)
    return Check(slot: slot, result: try slot.readEntry(from: &backend, needsValue: false))
  }

  /// Records reads, and sends the changes they have found.
  private func publish(_ checks: [any AnyCheck]) {
    for check in checks {
      if reconcile(check) { continue }
      // The remaining reads are of a store that has been quarantined since.
      watch.report(.unknown)
      wake()
      break
    }
    contents.flush()
  }

  private func reconcile(_ check: some AnyCheck) -> Bool {
    let check = check.typed
    return reconcile(check.result, ofObserved: check.slot)
  }
}
