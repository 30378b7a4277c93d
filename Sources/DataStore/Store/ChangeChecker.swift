internal import Multicast

/// Watches for the external changes of a store, reads what is observed of them, and publishes it.
///
/// What is to be read is decided by ``WatchState``. It belongs to one store and is used in its isolation only.
final class ChangeChecker<Backend: StoreBackend> {
  private let contents: StoreContents<Backend>
  private var watch = WatchState()
  private var wake: @Sendable () -> Void = {}
  /// What was read before the commits that are being made, until they are.
  private var checksOfCommits: [any AnyCheck] = []
  /// Whether a report was taken and what it names not read yet, although no check was asked for.
  private var owesCheck = false

  init(_ contents: StoreContents<Backend>) {
    self.contents = contents
  }

  /// Begins to watch, unless it has begun.
  ///
  /// - Parameter wake: Calls ``checkForChanges()`` soon, from any thread.
  func startWatching(waking wake: @escaping @Sendable () -> Void) {
    self.wake = wake
    startWatching()
  }

  /// Whether the backend reports external changes.
  var isWatching: Bool { watch.isWatching }

  /// Begins to watch again, unless the watch goes on.
  func startWatching() {
    guard !watch.isWatching else { return }
    do throws(StoreError) {
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.startWatching(wake)
      }
    } catch {
      // No call fails for it, and the next observer tries again.
      contents.send(.watchingFailed(error))
      return
    }
    watch.begin()
    checkForChanges(takesReport: false)
  }

  /// Reads what was changed externally, and publishes it to its observers.
  ///
  /// - Parameter takesReport: Whether the backend is asked what changed.
  func checkForChanges(takesReport: Bool = true) {
    var plan: WatchState.Plan?
    do throws(StoreError) {
      let checks = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          // A backend may begin anew.
          if let plan { watch.miss(plan) }
          if takesReport { try takeReport(&backend) }
          let taken = takePlan()
          plan = taken
          return try readObserved(taken, from: &backend)
        }
      }
      publish(checks)
    } catch {
      contents.send(.watchingFailed(error))
      if let plan {
        watch.miss(plan)
      } else if takesReport {
        // The backend wakes the store only once until it is asked.
        do throws(StoreError) {
          _ = try contents.withBackend { (backend: inout Backend) throws(StoreError) in try takeReport(&backend) }
        } catch {
          // A broken watch ends below, and the event above says why.
        }
      }
      if !watch.isWatching { startWatching() }
    }
  }

  /// Reads what was changed externally before a commit, under its lock or in its transaction.
  ///
  /// Otherwise the commit would read, and send, only those keys of an external commit that it changes itself.
  ///
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only. Whatever else fails here is an event, and the commit goes on.
  func readExternalChanges(from backend: inout Backend) throws(StoreError) {
    guard watch.isWatching else { return }
    var plan: WatchState.Plan?
    do throws(StoreError) {
      try takeReport(&backend)
      let taken = takePlan()
      plan = taken
      checksOfCommits += try readObserved(taken, from: &backend)
    } catch {
      if case .damaged = error { throw error }
      contents.send(.watchingFailed(error))
      if let plan { watch.miss(plan) }
    }
  }

  /// Takes the report of what was changed externally before a commit that isn't the first of its group.
  ///
  /// What the group has made so far isn't recorded yet, so it would be taken for external if it was read now.
  ///
  /// - Parameters:
  ///   - backend: The backend.
  ///   - removed: The names that the group has removed. A backend may report them, too.
  /// - Returns: Whether anything was changed, so that the commit must be made in another group.
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only.
  func findsExternalChanges(
    with backend: inout Backend, besides removed: Set<String>
  ) throws(StoreError) -> Bool {
    guard watch.isWatching else { return false }
    do throws(StoreError) {
      let changes = try takeReport(&backend)
      if case .names(let names) = changes {
        var isOwn = removed.isSuperset(of: names)
        for name in names where isOwn { isOwn = try backend.read(name) == nil }
        if isOwn { return false }
      }
      owesCheck = true
      return true
    } catch {
      if case .damaged = error { throw error }
      contents.send(.watchingFailed(error))
      return false
    }
  }

  /// Discards what was read before commits that have to be made again.
  func discardChecksOfCommits() {
    checksOfCommits = []
  }

  /// Publishes what was read before commits, once they are made.
  func publishChecksOfCommits() {
    let checks = checksOfCommits
    checksOfCommits = []
    publish(checks)
  }

  /// Asks for a check if a commit took a report, and was not made again: nothing else would.
  func wakeIfCheckIsOwed() {
    if owesCheck { wake() }
  }

  /// Sends the change that a read of one key found.
  ///
  /// The external commit that made it may have changed other keys too. Observers of the whole collection get all of it at
  /// once, so the other external changes are read and recorded first.
  func publish<Value>(_ slot: Slot<Value>) {
    if slot.topic.hasUnsent, slot.topic.isCollectionObserved { checkForChanges() }
    slot.topic.flush()
  }

  /// Records what a read found under a key that is observed, and reports what observers can't be given.
  ///
  /// - Returns: Whether that is still there. It isn't if the whole store turned out to be corrupt.
  @discardableResult
  func reconcile<Value>(_ result: ReadResult<Value>, ofObserved slot: Slot<Value>) -> Bool {
    if case .corrupt(let bytes, let reason) = result {
      // What could not be quarantined before is left alone: each attempt would wake the store for the next one.
      if slot.topic.isUnusable(Fingerprint(bytes), slot.id) { return true }
      do throws(StoreError) {
        _ = try contents.quarantine(bytes, of: slot, reason: reason)
      } catch {
        if case .damaged = error { return false }
        contents.send(.watchingFailed(error))
      }
      return true
    }
    if contents.reconcile(result, slot).isNew { contents.report(result, slot) }
    if case .unreadable = result { miss(slot) }
    return true
  }

  /// Records that a key could not be read.
  ///
  /// Nothing reports when it can be, so it is read again with the next change.
  func miss<Value>(_ slot: Slot<Value>) {
    watch.miss(slot.name)
  }

  private func takePlan() -> WatchState.Plan {
    owesCheck = false
    return watch.takePlan()
  }

  /// Records what the backend reports, and returns it.
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

  /// Reads the observed names of a plan, those of one commit one after the other.
  private func readObserved(
    _ plan: WatchState.Plan, from backend: inout Backend
  ) throws(StoreError) -> [any AnyCheck] {
    var checks: [any AnyCheck] = []
    var isRead: Set<String> = []
    for name in try plan.names + (plan.includesAllObserved ? contents.topics.observedNames(&backend) : []) {
      guard isRead.insert(name).inserted, let keyName = StoreKeyName(encoded: name),
        let topic = contents.topics[keyName.collection], topic.isObserved(keyName.id)
      else { continue }
      checks.append(try check(keyName, named: name, in: topic, &backend))
    }
    return checks.groupedByCommit()
  }

  private func check<T: AnyTopic>(
    _ keyName: StoreKeyName, named name: String, in topic: T, _ backend: inout Backend
  ) throws(StoreError) -> any AnyCheck {
    let slot = topic.typed.slot(StoreKey(keyName), named: name)
    return Check(slot: slot, result: try slot.readEntry(from: &backend, needsValue: false))
  }

  /// Records what was read, and sends what is new.
  private func publish(_ checks: [any AnyCheck]) {
    for check in checks {
      if reconcile(check) { continue }
      // The rest was read of a store that is gone.
      watch.report(.unknown)
      wake()
      break
    }
    for check in checks { flush(check) }
  }

  private func reconcile(_ check: some AnyCheck) -> Bool {
    let check = check.typed
    return reconcile(check.result, ofObserved: check.slot)
  }

  private func flush(_ check: some AnyCheck) {
    check.typed.slot.topic.flush()
  }
}
