#if os(Linux)
  internal import CCurl
  internal import Foundation

  /// The connections of one thread, and the exchange that runs over one of them.
  ///
  /// That thread alone uses them.
  struct CurlConnections {
    private let multi = CurlMulti()

    /// Whether libcurl could make its handle.
    var isUsable: Bool { multi.handle != nil }

    /// Runs an exchange to its end, or until its transfer is cancelled.
    func run(_ job: CurlJob) {
      let exchange = CurlExchange(transfer: job.transfer)
      let network = Transfer.Network(
        stop: { [multi, room = exchange.room] in
          room.signal()
          multi.wake()
        },
        goOn: { [room = exchange.room] in room.signal() })
      guard job.transfer.begin(network) else { return }
      job.transfer.end(error: perform(job.request, exchange))
    }

    private func perform(_ request: HTTPRequest, _ exchange: CurlExchange) -> URLError? {
      guard let handle = multi.handle, let easy = CurlEasy(request, exchange) else {
        return URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "libcurl cannot make a handle"])
      }
      return withExtendedLifetime(easy) {
        guard CCurlMultiAdd(handle, easy.handle) else { return CurlFailure.outOfMemory }
        defer { CCurlMultiRemove(handle, easy.handle) }
        return transfer(easy, exchange, by: handle)
      }
    }

    private func transfer(_ easy: CurlEasy, _ exchange: CurlExchange, by handle: OpaquePointer) -> URLError? {
      while exchange.transfer.isRunning {
        var result: CInt = 0
        guard CCurlMultiPerform(handle) == 0 else { return CurlFailure.outOfMemory }
        if CCurlMultiTakeResult(handle, &result) {
          return exchange.failure ?? CurlFailure.error(result, easy.errorText, wasSent: easy.wasSent)
        }
        // Not for long, as libcurl makes a handle that cannot be woken where the process has no free descriptors.
        _ = CCurlMultiWait(handle, 500)
      }
      return URLError(.cancelled)
    }
  }

  /// libcurl's handle for a set of connections.
  ///
  /// Unchecked, because it holds a pointer: ``wake()`` is the one function that libcurl lets other threads call, and
  /// all other functions are called by the one thread that has the ``CurlConnections``. It is freed when no thread has
  /// it.
  private final class CurlMulti: @unchecked Sendable {
    let handle = CCurlMultiMake()

    deinit {
      if let handle { CCurlMultiFree(handle) }
    }

    /// Ends a wait of the thread that uses it.
    func wake() {
      if let handle { CCurlMultiWake(handle) }
    }
  }

  /// libcurl's handle for one exchange, and the memory that libcurl uses until its end.
  private final class CurlEasy {
    let handle: OpaquePointer
    private let fields: OpaquePointer?
    private let body: UnsafeMutableRawBufferPointer
    private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CCurlErrorSize))
    /// How often libcurl began to send the request.
    private let sendCount = UnsafeMutablePointer<CInt>.allocate(capacity: 1)

    /// - Parameter exchange: Gets what libcurl reads. It must live as long as this handle.
    init?(_ request: HTTPRequest, _ exchange: CurlExchange) {
      guard let handle = CCurlEasyMake() else {
        errorBuffer.deallocate()
        sendCount.deallocate()
        return nil
      }
      self.handle = handle
      body = .allocate(byteCount: request.body.count, alignment: 1)
      body.copyBytes(from: request.body)
      fields = Self.fields(of: request)
      CCurlEasySetDefaults(handle)
      CCurlEasySetErrorBuffer(handle, errorBuffer)
      CCurlEasySendOnce(handle, sendCount)
      // A caller that waits longer than a day for a connection does not wait for that.
      CCurlEasySetConnectTimeout(handle, Int(min(request.timeout, .seconds(86_400)) / .milliseconds(1)) + 1_000)
      CCurlEasySetCallbacks(handle, receiveHeader, receiveBody, Unmanaged.passUnretained(exchange).toOpaque())
      let isSet = CCurlEasySetRequest(
        handle, request.url.absoluteString, request.method, body.isEmpty ? nil : body.baseAddress,
        Int64(body.count), fields)
      exchange.easy = handle
      guard isSet else { return nil }
    }

    deinit {
      CCurlEasyFree(handle)
      CCurlListFree(fields)
      body.deallocate()
      errorBuffer.deallocate()
      sendCount.deallocate()
    }

    /// Whether the server may have got the request, or a part of it.
    var wasSent: Bool { sendCount.pointee > 0 }

    /// libcurl's words for a failure; they may quote the server.
    var errorText: String { ServerText.line(String(cString: errorBuffer)) }

    private static func fields(of request: HTTPRequest) -> OpaquePointer? {
      var headers = request.headers
      if headers["User-Agent"] == nil {
        headers["User-Agent"] = "\(programName) libcurl/\(String(cString: CCurlVersion()))"
      }
      var list: OpaquePointer?
      for var field in headers.fields {
        field.value = field.value.trimmingCharacters(in: .whitespaces)
        // A field without a value is written with a semicolon; with a colon libcurl would take it for one to leave out.
        list = CCurlListAppend(list, field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
      }
      // A large body is sent at once, without asking whether the server wants it.
      return CCurlListAppend(list, "Expect:")
    }

    private static let programName = String(
      ProcessInfo.processInfo.processName.unicodeScalars.filter { $0.properties.isAlphabetic && $0.isASCII })
  }

  private func receiveHeader(
    bytes: UnsafeMutablePointer<CChar>, size: Int, count: Int, context: UnsafeMutableRawPointer?
  ) -> Int {
    receive(bytes, size * count, context) { $0.receive(line: $1) }
  }

  private func receiveBody(
    bytes: UnsafeMutablePointer<CChar>, size: Int, count: Int, context: UnsafeMutableRawPointer?
  ) -> Int {
    receive(bytes, size * count, context) { $0.receive(chunk: $1) }
  }

  /// Returns how many bytes were accepted: all, or none to end the exchange.
  private func receive(
    _ bytes: UnsafeMutablePointer<CChar>, _ count: Int, _ context: UnsafeMutableRawPointer?,
    _ body: (CurlExchange, Data) -> Bool
  ) -> Int {
    guard let context else { return 0 }
    let exchange = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
    return body(exchange, Data(bytes: bytes, count: count)) ? count : 0
  }
#endif
