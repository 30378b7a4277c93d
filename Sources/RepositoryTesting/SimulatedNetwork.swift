internal import Multicast
internal import MulticastTesting

/// A simulated network that delays, loses, duplicates and reorders requests and replies, for testing a source or a
/// repository.
///
/// Use it between a client and its server, such as an ``InMemoryServer``: each request is an ``exchange(_:_:)``.
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
/// A request and its reply are two ``Packet``s. Packets move only when a test moves them:
/// - ``deliver(_:)``, ``lose(_:)`` and ``duplicate(_:)`` move a single packet, and ``timeOut(_:)`` ends the call of an
///   exchange.
/// - ``step()`` makes one of these moves with a random packet: the move that ``plan(_:)`` determines for its exchange,
///   or otherwise a random one, according to the seed and the ``Conditions``.
/// - ``run()`` performs such steps until its task is cancelled.
///
/// If all tasks run on one `ManualTaskExecutor`, equal seeds produce equal runs.
///
/// - **Delay**: A packet is delayed when other packets move first. A request may reach the server after its caller has
///   given up.
/// - **Cancellation**: Cancelling a caller ends its call with ``Failure/noReply``. The packets of the exchange stay in
///   transit.
public final class SimulatedNetwork: Sendable {
  /// The error of a failed exchange.
  public enum Failure: Error, Hashable, Sendable {
    /// The request certainly wasn't sent.
    case unreachable
    /// The request was sent, but there is no reply, so the server may or may not have received the request.
    case noReply
  }

  /// A request or a reply in transit.
  public struct Packet: Hashable, Identifiable, Sendable {
    /// The direction of a packet.
    public enum Direction: Hashable, Sendable {
      /// To the server.
      case request
      /// To the client.
      case reply
    }

    /// The number of the packet, counted from 1.
    public let id: Int
    /// The number of the exchange that the packet belongs to, counted from 1.
    public let exchange: Int
    /// The label of the exchange.
    public let label: String
    /// The direction of the packet.
    public let direction: Direction
  }

  /// The probabilities of faults in a ``SimulatedNetwork/step()``.
  ///
  /// A step tries loss, duplication and timeout in this order, until one occurs. Each probability therefore applies
  /// only if the faults before it didn't occur.
  public struct Conditions: Hashable, Sendable {
    /// The probability that a request is lost.
    public var requestLoss: Double
    /// The probability that a reply is lost.
    public var replyLoss: Double
    /// The probability that a packet is duplicated.
    public var duplication: Double
    /// The probability that a caller gives up while a packet of its exchange is in transit.
    public var timeout: Double

    /// Creates conditions.
    public init(requestLoss: Double = 0, replyLoss: Double = 0, duplication: Double = 0, timeout: Double = 0) {
      self.requestLoss = requestLoss
      self.replyLoss = replyLoss
      self.duplication = duplication
      self.timeout = timeout
    }

    /// Every packet arrives once, in any order.
    public static let reliable = Conditions()

    /// Faults of all kinds are frequent.
    public static let rough = Conditions(requestLoss: 0.15, replyLoss: 0.15, duplication: 0.1, timeout: 0.1)
  }

  /// The planned outcome of an exchange.
  public enum PlannedOutcome: Hashable, Sendable {
    /// The request and the reply arrive.
    case arrive
    /// The request isn't sent.
    case failToSend
    /// The request is lost.
    case loseRequest
    /// The server receives the request, but the reply is lost.
    case loseReply
    /// The server receives the request twice.
    case duplicateRequest
  }

  private struct Entry {
    let packet: Packet
    let deliver: @Sendable () -> Void
  }

  private struct Exchange {
    var inTransitCount = 0
    var planned: PlannedOutcome?
    /// Ends the call without a reply, unless it has ended.
    let failCall: @Sendable () -> Void
  }

  private struct State {
    var random: SplitMix64
    var conditions: Conditions
    var isReachable = true
    var plan: [PlannedOutcome] = []
    var entries: [Entry] = []
    var exchanges: [Int: Exchange] = [:]
    var lastPacketID = 0
    var lastExchangeNumber = 0

