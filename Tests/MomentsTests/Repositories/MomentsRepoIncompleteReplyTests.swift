import DataStore
import Foundation
import GraphQLClient
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

@testable import Moments

/// Replies with data beside errors.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoIncompleteReplyTests {
  private static func makeRepo(_ transport: JSONTransport) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: transport.apiSession),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: transport.apiSession), clock: ManualClock())
  }

  private static func field(of operation: String) -> String {
    operation == "updateMomentLike" ? operation : "getMomentsDetailsByUserID"
  }

  private static func error(at operation: String) -> GraphQLError {
    GraphQLError(
      message: "boom", path: [.field(field(of: operation)), .field("moments"), .index(0), .field("title")])
  }

  /// Answers with all moments, and with an error at the title of the first one.
  private static let partial = JSONTransport { operation in
    let timeline = JSONTransport.timeline(title: "null", isLiked: operation == "updateMomentLike")
    let field = field(of: operation)
    return Data(
      #"""
      {"data":{"\#(field)":\#(timeline)},"errors":[{"message":"boom","path":["\#(field)","moments",0,"title"]}]}
      """#.utf8)
  }

  @Test func `A timeline beside an error at a nullable field is shown, and the error is reported`() async throws {
    let repo = Self.makeRepo(Self.partial)
    let reports = repo.incompleteReplies.subscribe()
    try await repo.getMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments.count) == [7])
    try await repo.reloadMoments(userID: "0")
    #expect(
      await reports.first(2) == [
        IncompleteReply(request: .fetch(userID: "0"), errors: [Self.error(at: "getMomentsDetailsByUserID")]),
        IncompleteReply(request: .fetch(userID: "0"), errors: [Self.error(at: "getMomentsPage")]),
      ])
  }

  @Test func `A like whose reply has an error at a nullable field is confirmed, and the error is reported`()
    async throws
  {
    let transport = Self.partial
    let repo = Self.makeRepo(transport)
    let reports = repo.incompleteReplies.subscribe()
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [true])
    let like = MomentLike(userID: "0", momentID: "0", isLiked: true)
    let report = IncompleteReply(request: .like(like), errors: [Self.error(at: "updateMomentLike")])
    #expect(await reports.first(1) == [report])
    #expect(
      report.description
        == "The timeline after the like of 0 is incomplete: boom (at updateMomentLike.moments.0.title)")
    #expect(try await repo.mutations.list() == [])
  }

  @Test(arguments: [#"["updateMomentLike","moments",0,"isLiked"]"#, #"["updateMomentLike","moments",0]"#])
  func `A like whose reply lacks the like because of an error is confirmed by a fetched timeline, and stays visible`(
    path: String
  ) async throws {
    let isLiked = Lock(false)
    let transport = JSONTransport { operation in
      let field = Self.field(of: operation)
      guard operation == "updateMomentLike" else {
        let timeline = JSONTransport.timeline(title: "null", isLiked: isLiked.withLock { $0 })
        return Data(#"{"data":{"\#(field)":\#(timeline)}}"#.utf8)
      }
      isLiked.withLock { $0 = true }
      let timeline = JSONTransport.timeline(title: "null").replacing(#""isLiked":false"#, with: #""isLiked":null"#)
      return Data(
        #"{"data":{"\#(field)":\#(timeline)},"errors":[{"message":"boom","path":\#(path)}]}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    let reports = repo.incompleteReplies.subscribe()
    try await repo.getMoments(userID: "0")
    let observer = repo.momentsDetails(userID: "0").subscribe()
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [false, true])
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [true])
    #expect(await reports.first(1).map(\.request) == [.like(MomentLike(userID: "0", momentID: "0", isLiked: true))])
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 1)
  }

  @Test func `A page whose page info is missing because of an error fails, and the stored list stays`() async throws {
    let pageInfo = Lock(#"{"endCursor":"6","hasNextPage":true}"#)
    let transport = JSONTransport { operation in
      let field = Self.field(of: operation)
      let info = pageInfo.withLock { $0 }
      let timeline = JSONTransport.timeline(title: "null").dropLast() + #","pageInfo":\#(info)}"#
      let errors = info == "null" ? #","errors":[{"message":"boom","path":["\#(field)","pageInfo"]}]"# : ""
      return Data(#"{"data":{"\#(field)":\#(timeline)}\#(errors)}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    try await repo.reloadMoments(userID: "0")
    pageInfo.withLock { $0 = "null" }
    let error = GraphQLError(message: "boom", path: [.field("getMomentsDetailsByUserID"), .field("pageInfo")])
    await #expect(throws: MomentsRepoError.session(.graphQL([error]))) { try await repo.reloadMoments(userID: "0") }
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.pageInfo?.hasNextPage) == [true])
  }

  @Test func `What a server can't return of a nullable list is left out`() async throws {
    let transport = JSONTransport { operation in
      let timeline = JSONTransport.timeline(title: "null")
        .replacing(#""photos":[]"#, with: #""photos":["a",null]"#, maxReplacements: 1)
        .replacing(#""likes":[]"#, with: #""likes":[null,{"id":"l","avatar":"a"}]"#, maxReplacements: 1)
        .replacing(#""moments":["#, with: #""moments":[null,"#)
        .replacing(#""photos":[]"#, with: #""photos":null"#, maxReplacements: 1)
      let field = Self.field(of: operation)
      return Data(
        #"{"data":{"\#(field)":\#(timeline)},"errors":[{"message":"boom","path":["\#(field)","moments",0]}]}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    try await repo.getMoments(userID: "0")
    let moments = try #require(await repo.momentsDetails(userID: "0").first(1).first?.moments)
    #expect(moments.map(\.id) == (0..<7).map { "\($0)" })
    #expect(moments[0].photos == ["a"])
    #expect(moments[0].likes?.map(\.id) == ["l"])
    #expect(moments[1].photos == [])
  }

  @Test func `A like and a timeline without data are failures, as before`() async throws {
    let transport = JSONTransport { operation in
      let field = Self.field(of: operation)
      return Data(#"{"data":null,"errors":[{"message":"boom","path":["\#(field)"]}]}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    for operation in ["getMomentsDetailsByUserID", "updateMomentLike"] {
      let error = GraphQLError(message: "boom", path: [.field(Self.field(of: operation))])
      await #expect(throws: MomentsRepoError.session(.graphQL([error]))) {
        if operation == "updateMomentLike" {
          try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
        } else {
          try await repo.getMoments(userID: "0")
        }
      }
    }
  }

  @Test(arguments: ["null", #"{"updateMomentLike":null}"#], ["UNAUTHENTICATED", "FORBIDDEN", "THROTTLED", ""])
  func `A like is made once and confirmed by a fetched timeline if an error below its field leaves no timeline`(
    data: String, code: String
  ) async throws {
    let isLiked = Lock(false)
    let transport = JSONTransport { operation in
      if operation == "updateMomentLike" {
        isLiked.withLock { $0 = true }
        let path = #"["updateMomentLike","moments",0,"createdDate"]"#
        return Data(
          #"{"data":\#(data),"errors":[{"message":"m","path":\#(path),"extensions":{"code":"\#(code)"}}]}"#.utf8)
      }
      let timeline = JSONTransport.timeline(title: "null", isLiked: isLiked.withLock { $0 })
      return Data(#"{"data":{"\#(Self.field(of: operation))":\#(timeline)}}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    let reports = repo.incompleteReplies.subscribe()
    try await repo.getMoments(userID: "0")
    let observer = repo.momentsDetails(userID: "0").subscribe()
    try #require(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [false, true])
    #expect(try await repo.mutations.list() == [])
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 1)
    let report = try #require(await reports.first(1).first)
    #expect(report.request == .like(MomentLike(userID: "0", momentID: "0", isLiked: true)))
    #expect(report.description.hasPrefix("The timeline after the like of 0 can't be read: The server sent none: m (at"))
  }

  @Test func `Invalid errors beside a complete timeline are reported`() async throws {
    let transport = JSONTransport { _ in
      Data(#"{"data":{"getMomentsDetailsByUserID":\#(JSONTransport.timeline(title: "null"))},"errors":[{}]}"#.utf8)
    }
    let repo = Self.makeRepo(transport)
    let reports = repo.incompleteReplies.subscribe()
    try await repo.getMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments.count) == [7])
    #expect(await reports.first(1).map(\.errors.count) == [1])
  }
}
