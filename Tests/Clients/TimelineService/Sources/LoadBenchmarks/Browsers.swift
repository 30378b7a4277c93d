internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// The simulated browsers of a load test: event streams that stay open, and clients that make likes.
///
/// One thread serves all connections.
final class Browsers: Sendable {
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let loop: any EventLoop
  private let port: Int
  private let records: StreamRecords
  private let idleConnections = IdleConnections()

  init(port: Int, timelines: Int) {
    self.port = port
    loop = group.next()
    records = StreamRecords(timelines: timelines)
  }

  /// Returns what `body` reads from the records.
  func read<Value: Sendable>(_ body: @escaping @Sendable (StreamRecords) -> Value) async throws -> Value {
    try await loop.submit { [records] in body(records) }.get()
  }

  /// Opens an event stream of a timeline, and returns when its first event has arrived.
  func open(_ timeline: Int) async throws {
    let countBefore = try await read(\.openStreamCount)
    let channel = try await connect { [records] in EventStream(of: timeline, records) }
    try await send(.init(version: .http1_1, method: .GET, uri: "/timelines/\(timeline)/events"), nil, on: channel)
    // A stream counts as open once its first event is recorded.
    while try await read(\.openStreamCount) <= countBefore { try await Task.sleep(for: .milliseconds(1)) }
  }

  /// Sends a like, without waiting for the answer.
  ///
  /// Each request that is in flight has a connection of its own, as if each came from another browser.
  ///
  /// - Parameters:
  ///   - timeline: The timeline.
  ///   - moment: The moment.
  ///   - isLiked: Whether the moment is liked from now on.
  ///   - key: The `Idempotency-Key`.
  ///   - start: The time at which the like is due, from which its latency is measured.
  func like(
    _ timeline: Int, _ moment: Int, isLiked: Bool, key: String, at start: ContinuousClock.Instant
  ) async throws {
    var head = HTTPRequestHead(
      version: .http1_1, method: .POST, uri: "/timelines/\(timeline)/moments/\(moment)/like",
      headers: ["Idempotency-Key": key])
    let body = ByteBuffer(string: #"{"isLiked": \#(isLiked)}"#)
    head.headers.add(name: "Content-Length", value: "\(body.readableBytes)")
    let idleConnection = try await loop.submit { [records, idleConnections] in
      records.recordLike(of: timeline, at: start)
      return idleConnections.take()
    }.get()
    let channel =
      if let idleConnection {
        idleConnection
      } else {
        try await connect { [records, idleConnections] in AnswerRecorder(records, idleConnections) }
      }
    try await send(head, body, on: channel)
  }

  func close() async throws {
    try await group.shutdownGracefully()
  }

  private func connect(
    _ makeHandler: @escaping @Sendable () -> any ChannelHandler & Sendable
  ) async throws -> any Channel {
    try await ClientBootstrap(group: group)
      .channelInitializer { channel in
        channel.pipeline.addHTTPClientHandlers().flatMap { channel.pipeline.addHandler(makeHandler()) }
      }
      .connect(host: "127.0.0.1", port: port).get()
  }

  private func send(_ head: HTTPRequestHead, _ body: ByteBuffer?, on channel: any Channel) async throws {
    var head = head
    head.headers.replaceOrAdd(name: "Host", value: "127.0.0.1")
    channel.write(HTTPClientRequestPart.head(head), promise: nil)
    if let body { channel.write(HTTPClientRequestPart.body(.byteBuffer(body)), promise: nil) }
    try await channel.writeAndFlush(HTTPClientRequestPart.end(nil)).get()
  }
}

/// Reads the events of one stream.
private final class EventStream: ChannelInboundHandler, @unchecked Sendable {
  // Unchecked, because it is used only on the event loop of its channel.

  typealias InboundIn = HTTPClientResponsePart

  private let timeline: Int
  private let records: StreamRecords
  private var streamNumber: Int?
  private var parser = EventParser()

  init(of timeline: Int, _ records: StreamRecords) {
    (self.timeline, self.records) = (timeline, records)
  }

  func channelActive(context: ChannelHandlerContext) {
    streamNumber = records.addStream(of: timeline)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .body(let part) = unwrapInboundIn(data), let streamNumber else { return }
    records.recordBytes(count: part.readableBytes)
    parser.append(part)
    while let event = parser.next() { records.record(event, of: streamNumber) }
  }
}

/// Records the answers to the likes that are sent on one connection, which is idle after each answer.
private final class AnswerRecorder: ChannelInboundHandler, Sendable {
  typealias InboundIn = HTTPClientResponsePart

  private let records: StreamRecords
  private let idleConnections: IdleConnections

  init(_ records: StreamRecords, _ idleConnections: IdleConnections) {
    (self.records, self.idleConnections) = (records, idleConnections)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): records.recordAnswer(Int(head.status.code))
    case .body: break
    case .end: idleConnections.add(context.channel)
    }
  }
}

/// The connections without a request in flight.
private final class IdleConnections: @unchecked Sendable {
  // Unchecked, because it is used only on one event loop.

  private var channels: [any Channel] = []

  func add(_ channel: any Channel) {
    channels.append(channel)
  }

  func take() -> (any Channel)? { channels.popLast() }
}
