public import DataStore
public import Multicast

/// Decides which of the repositories on one store sends the mutations of all.
///
/// Any number of repositories may be on one store, in one process or in several. All of them show, change and fetch. If
/// each sent too, the server would get one user's mutations in no order. So one of them leads and sends, and the others
/// follow: they make their mutations durable, and learn from the store what became of them.
///
/// ``StoreLeadership`` suits every store of this package.
public protocol Leadership: Sendable {
  /// Tries to become the one repository that sends.
  ///
  /// A repository calls it when it begins. One that doesn't lead calls it again while there are mutations to send, every
  /// ``retryInterval`` at least.
  ///
  /// - Parameters:
  ///   - name: The collection of the repository's mutations.
  ///   - store: The store.
  /// - Throws: Why it isn't known. The repository follows then, and tries again.
  func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult

  /// How long a repository that doesn't lead waits before it tries again.
  var retryInterval: Duration { get }
}

/// What became of an attempt to lead; see ``Leadership/tryToLead(_:on:)``.
public enum LeadershipResult: Sendable {
  /// The repository leads. It keeps the lease until the lease is lost, or until it is released and its last request has
  /// ended.
  case leading(lease: any LeadershipLease)

  /// Another repository leads.
  ///
  /// An element of `vacancies` says that it is worth trying again at once.
  case following(vacancies: MulticastStream<Void, Never>)

  /// Nothing is known of other repositories, so none leads: each sends what it found in the store and what it made.
  case independent
}

/// What a repository leads with.
public protocol LeadershipLease: Sendable {
  /// Whether the repository still leads.
  ///
  /// A repository asks before each request that sends a mutation. If it doesn't lead any more, it sends nothing, releases
  /// the lease, and follows.
  ///
  /// - Returns: `false` also if it isn't known.
  func isHeld() async -> Bool
}

extension StoreLock: LeadershipLease {}

/// Whether a repository sends mutations.
public enum LeadershipStatus: String, Codable, Hashable, Sendable {
  /// It sends those of all repositories on the store.
  case leading

  /// Another repository sends its mutations too.
  case following

  /// It sends what it found in the store and what it made, because the store knows no locks.
  case independent
}

/// Lets the repository lead that has a lock of its store; see ``DataStore/KeyValueStore/acquireLock(_:)``.
///
/// The lock ends with the process, however it ends. So another repository with something to send has the lock at most
/// ``retryInterval`` later, and leads when it has read the queue. A process that is only stopped keeps it.
///
/// A server frees the lock of a client that it has lost. That client sends no further request, but the one in flight may
/// arrive while the next leader sends: the server tells by its id that it has the mutation already.
public struct StoreLeadership: Leadership {
  /// How long a repository that doesn't lead waits before it tries again.
  public let retryInterval: Duration

  /// Creates a leadership.
  ///
  /// - Parameter retryInterval: How long a repository that doesn't lead waits before it tries again.
  public init(retryInterval: Duration = .milliseconds(250)) {
    self.retryInterval = retryInterval
  }

  /// Locks the name in the store.
  public func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult {
    switch try await store.acquireLock(name) {
    case .acquired(let lock): .leading(lease: lock)
    case .held(let releases): .following(vacancies: releases)
    case .unsupported: .independent
    }
  }
}

/// Lets a repository never lead: it shows, fetches and makes mutations durable, and another one sends them.
///
/// For a tool, or an extension of an app that may be stopped at any time.
public struct NeverLeading: Leadership {
  private let vacancies = MulticastRelay<Void>(buffering: .latest)

  /// Creates a leadership.
  public init() {}

  /// A day, because nothing changes.
  public var retryInterval: Duration { .seconds(86_400) }

  /// Follows.
  public func tryToLead(_ name: String, on store: any KeyValueStore) async -> LeadershipResult {
    .following(vacancies: vacancies.stream)
  }
}
