internal import Foundation
internal import Multicast

extension BackedStore {
  /// Looks at what is stored for a key: sends what others changed, and moves aside what cannot be decoded.
  func look<Value>(
    at key: StoreKey<Value>, named name: String, in topic: Topic<Value>
  ) throws(StoreError) -> Finding<Value> {
    try look(at: key, named: name, in: topic, startingWith: backend.read(name))
  }

  /// Looks at what is stored for a key, for those who observe it: nil when the last look found the same bytes, which
  /// are no news and need not be decoded, nor tried to be moved aside, again.
  func lookForNews<Value>(
    at key: StoreKey<Value>, named name: String, in topic: Topic<Value>
  ) throws(StoreError) -> Finding<Value>? {
    let bytes = try backend.read(name)
    if let bytes, topic.knows(Fingerprint(bytes), of: key.userID) { return nil }
    return try look(at: key, named: name, in: topic, startingWith: bytes)
  }

  private func look<Value>(
    at key: StoreKey<Value>, named name: String, in topic: Topic<Value>, startingWith found: Data?
  ) throws(StoreError) -> Finding<Value> {
    var found = found
    while true {
      guard let bytes = found else {
        topic.noteNothing(for: key, revision: &revision)
        return .nothing
      }
      let fingerprint = Fingerprint(bytes)
      switch Envelope.decode(bytes, as: Value.self, schema: topic.schema) {
      case .value(let value, let savedAt):
        return .value(topic.noteValue(value, savedAt: savedAt, fingerprint, of: key, revision: &revision))
      case .newer(let version):
        return .newer(version, isNews: topic.noteUnreadable(fingerprint, for: key.userID))
      case .unmigratable(let failure):
        let isNews = topic.noteUnreadable(fingerprint, for: key.userID)
        return .unmigratable(bytes: bytes, failure, isNews: isNews)
      case .undecodable(let reason):
        if let movedTo = try setAside(bytes, of: key, named: name, in: topic, reason: reason) {
          return .undecodable(movedTo: movedTo, reason: reason)
        }
        // Somebody has replaced them meanwhile: what is there now?
        found = try backend.read(name)
      }
    }
  }

  /// Makes sure that a save replaces neither a newer program's value nor bytes that cannot be read, which it moves
  /// aside.
  func makeRoom<Value>(for key: StoreKey<Value>, named name: String, in topic: Topic<Value>) throws(StoreError) {
    if let bytes = try backend.read(name), topic.knowsValue(Fingerprint(bytes), of: key.userID) { return }
    while true {
      switch try look(at: key, named: name, in: topic) {
      case .nothing, .value, .undecodable: return
      case .newer(let version, _): throw newerFormat(key, found: version)
      case .unmigratable(let bytes, let failure, _):
        if try setAside(bytes, of: key, named: name, in: topic, reason: failure.description) != nil { return }
      }
    }
  }

  /// Moves bytes aside, with an event; nil when something else is stored by now.
  func setAside<Value>(
    _ bytes: Data, of key: StoreKey<Value>, named name: String, in topic: Topic<Value>, reason: String
  ) throws(StoreError) -> String? {
    let movedTo: String?
    do throws(StoreError) {
      movedTo = try backend.setAside(bytes, of: name, at: now())
    } catch {
      // The attempt itself may wake the store, which must not begin the next one.
      _ = topic.noteUnreadable(Fingerprint(bytes), for: key.userID)
      throw error
    }
    guard let movedTo else { return nil }
    topic.forget(key.userID)
    eventRelay.send(.corruptValueMovedAside(key.keyName, movedTo: movedTo, reason: reason))
    return movedTo
  }

  /// All encoded names of a topic under which something is stored, or was when the store last looked.
  func namesStored<Value>(in topic: Topic<Value>, called name: String) throws(StoreError) -> [String] {
    let found = try backend.names().filter { StoreKeyName(encoded: $0)?.name == name }
    let isFound = Set(found)
    var names = found
    for userID in topic.userIDs {
      let known = try StoreKeyName(name, userID: userID).encoded()
      if !isFound.contains(known) { names.append(known) }
    }
    return names
  }

  /// The topic of a valid key's name.
  func topic<Value>(of key: StoreKey<Value>) throws(StoreError) -> Topic<Value> {
    guard let existing = topics[key.name] else {
      let topic = Topic<Value>()
      topics[key.name] = topic
      return topic
    }
    guard let topic = existing as? Topic<Value> else {
      throw .keyHasAnotherType(name: key.name, existing: existing.valueTypeName, requested: "\(Value.self)")
    }
    return topic
  }

  func newerFormat<Value>(_ key: StoreKey<Value>, found: StoredVersion) -> StoreError {
    .newerFormat(key.keyName, found: found, supported: Envelope.supported(by: Value.self))
  }

  func sendNewer<Value>(_ found: StoredVersion, of key: StoreKey<Value>) {
    eventRelay.send(.newerValueLeftUntouched(key.keyName, found: found, supported: Envelope.supported(by: Value.self)))
  }

  func send(_ failure: MigrationFailure, of keyName: StoreKeyName) {
    eventRelay.send(.migrationFailed(keyName, from: failure.version, reason: failure.reason))
  }
}
