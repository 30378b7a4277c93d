/// A read of one observed key, while ``ChangeChecker`` checks for external changes.
struct Check<Value: Codable & Sendable>: AnyCheck {
  let slot: Slot<Value>
  let result: ReadResult<Value>

  var tag: StoreTag? { result.tag }
  var typed: Check<Value> { self }
}

/// A ``Check`` of any type of value.
protocol AnyCheck {
  associatedtype Value: Codable & Sendable

  /// The tag of the commit that wrote the value.
  var tag: StoreTag? { get }

  /// The check with its type.
  var typed: Check<Value> { get }
}

extension [any AnyCheck] {
  /// Returns the reads grouped by commit, with the commits in the order of their first reads.
  func groupedByCommit() -> [any AnyCheck] {
    var commits: [[any AnyCheck]] = []
    var positions: [StoreTag: Int] = [:]
    for check in self {
      if let tag = check.tag, let position = positions[tag] {
        commits[position].append(check)
      } else {
        if let tag = check.tag { positions[tag] = commits.count }
        commits.append([check])
      }
    }
    return commits.flatMap { $0 }
  }
}
