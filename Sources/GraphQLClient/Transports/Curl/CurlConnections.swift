#if os(Linux)
  internal import CCurl
  internal import Foundation

  /// The connections of one thread, over which it runs one exchange at a time.
  ///
  /// Only that thread may use them.
  struct CurlConnections {
    private let multi = CurlMulti()

    /// Whether libcurl could create the handle for these connections.
    var isUsable: Bool { multi.handle != nil }

    /// Runs an exchange until it completes or its transfer is cancelled.
    func run(_ job: CurlJob) {
      let exchange = CurlExchange(transfer: job.transfer)
      let network = Transfer.Network(
        stop: { [multi, resumeSignal = exchange.resumeSignal] in
          resumeSignal.signal()
          multi.wake()
        },
        resume: { [resumeSignal = exchange.resumeSignal] in resumeSignal.signal() })
      guard job.transfer.begin(network) else { return }
      job.transfer.end(error: perform(job.request, exchange))
    }

    private func perform(_ request: HTTPRequest, _ exchange: CurlExchange) -> URLError? {
      guard let multiHandle = multi.handle, let easy = CurlEasy(request, exchange) else {
        return URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "libcurl cannot prepare the request"])
      }
      return withExtendedLifetime(easy) {
        guard CCurlMultiAdd(multiHandle, easy.handle) else { return CurlFailure.outOfMemory }
        defer { CCurlMultiRemove(multiHandle, easy.handle) }
        return performUntilDone(easy, exchange, on: multiHandle)
      }
    }

    private func performUntilDone(
      _ easy: CurlEasy, _ exchange: CurlExchange, on multiHandle: OpaquePointer
    ) -> URLError? {
      while exchange.transfer.isRunning {
        var result: CInt = 0
        guard CCurlMultiPerform(multiHandle) == 0 else { return CurlFailure.outOfMemory }
        if CCurlMultiTakeResult(multiHandle, &result) {
          return exchange.failure ?? CurlFailure.error(result, easy.errorText, wasSent: easy.wasSent)
        }
        // Waits at most 500 ms, so that a cancellation is noticed even if the handle can't be woken. A handle can't be
        // woken if the process had no free file descriptors when libcurl created it.
        _ = CCurlMultiWait(multiHandle, 500)
      }
      return URLError(.cancelled)
    }
  }

  /// libcurl's handle for a set of connections.
  ///
  /// The `Sendable` conformance is unchecked, because the object holds a pointer. libcurl allows only ``wake()`` while
  /// another thread uses the handle. All other functions are called by the thread that owns the ``CurlConnections``.
  /// Only the release of the last reference, which frees the handle, may happen on any thread.
  private final class CurlMulti: @unchecked Sendable {
    let handle = CCurlMultiMake()

    deinit {
      if let handle { CCurlMultiFree(handle) }
    }

    /// Wakes the thread that waits on the handle.
    func wake() {
      if let handle { CCurlMultiWake(handle) }
    }
  }

  /// libcurl's handle for one exchange, and the memory that libcurl uses during the exchange.
  private final class CurlEasy {
    let handle: OpaquePointer
    private let fields: OpaquePointer?
    private let body: UnsafeMutableRawBufferPointer
    private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CCurlErrorSize))
    /// The number of times that libcurl began to send the request.
    ///
    /// With libcurl before 7.80, the number is 1 from the start, because that version doesn't report attempts to send.
    private let sendCount = UnsafeMutablePointer<CInt>.allocate(capacity: 1)

    /// Creates a handle for a request, or returns `nil` if libcurl can't prepare it.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - exchange: The exchange that receives the response. It must outlive this handle.
    init?(_ request: HTTPRequest, _ exchange: CurlExchange) {
      guard let handle = CCurlEasyMake() else {
        errorBuffer.deallocate()
        sendCount.deallocate()
        return nil
      }
      self.handle = handle
      body = .allocate(byteCount: request.body.count, alignment: 1)
      body.copyBytes(from: request.body)
      fields = Self.makeFields(of: request)
      CCurlEasySetDefaults(handle)
      CCurlEasySetErrorBuffer(handle, errorBuffer)
      CCurlEasySendOnce(handle, sendCount)
      // The limit on connecting, in milliseconds, exceeds the caller's timeout by a second, so that the caller's
      // expires first. A timeout of more than a day counts as a day.
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

    /// Whether the server may have received at least a part of the request.
    var wasSent: Bool { sendCount.pointee > 0 }

    /// libcurl's description of a failure, sanitized because it may quote the server.
    var errorText: String { ServerText.line(String(cString: errorBuffer)) }

    private static func makeFields(of request: HTTPRequest) -> OpaquePointer? {
      var headers = request.headers
      if headers["User-Agent"] == nil {
        headers["User-Agent"] = "\(programName) libcurl/\(String(cString: CCurlVersion()))"
      }
      var list: OpaquePointer?
      for var field in headers.fields {
        field.value = field.value.trimmingCharacters(in: .whitespaces)
        // For `name;`, libcurl sends a field with an empty value. For `name:`, it would send no field.
        list = CCurlListAppend(list, field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
      }
      // Disables the `Expect` field, so that a large body is sent without waiting for the server's permission.
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

  /// Passes bytes to the exchange, and returns the number of accepted bytes: all, or 0 to end the exchange.
  private func receive(
    _ bytes: UnsafeMutablePointer<CChar>, _ count: Int, _ context: UnsafeMutableRawPointer?,
    _ deliver: (CurlExchange, Data) -> Bool
  ) -> Int {
    guard let context else { return 0 }
    let exchange = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
    return deliver(exchange, Data(bytes: bytes, count: count)) ? count : 0
  }
#endif
