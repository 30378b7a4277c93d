#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  /// A process that talks to many hostile servers at once.
  ///
  /// It runs in a process of its own, beside a third one with the servers, because its memory and its threads are
  /// measured. Times and memory mean something only where nothing else runs, so they are checked under
  /// `MOMENTS_QUIET_MACHINE=1` alone.
  @Suite(.serialized, .timeLimit(.minutes(15)))
  struct HostileServerTests {
    private struct Observations: Decodable {
      let latestWakeMilliseconds: Double
      let slowestGoodCallMilliseconds: Double
      let goodCallCount: Int
      let longestOverrunMilliseconds: Double
      let memoryGrowthKiB: Int
      let outcomes: [String: Int]
    }

    private static let isMachineQuiet = ProcessInfo.processInfo.environment["MOMENTS_QUIET_MACHINE"] == "1"

    private static func meet(kindCount: Int) async throws -> Observations {
      let folder = FileManager.default.temporaryDirectory
      var servers = try ChildProcess("serve-requested-scripts", folder)
      let address = try #require(await servers.line())
      var client = try ChildProcess("meet-hostile-servers", folder, [address, "\(kindCount)"])
      let line = try #require(await client.line())
      let seen = try JSONDecoder().decode(Observations.self, from: Data(line.utf8))
      #expect(await client.end() == .success)
      servers.endInput()
      #expect(await servers.end() == .success)
      return seen
    }

    @Test func `A hundred and twenty hostile servers end no process, and each call ends as it should`() async throws {
      let seen = try await Self.meet(kindCount: 6)
      #expect(seen.goodCallCount > 0)
      if Self.isMachineQuiet {
        #expect(
          seen.outcomes == [
            "body without end: too large": 20, "redirection without end: not an API": 20,
            "20,000 headers: transport -1011": 20, "headers without end: transport -1011": 20,
            "a head that stops: timed out": 20, "a body that trickles: timed out": 20,
          ])
        #expect(seen.memoryGrowthKiB < 32 * 1024)
      } else {
        // A call that found no time within its limit has ended there.
        #expect(seen.outcomes.values.reduce(0, +) == 120)
        #expect(seen.outcomes.keys.allSatisfy { !$0.hasSuffix("value") })
      }
    }

    @Test(.enabled(if: isMachineQuiet, "measures times: set MOMENTS_QUIET_MACHINE=1 where nothing else runs"))
    func `Twenty floods and twenty header storms delay no task and no other call, and take no memory`() async throws {
      var seen = try await Self.meet(kindCount: 2)
      // Other machines on the same host can make a run slower, and never faster.
      for _ in 0..<2 where seen.latestWakeMilliseconds >= 100 { seen = try await Self.meet(kindCount: 2) }
      #expect(seen.outcomes == ["body without end: too large": 20, "20,000 headers: transport -1011": 20])
      #expect(seen.latestWakeMilliseconds < 100)
      #expect(seen.goodCallCount > 0)
      #expect(seen.slowestGoodCallMilliseconds < 1000)
      #expect(seen.longestOverrunMilliseconds < 200)
      #expect(seen.memoryGrowthKiB < 32 * 1024)
    }
  }
#endif
