internal import Dispatch

/// Identifies one of many commits to the same keys by several processes.
package struct Stamp: Codable, Hashable, Sendable {
  /// The process.
  package let writer: Int

  /// The position among the commits of the process, counted from 1.
  package let number: Int

  package init(writer: Int, number: Int) {
    (self.writer, self.number) = (writer, number)
  }

  /// The time in nanoseconds, by a clock that all processes share.
  package static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

/// Recognises a reader that goes back in time.
///
/// A commit with a stamp replaces all that has an earlier one, and each process numbers its commits in ascending order.
/// So a reader that has seen a stamp replaced never sees it again, nor one with a smaller number of the same process.
package struct StampOrder: Sendable {
  private var last: Stamp?
  private var newest: [Int: Int] = [:]

  package init() {}

  /// Records what was read next.
  ///
  /// - Returns: Whether it is what was read before, or newer.
  package mutating func record(_ stamp: Stamp?) -> Bool {
    if stamp == last { return true }
    // Nothing is ever removed.
    guard let stamp, stamp.number > newest[stamp.writer] ?? 0 else { return false }
    newest[stamp.writer] = stamp.number
    last = stamp
    return true
  }
}
