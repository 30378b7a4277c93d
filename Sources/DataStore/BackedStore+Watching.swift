internal import Multicast

extension BackedStore {
  /// Watches what others change, from the first observer on.
  func startWatching() {
    guard !isWatching else { return }
    do throws(StoreError) {
      try againIfDamaged { () throws(StoreError) in try backend.startWatching { [weak self] in self?.wake() } }
    } catch {
      // Nothing that was asked for failed, and the next observer tries again.
      eventRelay.send(.watchingFailed(error))
      return
    }
    isWatching = true
    // Others may have changed something since an earlier watch broke.
    mustLookAtAll = true
    lookForObservers(at: [])
  }

  private nonisolated func wake() {
    executor.enqueue { [weak self] in self?.assumeIsolated { $0.takeUpOutsideChanges() } }
  }

  private func takeUpOutsideChanges() {
    var names: [String] = []
    do throws(StoreError) {
      switch try againIfDamaged({ () throws(StoreError) in try backend.takeOutsideChanges() }) {
      case .names(let changed): names = changed
      case .unknown: mustLookAtAll = true
      }
    } catch {
      eventRelay.send(.watchingFailed(error))
      // The new watch looks at all.
      isWatching = false
      startWatching()
      return
    }
    lookForObservers(at: names)
  }

  /// Looks at what others changed, and at what could not be looked at so far, for those who watch.
  private func lookForObservers(at names: [String]) {
    var names = missedNames + names
    missedNames = []
    if mustLookAtAll {
      do throws(StoreError) {
        names += try againIfDamaged { () throws(StoreError) in try watchedNames() }
        mustLookAtAll = false
      } catch {
        eventRelay.send(.watchingFailed(error))
      }
    }
    var looked: Set<String> = []
    for name in names where looked.insert(name).inserted {
      guard let keyName = StoreKeyName(encoded: name), let topic = topics[keyName.name] else { continue }
      do throws(StoreError) {
        try againIfDamaged { () throws(StoreError) in try takeUpOutsideChange(of: keyName, named: name, in: topic) }
      } catch {
        missedNames.append(name)
        eventRelay.send(.watchingFailed(error))
      }
    }
  }

  /// Looks at what others changed for somebody who comes to a key that is observed already.
  ///
  /// What cannot be decoded is an event, as it is to those who observe the key, and nothing is stored for any of them.
  func lookForLaterReader<Value>(
    of key: StoreKey<Value>, named name: String, in topic: Topic<Value>
  ) throws(StoreError) {
    do throws(StoreError) {
      try againIfDamaged { () throws(StoreError) in
        try takeUpOutsideChange(of: key.keyName, named: name, in: topic)
      }
    } catch {
      // It could be read, but not be moved aside; the next look knows it.
      guard case .writeFailed = error else { throw error }
      eventRelay.send(.watchingFailed(error))
    }
  }

  private func takeUpOutsideChange<T: AnyTopic>(
    of keyName: StoreKeyName, named name: String, in topic: T
  ) throws(StoreError) {
    // Who does not watch looks when it calls.
    guard topic.typed.isWatched(keyName.userID) else { return }
    let key = StoreKey<T.Value>(keyName)
    switch try lookForNews(at: key, named: name, in: topic.typed) {
    case nil, .nothing, .value, .undecodable: break
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
