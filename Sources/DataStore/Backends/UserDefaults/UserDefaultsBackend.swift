internal import Dispatch
package import Foundation

/// A backend that keeps bytes in a suite of the user defaults.
///
/// User defaults have no lock, so all backends of this type in this process share a serial queue. Reads, lists of
/// names, snapshots, quarantines and erasures run on it. The last step of a commit runs on it too: it checks that the
/// bytes that the decision has read are unchanged, and then makes the changes.
package struct UserDefaultsBackend: PlacedBackend {
  private static let prefix = "DataStore."

  /// The bytes that a read returns for an object that isn't `Data`, so that the object is quarantined as corrupt.
  private static let notBytes = Data("not bytes".utf8)

  /// The queue that serializes the stores of this process.
  private static let queue = DispatchQueue(label: "DataStore.UserDefaultsBackend")

  /// Whether this backend is running on the queue.
  private var isExclusive = false

  /// The bytes that the decision about the current commit has read, by name; `nil` outside of a commit.
  private var decisionReads: [String: Data?]?

  /// Notices the changes of the other stores of this process, once the store is observed.
  private var watch: UserDefaultsWatch?

  private let suiteName: String
  private let defaults: UserDefaults?

  package init(suiteName: String) {
    self.suiteName = suiteName
    // On systems that keep suites as files, the name is part of a path.
    defaults = suiteName.isEmpty || suiteName.contains("/") ? nil : UserDefaults(suiteName: suiteName)
  }

  package var place: StorePlace { .userDefaults(suiteName) }

  package mutating func read(_ name: String) throws(StoreError) -> Data? {
    guard defaults != nil else { throw .readFailed(noSuite) }
    let bytes = exclusively { $0.storedBytes(under: name) }
    decisionReads?[name] = .some(bytes)
    return bytes
  }

  package mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try exclusively { backend in
      Swift.Result { () throws(StoreError) in try body(&backend) }
    }.get()
  }

  /// Runs `body` on the queue, unless the caller already runs there.
  private mutating func exclusively<Result>(_ body: (inout Self) -> Result) -> Result {
    if isExclusive { return body(&self) }
    return Self.queue.sync {
      isExclusive = true
      defer { isExclusive = false }
      return body(&self)
    }
  }

  private func storedBytes(under name: String) -> Data? {
    defaults?.object(forKey: Self.prefix + name).map(Self.bytes(of:))
  }

  package mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    while true {
      decisionReads = [:]
      defer { decisionReads = nil }
      guard case .proceed(let removals) = try decide(&self) else { return false }
      var objects: [String: Data?] = [:]
      for name in removals { objects[Self.prefix + name] = .some(nil) }
      for write in writes { objects[Self.prefix + write.name] = write.bytes }
      let reads = decisionReads ?? [:]
      let result = exclusively { backend in
        Result { () throws(SystemError) in
          // Another store of this process may have changed a value that the decision depends on. Then the decision is
          // made again.
          guard reads.allSatisfy({ name, bytes in backend.storedBytes(under: name) == bytes }) else { return false }
          try backend.set(objects)
          return true
        }
      }
      do throws(SystemError) {
        if try result.get() {
          UserDefaultsWatch.report(removals + writes.map(\.name), ofSuite: suiteName, by: watch)
          return true
        }
      } catch {
        throw writes.isEmpty ? .removeFailed(error) : .writeFailed(error)
      }
    }
  }

  package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    let movedTo = try exclusively { backend in
      Result { () throws(StoreError) in try backend.move(bytes, toQuarantineOf: name, at: time) }
    }.get()
    if movedTo != nil { UserDefaultsWatch.report([name], ofSuite: suiteName, by: watch) }
    return movedTo
  }

  package func place(ofQuarantined name: String) -> String { Self.prefix + name }

  package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) {
    watch = UserDefaultsWatch(suiteName: suiteName, onChange: onChange)
  }

  package mutating func close() {
    watch = nil
  }

  package mutating func takeExternalChanges() -> ExternalChanges { watch?.takeChanges() ?? .names([]) }

  private func move(_ bytes: Data, toQuarantineOf name: String, at time: Date) throws(StoreError) -> String? {
    guard let defaults else { throw .writeFailed(noSuite) }
    let key = Self.prefix + name
    guard let object = defaults.object(forKey: key), Self.bytes(of: object) == bytes else { return nil }
    var attempt = 1
    var newKey: String
    repeat {
      newKey = Self.prefix + Self.quarantineName(for: name, at: time, attempt: attempt)
      attempt += 1
    } while defaults.object(forKey: newKey) != nil
    do throws(SystemError) {
      try set([newKey: .some(object), key: .none])
    } catch {
      throw .writeFailed(error)
    }
    return newKey
  }

  package mutating func names() throws(StoreError) -> [String] {
    try allNames().filter(StoreKeyName.isEncoded)
  }

  /// Returns the names of all that stores keep in the suite: values, parts of values, and quarantined bytes.
  private mutating func allNames() throws(StoreError) -> [String] {
    guard let defaults else { throw .readFailed(noSuite) }
    return exclusively { _ in defaults.dictionaryRepresentation() }.keys.compactMap { key in
      key.hasPrefix(Self.prefix) ? String(key.dropFirst(Self.prefix.count)) : nil
    }
  }

  package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
    let erasedNames = try exclusively { backend in
      Result { () throws(StoreError) in
        var removals: [String: Any?] = [:]
        var erasedNames: [String] = []
        let names = try backend.allNames()
        var keys = StoredItemKeys()
        for name in names { keys.add(name) { backend.storedBytes(under: name) ?? Data() } }
        for name in names {
          let bytes = backend.storedBytes(under: name) ?? Data()
          guard isErased(StoredItem(name: name, keys: keys) { bytes }) else { continue }
          removals[Self.prefix + name] = .some(nil)
          erasedNames.append(name)
        }
        do throws(SystemError) {
          try backend.set(removals)
        } catch {
          throw StoreError.eraseFailed(error)
        }
        return erasedNames
      }
    }.get()
    UserDefaultsWatch.report(erasedNames, ofSuite: suiteName, by: watch)
  }

  /// Sets and removes objects and asks the system to write the changes; if the system can't, undoes them.
  private func set(_ objects: [String: Any?]) throws(SystemError) {
    guard let defaults else { throw noSuite }
    let old = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, defaults.object(forKey: $0)) })
    let isWritten = UserDefaultsWatch.ignoringNotifications {
      Self.set(objects, in: defaults)
      if defaults.synchronize() { return true }
      Self.set(old, in: defaults)
      return false
    }
    guard isWritten else {
      throw SystemError(code: POSIXErrorCode.EIO.rawValue, operation: "writing the user defaults", path: suiteName)
    }
  }

  private static func set(_ objects: [String: Any?], in defaults: UserDefaults) {
    for (key, object) in objects {
      if let object { defaults.set(object, forKey: key) } else { defaults.removeObject(forKey: key) }
    }
  }

  private static func bytes(of object: Any) -> Data {
    object as? Data ?? notBytes
  }

  private var noSuite: SystemError {
    SystemError(code: POSIXErrorCode.EINVAL.rawValue, operation: SystemError.openingUserDefaults, path: suiteName)
  }
}
