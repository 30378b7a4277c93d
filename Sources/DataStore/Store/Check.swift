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

  /// The tag of the commit that wrote the value; see ``ReadResult/tag``.
  var tag: StoreTag? { get }

  /// The check with its type.
  var typed: Check<Value> { get }
}

extension [any AnyCheck] {
  /// Returns the reads with those of each commit next to each other, and the commits in the order of their first reads.
  ///
  /// A read without a tag counts as the read of a commit of its own.
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
