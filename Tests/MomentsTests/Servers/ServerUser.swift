import DataStore
import Foundation
import GraphQLClient
import Moments
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
  /// Skips the test if Ariadne, Strawberry and nginx aren't available, unless they are required.
  ///
  /// If a required server isn't available, the test runs and fails.
  static var requiresGraphQLServers: Self {
    .enabled(if: GraphQLServers.isRequested, "\(GraphQLServers.requirement)")
  }
}

/// The GraphQL servers that aren't part of this package.
enum ForeignServer: String, CaseIterable, Sendable {
  case ariadne, strawberry
}

/// A user of one of the servers, whose id no other test uses, with a repository and a clock that the test advances.
struct ServerUser: Sendable {
  let id = UUID().uuidString
  let clock = ManualClock()
  let token = Token()
  let apiSession: APISession
  let repo: MomentsRepo
  private let control: APISession

  /// The token of the next requests.
  final class Token: Sendable {
    private let value = Lock("valid")

    func set(_ token: String) { value.withLock { $0 = token } }

    var authorization: String { "Bearer \(value.withLock { $0 })" }
  }

  /// A request whose root field the server called.
  struct Request: Decodable, Sendable {
    let operation: String
    let key: String?
    /// Whether the request changed the likes.
    let wasApplied: Bool
  }

  private init(
    _ server: ForeignServer, location: String?, maximumReplySize: Int, errorCodes: GraphQLErrorCodes
  ) async throws {
    let servers = try await GraphQLServers.shared()
    control = APISession(url: servers.control, timeout: .seconds(1_000))
    var url = servers.url(of: server.rawValue)
    if let location {
      url = try await Self.proxy(control).appending(path: location).appending(path: server.rawValue)
    }
    apiSession = APISession(
      url: url, authorization: { [token] in token.authorization }, timeout: .seconds(1_000),
      maximumReplySize: maximumReplySize)
    repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: apiSession),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: apiSession), errorCodes: errorCodes, clock: clock)
  }

  /// Fetches the timeline of a new user, calls `body`, and returns whether observers of the user saw the first moment as
  /// liked: the first value, and each value that differs from the one before.
  ///
  /// - Parameters:
  ///   - server: The server of the user.
  ///   - location: The location of nginx in front of the server, or `nil` for no proxy.
  ///   - maximumReplySize: The limit of the session.
  ///   - errorCodes: The meanings of the server's error codes.
  ///   - body: A closure that uses the repository.
  static func run(
    on server: ForeignServer, behind location: String? = nil, maximumReplySize: Int = 8 * 1024 * 1024,
    errorCodes: GraphQLErrorCodes = .standard, _ body: (ServerUser) async throws -> Void
  ) async throws -> [Bool?] {
    var user: ServerUser? = try await ServerUser(
      server, location: location, maximumReplySize: maximumReplySize, errorCodes: errorCodes)
    let observer = user.map { $0.repo.momentsDetails(userID: $0.id).subscribe() }
    if let user {
      try await user.repo.getMoments(userID: user.id)
      try await body(user)
    }
    // The stream finishes when the repository is released.
    user = nil
    var seen: [Bool?] = []
    if let observer {
      for await isLiked in observer.map(\.moments.first?.isLiked) where seen.last != isLiked { seen.append(isLiked) }
    }
    return seen
  }

  /// Likes the first moment.
  func like() async throws(MomentsRepoError) -> MomentLikeOutcome {
    try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: id)
  }

  /// Waits until the like is to be sent again after a delay, advances the clock by it, and waits until the like is sent.
  func sendAgain(after delay: Duration = .seconds(1)) async {
    await clock.sleepers()
    clock.advance(by: delay)
    await repo.waitUntilSent()
  }

  /// Returns the stored timeline with the pending like.
  func timeline() async -> MomentsDetails? {
    await repo.momentsDetails(userID: id).first(1).first
  }

  // MARK: - Control

  /// Arms a fault for the next requests with an operation, `fetch` or `like`, in place of the armed ones.
  func arm(_ fault: String, for operation: String, count: Int = 1) async throws {
    struct Variables: Encodable {
      let userID: String
      let operation: String
      let fault: String
      let count: Int
    }
    struct Reply: Decodable {
      let arm: Bool
    }
    let document = """
      mutation Arm($userID: ID!, $operation: String!, $fault: String!, $count: Int!) {
        arm(userID: $userID, operation: $operation, fault: $fault, count: $count)
      }
      """
    _ = try await control.post(
      document: document, operationName: "Arm",
      variables: Variables(userID: id, operation: operation, fault: fault, count: count), as: Reply.self)
  }

  /// Returns the requests whose root field the server called, in order.
  func requests(_ operation: String) async throws -> [Request] {
    struct Reply: Decodable {
      let requests: [Request]
    }
    let document = "query Requests($userID: ID!) { requests(userID: $userID) { operation key wasApplied } }"
    return try await control.post(
      document: document, operationName: "Requests", variables: ["userID": id], as: Reply.self
    ).requests.filter { $0.operation == operation }
  }

  private static func proxy(_ control: APISession) async throws -> URL {
    struct Reply: Decodable {
      let proxy: URL
    }
    return try await control.post(
      document: "query Proxy { proxy }", operationName: "Proxy", variables: [String: String](), as: Reply.self
    ).proxy
  }
}
