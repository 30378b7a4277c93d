internal import Multicast

extension BackedStore {
  /// Watches what others change, from the first observer on.
  func startWatching() {
    guard !isWatching else { return }
    do throws(StoreError) {
      try backend.startWatching { [weak self] in self?.wake() }
      isWatching = true
      // Others may have changed something since an earlier watch broke.
      lookForObservers(at: try watchedNames())
    } catch {
      // Nothing that was asked for failed, and the next observer tries again.
      eventRelay.send(.watchingFailed(error))
    }
  }

  private nonisolated func wake() {
    executor.enqueue { [weak self] in self?.assumeIsolated { $0.takeUpOutsideChanges() } }
  }

  private func takeUpOutsideChanges() {
    do throws(StoreError) {
      switch try backend.takeOutsideChanges() {
      case .names(let names): lookForObservers(at: names)
      case .unknown: lookForObservers(at: try watchedNames())
      }
    } catch {
      eventRelay.send(.watchingFailed(error))
      isWatching = false
      startWatching()
    }
  }

  /// Looks at what others changed, and at what could not be looked at so far, for those who watch.
  private func lookForObservers(at names: [String]) {
    let all = missedNames + names
    missedNames = []
    var looked: Set<String> = []
    for name in all where looked.insert(name).inserted {
      guard let keyName = StoreKeyName(encoded: name), let topic = topics[keyName.name] else { continue }
      do throws(StoreError) {
        try takeUpOutsideChange(of: keyName, named: name, in: topic)
      } catch {
        missedNames.append(name)
        eventRelay.send(.watchingFailed(error))
      }
    }
  }

  private func takeUpOutsideChange<T: AnyTopic>(
    of keyName: StoreKeyName, named name: String, in topic: T
  ) throws(StoreError) {
    // Who does not watch looks when it calls.
    guard topic.typed.isWatched(keyName.userID) else { return }
    let key = StoreKey<T.Value>(keyName)
    switch try look(at: key, named: name, in: topic.typed) {
    case .nothing, .value, .undecodable: break
    case .newer(let version, let isNews): if isNews { sendNewer(version, of: key) }
    case .unmigratable(_, let failure, let isNews): if isNews { send(failure, of: keyName) }
    }
  }

  /// All names that somebody watches.
  private func watchedNames() throws(StoreError) -> [String] {
    var names: [String] = []
    for (name, topic) in topics { names += try watchedNames(of: topic, called: name) }
    return names
  }

  private func watchedNames(of topic: some AnyTopic, called name: String) throws(StoreError) -> [String] {
    let topic = topic.typed
    if topic.isEveryUserWatched { return try namesStored(in: topic, called: name) }
    var names: [String] = []
    for userID in topic.watchedUserIDs { names.append(try StoreKeyName(name, userID: userID).encoded()) }
    return names
  }
}
