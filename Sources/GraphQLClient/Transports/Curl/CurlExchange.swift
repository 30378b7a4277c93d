#if os(Linux)
  internal import CCurl
  internal import Dispatch
  internal import Foundation

  /// Receives the bytes of one response from libcurl and passes them to the transfer.
  ///
  /// Only the thread of the exchange uses this object, except for ``resumeSignal``, which other threads signal when the
  /// transfer resumes or stops.
  final class CurlExchange {
    let transfer: Transfer
    /// Signaled when the pending chunk is taken, and when the transfer is cancelled.
    let resumeSignal = DispatchSemaphore(value: 0)
    /// libcurl's handle for the exchange.
    var easy: OpaquePointer?
    /// The error with which this object ended the exchange, if it did.
    private(set) var failure: URLError?
    private var headReader = HTTPHeadReader()

    init(transfer: Transfer) {
      self.transfer = transfer
    }

    /// Receives a line of a head, and returns whether to continue the exchange.
    func receive(line: Data) -> Bool {
      switch headReader.receive(line: line) {
      case .proceed:
        return true
      case .head(let headers):
        // Skips interim responses (1xx), but not 101 (Switching Protocols), which is final. If trailers arrive as a
        // second head, the transfer ignores it.
        let status = easy.map { Int(CCurlEasyStatus($0)) } ?? 0
        if status >= 200 || status == 101 { transfer.receive(head: HTTPHead(status: status, headers: headers)) }
        return true
      case .tooLarge:
        failure = URLError(
          .badServerResponse,
          userInfo: [
            NSLocalizedDescriptionKey: "The head of the response is too large"
          ])
        return false
      }
    }

    /// Receives a chunk of the body, and returns whether to continue the exchange.
    ///
    /// Blocks until the transfer accepts the next chunk, or is cancelled.
    func receive(chunk: Data) -> Bool {
      switch transfer.receive(chunk: chunk) {
      case .proceed:
        return true
      case .pause:
        resumeSignal.wait()
        return transfer.isRunning
      case .refuse:
        return false
      }
    }
  }
#endif
