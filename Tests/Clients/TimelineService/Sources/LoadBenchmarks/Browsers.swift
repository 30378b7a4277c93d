internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// Open event streams of a service, and clients that make likes.
///
/// One thread serves all connections, so the state of the streams needs no lock.
final class Browsers: Sendable {
  /// The state of all streams; used on the event loop only.
  final class State: @unchecked Sendable {
    // Unchecked: every method is called on the one event loop of the group.

    /// The number of a timeline's streams that don't show a like yet, by the likes of the timeline.
    private var missing: [[Int]]
    private var starts: [[ContinuousClock.Instant]]
    private let streamsOfTimeline: [Int]
    /// What the events of each timeline show, by their ids: streams of a timeline get the same events.
    private var events: [[Substring: ShownTimeline]]
    /// The times from each like until the last stream of its timeline shows it, in seconds.
    fileprivate(set) var latencies: [Double] = []
    fileprivate(set) var openStreams = 0
    /// The number of times at which a stream showed an older timeline after a newer one.
    fileprivate(set) var regressions = 0
    private(set) var failedStatus: Int?
    /// The connections that wait for a like.
    fileprivate var idleCallers: [any Channel] = []

    init(streamsOfTimeline: [Int]) {
      self.streamsOfTimeline = streamsOfTimeline
      missing = streamsOfTimeline.map { _ in [] }
      starts = streamsOfTimeline.map { _ in [] }
      events = streamsOfTimeline.map { _ in [:] }
    }

    /// Records that a like is about to be sent.
    fileprivate func recordStart(of timeline: Int) {
      starts[timeline].append(.now)
      missing[timeline].append(streamsOfTimeline[timeline])
    }

    /// Records that a stream has received an event.
    fileprivate func record(_ event: Substring, _ stream: EventStream) {
      guard let id = event.firstLine(after: "id: "), let content = event.firstLine(after: "data: ") else { return }
      let timeline = stream.timeline
      let shown = events[timeline][id] ?? ShownTimeline(content)
      events[timeline][id] = shown
      if let newest = stream.newest {
        if shown.confirmedCount < newest { regressions += 1 }
      } else {
        openStreams += 1
      }
      stream.newest = max(stream.newest ?? 0, shown.confirmedCount)
      let now = ContinuousClock.now
      while stream.likeCount < min(shown.likeCount, missing[timeline].count) {
        let like = stream.likeCount
        stream.likeCount += 1
        missing[timeline][like] -= 1
        if missing[timeline][like] == 0 { latencies.append((now - starts[timeline][like]) / .seconds(1)) }
      }
    }

    fileprivate func recordAnswer(_ status: Int) {
      if status / 100 != 2 { failedStatus = status }
    }

    /// The number of pairs of a stream and a like that it doesn't show.
    var missingCount: Int { missing.joined().reduce(0, +) }
  }

  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let loop: any EventLoop
  private let port: Int
  private let state: State

  init(port: Int, streamsOfTimeline: [Int]) {
    self.port = port
    loop = group.next()
    state = State(streamsOfTimeline: streamsOfTimeline)
  }

  /// Returns a property of the state.
  func read<Value: Sendable>(_ body: @escaping @Sendable (State) -> Value) async throws -> Value {
    try await loop.submit { [state] in body(state) }.get()
  }

  /// Opens an event stream of a timeline, and returns when it shows something.
  func open(_ timeline: Int) async throws {
    let count = try await read(\.openStreams)
    let channel = try await connect { [state] in EventStream(timeline: timeline, state: state) }
    try await send(.init(version: .http1_1, method: .GET, uri: "/timelines/\(timeline)/events"), nil, on: channel)
    while try await read(\.openStreams) <= count { try await Task.sleep(for: .milliseconds(1)) }
  }

  /// Sends a like, without waiting for the answer.
  ///
  /// Each request that is in flight has a connection of its own, as those of many browsers have.
  func like(_ timeline: Int, _ moment: Int, isLiked: Bool, key: String) async throws {
    var head = HTTPRequestHead(
      version: .http1_1, method: .POST, uri: "/timelines/\(timeline)/moments/\(moment)/like",
      headers: ["Idempotency-Key": key])
    let body = ByteBuffer(string: #"{"isLiked": \#(isLiked)}"#)
    head.headers.add(name: "Content-Length", value: "\(body.readableBytes)")
    let idle = try await loop.submit { [state] in
      state.recordStart(of: timeline)
      return state.idleCallers.popLast()
    }.get()
    let channel = if let idle { idle } else { try await connect { [state] in Caller(state: state) } }
    try await send(head, body, on: channel)
  }

  func close() async throws {
    try await group.shutdownGracefully()
  }

  private func connect(_ handler: @escaping @Sendable () -> any ChannelHandler & Sendable) async throws -> any Channel {
    try await ClientBootstrap(group: group)
      .channelInitializer { channel in
        channel.pipeline.addHTTPClientHandlers().flatMap { channel.pipeline.addHandler(handler()) }
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

  /// Reads the events of one stream.
  fileprivate final class EventStream: ChannelInboundHandler, @unchecked Sendable {
    // Unchecked: used on the event loop of its channel only.

    typealias InboundIn = HTTPClientResponsePart

    let timeline: Int
    /// The number of likes that the stream shows, and of those that it has shown as confirmed by the server.
    var likeCount = 0
    var newest: Int?
    private let state: State
    private var received = ByteBuffer()

    init(timeline: Int, state: State) {
      self.timeline = timeline
      self.state = state
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .body(var part) = unwrapInboundIn(data) else { return }
      received.writeBuffer(&part)
      guard received.readableBytesView.suffix(2).elementsEqual("\n\n".utf8) else { return }
      let text = String(buffer: received)
      received.clear()
      for event in text.split(separator: "\n\n") { state.record(event, self) }
    }
  }

  /// Checks the answers to likes.
  private final class Caller: ChannelInboundHandler, Sendable {
    typealias InboundIn = HTTPClientResponsePart

    private let state: State

    init(state: State) {
      self.state = state
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head): state.recordAnswer(Int(head.status.code))
      case .body: break
      case .end: state.idleCallers.append(context.channel)
      }
    }
  }
}

extension Substring {
  /// Returns the rest of the first line with a prefix.
  fileprivate func firstLine(after prefix: String) -> Substring? {
    split(separator: "\n").first { $0.hasPrefix(prefix) }?.dropFirst(prefix.count)
  }
}
