/// Does work that mostly waits for the disk or for other processes several times at once, each with a number from 0.
package func sideBySide(_ count: Int, _ work: @escaping @Sendable (Int) async throws -> Void) async throws {
  try await withThrowingTaskGroup { group in
    for number in 0..<count { group.addTask { try await work(number) } }
    try await group.waitForAll()
  }
}
