public import DataStore
public import Multicast

/// The rule that decides which of a source's repositories on one store sends the mutations of all of them.
///
/// Any number of a source's repositories may use one store, in one process or in several. All of them show, change and
/// fetch values. If each of them also sent mutations, the server would receive one user's mutations in no particular
/// order. So one repository leads and sends the mutations of all, and the other repositories follow: they make their
/// mutations durable and learn the results from the store. A repository leads only while it sends.
///
/// ``StoreLeadership`` is suitable for every store of this package.
public protocol Leadership: Sendable {
  /// Attempts to make the calling repository the leader.
  ///
  /// A repository calls this function when it starts and when it adds a mutation. While it doesn't lead and a mutation
  /// is due, it calls the function again after ``retryInterval`` at most, except that it may wait longer if attempts
  /// fail, if several leases in a row are lost, or if there are mutations that its program can't read.
  ///
  /// - Parameters:
  ///   - name: The name of the store collection that contains the repository's mutations.
  ///   - store: The store.
  /// - Throws: A `StoreError` if the attempt failed. The repository then follows and tries again.
  func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult

  /// The time after which a repository that doesn't lead tries again.
  var retryInterval: Duration { get }
}

/// The outcome of an attempt to lead; see ``Leadership/tryToLead(_:on:)``.
public enum LeadershipResult: Sendable {
  /// The repository leads.
  ///
  /// It keeps the lease until the lease is lost, or until it has sent nothing for 250 milliseconds and no request is in
  /// flight, or until the repository is released and its last request has ended. While the network is offline, it keeps
  /// the lease only until its last request has ended.
  case leading(lease: any LeadershipLease)

  /// Another repository leads, or this one never does; see ``NeverLeading``.
  ///
  /// An element of `vacancies` signals that another attempt is worthwhile at once.
  case following(vacancies: MulticastStream<Void, Never>)

  /// Other repositories can't be detected, so none leads.
  ///
  /// Each repository sends the mutations that it made and those that it found in the store.
  case independent
}

/// The right of a repository to lead, until the lease is lost or released.
///
/// To release a lease, the repository drops its reference to it.
public protocol LeadershipLease: Sendable {
  /// Returns whether the repository still leads.
  ///
  /// A repository calls this function before each request that sends a mutation, and after each such request that
  /// failed. If the lease is lost, the repository doesn't send, releases the lease, and follows.
  ///
  /// - Returns: Whether the repository leads. `false` if that can't be determined.
  func isHeld() async -> Bool
}

extension StoreLock: LeadershipLease {}

/// The role of a repository among the repositories of its source on one store.
public enum LeadershipStatus: String, Codable, Hashable, Sendable {
  /// The repository sends the mutations of all repositories of its source on the store.
  case leading

  /// The repository sends nothing, because another one leads, or because nothing is due.
  case following

  /// The repository sends the mutations that it made and those that it found in the store.
  ///
  /// It can't detect other repositories, for example because the store doesn't support locks.
  case independent
}

/// The rule by which a repository leads while it holds a lock of the store; see `KeyValueStore.acquireLock(_:)`.
///
/// The lock is held only while mutations are sent, and ends with the process, however the process ends. Another
/// repository with mutations to send then acquires the lock after ``retryInterval`` at most, and leads once it has read
/// the queue. A process that the system suspends while a request is in flight, or less than 250 milliseconds after the
/// last one, keeps the lock until it runs again or ends; ``SyncedRepository/suspend()`` prevents that.
///
/// A database server releases the lock of a client whose connection it has lost. That client sends no further mutation,
/// but one in flight may reach the server of the values while the next leader sends it too. The server of the values
/// recognizes the mutation by its id and applies it once.
public struct StoreLeadership: Leadership {
  /// The time after which a repository that doesn't lead tries again.
  public let retryInterval: Duration

  /// Creates the rule.
  ///
  /// - Parameter retryInterval: The time after which a repository that doesn't lead tries again.
  public init(retryInterval: Duration = .milliseconds(250)) {
    self.retryInterval = retryInterval
  }

  /// Attempts to acquire a lock of the given name in the store.
  public func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult {
    switch try await store.acquireLock(name) {
    case .acquired(let lock): .leading(lease: lock)
    case .held(let releases): .following(vacancies: releases)
    case .unsupported: .independent
    }
  }
}

/// The rule by which a repository never leads: it shows and fetches values and makes mutations durable, and another
/// repository sends them.
///
/// It is meant for a tool, or for an app extension that has no time to send.
public struct NeverLeading: Leadership {
  private let vacancies = MulticastRelay<Void>(buffering: .latest)

  /// Creates the rule.
  public init() {}

  /// One day, because the result doesn't change.
  public var retryInterval: Duration { .seconds(86_400) }

  /// Returns ``LeadershipResult/following(vacancies:)`` with a stream that never sends an element.
  public func tryToLead(_ name: String, on store: any KeyValueStore) async -> LeadershipResult {
    .following(vacancies: vacancies.stream)
  }
}
