public import Foundation

/// A store in the user defaults, for a few small values such as settings.
///
/// As durable as the platform makes its user defaults: the system is asked to write before a save returns, but promises
/// less than ``FileStore`` does at a loss of power.
///
/// What other processes change is seen by the next call, as soon as the platform shows it. It is not watched:
/// `UserDefaults.didChangeNotification` tells of this process only, and key-value observing takes the dots in the keys
/// for paths.
public typealias UserDefaultsStore = BackedStore<UserDefaultsBackend>

extension BackedStore where Backend == UserDefaultsBackend {
  /// Creates a store in a suite of the user defaults.
  ///
  /// It touches only keys that begin with `DataStore.`.
  ///
  /// - Parameters:
  ///   - suiteName: The suite. Where the system has none of that name to offer, each call throws a ``StoreError``.
  ///   - now: Tells the time, for ``StoredValue/savedAt``.
  public init(suiteName: String, now: @escaping @Sendable () -> Date = { Date() }) {
    self.init(backend: UserDefaultsBackend(suiteName: suiteName), now: now)
  }
}

/// Keeps bytes in a suite of the user defaults.
public struct UserDefaultsBackend: StoreBackend {
  private static let prefix = "DataStore."

  /// What is read where something is that is no bytes at all, so that it is moved aside as bytes that are no value are.
  private static let noBytes = Data("something else than bytes".utf8)

  private let suiteName: String
  private let defaults: UserDefaults?

  /// Creates a backend in a suite.
  public init(suiteName: String) {
    self.suiteName = suiteName
    // The name is part of a path where the system keeps suites as files.
    defaults = suiteName.isEmpty || suiteName.contains("/") ? nil : UserDefaults(suiteName: suiteName)
  }

  /// The bytes stored under a name.
  public func read(_ name: String) throws(StoreError) -> Data? {
    guard let defaults else { throw .readFailed(noSuite) }
    return defaults.object(forKey: Self.prefix + name).map(Self.bytes(of:))
  }

  private static func bytes(of object: Any) -> Data {
    object as? Data ?? noBytes
  }

  /// Stores bytes under a name.
  public func write(_ bytes: Data, to name: String) throws(StoreError) {
    guard let defaults else { throw .writeFailed(noSuite) }
    let key = Self.prefix + name
    let old = defaults.object(forKey: key)
    defaults.set(bytes, forKey: key)
    if !defaults.synchronize() {
      defaults.set(old, forKey: key)
      throw .writeFailed(notWritten)
    }
  }

  /// Removes what is stored under a name.
  public func remove(_ name: String) throws(StoreError) {
    guard let defaults else { throw .removeFailed(noSuite) }
    let key = Self.prefix + name
    let old = defaults.object(forKey: key)
    defaults.removeObject(forKey: key)
    if !defaults.synchronize() {
      defaults.set(old, forKey: key)
      throw .removeFailed(notWritten)
    }
  }

  /// Keeps the bytes under another key.
  public func setAside(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    guard let defaults else { throw .writeFailed(noSuite) }
    let key = Self.prefix + name
    guard let old = defaults.object(forKey: key), Self.bytes(of: old) == bytes else { return nil }
    var attempt = 1
    var asideKey = Self.prefix + Self.asideName(for: name, at: time, attempt: attempt)
    while defaults.object(forKey: asideKey) != nil {
      attempt += 1
      asideKey = Self.prefix + Self.asideName(for: name, at: time, attempt: attempt)
    }
    defaults.set(old, forKey: asideKey)
    defaults.removeObject(forKey: key)
    if !defaults.synchronize() {
      defaults.set(old, forKey: key)
      defaults.removeObject(forKey: asideKey)
      throw .writeFailed(notWritten)
    }
    return asideKey
  }

  /// All names under which something is stored.
  public func names() throws(StoreError) -> [String] {
    guard let defaults else { throw .readFailed(noSuite) }
    return defaults.dictionaryRepresentation().keys.compactMap { key in
      guard key.hasPrefix(Self.prefix) else { return nil }
      let name = String(key.dropFirst(Self.prefix.count))
      return StoreKeyName(encoded: name) == nil ? nil : name
    }
  }

  private var noSuite: SystemError {
    SystemError(code: POSIXErrorCode.EINVAL.rawValue, operation: "opening the user defaults", path: suiteName)
  }

  private var notWritten: SystemError {
    SystemError(code: POSIXErrorCode.EIO.rawValue, operation: "writing the user defaults", path: suiteName)
  }
}
