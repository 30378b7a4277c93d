import MulticastTesting
import Testing

@testable import Repository

@Suite struct OwnedTasksTests {
  @Test func `Tasks that have finished aren't remembered, nor are tasks that were started after all were cancelled`() {
    let executor = ManualTaskExecutor()
    let tasks = OwnedTasks(executor: executor)
    for _ in 1...3 { tasks.start {} }
    #expect(tasks.count == 3)
    executor.runUntilIdle()
    #expect(tasks.count == 0)
    for _ in 1...3 { tasks.start {} }
    tasks.cancelAll()
    #expect(tasks.count == 0)
    for _ in 1...3 { tasks.start {} }
    #expect(tasks.count == 0)
    executor.runUntilIdle()
    #expect(tasks.count == 0)
  }
}
