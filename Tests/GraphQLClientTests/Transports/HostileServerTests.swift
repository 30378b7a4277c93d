#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  /// A process that communicates with many hostile servers at the same time.
  ///
  /// The client and the servers run in two separate processes, because the memory and the delays of the client are
  /// measured. Times and memory are meaningful only if nothing else runs, so they are checked only if the command line
  /// names this suite: `swift test --filter HostileServerTests`.
  @Suite(.serialized, .timeLimit(.minutes(15)))
  struct HostileServerTests {
    /// The measurements that the client prints; `TestChild` documents each of them.
    private struct Observations: Decodable {
      let latestWakeMilliseconds: Double
      let slowestGoodCallMilliseconds: Double
      let goodCallCount: Int
      let longestOverrunMilliseconds: Double
      let memoryGrowthKiB: Int
      let outcomes: [String: Int]
    }

    private static let isMachineQuiet = CommandLine.arguments.contains("HostileServerTests")

    /// Calls twenty hostile servers of each of the first `kindCount` kinds in a process, and returns its measurements.
    private static func meetHostileServers(kindCount: Int) async throws -> Observations {
      let folder = FileManager.default.temporaryDirectory
      var servers = try ChildProcess("serve-requested-scripts", folder)
      let address = try #require(await servers.line())
      var client = try ChildProcess("meet-hostile-servers", folder, [address, "\(kindCount)"])
      let line = try #require(await client.line())
      let observations = try JSONDecoder().decode(Observations.self, from: Data(line.utf8))
      #expect(await client.end() == .success)
      servers.endInput()
      #expect(await servers.end() == .success)
      return observations
    }

    @Test func `A process survives 120 hostile servers, and no call to them succeeds`() async throws {
      let observations = try await Self.meetHostileServers(kindCount: 6)
      #expect(observations.goodCallCount > 0)
      if Self.isMachineQuiet {
        // -1011 is the code of `URLError.badServerResponse`.
        #expect(
          observations.outcomes == [
            "body without end: too large": 20, "20,000 headers: transport -1011": 20,
            "302 with an endless body: not an API": 20, "headers without end: transport -1011": 20,
            "a head that stops: timed out": 20, "a body that trickles: timed out": 20,
          ])
        #expect(observations.memoryGrowthKiB < 32 * 1024)
      } else {
        // On a busy machine, any call may have timed out. The outcome "value" means that a call succeeded.
        #expect(observations.outcomes.values.reduce(0, +) == 120)
        #expect(observations.outcomes.keys.allSatisfy { !$0.hasSuffix("value") })
      }
    }

    @Test(.enabled(if: isMachineQuiet, "measures times: use --filter HostileServerTests where nothing else runs"))
    func `Twenty endless bodies and twenty header floods delay no task and no other call, and use little memory`()
      async throws
    {
      var observations = try await Self.meetHostileServers(kindCount: 2)
      // Repeats a slow run, because other virtual machines on the same hardware can only slow a run down.
      for _ in 0..<2 where observations.latestWakeMilliseconds >= 100 {
        observations = try await Self.meetHostileServers(kindCount: 2)
      }
      #expect(observations.outcomes == ["body without end: too large": 20, "20,000 headers: transport -1011": 20])
      #expect(observations.latestWakeMilliseconds < 100)
      #expect(observations.goodCallCount > 0)
      #expect(observations.slowestGoodCallMilliseconds < 1000)
      #expect(observations.longestOverrunMilliseconds < 200)
      #expect(observations.memoryGrowthKiB < 32 * 1024)
    }
  }
#endif
