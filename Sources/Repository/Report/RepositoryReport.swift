public import Foundation

/// The contents and activity of a repository at one moment, for a log, a debug screen or a bug report.
///
/// ```swift
/// print(await comments.report())
/// ```
///
/// The report contains keys, ids of users, ordering keys, sizes and times, but no values. Errors of the source and of
/// the store are represented as text.
public struct RepositoryReport: Codable, Hashable, Sendable {
  /// A report of a key that is in use, was in use recently, or has mutations that are waiting or in flight.
  ///
  /// If the key is reported only because of its mutations, the properties of its value are `nil` or `false`.
  public struct KeyReport: Codable, Hashable, Sendable {
    /// The key's ``RepositoryKey/storeID``.
    public var key: String
    /// The id of the user to whom the value belongs; `nil` if there is none.
    public var userID: String?
    /// The key's ``RepositoryState/fetchedAt``; `nil` if nothing is stored.
    public var fetchedAt: Date?
    /// Whether the value is fresh, so that ``SyncedRepository/refresh(_:)`` wouldn't fetch it.
    public var isFresh: Bool
    /// The size in bytes of the value with pending mutations applied, encoded as JSON.
    ///
    /// `nil` if there is no value in memory, or it can't be encoded.
    public var byteCount: Int?
    /// The number of iterators and subscriptions of the key.
    public var observerCount: Int
    /// The number of mutations that are waiting or in flight.
    public var pendingCount: Int
    /// Whether a fetch is in progress.
    public var isLoading: Bool
    /// The text of the key's ``RepositoryState/failure``; `nil` if there is none.
    public var failure: String?
  }

  /// A report of a lane: mutations that are sent one after the other.
  public struct LaneReport: Codable, Hashable, Sendable {
    /// The activity of a lane, or the condition for which it waits.
    public enum Status: Codable, Hashable, Sendable {
      /// The lane waits for its turn, or for the store.
      case waiting
      /// The first mutation of the lane is being sent.
      case inFlight
      /// The lane's next attempt begins after the associated duration.
      case backingOff(Duration)
      /// The lane waits for ``SyncedRepository/credentialsChanged(userID:)``.
      case needsSignIn
      /// The lane waits for the network; see ``RepositoryConfiguration/network``.
      case offline
      /// The repository is suspended; see ``SyncedRepository/suspend()``.
      case suspended
      /// The first mutation of the lane, or the value of its key, can't be read by this version of the program; see
      /// ``PendingMutations/unreadable()``.
      case held
      /// Only the repository that leads sends the lane's mutations; see ``Leadership``.
      case sentElsewhere
    }

    /// The lane's ordering key, which may be preceded by the id of the lane's user.
    ///
    /// The id is included if the lane has a user, and the user's id differs from the ordering key.
    public var lane: String
    /// The number of mutations, including the one in flight.
    public var count: Int
    /// The time at which the oldest mutation was made.
    public var oldest: Date?
    /// The number of consecutive failed attempts.
    public var failures: Int
    /// The activity of the lane, or the condition for which it waits.
    public var status: Status
  }

  /// A report of a mutation that this version of the program can't read; see ``PendingMutations/unreadable()``.
  public struct UnreadableReport: Codable, Hashable, Sendable {
    /// The id of the mutation.
    public var id: MutationID
    /// The key's ``RepositoryKey/storeID``; `nil` if this program doesn't know the key.
    public var key: String?
    /// The schema of the mutation; `nil` if this program can't read it.
    public var schema: Int?
    /// A description of why this program can't read it.
    public var reason: String
    /// The size of the encoded mutation, in bytes.
    public var byteCount: Int
    /// The time at which it was made; `nil` if this program can't read it.
    public var madeAt: Date?
  }

  /// A report of the stored values, available if an ``EvictionPolicy`` limits them.
  public struct StoredReport: Codable, Hashable, Sendable {
    /// The number of values.
    public var count: Int
    /// The size of all values as they are stored, in bytes.
    public var byteCount: Int
  }

  /// The collection of the values.
  public var name: String
  /// The time of the report.
  public var time: Date
  /// The reports of keys, in the order of their store ids.
  ///
  /// A key whose value can't be read from the store is included only if it has mutations.
  public var keys: [KeyReport]
  /// The lanes in the order of their names.
  public var lanes: [LaneReport]
  /// The number of mutations about which the app has to decide, because they were refused or are in conflict.
  ///
  /// ``MutationRefusal`` has the reasons for a refusal.
  public var undecidedCount: Int
  /// The mutations that this version of the program can't read, in order.
  public var unreadable: [UnreadableReport]
  /// The size of all encoded mutations, in bytes.
  public var queueByteCount: Int
  /// The role of the repository in sending mutations; `nil` if its source is read-only.
  public var leadership: LeadershipStatus?
  /// The stored values; `nil` if the ``EvictionPolicy`` sets no limit, or they haven't been read yet.
  public var stored: StoredReport?
  /// The reason why the records of users and mutations can't be read; `nil` if they can.
  ///
  /// If they can't be read, the report may lack mutations.
  public var storeFailure: String?
}

