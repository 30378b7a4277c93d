import Multicast
import MulticastTesting
import Testing

@Suite struct ManualTaskExecutorTests {
  private let executor = ManualTaskExecutor()
  private let order = CurrentValueRelay<[Int]>([])

  private func startEightTasks() {
    for number in 1...8 {
      Task(executorPreference: executor) { [order] in order.update { $0.append(number) } }
    }
  }

  @Test func `Jobs run in the order in which they became ready`() {
    startEightTasks()
    #expect(order.value == [])
    executor.runUntilIdle()
    #expect(order.value == Array(1...8))
  }

  @Test func `A seed determines the order of jobs`() {
    for _ in 1...2 {
      var random = SplitMix64(seed: 1)
      startEightTasks()
      #expect(executor.run(using: &random) == 8)
    }
    let orders = [Array(order.value.prefix(8)), Array(order.value.suffix(8))]
    #expect(orders[0] == orders[1])
    #expect(orders[0] != Array(1...8))
    #expect(orders[0].sorted() == Array(1...8))
  }

  @Test func `A limit caps the number of jobs that are run`() {
    var random = SplitMix64(seed: 1)
    startEightTasks()
    #expect(executor.run(atMost: 3, using: &random) == 3)
    #expect(order.value.count == 3)
    #expect(executor.run(atMost: 10, using: &random) == 5)
    #expect(executor.run(using: &random) == 0)
    #expect(order.value.sorted() == Array(1...8))
  }
}
