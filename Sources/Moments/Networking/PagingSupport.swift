internal import Multicast

/// What is known of whether a server pages; shared by the copies of a session.
final class PagingSupport: Sendable {
  private enum Knowledge {
    case inDoubt, pages, doesNotPage
  }

  private let knowledge = Lock(Knowledge.inDoubt)

  /// Whether it is worth asking for a page.
  var isPossible: Bool { knowledge.withLock { $0 != .doesNotPage } }

  /// Whether the server has answered no request for a page yet.
  var isInDoubt: Bool { knowledge.withLock { $0 == .inDoubt } }

  /// The server has given a page.
  func confirm() {
    knowledge.withLock { $0 = .pages }
  }

  /// The server refused the document of a page, and gave the whole timeline.
  func ruleOut() {
    knowledge.withLock { if $0 == .inDoubt { $0 = .doesNotPage } }
  }
}
