import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

/// Tests that refer to packets and exchanges by their numbers, which are counted from 1.
///
/// `deliver`, `lose` and `duplicate` take the number of a packet, and `timeOut` takes that of an exchange. Requests,
/// replies and duplicates are numbered together.
@Suite struct SimulatedNetworkTests {
  private let executor = ManualTaskExecutor()
  private let network = SimulatedNetwork()
  private let servedRelay = CurrentValueRelay<[Int]>([])

  /// Begins an exchange whose request is a number, and whose reply is twice that number.
  private func beginExchange(
    _ number: Int, _ network: SimulatedNetwork? = nil
  ) -> Task<Result<Int, SimulatedNetwork.Failure>, Never> {
    defer { executor.runUntilIdle() }
    let network = network ?? self.network
    return Task(executorPreference: executor) { [servedRelay] in
      do throws(SimulatedNetwork.Failure) {
        return .success(
          try await network.exchange("\(number)") {
            servedRelay.update { $0.append(number) }
            return 2 * number
          })
      } catch {
        return .failure(error)
      }
    }
  }

  /// Runs the ready jobs, and waits for the result of an exchange.
  private func waitForResult(
    of task: Task<Result<Int, SimulatedNetwork.Failure>, Never>
  ) async -> Result<Int, SimulatedNetwork.Failure> {
    executor.runUntilIdle()
    return await task.value
  }

  private var servedNumbers: [Int] { servedRelay.value }

  @Test func `A request is served when it is delivered, and its call ends when the reply is delivered`() async {
    let call = beginExchange(1)
    #expect(network.packets.map(\.direction) == [.request])
    #expect(servedNumbers == [])
    #expect(network.deliver(1))
    #expect(servedNumbers == [1])
    #expect(network.packets.map(\.direction) == [.reply])
    #expect(network.deliver(2))
    #expect(await waitForResult(of: call) == .success(2))
    #expect(network.packets == [])
    #expect(!network.deliver(2))
  }

  @Test func `Packets can be delivered in any order`() async {
    let calls = [beginExchange(1), beginExchange(2)]
    network.deliver(2)
    network.deliver(1)
    #expect(servedNumbers == [2, 1])
    for packet in network.packets { network.deliver(packet.id) }
    #expect(await waitForResult(of: calls[0]) == .success(2))
    #expect(await waitForResult(of: calls[1]) == .success(4))
  }

  @Test func `A lost request isn't served, but a request whose reply is lost is served`() async {
    let first = beginExchange(1)
    network.lose(1)
    #expect(await waitForResult(of: first) == .failure(.noReply))
    #expect(servedNumbers == [])
    let second = beginExchange(2)
    network.deliver(2)
    network.lose(3)
    #expect(await waitForResult(of: second) == .failure(.noReply))
    #expect(servedNumbers == [2])
  }

  @Test func `A duplicate request is served again, and its reply ends the call if the first reply is lost`() async {
    let call = beginExchange(1)
    #expect(network.duplicate(1)?.id == 2)
    network.deliver(1)
    network.lose(3)
    network.deliver(2)
    #expect(servedNumbers == [1, 1])
    network.deliver(4)
    #expect(await waitForResult(of: call) == .success(2))
  }

  @Test func `A request can arrive after its caller has given up`() async {
    let call = beginExchange(1)
    network.timeOut(1)
    #expect(await waitForResult(of: call) == .failure(.noReply))
    network.deliver(1)
    #expect(servedNumbers == [1])
    network.deliver(2)
    #expect(network.packets == [])
  }

  @Test func `A cancelled call ends, but its request stays in transit`() async {
    let call = beginExchange(1)
    call.cancel()
    #expect(await waitForResult(of: call) == .failure(.noReply))
    network.deliver(1)
    #expect(servedNumbers == [1])
  }

  @Test func `Nothing is sent while the network is unreachable`() async {
    network.isReachable = false
    #expect(await waitForResult(of: beginExchange(1)) == .failure(.unreachable))
    #expect(network.packets == [])
  }

  @Test(arguments: [
    (SimulatedNetwork.PlannedOutcome.arrive, Result<Int, SimulatedNetwork.Failure>.success(2), [1]),
    (.failToSend, .failure(.unreachable), []),
    (.loseRequest, .failure(.noReply), []),
    (.loseReply, .failure(.noReply), [1]),
    (.duplicateRequest, .success(2), [1, 1]),
  ])
  func `An exchange has its planned outcome even on a rough network`(
    planned: SimulatedNetwork.PlannedOutcome, expectedResult: Result<Int, SimulatedNetwork.Failure>,
    expectedNumbers: [Int]
  ) async {
    network.conditions = .rough
    network.plan(planned)
    let call = beginExchange(1)
    while network.step() != nil {}
    #expect(await waitForResult(of: call) == expectedResult)
    #expect(servedNumbers == expectedNumbers)
  }

  @Test func `A seed determines the moves of a rough network`() async {
    func simulate() async -> [String] {
      let network = SimulatedNetwork(seed: 7, conditions: .rough)
      let calls = (1...20).map { beginExchange($0, network) }
      var moves: [String] = []
      while let (packet, move) = network.step() { moves.append("\(packet.label) \(packet.direction) \(move)") }
      for call in calls { moves.append("\(await waitForResult(of: call))") }
      return moves
    }
    let moves = await simulate()
    #expect(await simulate() == moves)
    let kinds = Set(moves.compactMap { $0.split(separator: " ").last })
    #expect(kinds.isSuperset(of: ["delivered", "lost", "duplicated"]))
  }

  @Test func `A reliable network delivers every packet while it runs`() async {
    let running = Task(executorPreference: executor) { [network] in await network.run() }
    let calls = (1...5).map { beginExchange($0) }
    for (index, call) in calls.enumerated() { #expect(await waitForResult(of: call) == .success(2 * (index + 1))) }
    #expect(network.packets == [])
    running.cancel()
    executor.runUntilIdle()
  }
}
