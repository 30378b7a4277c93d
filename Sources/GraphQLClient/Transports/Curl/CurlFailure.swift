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
      if wasSent, [.cannotFindHost, .cannotConnectToHost].contains(code) || result == secondAttemptPrevented {
        code = .networkConnectionLost
      } else if !wasSent, code == .networkConnectionLost {
        // The connection was lost before the request was sent, for example because a proxy rejected the connection.
        code = .cannotConnectToHost
      }
      return URLError(code, userInfo: [NSLocalizedDescriptionKey: description])
    }

    /// `CURLE_ABORTED_BY_CALLBACK`: libcurl was about to send the request a second time, which the transport prevents.
    private static let secondAttemptPrevented: CInt = 42

    // The values of `CURLcode` are written as numbers, because the package is built without libcurl's headers.
    private static func code(of result: CInt) -> URLError.Code {
      switch result {
      // URL_MALFORMAT
      case 3: .badURL
      // COULDNT_RESOLVE_PROXY, COULDNT_RESOLVE_HOST
      case 5, 6: .cannotFindHost
      // COULDNT_CONNECT, PROXY
      case 7, 97: .cannotConnectToHost
      // UNSUPPORTED_PROTOCOL, WEIRD_SERVER_REPLY: the response isn't HTTP, or has an unsupported version.
      case 1, 8: .badServerResponse
      // PARTIAL_FILE, GOT_NOTHING, SEND_ERROR, RECV_ERROR, HTTP2_STREAM, HTTP3: the response is incomplete or missing,
      // or the connection was lost.
      case 18, 52, 55, 56, 92, 95: .networkConnectionLost
      // OPERATION_TIMEDOUT
      case 28: .timedOut
      // SSL_CONNECT_ERROR
      case 35: .secureConnectionFailed
      // SSL_CERTPROBLEM, SSL_CLIENTCERT
      case 58, 98: .clientCertificateRejected
      // PEER_FAILED_VERIFICATION, SSL_ISSUER_ERROR, SSL_INVALIDCERTSTATUS
      case 60, 83, 91: .serverCertificateUntrusted
      // BAD_CONTENT_ENCODING
      case 61: .cannotDecodeContentData
      default: .unknown
      }
    }
  }
#endif
