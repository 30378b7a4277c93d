internal import Foundation
internal import GraphQLClient
internal import Multicast
internal import TestSupport

extension TestChild {
  /// Starts a server, prints its URL, and answers each request with the script that the request contains.
  ///
  /// The process exits when standard input ends.
  static func serveRequestedScripts() throws {
    let server = try ScriptedServer()
    Thread.detachNewThread {
      while !FileHandle.standardInput.availableData.isEmpty {}
      exit(0)
    }
    say(server.url.absoluteString)
    server.serveRequestedScripts()
  }

  /// A recorder of measurements while the process communicates with hostile servers.
  private final class Recorder: Sendable {
    private let observations = Lock(Observations())

    func record(_ body: (inout Observations) -> Void) {
      observations.withLock { body(&$0) }
    }

    var value: Observations { observations.withLock { $0 } }
  }

  private struct Observations: Encodable {
    /// The greatest delay of the wake-ups of a task that repeatedly sleeps for 10 ms.
    var latestWakeMilliseconds = 0.0
    /// The duration of the slowest call that the good server answered within the call's timeout.
    var slowestGoodCallMilliseconds = 0.0
    /// The number of calls that the good server answered within their timeout.
    var goodCallCount = 0
    /// The longest time by which a call to a hostile server exceeded its timeout.
    var longestOverrunMilliseconds = 0.0
    /// The greatest growth of the resident memory since the measurements began.
    var memoryGrowthKiB = 0
    /// The number of calls to each kind of hostile server with each outcome.
    var outcomes: [String: Int] = [:]
  }

  /// Calls twenty hostile servers of each of the first `kindCount` kinds concurrently, and prints the measurements.
  ///
  /// The server at `address` simulates them all, and a good one: it answers each call with the script in the call.
  static func meetHostileServers(_ address: String, kindCount: Int) async throws {
    guard let url = URL(string: address) else { fail("\(address) is not a URL") }
    // A first call, so that one-time allocations don't count.
    _ = try await callGoodServer(at: url)
    let initialMemory = residentMemory()
    let recorder = Recorder()

    let sleeper = Task {
      while !Task.isCancelled {
        let begin = ContinuousClock.now
        try? await Task.sleep(for: .milliseconds(10))
        let delay = (ContinuousClock.now - begin - .milliseconds(10)) / .milliseconds(1)
        let growth = residentMemory() - initialMemory
        recorder.record {
          $0.latestWakeMilliseconds = max($0.latestWakeMilliseconds, delay)
          $0.memoryGrowthKiB = max($0.memoryGrowthKiB, growth)
        }
      }
    }
    let goodCaller = Task {
      while !Task.isCancelled {
        let begin = ContinuousClock.now
        do {
          _ = try await callGoodServer(at: url)
        } catch {
          if Task.isCancelled { return }
          // On a busy machine, a call may exceed its timeout.
          if case APISessionError.timedOut = error { continue }
          fail("A good server's reply was lost: \(error)")
        }
        let duration = (ContinuousClock.now - begin) / .milliseconds(1)
        recorder.record {
          $0.goodCallCount += 1
          $0.slowestGoodCallMilliseconds = max($0.slowestGoodCallMilliseconds, duration)
        }
      }
    }
    await withTaskGroup { group in
      for _ in 0..<20 {
        for (name, script) in hostileScripts.prefix(kindCount) {
          group.addTask {
            let begin = ContinuousClock.now
            let outcome = await callHostileServer(at: url, script)
            let overrun = (ContinuousClock.now - begin - hostileCallTimeout) / .milliseconds(1)
            recorder.record {
              $0.longestOverrunMilliseconds = max($0.longestOverrunMilliseconds, overrun)
              $0.outcomes["\(name): \(outcome)", default: 0] += 1
            }
          }
        }
      }
    }
    sleeper.cancel()
    goodCaller.cancel()
    _ = await (sleeper.value, goodCaller.value)
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    say(String(decoding: try encoder.encode(recorder.value), as: UTF8.self))
  }

  /// The timeout of a call to a hostile server.
  private static let hostileCallTimeout = Duration.seconds(2)

  private static let hostileScripts: [(name: String, script: ScriptedServer.Script)] = {
    let head = "HTTP/1.1 200 OK\r\n"
    let (spaces, header) = (Data("        ".utf8), Data("x-a: 1\r\n".utf8))
    return [
      ("body without end", .init(Data("\(head)\r\n".utf8), ending: .flood(spaces))),
      ("20,000 headers", .init(Data(head.utf8), repeating: header, count: 20_000)),
      ("302 with an endless body", .init(Data("HTTP/1.1 302 x\r\nLocation: /x\r\n\r\n".utf8), ending: .flood(spaces))),
      ("headers without end", .init(Data(head.utf8), ending: .flood(header))),
      ("a head that stops", .init(Data(head.utf8), ending: .waitForClient)),
      ("a body that trickles", .init(Data("\(head)\r\n".utf8), ending: .trickle)),
    ]
  }()

  /// Calls a hostile server, and returns the outcome of the call.
  private static func callHostileServer(at url: URL, _ script: ScriptedServer.Script) async -> String {
    let session = APISession(url: url, timeout: hostileCallTimeout, maximumReplySize: 256 * 1024)
    do {
      _ = try await session.post(
        document: "{ a }", operationName: "", variables: ScriptedServer.RequestedScript(script), as: [String: Int].self)
      return "value"
    } catch {
      return switch error {
      case .replyTooLarge: "too large"
      case .notAnAPIResponse: "not an API"
      case .timedOut: "timed out"
      case .transport(let error): "transport \(error.code.rawValue)"
      default: "\(error)"
      }
    }
  }

  private static func callGoodServer(at url: URL) async throws -> [String: Int] {
    try await APISession(url: url).post(
      document: "{ a }", operationName: "", variables: ScriptedServer.RequestedScript(.json(#"{"data":{"a":1}}"#)),
      as: [String: Int].self)
  }

  /// Returns the resident memory in KiB, assuming pages of 4 KiB; 0 if the system doesn't report it.
  private static func residentMemory() -> Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4
  }
}
