#if os(Linux)
  internal import Foundation

  /// What libcurl's result codes mean as `URLError`.
  enum CurlFailure {
    static let outOfMemory = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "libcurl is out of memory"])

    /// Returns the error of a result, whose numbers are those of `CURLcode`; `nil` for success.
    ///
    /// - Parameters:
    ///   - result: The result.
    ///   - text: libcurl's words for it.
    ///   - wasSent: Whether the server may have got the request. If so, no error may say that it surely got nothing.
    static func error(_ result: CInt, _ text: String, wasSent: Bool) -> URLError? {
      guard result != 0 else { return nil }
      let description = text.isEmpty ? "libcurl's error \(result)" : text
      var code = code(of: result)
      if wasSent, [.cannotFindHost, .cannotConnectToHost].contains(code) || result == 42 {
        code = .networkConnectionLost
      } else if !wasSent, code == .networkConnectionLost {
        // A proxy refused to connect.
        code = .cannotConnectToHost
      }
      return URLError(code, userInfo: [NSLocalizedDescriptionKey: description])
    }

    private static func code(of result: CInt) -> URLError.Code {
      switch result {
      case 3: .badURL
      case 5, 6: .cannotFindHost
      case 7, 97: .cannotConnectToHost
      // A response that is not HTTP, or HTTP of another version.
      case 1, 8: .badServerResponse
      // An incomplete response, none at all, or a connection that broke.
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
