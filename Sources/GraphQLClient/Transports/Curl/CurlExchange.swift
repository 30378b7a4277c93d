#if os(Linux)
  internal import CCurl
  internal import Dispatch
  internal import Foundation

  /// What libcurl reads of one response, on its way to the transfer.
  ///
  /// The thread of the exchange uses all of it; other threads only signal ``room``, when the transfer goes on or stops.
  final class CurlExchange {
    let transfer: Transfer
    /// Signalled when a chunk that waited was taken, and when the transfer was cancelled.
    let room = DispatchSemaphore(value: 0)
    /// The handle that the response belongs to.
    var easy: OpaquePointer?
    /// Why this side ended the exchange.
    private(set) var failure: URLError?
    private var head = HTTPHeadReader()

    init(transfer: Transfer) {
      self.transfer = transfer
    }

    /// Takes a line of a head; returns whether to go on.
    func receive(line: Data) -> Bool {
      switch head.receive(line: line) {
      case .proceed:
        return true
      case .head(let headers):
        // Interim responses come before the final one; a switch of protocols is final.
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

    /// Takes a chunk of the body, and waits until there is room for more; returns whether to go on.
    func receive(chunk: Data) -> Bool {
      switch transfer.receive(chunk: chunk) {
      case .proceed:
        return true
      case .holdUp:
        room.wait()
        return transfer.isRunning
      case .refuse:
        return false
      }
    }
  }
#endif