extension RepositoryReport {
  /// Creates a report without the state of the queue, which ``MutationQueue/report(to:at:)`` adds.
  init(name: String, time: Date, keys: [KeyReport]) {
    self.init(name: name, time: time, keys: keys, lanes: [], undecidedCount: 0, unreadable: [], queueByteCount: 0)
  }
}

extension RepositoryReport.UnreadableReport {
  init<Key: RepositoryKey>(_ mutation: UnreadableMutation<Key>) {
    self.init(
      id: mutation.id, key: mutation.key?.storeID, schema: mutation.schema, reason: mutation.reason,
      byteCount: mutation.byteCount, madeAt: mutation.madeAt)
  }
}

extension RepositoryReport.KeyReport {
  /// Creates a report of a key that is reported only because of its mutations.
  init<Key: RepositoryKey>(_ key: Key, pendingCount: Int) {
    self.init(
      key: key.storeID, userID: key.userID, fetchedAt: nil, isFresh: false, byteCount: nil, observerCount: 0,
      pendingCount: pendingCount, isLoading: false, failure: nil)
  }
}

extension RepositoryReport: CustomStringConvertible {
  /// One line for the repository, and one line for each key and lane.
  ///
  /// The stored values and the failure of the store have a line each, if the report contains them.
  public var description: String {
    let summary =
      "\(name): \(counted(keys.count, "key")),"
      + " \(counted(lanes.map(\.count).reduce(0, +), "mutation")) in \(counted(lanes.count, "lane"))"
      + " (\(counted(queueByteCount, "byte"))), \(undecidedCount) undecided"
    var lines = [summary]
    if let stored { lines.append("  \(counted(stored.count, "value")) stored, \(counted(stored.byteCount, "byte"))") }
    if let storeFailure { lines.append("  the queue can't be read: \(storeFailure)") }
    lines += keys.map { "  key \($0.line(at: time))" }
    lines += lanes.map { "  lane \($0.line(at: time))" }
    lines += unreadable.map { "  unreadable mutation \($0.line(at: time))" }
    return lines.joined(separator: "\n")
  }
}

extension RepositoryReport.KeyReport {
  fileprivate func line(at time: Date) -> String {
    var parts: [String] = []
    parts.append(byteCount.map { counted($0, "byte") } ?? "no value in memory")
    if let fetchedAt { parts.append("\(ageText(of: fetchedAt, at: time))\(isFresh ? ", fresh" : "")") }
    parts.append(counted(observerCount, "observer"))
    if pendingCount > 0 { parts.append("\(pendingCount) pending") }
    if isLoading { parts.append("loading") }
    if let failure { parts.append("failed: \(failure)") }
    return "\(key): \(parts.joined(separator: ", "))"
  }
}

extension RepositoryReport.LaneReport {
  fileprivate func line(at time: Date) -> String {
    var parts = [counted(count, "mutation")]
    if let oldest { parts.append("the oldest \(ageText(of: oldest, at: time))") }
    if failures > 0 { parts.append(counted(failures, "failed attempt")) }
    switch status {
    case .waiting: break
    case .inFlight: parts.append("in flight")
    case .backingOff(let delay): parts.append("next attempt in \(delay.components.seconds) s")
    case .needsSignIn: parts.append("needs sign-in")
    case .offline: parts.append("offline")
    case .suspended: parts.append("suspended")
    case .held: parts.append("needs another version of the program")
    case .sentElsewhere: parts.append("sent by another repository")
    }
    return "\(lane): \(parts.joined(separator: ", "))"
  }
}

extension RepositoryReport.UnreadableReport {
  fileprivate func line(at time: Date) -> String {
    var parts = [key.map { "of \($0)" } ?? "of an unknown key", counted(byteCount, "byte")]
    if let madeAt { parts.append(ageText(of: madeAt, at: time)) }
    return "\(id): \(parts.joined(separator: ", ")): \(reason)"
  }
}

private func ageText(of date: Date, at time: Date) -> String {
  Freshness.age(savedAt: date, now: time).map { "\($0.components.seconds) s old" } ?? "of unknown age"
}
