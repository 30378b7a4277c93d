import DataStore
import Foundation
import GraphQLClient
import Moments
import TestSupport
import Testing

@testable import MomentsTesting

struct DemonstrationServerKeyTests {
  private static func statusError(_ code: Int, _ escapedMessage: String) -> APISessionError {
    .statusCode(code, bodyExcerpt: #"{"errors":[{"message":"\#(escapedMessage)"}]}"#)
  }

  @Test func `A change that is sent again under its key is made once, and gets the first reply`() async throws {
    let backend = DemonstrationServer()
    let firstReply = try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    let unliked = try await backend.updateLike(false, momentID: "1", fromUserID: "0", idempotencyKey: "other")
    #expect(firstReply.moments[1].isLiked == true)
    #expect(try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key") == firstReply)
    #expect(try await backend.getMoments(userID: "0") == unliked)
    // Without its key, the change is made again.
    #expect(try await backend.updateLike(true, momentID: "1", fromUserID: "0") == firstReply)
    #expect(try await backend.getMoments(userID: "0") == firstReply)
  }

  @Test func `Keys and their replies are stored with the timelines`() async throws {
    let folder = TemporaryFolder()
    let backend = try await DemonstrationServer.open(FileStore(folder: folder.url))
    let firstReply = try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    let unliked = try await backend.updateLike(false, momentID: "1", fromUserID: "0")
    let reopened = try await DemonstrationServer.open(FileStore(folder: folder.url))
    #expect(try await reopened.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key") == firstReply)
    #expect(try await reopened.getMoments(userID: "0") == unliked)
  }

  @Test func `Concurrent attempts make a change once, and get the same reply`() async throws {
    let folder = TemporaryFolder()
    let backend = try await DemonstrationServer.open(FileStore(folder: folder.url))
    let replies = try await withThrowingTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(replies == Array(repeating: try await backend.getMoments(userID: "0"), count: 8))
    #expect(replies[0].moments[1].likes?.map(\.id) == ["4", "0"])
  }

  @Test func `A stored state that this version can't decode is replaced by the next change`() async throws {
    let folder = TemporaryFolder()
    try await FileStore(folder: folder.url).save(7, for: StoreKey<Int>("demo-server"))
    let backend = try await DemonstrationServer.open(FileStore(folder: folder.url))
    let liked = try await backend.updateLike(true, momentID: "1", fromUserID: "0")
    let reopened = try await DemonstrationServer.open(FileStore(folder: folder.url))
    #expect(try await reopened.getMoments(userID: "0") == liked)
  }

  @Test func `Servers on one folder keep each other's changes`() async throws {
    let folder = TemporaryFolder()
    let servers = [
      try await DemonstrationServer.open(FileStore(folder: folder.url)),
      try await DemonstrationServer.open(FileStore(folder: folder.url)),
    ]
    let momentIDs = try await servers[0].getMoments(userID: "0").moments.map(\.id)
    try await withThrowingTaskGroup { group in
      for (number, momentID) in momentIDs.enumerated() {
        let server = servers[number % 2]
        group.addTask { _ = try await server.updateLike(true, momentID: momentID, fromUserID: "0") }
      }
      try await group.waitForAll()
    }
    for server in servers {
      #expect(try await server.getMoments(userID: "0").moments.allSatisfy { $0.isLiked == true })
    }
  }

  @Test func `A key that belongs to another change is refused with the same error as on the GraphQL server`()
    async throws
  {
    let backend = DemonstrationServer()
    _ = try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    let refusal = Self.statusError(
      422, #"The Idempotency-Key \"key\" belongs to another request. Give each change its own key."#)
    for (isLiked, momentID, userID) in [(false, "1", "0"), (true, "3", "0"), (true, "1", "1")] {
      await #expect(throws: refusal) {
        try await backend.updateLike(isLiked, momentID: momentID, fromUserID: userID, idempotencyKey: "key")
      }
    }
    #expect(try await backend.getMoments(userID: "0").moments[3].isLiked == false)
  }

  @Test func `The error about a key is valid JSON even if the key contains control characters`() async throws {
    let backend = DemonstrationServer()
    let key = "/a\\b\"c\nd\te\u{1}"
    _ = try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: key)
    let refusal = Self.statusError(
      422,
      #"The Idempotency-Key \"/a\\b\"c\nd\te\u0001\" belongs to another request. Give each change its own key."#)
    await #expect(throws: refusal) {
      try await backend.updateLike(false, momentID: "1", fromUserID: "0", idempotencyKey: key)
    }
  }

  @Test(arguments: ["", String(repeating: "k", count: 256)])
  func `A key of an invalid length is refused with the same error as on the GraphQL server`(key: String) async throws {
    let backend = DemonstrationServer()
    await #expect(throws: Self.statusError(400, "An Idempotency-Key has 1 to 255 characters.")) {
      try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: key)
    }
    #expect(try await backend.getMoments(userID: "0").moments[1].isLiked == false)
  }

  @Test func `The refusal of a change is also stored under the key of the change`() async throws {
    let backend = DemonstrationServer()
    let message = #"The timeline of user "0" has no moment with the id "100"."#
    let refusal = APISessionError.graphQL([GraphQLError(message: message, path: [.field("updateMomentLike")])])
    for _ in 0..<2 {
      await #expect(throws: refusal) {
        try await backend.updateLike(true, momentID: "100", fromUserID: "0", idempotencyKey: "key")
      }
    }
    let error = await #expect(throws: APISessionError.self) {
      try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    }
    guard case .statusCode(422, _, _) = error else {
      Issue.record("expected the status 422, got \(String(describing: error))")
      return
    }
  }

  @Test func `An attempt that doesn't reach the server leaves its key unused`() async throws {
    let backend = DemonstrationServer()
    await backend.setOnline(false)
    await #expect(throws: APISessionError.transport(URLError(.notConnectedToInternet))) {
      try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    }
    await backend.setOnline(true)
    let details = try await backend.updateLike(false, momentID: "0", fromUserID: "0", idempotencyKey: "key")
    #expect(details.moments[0].isLiked == false)
  }

  @Test func `A change that can't be stored is not acknowledged, and a later attempt makes it once`() async throws {
    let folder = TemporaryFolder()
    let backend = try await DemonstrationServer.open(FileStore(folder: folder.url))
    // The folder doesn't exist yet. A file in its place makes every write fail.
    try Data().write(to: folder.url)
    let error = await #expect(throws: APISessionError.self) {
      try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    }
    #expect(error?.isTransient == true)
    try folder.remove()
    let details = try await backend.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
    #expect(details.moments[1].likes?.map(\.id) == ["4", "0"])
    let reopened = try await DemonstrationServer.open(FileStore(folder: folder.url))
    #expect(try await reopened.getMoments(userID: "0") == details)
  }

  @Test func `If there are too many replies, only the oldest is discarded`() throws {
    var state = DemonstrationServerState(timelines: DemonstrationData.timelines)
    let like = DemonstrationServerState.Change(momentID: "1", userID: "0", isLiked: true)
    for number in 0...DemonstrationServerState.maximumReplyCount {
      _ = try state.reply(to: like, key: "\(number)")
    }
    var unlike = like
    unlike.isLiked = false
    #expect(throws: APISessionError.self) { try state.reply(to: unlike, key: "1") }
    guard case .made(let details) = try state.reply(to: unlike, key: "0") else {
      Issue.record("expected the change to be made")
      return
    }
    #expect(details.moments[1].isLiked == false)
  }
}
