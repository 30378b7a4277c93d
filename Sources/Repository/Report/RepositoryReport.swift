public import Foundation

/// What a repository has and does at one moment, for a log, a debug screen or a report of a fault.
///
/// ```swift
/// print(await comments.report())
/// ```
///
/// It holds keys, sizes and times, and no values. Reasons are the text of your errors.
public struct RepositoryReport: Codable, Hashable, Sendable {
  /// A key that is in use or has mutations.
  public struct KeyReport: Codable, Hashable, Sendable {
    /// The key's ``RepositoryKey/storeID``.
    public var key: String
    /// Whose data it is.
    public var userID: String?
    /// When the value was fetched; `nil` if there is none.
    public var fetchedAt: Date?
    /// Whether ``SyncedRepository/refresh(_:)`` would leave it.
    public var isFresh: Bool
    /// The size of the encoded value, with what is pending; `nil` if there is none.
    public var byteCount: Int?
    /// How many sequences of the key are being read.
    public var observerCount: Int
    /// How many mutations will be sent, or are.
    public var pendingCount: Int
    /// Whether something is being fetched.
    public var isLoading: Bool
    /// Why the last fetch failed; `nil` if it didn't.
    public var failure: String?
  }

  /// The mutations that are sent one after the other.
  public struct LaneReport: Codable, Hashable, Sendable {
    /// What a lane waits for.
    public enum Status: Codable, Hashable, Sendable {
      /// For its turn, or for the store.
      case waiting
      case inFlight
      /// For another attempt, in so much time.
      case backingOff(Duration)
      /// For ``SyncedRepository/credentialsChanged(userID:)``.
      case needsSignIn
      /// For the network; see ``RepositoryConfiguration/network``.
      case offline
      /// For the repository that leads; see ``Leadership``.
      case sentElsewhere
    }

    /// The lane's ordering key, behind the user it belongs to.
    public var lane: String
    /// How many mutations it has, the one in flight included.
    public var count: Int
    /// When the oldest one was made.
    public var oldest: Date?
    /// How many attempts failed in a row.
    public var failures: Int
    /// What it waits for.
    public var status: Status
  }

  /// What is stored, where an ``EvictionPolicy`` limits it.
  public struct StoredReport: Codable, Hashable, Sendable {
    /// The number of values.
    public var count: Int
    /// The size of all values as they are stored.
    public var byteCount: Int
  }

  /// The collection of the values.
  public var name: String
  /// When it was made.
  public var time: Date
  /// The keys in the order of their names, without those that can't be read from the store.
  public var keys: [KeyReport]
  /// The lanes in the order of their names.
  public var lanes: [LaneReport]
  /// How many mutations are refused or in conflict.
  public var undecidedCount: Int
  /// The size of all encoded mutations.
  public var queueByteCount: Int
  /// Whether the repository sends mutations; `nil` if it is only read.
  public var leadership: LeadershipStatus?
  /// What is stored; `nil` if nothing limits it, or it isn't known yet.
  public var stored: StoredReport?
  /// Why the queue can't be read, so that nothing is known of it; `nil` if it can.
  public var storeFailure: String?
}

extension RepositoryReport {
  /// A report of a repository whose queue follows.
  init(name: String, time: Date, keys: [KeyReport]) {
    self.init(name: name, time: time, keys: keys, lanes: [], undecidedCount: 0, queueByteCount: 0)
  }
}

extension RepositoryReport.KeyReport {
  /// A key that only mutations need.
  init<Key: RepositoryKey>(_ key: Key, pendingCount: Int) {
    self.init(
      key: key.storeID, userID: key.userID, fetchedAt: nil, isFresh: false, byteCount: nil, observerCount: 0,
      pendingCount: pendingCount, isLoading: false, failure: nil)
  }
}

extension RepositoryReport: CustomStringConvertible {
  /// A line for the repository, and one for each key and lane.
  public var description: String {
    let summary =
      "\(name): \(keys.count) keys in use, \(lanes.map(\.count).reduce(0, +)) mutations in \(lanes.count) lanes"
      + " (\(queueByteCount) bytes), \(undecidedCount) to be decided"
    var lines = [summary]
    if let stored { lines.append("  \(stored.count) values stored, \(stored.byteCount) bytes") }
    if let storeFailure { lines.append("  the queue can't be read: \(storeFailure)") }
    lines += keys.map { "  key \($0.line(at: time))" }
    lines += lanes.map { "  lane \($0.line(at: time))" }
    return lines.joined(separator: "\n")
  }
}

extension RepositoryReport.KeyReport {
  fileprivate func line(at time: Date) -> String {
    var parts: [String] = []
    if let byteCount { parts.append("\(byteCount) bytes") } else { parts.append("no value") }
    if let fetchedAt { parts.append("\(age(of: fetchedAt, at: time)) old\(isFresh ? ", fresh" : "")") }
    parts.append("\(observerCount) observers")
    if pendingCount > 0 { parts.append("\(pendingCount) pending") }
    if isLoading { parts.append("loading") }
    if let failure { parts.append("failed: \(failure)") }
    return "\(key): \(parts.joined(separator: ", "))"
  }
}

extension RepositoryReport.LaneReport {
  fileprivate func line(at time: Date) -> String {
    var parts = ["\(count) mutations"]
    if let oldest { parts.append("the oldest \(age(of: oldest, at: time)) old") }
    if failures > 0 { parts.append("\(failures) failed attempts") }
    switch status {
    case .waiting: break
    case .inFlight: parts.append("in flight")
    case .backingOff(let delay): parts.append("next attempt in \(delay.components.seconds) s")
    case .needsSignIn: parts.append("needs sign-in")
    case .offline: parts.append("offline")
    case .sentElsewhere: parts.append("sent by another repository")
    }
    return "\(lane): \(parts.joined(separator: ", "))"
  }
}

private func age(of date: Date, at time: Date) -> String {
  Freshness.age(savedAt: date, now: time).map { "\($0.components.seconds) s" } ?? "unknown"
}
