internal import Foundation
internal import Multicast

/// Notices the changes that this process makes to a suite, for one ``UserDefaultsBackend``.
///
/// The backends tell each other which names they have changed. On Apple's systems, a notification also reports the
/// changes that other code of the process makes, but not which keys it has changed. On other systems, Foundation posts
/// no such notification.
///
/// Key-value observing could report the changes of other processes too, but it interprets the dots in the keys as key
/// paths.
final class UserDefaultsWatch: Sendable {
  private struct Reported {
    var names: [String] = []
    /// Whether any other name may have changed.
    var hasUnknownChanges = false
  }

  /// A reference that doesn't keep a watch alive.
  private struct Reference {
    weak var watch: UserDefaultsWatch?
  }

  /// The watches of this process, by the names of their suites.
  private static let watches = Lock<[String: [ObjectIdentifier: Reference]]>([:])
  /// The thread on which a backend is making changes, whose notification is ignored.
  private static let changingThread = Lock<ObjectIdentifier?>(nil)

  private let suiteName: String
  private let reported = Lock(Reported())
  private let onChange: @Sendable () -> Void
  private let observer = Lock<Observer?>(nil)

  /// The registration for the notification, which ends with the watch.
  private final class Observer: @unchecked Sendable {
    // Unchecked: the token is only passed to the notification center, which any thread may use.
    private let token: any NSObjectProtocol

    init(_ onNotification: @escaping @Sendable () -> Void) {
      token = NotificationCenter.default.addObserver(
        forName: UserDefaults.didChangeNotification, object: nil, queue: nil
      ) { _ in onNotification() }
    }

    deinit {
      NotificationCenter.default.removeObserver(token)
    }
  }

  init(suiteName: String, onChange: @escaping @Sendable () -> Void) {
    self.suiteName = suiteName
    self.onChange = onChange
    Self.watches.withLock { $0[suiteName, default: [:]][ObjectIdentifier(self)] = Reference(watch: self) }
    let observer = Observer { [weak self] in self?.noteNotification() }
    self.observer.withLock { $0 = observer }
  }

  deinit {
    let id = ObjectIdentifier(self)
    Self.watches.withLock { watches in
      watches[suiteName]?[id] = nil
      if watches[suiteName]?.isEmpty ?? false { watches[suiteName] = nil }
    }
  }

  /// Returns the changes that were reported since the last call.
  func takeChanges() -> ExternalChanges {
    reported.withLock { reported in
      defer { reported = Reported() }
      return reported.hasUnknownChanges ? .unknown : .names(reported.names)
    }
  }

  private func noteNotification() {
    let thread = ObjectIdentifier(Thread.current)
    // The backends report their own changes with the names.
    if Self.changingThread.withLock({ $0 == thread }) { return }
    reported.withLock { $0.hasUnknownChanges = true }
    onChange()
  }

  private func note(_ names: [String]) {
    reported.withLock { $0.names += names }
    onChange()
  }

  /// Makes changes whose notification is ignored; the caller must exclude the other backends of this process.
  static func ignoringNotifications<Result>(_ body: () -> Result) -> Result {
    let thread = ObjectIdentifier(Thread.current)
    changingThread.withLock { $0 = thread }
    defer { changingThread.withLock { $0 = nil } }
    return body()
  }

  /// Reports the changes of a backend to the other backends of its suite.
  ///
  /// - Parameter watch: The watch of the backend that has made the changes, which isn't notified.
  static func report(_ names: [String], ofSuite suiteName: String, by watch: UserDefaultsWatch?) {
    let others = watches.withLock { watches in (watches[suiteName] ?? [:]).values.compactMap(\.watch) }
    for other in others where other !== watch { other.note(names) }
  }
}
