internal import Multicast
internal import MulticastTesting

/// A network that delays, loses, repeats and reorders requests and replies, for the tests of a source or a repository.
///
/// Put it between the client and its server, such as an ``InMemoryServer``: each request is an ``exchange(_:_:)``.
///
/// ```swift
/// func add(_ note: Note, requestID: String) async throws(ClientError) {
///   do {
///     try await network.exchange("add") { server.add(note, requestID: requestID) }
///   } catch {
///     throw error == .unreachable ? .offline : .noReply
///   }
/// }
/// ```
///
/// A request and its reply are two ``Packet``s. Nothing moves by itself:
/// - A test moves single packets by ``deliver(_:)``, ``lose(_:)``, ``duplicate(_:)`` and ``timeOut(_:)``.
/// - ``step()`` moves one as the seed and the ``Conditions`` say, or as ``plan(_:)`` said before.
/// - ``run()`` makes such steps until its task is cancelled.
///
/// On one `ManualTaskExecutor`, equal seeds give equal runs.
///
/// - **Delay** of a packet is that others move first. A request may come to the server after its caller has given up.
/// - **Cancellation** of a caller ends its call with ``Failure/noReply``. The packets go on.
public final class SimulatedNetwork: Sendable {
  /// Why an exchange failed.
  public enum Failure: Error, Hashable, Sendable {
    /// The request was surely not sent.
    case unreachable
    /// The request was sent, and there is no reply: the server may have it or not.
    case noReply
  }

  /// A request or a reply on its way.
  public struct Packet: Hashable, Identifiable, Sendable {
    /// Which way a packet goes.
    public enum Direction: Hashable, Sendable {
      /// To the server.
      case request
      /// To the client.
      case reply
    }

    /// The number of the packet, counted from 1.
    public let id: Int
    /// The number of the exchange that it belongs to, counted from 1.
    public let exchange: Int
    /// What the exchange was called.
    public let label: String
    /// Which way it goes.
    public let direction: Direction
  }

  /// How often something goes wrong in a ``SimulatedNetwork/step()``, as probabilities.
  public struct Conditions: Hashable, Sendable {
    /// How often a request is lost.
    public var requestLoss: Double
    /// How often a reply is lost.
    public var replyLoss: Double
    /// How often a packet is repeated.
    public var duplication: Double
    /// How often a caller gives up although a packet of its exchange is still on its way.
    public var timeout: Double

    /// Creates conditions.
    public init(requestLoss: Double = 0, replyLoss: Double = 0, duplication: Double = 0, timeout: Double = 0) {
      self.requestLoss = requestLoss
      self.replyLoss = replyLoss
      self.duplication = duplication
      self.timeout = timeout
    }

    /// Everything arrives once, in any order.
    public static let reliable = Conditions()

    /// Much goes wrong.
    public static let rough = Conditions(requestLoss: 0.15, replyLoss: 0.15, duplication: 0.1, timeout: 0.1)
  }

  /// What is to happen to an exchange.
  public enum Fate: Hashable, Sendable {
    /// Everything arrives.
    case arrive
    /// The request is surely not sent.
    case failToSend
    /// The request is lost.
    case loseRequest
    /// The server gets the request, and its reply is lost.
    case loseReply
    /// The server gets the request twice.
    case duplicateRequest
  }

  private struct Entry {
    let packet: Packet
    let deliver: @Sendable () -> Void
  }

  private struct Exchange {
    var packetCount = 0
    var fate: Fate?
    /// Ends the call without a reply.
    let fail: @Sendable () -> Void
  }

  private struct State {
    var random: SplitMix64
    var conditions: Conditions
    var isReachable = true
    var plan: [Fate] = []
    var entries: [Entry] = []
    var exchanges: [Int: Exchange] = [:]
    var lastPacket = 0
    var lastExchange = 0

    mutating func add(
      _ direction: Packet.Direction, of exchange: Int, _ label: String, _ deliver: @escaping @Sendable () -> Void
    ) -> Packet {
      lastPacket += 1
      let packet = Packet(id: lastPacket, exchange: exchange, label: label, direction: direction)
      entries.append(Entry(packet: packet, deliver: deliver))
      exchanges[exchange]?.packetCount += 1
      return packet
    }

