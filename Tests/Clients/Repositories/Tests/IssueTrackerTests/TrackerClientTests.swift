import Foundation
import IssueTracker
import Multicast
import Testing

@Suite(.timeLimit(.minutes(1))) struct TrackerClientTests {
  private static func withServer(_ body: (TrackerServer, TrackerClient) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    let server = try await TrackerServer(journal: folder.url.appending(path: "journal"))
    let client = TrackerClient(server: server.url)
    let result: Result<Void, any Error>
    do {
      try await client.signIn(as: "ann")
      result = .success(try await body(server, client))
    } catch {
      result = .failure(error)
    }
    await server.stop()
    try result.get()
  }

  @Test func `A change whose reply is lost is made once, also after a restart of the server`() async throws {
    try await Self.withServer { server, client in
      let faults = ["LOST_REQUEST", "LOST_REPLY", "CUT_REPLY", "FAILURE", "CRASH"]
      for fault in faults {
        try await server.arm(fault)
        await #expect(throws: TrackerError.noReply) {
          try await client.create(Issue(id: fault, title: fault), in: "p", requestID: fault)
        }
      }
      try await server.restart()
      try await client.signIn(as: "ann")
      var numbers: [Int?] = []
      for fault in faults + faults {
        let issue = Issue(id: fault, title: fault)
        numbers.append(try await client.create(issue, in: "p", requestID: fault).issue.number)
      }
      #expect(numbers == [4, 1, 2, 3, 5, 4, 1, 2, 3, 5])
      try await #expect(server.changes().map(\.key) == faults.dropFirst().dropLast() + [faults[0], faults[4]])
    }
  }

  @Test func `Errors say what they mean for a change`() async throws {
    try await Self.withServer { server, client in
      let created = try await client.create(Issue(id: "0", title: "a"), in: "p", requestID: "1")
      _ = try await client.edit("0", ["title": "b"], version: created.version, requestID: "2")
      await #expect(throws: TrackerError.outdated) {
        try await client.edit("0", ["title": "c"], version: created.version, requestID: "3")
      }
      await #expect(throws: TrackerError.impossible) {
        try await client.edit("0", ["state": "open"], requestID: "4")
      }
      try await client.delete("0", requestID: "5")
      await #expect(throws: TrackerError.missing) { try await client.issue("0") }
      try await server.arm("BUSY")
      let busy = await #expect(throws: TrackerError.self) { try await client.issues(of: "p", after: nil, limit: 1) }
      #expect(busy == .busy(retryAfter: .zero) || busy == .busy(retryAfter: .seconds(1)))
      try await server.signOutAll()
      await #expect(throws: TrackerError.signedOut) { try await client.issue("0") }
      for await isSignedIn in client.session.isSignedIn {
        #expect(!isSignedIn)
        break
      }
    }
  }

  @Test func `An issue that hasn't changed isn't sent again`() async throws {
    try await Self.withServer { server, client in
      let created = try await client.create(Issue(id: "0", title: "a"), in: "p", requestID: "1")
      try await #expect(client.issue("0") == created)
      // Only a reply with a body can be cut.
      try await server.arm("CUT_REPLY")
      try await #expect(client.issue("0") == created)
      let edited = try await client.edit("0", ["title": "b"], requestID: "2")
      try await #expect(client.issue("0") == edited)
    }
  }

  @Test func `Pages follow each other without gaps`() async throws {
    try await Self.withServer { server, client in
      for number in 0..<5 {
        _ = try await server.admin.create(Issue(id: "\(number)", title: "a"), in: "p", requestID: "\(number)")
      }
      let first = try await client.issues(of: "p", after: nil, limit: 2)
      // An issue that is created meanwhile isn't on a later page.
      _ = try await server.admin.create(Issue(id: "5", title: "a"), in: "p", requestID: "5")
      let second = try await client.issues(of: "p", after: first.next, limit: 2)
      let third = try await client.issues(of: "p", after: second.next, limit: 2)
      #expect([first, second, third].map { $0.issues.map(\.id) } == [["4", "3"], ["2", "1"], ["0"]])
      #expect(third.next == nil)
    }
  }
}
