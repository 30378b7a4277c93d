internal import Multicast

/// Whether a server supports pages, as far as its replies have shown; shared by the copies of a session.
final class PagingSupport: Sendable {
  private enum Support {
    case unknown, supported, unsupported
  }

  private let support = Lock(Support.unknown)

  /// Whether to request a page: `false` only if the server is known not to support pages.
  var isPossible: Bool { support.withLock { $0 != .unsupported } }

  /// Whether the server's support for pages is still unknown.
  var isUnknown: Bool { support.withLock { $0 == .unknown } }

  /// Records that the server returned a page.
  func confirm() {
    support.withLock { $0 = .supported }
  }

  /// Records that the server refused the document of a page, and returned the complete timeline.
  ///
  /// Does nothing if the server has returned a page.
  func ruleOut() {
    support.withLock { if $0 == .unknown { $0 = .unsupported } }
  }
}
