/// Runs `work` several times concurrently, each time with a different number, from 0 to `count - 1`.
///
/// It suits work that mostly waits for the disk or for other processes.
package func sideBySide(_ count: Int, _ work: @escaping @Sendable (Int) async throws -> Void) async throws {
  try await withThrowingTaskGroup { group in
    for number in 0..<count { group.addTask { try await work(number) } }
    try await group.waitForAll()
  }
}