    mutating func add(
      _ direction: Packet.Direction, of exchange: Int, _ label: String, _ deliver: @escaping @Sendable () -> Void
    ) -> Packet {
      lastPacketID += 1
      let packet = Packet(id: lastPacketID, exchange: exchange, label: label, direction: direction)
      entries.append(Entry(packet: packet, deliver: deliver))
      exchanges[exchange]?.inTransitCount += 1
      return packet
    }

    mutating func remove(_ id: Packet.ID) -> Entry? {
      guard let index = entries.firstIndex(where: { $0.packet.id == id }) else { return nil }
      return entries.remove(at: index)
    }

    /// Records that a packet is no longer in transit.
    ///
    /// - Returns: If the packet was the last one of its exchange, the closure that ends the call; otherwise `nil`.
    mutating func recordEndOfTransit(of packet: Packet) -> (@Sendable () -> Void)? {
      exchanges[packet.exchange]?.inTransitCount -= 1
      guard exchanges[packet.exchange]?.inTransitCount == 0 else { return nil }
      return exchanges.removeValue(forKey: packet.exchange)?.failCall
    }

    mutating func faultOccurs(withProbability probability: Double) -> Bool {
      Double.random(in: 0..<1, using: &random) < probability
    }
  }

  private let state: Lock<State>
  /// Signals that a request or a reply was sent.
  private let newPackets = MulticastRelay<Void>(buffering: .unbounded)

  /// Creates a network.
  ///
  /// - Parameters:
  ///   - seed: The seed of the random choices in ``step()``.
  ///   - conditions: The probabilities of faults in ``step()``.
  public init(seed: UInt64 = 0, conditions: Conditions = .reliable) {
    state = Lock(State(random: SplitMix64(seed: seed), conditions: conditions))
  }

  /// The probabilities of faults in ``step()``.
  public var conditions: Conditions {
    get { state.withLock { $0.conditions } }
    set { state.withLock { $0.conditions = newValue } }
  }

  /// Whether requests can be sent.
  ///
  /// While it is `false`, new exchanges fail with ``Failure/unreachable``. Packets in transit aren't affected.
  public var isReachable: Bool {
    get { state.withLock { $0.isReachable } }
    set { state.withLock { $0.isReachable = newValue } }
  }

  /// Plans the outcomes of the next exchanges, in order, after those that were planned before.
  public func plan(_ outcomes: PlannedOutcome...) {
    state.withLock { $0.plan += outcomes }
  }

  // MARK: - Client

  /// Sends a request to a server, and returns the reply.
  ///
  /// - Parameters:
  ///   - label: A label for the request.
  ///   - serve: The server's work, which is performed each time the request arrives.
  /// - Throws: ``Failure/unreachable`` if the request isn't sent, or ``Failure/noReply`` if no reply arrives because
  ///   packets are lost, the caller gives up, or the calling task is cancelled.
  public func exchange<Reply: Sendable>(
    _ label: String, _ serve: @escaping @Sendable () -> Reply
  ) async throws(Failure) -> Reply {
    let call = Call<Reply>()
    let isSent = state.withLock { state in
      let planned = state.plan.isEmpty ? nil : state.plan.removeFirst()
      guard state.isReachable, planned != .failToSend else { return false }
      state.lastExchangeNumber += 1
      let number = state.lastExchangeNumber
      state.exchanges[number] = Exchange(planned: planned) { call.end(.failure(.noReply)) }
      _ = state.add(.request, of: number, label) { [weak self] in
        let reply = serve()
        self?.sendReply(to: number, label) { call.end(.success(reply)) }
      }
      return true
    }
    guard isSent else { throw .unreachable }
    newPackets.send(())
    return try await call.result()
  }

  private func sendReply(to exchange: Int, _ label: String, _ deliver: @escaping @Sendable () -> Void) {
    _ = state.withLock { $0.add(.reply, of: exchange, label, deliver) }
    newPackets.send(())
  }

  // MARK: - Control

  /// The packets in transit, the oldest first.
  public var packets: [Packet] { state.withLock { $0.entries.map(\.packet) } }

