import Foundation
import GraphQLClient
import Moments
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// What the repository makes of the replies of Ariadne, Strawberry and nginx.
///
/// In contrast to the servers of the other tests, these say by themselves how failures look.
@Suite(.requiresGraphQLServers, .timeLimit(.minutes(15)))
struct GraphQLServersTests {
  private static func path(of operation: String, _ rest: GraphQLError.PathElement...) -> [GraphQLError.PathElement] {
    [.field(operation == "like" ? "updateMomentLike" : "getMomentsDetailsByUserID")] + rest
  }

  // MARK: - Errors with codes

  /// Likes with a token that the server doesn't accept, and then signs in.
  private static func likeWithExpiredToken(_ token: String, _ user: ServerUser) async throws {
    user.token.set(token)
    try #require(try await user.like() == .queued)
    try #require(try await user.repo.mutations.list().map(\.standing) == [.needsSignIn])
    #expect(await user.timeline()?.moments[0].isLiked == true)
    user.token.set("valid")
    await user.repo.credentialsChanged(userID: user.id)
    await user.repo.waitUntilSent()
  }

  // Strawberry refuses the second token with a permission class, before it calls the field.
  @Test(
    arguments: [
      (.ariadne, "expired", 2), (.strawberry, "expired", 2), (.strawberry, "denied", 1),
    ] as [(ForeignServer, String, Int)])
  func `A like with an expired token waits for the sign-in, and is then sent once more and confirmed`(
    server: ForeignServer, token: String, calls: Int
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      try await Self.likeWithExpiredToken(token, user)
      let likes = try await user.requests("like")
      #expect(likes.map(\.wasApplied) == [false, true].suffix(calls))
      #expect(Set(likes.map(\.key)).count == 1)
      #expect(try await user.repo.mutations.list().isEmpty)
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases)
  func `A throttled like is sent again after the wait of Retry-After`(server: ForeignServer) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      let events = user.repo.events.subscribe()
      try await user.arm("throttled", for: "like")
      try #require(try await user.like() == .queued)
      for await case .retryScheduled(_, 1, let delay, _) in events {
        #expect(delay == .seconds(7))
        break
      }
      await user.sendAgain(after: .seconds(7))
      #expect(try await user.requests("like").map(\.wasApplied) == [false, true])
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases)
  func `A like that fails after the change is sent again under its key, made once, and stays visible`(
    server: ForeignServer
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      try await user.arm("internal-error", for: "like")
      try #require(try await user.like() == .queued)
      await user.sendAgain()
      let likes = try await user.requests("like")
      #expect(likes.map(\.wasApplied) == [true, false])
      #expect(likes[0].key != nil && likes[0].key == likes[1].key)
    }
    #expect(seen == [false, true])
  }

  // MARK: - Errors without codes

  @Test(arguments: ForeignServer.allCases)
  func `A document that the server's schema doesn't have is refused, and pages are replaced by complete timelines`(
    server: ForeignServer
  ) async throws {
    _ = try await ServerUser.run(on: server) { user in
      let error = await #expect(throws: APISessionError.self) {
        try await user.apiSession.post(
          document: "query Nothing { nothing }", operationName: "Nothing", variables: [String: String](),
          as: [String: Int].self)
      }
      #expect(error?.meaning(by: .standard) == .refused)
      #expect(error?.isTransient == false)
      try await user.repo.reloadMoments(userID: user.id)
      #expect(await user.timeline()?.moments.count == 3)
      #expect(await user.timeline()?.pageInfo == nil)
    }
  }

  // The server has made the like, which a client can't know from such a reply. If the server gives codes to its refusals,
  // the app says so, as in the next test.
  @Test(arguments: ForeignServer.allCases)
  func `An exception of the like's resolver is a refusal, because neither server gives it a code`(
    server: ForeignServer
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      try await user.arm("exception", for: "like")
      let error = await #expect(throws: MomentsRepoError.self) { _ = try await user.like() }
      guard case .session(.graphQL(let errors, _, _)) = error else { return }
      #expect(errors == [GraphQLError(message: "The reply got lost.", path: Self.path(of: "like"))])
    }
    #expect(seen == [false, true, false])
  }

  @Test(arguments: ForeignServer.allCases)
  func `An exception of the like's resolver leaves the outcome unknown if the app's table says so`(
    server: ForeignServer
  ) async throws {
    var codes = GraphQLErrorCodes.standard
    codes.uncodedFieldErrors = .unknownOutcome
    let seen = try await ServerUser.run(on: server, errorCodes: codes) { user in
      try await user.arm("exception", for: "like")
      try #require(try await user.like() == .queued)
      await user.sendAgain()
      #expect(try await user.requests("like").map(\.wasApplied) == [true, false])
    }
    #expect(seen == [false, true])
  }

  // MARK: - Partial data

  @Test(arguments: ForeignServer.allCases)
  func `A timeline whose title can't be read by the server is shown, and the error is reported`(
    server: ForeignServer
  ) async throws {
    _ = try await ServerUser.run(on: server) { user in
      let reports = user.repo.incompleteReplies.subscribe()
      try await user.arm("failing-title", for: "fetch")
      try await user.repo.getMoments(userID: user.id)
      #expect(await user.timeline()?.moments.map(\.title) == [nil, "Moment 1", "Moment 2"])
      let path = Self.path(of: "fetch", .field("moments"), .index(0), .field("title"))
      let error = GraphQLError(message: "The titles can't be reached.", path: path)
      #expect(await reports.first(1) == [IncompleteReply(request: .fetch(userID: user.id), errors: [error])])
    }
  }

  @Test(arguments: ForeignServer.allCases)
  func `A like whose reply lacks a title is confirmed, and the error is reported`(server: ForeignServer) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      let reports = user.repo.incompleteReplies.subscribe()
      try await user.arm("failing-title", for: "like")
      try #require(try await user.like() == .confirmed)
      #expect(await reports.first(1).map(\.errors.count) == [1])
      #expect(try await user.requests("like").count == 1)
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases, ["failing-date", "forbidden-date"])
  func `A like whose reply lacks a field that can't be null is sent once, and confirmed by a fetched timeline`(
    server: ForeignServer, fault: String
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      let reports = user.repo.incompleteReplies.subscribe()
      try await user.arm(fault, for: "like")
      try #require(try await user.like() == .confirmed)
      let path = Self.path(of: "like", .field("moments"), .index(0), .field("createdDate"))
      #expect(await reports.first(1).map { $0.errors.map(\.path) } == [[path]])
      #expect(try await user.requests("like").map(\.wasApplied) == [true])
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases)
  func `A like is confirmed and not sent again if the server doesn't return a timeline afterwards either`(
    server: ForeignServer
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      for operation in ["like", "fetch"] { try await user.arm("failing-date", for: operation, count: 100) }
      // The fetch is refused, so the like is applied to the stored timeline.
      try #require(try await user.like() == .confirmed)
      #expect(try await user.repo.mutations.list().isEmpty)
      #expect(try await user.requests("like").map(\.wasApplied) == [true])
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases)
  func `A fetch without data fails, and the stored timeline stays`(server: ForeignServer) async throws {
    _ = try await ServerUser.run(on: server) { user in
      try await user.arm("failing-date", for: "fetch")
      await #expect(throws: MomentsRepoError.self) { try await user.repo.getMoments(userID: user.id) }
      #expect(await user.timeline()?.moments.count == 3)
    }
  }

  // MARK: - Replies that can't be read

  @Test(arguments: ForeignServer.allCases)
  func `A like whose timeline has another shape is sent once, and confirmed by a fetched timeline`(
    server: ForeignServer
  ) async throws {
    let seen = try await ServerUser.run(on: server) { user in
      try await user.arm("null-photos", for: "like")
      try #require(try await user.like() == .confirmed)
      #expect(try await user.requests("like").count == 1)
    }
    #expect(seen == [false, true])
  }

  @Test func `A cut title of Strawberry is repaired in a timeline and in the reply to a like`() async throws {
    let seen = try await ServerUser.run(on: .strawberry) { user in
      for operation in ["fetch", "like"] { try await user.arm("lone-surrogate", for: operation) }
      try await user.repo.getMoments(userID: user.id)
      #expect(await user.timeline()?.moments[0].title == "cut \u{FFFD}")
      try #require(try await user.like() == .confirmed)
      #expect(await user.timeline()?.moments[0].title == "cut \u{FFFD}")
      #expect(try await user.requests("like").count == 1)
    }
    #expect(seen == [false, true])
  }

  // Ariadne can't encode such a title. It answers with the status 500 and text.
  @Test func `A like whose reply Ariadne can't encode is sent again under its key, made once, and stays visible`()
    async throws
  {
    let seen = try await ServerUser.run(on: .ariadne) { user in
      for operation in ["fetch", "like"] { try await user.arm("lone-surrogate", for: operation) }
      let failure = MomentsRepoError.session(.statusCode(500, bodyExcerpt: "Internal Server Error"))
      await #expect(throws: failure) { try await user.repo.getMoments(userID: user.id) }
      try #require(try await user.like() == .queued)
      await user.sendAgain()
      #expect(try await user.requests("like").map(\.wasApplied) == [true, false])
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ForeignServer.allCases)
  func `A like whose reply exceeds the limit is sent again under its key, made once, and stays visible`(
    server: ForeignServer
  ) async throws {
    let limit = 16 * 1024
    let seen = try await ServerUser.run(on: server, maximumReplySize: limit) { user in
      for operation in ["fetch", "like"] { try await user.arm("long-title", for: operation) }
      await #expect(throws: MomentsRepoError.session(.replyTooLarge(limit: limit))) {
        try await user.repo.getMoments(userID: user.id)
      }
      try #require(try await user.like() == .queued)
      await user.sendAgain()
      #expect(try await user.requests("like").map(\.wasApplied) == [true, false])
    }
    #expect(seen == [false, true])
  }

  // MARK: - A proxy

  @Test(arguments: ForeignServer.allCases, ["", "repeated"])
  func `Replies and errors count if nginx compresses them, and if it repeats Content-Type`(
    server: ForeignServer, location: String
  ) async throws {
    let seen = try await ServerUser.run(on: server, behind: location) { user in
      try await Self.likeWithExpiredToken("expired", user)
      #expect(try await user.requests("like").map(\.wasApplied) == [false, true])
    }
    #expect(seen == [false, true])
  }

  @Test func `A request that is too large for nginx is refused`() async throws {
    let error = await #expect(throws: MomentsRepoError.self) {
      _ = try await ServerUser.run(on: .ariadne, behind: "small") { _ in }
    }
    guard case .session(let failure) = error else { return }
    #expect(failure.status == 413)
    #expect(!failure.isTransient)
  }

  @Test func `A server that nginx can't reach may be reached later`() async throws {
    let error = await #expect(throws: MomentsRepoError.self) {
      _ = try await ServerUser.run(on: .ariadne, behind: "unavailable") { _ in }
    }
    guard case .session(let failure) = error else { return }
    #expect(failure.status == 502)
    #expect(failure.isTransient)
  }
}
