internal import Foundation

/// Commits that are written together; see ``CommitQueue``.
///
/// **Invariant**: No commit of a group changes a key that another one changes or requires, so none depends on another.
/// The exception is several saves of one key without preconditions, of which only the last is written.
struct CommitGroup {
  /// All commits of the group, in the order they arrived.
  private(set) var all: [PendingCommit] = []

  /// The commits to write: those that aren't replaced by a later save.
  var commitsToWrite: [PendingCommit] { all.filter { $0.successor == nil } }

  /// Takes the next group from the pending commits, and prepares the writes of each commit.
  ///
  /// A commit whose values can't be encoded fails at once and isn't part of the group.
  ///
  /// - Parameter readPart: Returns the bytes that are stored under the name of a part, or `nil`.
  static func take(
    from pending: inout [PendingCommit], readPart: (_ name: String) -> Data?
  ) -> CommitGroup {
    var group = CommitGroup()
    /// The last commit of the group that changes each name.
    var writers: [String: PendingCommit] = [:]
    /// The names of the keys that a commit requires without changing them.
    var required: Set<String> = []
    var takenCount = 0
    for commit in pending {
      let earlierWriters = commit.keys.compactMap { writers[$0.name] }
      // If `commit` is replaceable, it has only one key, so `earlierWriters` has at most one element.
      if !earlierWriters.isEmpty, !(commit.isReplaceable && earlierWriters[0].isReplaceable) { break }
      if commit.keys.contains(where: { $0.hasChange && required.contains($0.name) }) { break }
      takenCount += 1
      do throws(StoreError) {
        try commit.encode(readPart: readPart)
      } catch {
        commit.complete(.failure(error))
        continue
      }
      earlierWriters.first?.successor = commit
      for key in commit.keys {
        if key.hasChange { writers[key.name] = commit } else { required.insert(key.name) }
      }
      group.all.append(commit)
    }
    pending.removeFirst(takenCount)
    // Lets each replaced commit refer directly to the last of its successors, which is the one that is written. The
    // loop goes backward, so that the successor of a commit already refers to that last one.
    for commit in group.all.reversed() { commit.successor = commit.successor.map { $0.successor ?? $0 } }
    return group
  }
}
