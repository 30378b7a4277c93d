#if os(Linux)
  internal import Foundation

  /// The conversion of libcurl's result codes to `URLError`.
  enum CurlFailure {
    static let outOfMemory = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "libcurl is out of memory"])

    /// Returns the error for a result code; `nil` for success.
    ///
    /// - Parameters:
    ///   - result: The result code, a `CURLcode`.
    ///   - text: libcurl's description of the failure.
    ///   - wasSent: Whether the server may have received the request. If so, the error never implies that the server
    ///     received nothing.
    static func error(_ result: CInt, _ text: String, wasSent: Bool) -> URLError? {
      guard result != 0 else { return nil }
      let description = text.isEmpty ? "libcurl failed with error \(result)" : text
      var code = code(of: result)
      if wasSent, [.cannotFindHost, .cannotConnectToHost].contains(code) || result == 42 {
        code = .networkConnectionLost
      } else if !wasSent, code == .networkConnectionLost {
        // A proxy rejected the connection.
        code = .cannotConnectToHost
      }
      return URLError(code, userInfo: [NSLocalizedDescriptionKey: description])
    }

    private static func code(of result: CInt) -> URLError.Code {
      switch result {
      case 3: .badURL
      case 5, 6: .cannotFindHost
      case 7, 97: .cannotConnectToHost
      // The response isn't HTTP, or has an unsupported version.
      case 1, 8: .badServerResponse
      // The response is incomplete or missing, or the connection was lost.
      case 18, 52, 55, 56, 92, 95: .networkConnectionLost
      case 28: .timedOut
      case 35: .secureConnectionFailed
      case 58, 98: .clientCertificateRejected
      case 60, 83, 91: .serverCertificateUntrusted
      case 61: .cannotDecodeContentData
      default: .unknown
      }
    }
  }
#endif
