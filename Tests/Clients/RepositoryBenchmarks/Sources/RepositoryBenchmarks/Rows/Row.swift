internal import BenchmarkKit

/// The workloads that can be measured, each a row of the README's table.
enum Row: String, CaseIterable, Codable, Sendable {
  case performShown = "perform-shown"
  case performConfirmed = "perform-confirmed"
  case performIdle = "perform-idle"
  case drain
  case drainKeys = "drain-keys"
  case timeline
  case likes
  case idleKeys = "idle-keys"
  case open
  case backlog

  /// Returns the comparisons of this row, in the order in which their result tables are printed.
  func comparisons(_ environment: Environment) -> [Comparison<Setting>] {
    switch self {
    case .performShown: [Perform(environment).shown]
    case .performConfirmed: [Perform(environment).confirmed]
    case .performIdle: [Perform(environment).idle]
    case .drain: Drain(environment).ofOneKey
    case .drainKeys: [Drain(environment).ofManyKeys]
    case .timeline: [TimelineLikes(environment).comparison]
    case .likes: QueuedLikes(environment).comparisons
    case .idleKeys: [IdleKeys(environment).comparison]
    case .open: Open(environment).comparisons
    case .backlog: Backlog(environment).comparisons
    }
  }
}

/// A row, or a variant of it.
struct Setting: ComparisonSetting, Equatable {
  let row: Row
  /// The variant of the row, such as the size of its workload; `nil` for the row itself.
  var variant: String?

  var description: String { [row.rawValue, variant].compactMap(\.self).joined(separator: " · ") }

  var needsWarmUp: Bool {
    switch row {
    case .performShown, .performConfirmed, .performIdle, .timeline, .open: true
    case .drain, .drainKeys, .likes, .idleKeys, .backlog: false
    }
  }
}
