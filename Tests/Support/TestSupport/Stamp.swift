internal import Dispatch

/// The identity of a commit, when several processes commit to the same keys.
package struct Stamp: Codable, Hashable, Sendable {
  /// The number of the process.
  package let writer: Int

  /// The position among the commits of the process, counted from 1.
  package let number: Int

  package init(writer: Int, number: Int) {
    (self.writer, self.number) = (writer, number)
  }

  /// The current time in nanoseconds, on a clock that all processes share.
  package static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

/// Detects a reader that reads an older state after a newer one.
///
/// A commit replaces the previous stamp, and each process numbers its commits in ascending order. A reader that has
/// seen a stamp replaced must therefore never see it again, and never see a smaller number of the same process.
package struct StampOrder: Sendable {
  private var lastStamp: Stamp?
  private var newestNumberByWriter: [Int: Int] = [:]

  package init() {}

  /// Records the next stamp that was read.
  ///
  /// - Returns: Whether the stamp is the same as the previous one or newer.
  package mutating func record(_ stamp: Stamp?) -> Bool {
    if stamp == lastStamp { return true }
    // The stamp is never removed, so `nil` after a stamp is an older state.
    guard let stamp, stamp.number > newestNumberByWriter[stamp.writer] ?? 0 else { return false }
    newestNumberByWriter[stamp.writer] = stamp.number
    lastStamp = stamp
    return true
  }
}