    mutating func remove(_ id: Packet.ID) -> Entry? {
      guard let index = entries.firstIndex(where: { $0.packet.id == id }) else { return nil }
      return entries.remove(at: index)
    }

    /// Records that a packet is gone.
    ///
    /// - Returns: What to call if it was the last one of its exchange.
    mutating func end(_ packet: Packet) -> (@Sendable () -> Void)? {
      exchanges[packet.exchange]?.packetCount -= 1
      guard exchanges[packet.exchange]?.packetCount == 0 else { return nil }
      return exchanges.removeValue(forKey: packet.exchange)?.fail
    }

    mutating func isChosen(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &random) < probability }
  }

  private let state: Lock<State>
  /// Signals that there is a packet.
  private let arrivals = MulticastRelay<Void>(buffering: .unbounded)

  /// Creates a network.
  ///
  /// - Parameters:
  ///   - seed: What decides in ``step()``.
  ///   - conditions: How often something goes wrong in ``step()``.
  public init(seed: UInt64 = 0, conditions: Conditions = .reliable) {
    state = Lock(State(random: SplitMix64(seed: seed), conditions: conditions))
  }

  /// How often something goes wrong in ``step()``.
  public var conditions: Conditions {
    get { state.withLock { $0.conditions } }
    set { state.withLock { $0.conditions = newValue } }
  }

  /// Whether requests can be sent.
  ///
  /// While it is false, new exchanges fail with ``Failure/unreachable``. Packets on their way go on.
  public var isReachable: Bool {
    get { state.withLock { $0.isReachable } }
    set { state.withLock { $0.isReachable = newValue } }
  }

  /// Decides what happens to the next exchanges that begin, in order, behind those that were planned before.
  public func plan(_ fates: Fate...) {
    state.withLock { $0.plan += fates }
  }

  // MARK: - The client's side

  /// Sends a request to a server, and returns the reply.
  ///
  /// - Parameters:
  ///   - label: What the test calls the request.
  ///   - serve: What the server does, once for each time the request arrives.
  /// - Throws: ``Failure``.
  public func exchange<Reply: Sendable>(
    _ label: String, _ serve: @escaping @Sendable () -> Reply
  ) async throws(Failure) -> Reply {
    let call = Call<Reply>()
    let isSent = state.withLock { state in
      let fate = state.plan.isEmpty ? nil : state.plan.removeFirst()
      guard state.isReachable, fate != .failToSend else { return false }
      state.lastExchange += 1
      let number = state.lastExchange
      state.exchanges[number] = Exchange(fate: fate) { call.end(.failure(.noReply)) }
      _ = state.add(.request, of: number, label) { [weak self] in
        let reply = serve()
        self?.reply(to: number, label) { call.end(.success(reply)) }
      }
      return true
    }
    guard isSent else { throw .unreachable }
    arrivals.send(())
    return try await call.result()
  }

  private func reply(to exchange: Int, _ label: String, _ deliver: @escaping @Sendable () -> Void) {
    _ = state.withLock { $0.add(.reply, of: exchange, label, deliver) }
    arrivals.send(())
  }

  // MARK: - The test's side

  /// What is on its way, the oldest first.
  public var packets: [Packet] { state.withLock { $0.entries.map(\.packet) } }

  /// Lets a packet arrive.
  ///
  /// A request is served, and its reply is on its way when this returns.
  ///
  /// - Returns: Whether it was on its way.
  @discardableResult
  public func deliver(_ id: Packet.ID) -> Bool {
    guard let entry = state.withLock({ $0.remove(id) }) else { return false }
    entry.deliver()
    // The caller has its reply already if it was one.
    state.withLock { $0.end(entry.packet) }?()
    return true
  }

  /// Loses a packet.
  ///
  /// The caller fails with ``Failure/noReply`` if nothing else of the exchange is on its way.
  ///
  /// - Returns: Whether it was on its way.
  @discardableResult
  public func lose(_ id: Packet.ID) -> Bool {
    guard let entry = state.withLock({ $0.remove(id) }) else { return false }
    state.withLock { $0.end(entry.packet) }?()
    return true
  }

  /// Puts a second packet of the same content on its way.
  ///
  /// - Returns: The new packet; `nil` if the first one wasn't on its way.
  @discardableResult
  public func duplicate(_ id: Packet.ID) -> Packet? {
    state.withLock { state in
      guard let entry = state.entries.first(where: { $0.packet.id == id }) else { return nil }
      return state.add(entry.packet.direction, of: entry.packet.exchange, entry.packet.label, entry.deliver)
    }
  }

  /// Has the caller of an exchange give up with ``Failure/noReply``, while its packets go on.
  public func timeOut(_ exchange: Int) {
    state.withLock { $0.exchanges[exchange]?.fail }?()
  }

  /// Moves one packet, as the seed and the conditions say, or as was planned for its exchange.
  ///
  /// - Returns: The packet, and what happened to it; `nil` if none is on its way.
  @discardableResult
  public func step() -> (packet: Packet, move: Move)? {
    let step = state.withLock { state -> (Packet, Move)? in
      guard let packet = state.entries.randomElement(using: &state.random)?.packet else { return nil }
      switch state.exchanges[packet.exchange]?.fate {
      case .arrive?: return (packet, .delivered)
      case .loseRequest?: return (packet, .lost)
      case .loseReply?: return (packet, packet.direction == .reply ? .lost : .delivered)
      case .duplicateRequest?:
        if packet.direction == .reply { return (packet, .delivered) }
        state.exchanges[packet.exchange]?.fate = .arrive
        return (packet, .duplicated)
      case .failToSend?, nil: break
      }
      let conditions = state.conditions
      let isLost = state.isChosen(packet.direction == .request ? conditions.requestLoss : conditions.replyLoss)
      if isLost { return (packet, .lost) }
      if state.isChosen(conditions.duplication) { return (packet, .duplicated) }
      return (packet, state.isChosen(conditions.timeout) ? .timedOut : .delivered)
    }
    guard let (packet, move) = step else { return nil }
    switch move {
    case .delivered: deliver(packet.id)
    case .lost: lose(packet.id)
    case .duplicated: duplicate(packet.id)
    case .timedOut: timeOut(packet.exchange)
    }
    return (packet, move)
  }

  /// What ``step()`` did with a packet.
  public enum Move: Hashable, Sendable {
    /// It arrived.
    case delivered
    /// It was lost.
    case lost
    /// A second one is on its way.
    case duplicated
    /// The caller gave up, and the packet is still on its way.
    case timedOut
  }

  /// Makes a ``step()`` whenever a packet is on its way, until the calling task is cancelled.
  ///
  /// How long each packet waits is decided by the seed, in turns of other tasks.
  public func run() async {
    let arrivals = arrivals.stream.subscribe()
    await stepUntilIdle()
    for await _ in arrivals { await stepUntilIdle() }
  }

  private func stepUntilIdle() async {
    while !Task.isCancelled, !packets.isEmpty {
      let delay = state.withLock { Int.random(in: 0..<8, using: &$0.random) }
      for _ in 0..<delay { await Task.yield() }
      step()
    }
  }
}

/// A caller that waits for a reply, which counts once.
private final class Call<Reply: Sendable>: Sendable {
  private enum State {
    case begun
    case waiting(CheckedContinuation<Result<Reply, SimulatedNetwork.Failure>, Never>)
    case ended(Result<Reply, SimulatedNetwork.Failure>)
  }

  private let state = Lock(State.begun)

  func end(_ result: Result<Reply, SimulatedNetwork.Failure>) {
    let continuation = state.withLock { state -> CheckedContinuation<Result<Reply, SimulatedNetwork.Failure>, Never>? in
      switch state {
      case .begun:
        state = .ended(result)
        return nil
      case .waiting(let continuation):
        state = .ended(result)
        return continuation
      case .ended: return nil
      }
    }
    continuation?.resume(returning: result)
  }

  func result() async throws(SimulatedNetwork.Failure) -> Reply {
    try await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result = state.withLock { state -> Result<Reply, SimulatedNetwork.Failure>? in
          if case .ended(let result) = state { return result }
          state = .waiting(continuation)
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      end(.failure(.noReply))
    }.get()
  }
}