  /// Delivers a packet.
  ///
  /// When this method returns, a delivered request was served and its reply is in transit.
  ///
  /// - Returns: Whether the packet was in transit.
  @discardableResult
  public func deliver(_ id: Packet.ID) -> Bool {
    guard let entry = state.withLock({ $0.remove(id) }) else { return false }
    entry.deliver()
    let failCall = state.withLock { $0.recordEndOfTransit(of: entry.packet) }
    // This has an effect only if the packet is a request, and another task has lost its reply meanwhile. If the packet
    // is a reply, its delivery has already ended the call.
    failCall?()
    return true
  }

  /// Loses a packet.
  ///
  /// If no other packet of the exchange is in transit, its call fails with ``Failure/noReply``, unless the call has
  /// ended.
  ///
  /// - Returns: Whether the packet was in transit.
  @discardableResult
  public func lose(_ id: Packet.ID) -> Bool {
    guard let entry = state.withLock({ $0.remove(id) }) else { return false }
    let failCall = state.withLock { $0.recordEndOfTransit(of: entry.packet) }
    failCall?()
    return true
  }

  /// Adds a second packet with the same content.
  ///
  /// - Returns: The new packet; `nil` if the first one wasn't in transit.
  @discardableResult
  public func duplicate(_ id: Packet.ID) -> Packet? {
    state.withLock { state in
      guard let entry = state.entries.first(where: { $0.packet.id == id }) else { return nil }
      return state.add(entry.packet.direction, of: entry.packet.exchange, entry.packet.label, entry.deliver)
    }
  }

  /// Makes the caller of an exchange give up with ``Failure/noReply``, unless its call has ended.
  ///
  /// Packets of the exchange stay in transit.
  public func timeOut(_ exchange: Int) {
    let failCall = state.withLock { $0.exchanges[exchange]?.failCall }
    failCall?()
  }

  /// Moves a random packet as planned for its exchange, or otherwise according to the seed and the conditions.
  ///
  /// - Returns: The packet and its move; `nil` if no packet is in transit.
  @discardableResult
  public func step() -> (packet: Packet, move: Move)? {
    let chosenStep = state.withLock { state -> (Packet, Move)? in
      guard let packet = state.entries.randomElement(using: &state.random)?.packet else { return nil }
      switch state.exchanges[packet.exchange]?.planned {
      case .arrive?: return (packet, .delivered)
      case .loseRequest?: return (packet, .lost)
      case .loseReply?: return (packet, packet.direction == .reply ? .lost : .delivered)
      case .duplicateRequest?:
        if packet.direction == .reply { return (packet, .delivered) }
        state.exchanges[packet.exchange]?.planned = .arrive
        return (packet, .duplicated)
      case .failToSend?, nil: break
      }
      let conditions = state.conditions
      let lossProbability = packet.direction == .request ? conditions.requestLoss : conditions.replyLoss
      if state.faultOccurs(withProbability: lossProbability) { return (packet, .lost) }
      if state.faultOccurs(withProbability: conditions.duplication) { return (packet, .duplicated) }
      return (packet, state.faultOccurs(withProbability: conditions.timeout) ? .timedOut : .delivered)
    }
    guard let (packet, move) = chosenStep else { return nil }
    switch move {
    case .delivered: deliver(packet.id)
    case .lost: lose(packet.id)
    case .duplicated: duplicate(packet.id)
    case .timedOut: timeOut(packet.exchange)
    }
    return (packet, move)
  }

  /// The move of a packet by ``step()``.
  public enum Move: Hashable, Sendable {
    /// The packet arrived.
    case delivered
    /// The packet was lost.
    case lost
    /// A duplicate of the packet is in transit.
    case duplicated
    /// The caller gave up, while the packet is still in transit.
    case timedOut
  }

  /// Performs a ``step()`` whenever a packet is in transit, until the calling task is cancelled.
  ///
  /// The seed determines the number of task yields before each step.
  public func run() async {
    let newPackets = newPackets.stream.subscribe()
    await stepUntilIdle()
    for await _ in newPackets { await stepUntilIdle() }
  }

  private func stepUntilIdle() async {
    while !Task.isCancelled, !packets.isEmpty {
      // Yields let other tasks run, such as a caller that sends the next packet.
      let yieldCount = state.withLock { Int.random(in: 0..<8, using: &$0.random) }
      for _ in 0..<yieldCount { await Task.yield() }
      step()
    }
  }
}

/// The call of an exchange, which ends with the first result.
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
